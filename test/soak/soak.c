/* The clock of a soak: every CHURN_S of virtual time one object is edited, or deleted and made again; every ten
 * minutes the configuration is edited; every hour memory is sampled, then controllers are restarted. Prints a table and
 * `N passed, N failed`.
 *
 * Of descriptors and timers the least of each hour counts. A request in flight has a timer, and every connection that a
 * burst of requests has opened has two of each until it was idle for 90 s; a client may have 128 requests in flight. So at
 * any one moment there are as many as the last burst needed (604 to 801 timers were seen), which shows no leak; what leaks
 * is there at the quietest moment too.
 *
 *     SOAK_HOURS=24 SOAK_OBJECTS=10000 SOAK_SEED=1 soak DIR     (SOAK_LOG=1 shows the errors that are logged)
 *
 * RSS is compared with the sample of the first hour, when caches, history and events are full. Events are kept for an hour of
 * real time, at most 10,000: with few objects they take longer to reach that, and RSS grows by about 10 MiB until then. */
#include "soak.h"

#include "base/log.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum { CHURN_S = 2, CONFIG_S = 600, HOUR_S = 3600, HOURS_MAX = 1000 };

static const double RSS_GROWTH_MAX = 1.05;
enum { LEAST_MORE = 30 }; /* descriptors or timers, of about 600 */

struct sample {
    size_t rss_kib, heap_kib;
    size_t fds, timers;           /* the least of the hour */
    size_t most_fds, most_timers; /* for the table only */
    int64_t wall_ms;              /* what the hour took */
};

struct soak {
    struct soak_world world;
    struct soak_population population;
    struct sample samples[HOURS_MAX + 1];
    size_t hours, objects;
    size_t passed, failed;
};

static size_t count_fds(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* ".", ".." and the directory itself */
}

/* libuv keeps two descriptors of the process for signals from its first loop on: they are no leak. */
static size_t base_fds(void)
{
    struct loop *loop = NULL;
    err_t e;
    if (loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, &e) == 0)
        loop_free(loop);
    return count_fds();
}

static size_t read_rss_kib(void)
{
    size_t size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    int n = fscanf(f, "%zu %zu", &size, &resident);
    fclose(f);
    return n == 2 ? resident * (size_t)sysconf(_SC_PAGESIZE) / 1024 : 0;
}

static void sample_counts(struct sample *s, const struct soak_world *w)
{
    size_t fds = count_fds(), timers = world_timers(w);
    s->fds = MIN(s->fds, fds), s->most_fds = MAX(s->most_fds, fds);
    s->timers = MIN(s->timers, timers), s->most_timers = MAX(s->most_timers, timers);
}

static void sample_memory(struct sample *s)
{
    struct mallinfo2 heap = mallinfo2();
    s->rss_kib = read_rss_kib();
    s->heap_kib = (heap.uordblks + heap.hblkhd) / 1024;
}

static void print_sample(size_t hour, const struct sample *s, const struct soak *k)
{
    printf("%4zu %10zu %10zu %4zu-%-5zu %4zu-%-5zu %9zu %9zu %9.1f\n", hour, s->rss_kib,
           s->heap_kib, s->fds, s->most_fds, s->timers, s->most_timers, k->population.edited,
           k->population.deleted, (double)s->wall_ms / 1000);
    fflush(stdout);
}

static void verdict(struct soak *k, bool good, const char *what)
{
    printf("%s  %s\n", good ? "ok     " : "FAILED ", what);
    k->passed += good;
    k->failed += !good;
}

/* Broken configuration is part of the churn, and complained about each time: the lines would hide the table. */
static void drop_line(void *context, str line)
{
    (void)context, (void)line;
}

static int run_hour(struct soak *k, size_t hour, err_t *e)
{
    struct soak_world *w = &k->world;
    struct sample *sample = &k->samples[hour];
    int64_t begin = clock_mono_ns();
    *sample = (struct sample){ .fds = SIZE_MAX, .timers = SIZE_MAX };
    for (int s = 0; s < HOUR_S; s += CHURN_S) {
        population_churn(&k->population, w);
        if (s % CONFIG_S == 0)
            population_edit_config(&k->population, w);
        world_run_for(w, CHURN_S * NS_PER_S);
        if (s >= CONFIG_S)            /* controllers that were just started have fewer */
            sample_counts(sample, w); /* time has advanced: nothing was left to do at that moment */
    }
    world_drain(w);
    sample_memory(sample);
    sample->wall_ms = (clock_mono_ns() - begin) / NS_PER_MS;
    print_sample(hour, sample, k);
    if (hour == k->hours)
        return 0; /* the last sample is followed by the end */
    int r = world_restart_operator(w, e);
    r = r < 0 ? r : world_restart_agent(w, hour % SOAK_NODES, e);
    return r < 0 || hour % 3 ? r : world_restart_testbed(w, e);
}

static void judge_population(struct soak *k)
{
    static const struct {
        const struct resource *resource;
        const char *feature;
    } kinds[] = { { &soak_shpas, "schedule" },
                  { &soak_variants, "saturation" },
                  { &soak_allocations, "market" },
                  { &soak_services, "runtimeconfig" } };
    char text[600];
    for (size_t i = 0; i < countof(kinds); i++) {
        int64_t n = world_count(&k->world, kinds[i].resource);
        snprintf(text, sizeof(text), "%s: %lld %s at the end", kinds[i].feature, (long long)n,
                 kinds[i].resource->plural);
        verdict(k, n > 0, text);
    }
    snprintf(text, sizeof(text),
             "%zu requests of the churn answered, %zu lost a race, %zu refused%s%s",
             k->world.answered, k->world.raced, k->world.refused, k->world.refused ? ": " : "",
             k->world.first_refusal);
    verdict(k, k->world.refused == 0 && k->world.raced * 20 < k->world.answered, text);
}

static void judge_samples(struct soak *k)
{
    const struct sample *first = &k->samples[1];
    struct sample most = *first;
    for (size_t h = 2; h <= k->hours; h++) {
        const struct sample *s = &k->samples[h];
        most.rss_kib = MAX(most.rss_kib, s->rss_kib);
        most.fds = MAX(most.fds, s->fds);
        most.timers = MAX(most.timers, s->timers);
    }
    char text[200];
    snprintf(text, sizeof(text),
             "RSS at most %zu KiB, %+.1f %% of the first hour's %zu KiB (bound: 5 %%)",
             most.rss_kib, 100 * ((double)most.rss_kib / (double)first->rss_kib - 1),
             first->rss_kib);
    verdict(k, (double)most.rss_kib <= RSS_GROWTH_MAX * (double)first->rss_kib, text);
    snprintf(text, sizeof(text), "least descriptors of an hour at most %zu, %zu in the first hour",
             most.fds, first->fds);
    verdict(k, most.fds <= first->fds + LEAST_MORE, text);
    snprintf(text, sizeof(text), "least timers of an hour at most %zu, %zu in the first hour",
             most.timers, first->timers);
    verdict(k, most.timers <= first->timers + LEAST_MORE, text);
}

static int run(struct soak *k, err_t *e)
{
    struct soak_world *w = &k->world;
    int r = world_start(w, e);
    if (r < 0)
        return r;
    const char *seed = getenv("SOAK_SEED");
    population_make(&k->population, w, k->objects, seed ? strtoull(seed, NULL, 10) : 1);
    printf("%zu objects made in %lld requests\n", k->population.objects.n, (long long)w->answered);
    r = world_start_controllers(w, e);
    if (r < 0)
        return r;
    printf("%4s %10s %10s %-10s %-10s %9s %9s %9s\n", "hour", "RSS KiB", "heap KiB", "fds",
           "timers", "edits", "deletes", "wall s");
    for (size_t hour = 1; r >= 0 && hour <= k->hours; hour++)
        r = run_hour(k, hour, e);
    return r;
}

static size_t from_env(const char *name, size_t otherwise, size_t most)
{
    const char *text = getenv(name);
    size_t value = text ? strtoull(text, NULL, 10) : otherwise;
    return value < 1 ? 1 : MIN(value, most);
}

int main(int argc, char **argv)
{
    static struct soak k; /* zeros */
    err_t e = { 0 };
    if (argc != 2 || strlen(argv[1]) >= sizeof(k.world.dir)) {
        fprintf(stderr, "usage: soak DIR\n");
        return EXIT_FAILURE;
    }
    snprintf(k.world.dir, sizeof(k.world.dir), "%s", argv[1]);
    log_setup(LOG_ERROR, LOG_TEXT);
    if (!getenv("SOAK_LOG"))
        log_redirect(drop_line, NULL);
    k.hours = from_env("SOAK_HOURS", 24, HOURS_MAX);
    k.objects = from_env("SOAK_OBJECTS", 10000, 1000000);
    size_t fds = base_fds();
    int r = run(&k, &e);
    verdict(&k, r >= 0, r >= 0 ? "ran to the end" : e.text);
    if (r >= 0) {
        judge_samples(&k);
        judge_population(&k);
    }
    world_stop(&k.world);
    char text[100];
    if (k.world.loop) {
        snprintf(text, sizeof(text), "%zu timers are left when everything has ended",
                 world_timers(&k.world));
        verdict(&k, world_timers(&k.world) == 0, text);
    }
    loop_free(k.world.loop);
    metrics_free(k.world.metrics);
    population_done(&k.population);
    snprintf(text, sizeof(text), "%zu descriptors at the end, %zu at the start", count_fds(), fds);
    verdict(&k, count_fds() <= fds, text);
    printf("%zu passed, %zu failed\n", k.passed, k.failed);
    return k.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
