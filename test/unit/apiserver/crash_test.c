/* Power failures at every moment: a store works on a simulated disk (crash_world.h); at each sync, and at random
 * points between, copies of the disk as a crash would leave it are opened with the real start-up code. Then:
 *
 *   - every acknowledged write is there, with its bytes; nothing that was refused is;
 *   - of the transaction being written, all is there or nothing;
 *   - the resourceVersion has not gone back;
 *   - the history continues exactly: every event after its beginning, with what it replaced;
 *   - SQLite's integrity check finds nothing;
 *   - after the process alone was killed, a log that was removed, cut, damaged or replaced by an older one is
 *     refused at the start, unless nothing acknowledged is missing.
 *
 * Runs go on from what a crash left: they have several lives. Without arguments: 10,000 states as tests. For more:
 *
 *     crash_test --states N --seconds N [--seed N] [--jobs N]        ./dev crash */
#include "tap.h"

#include "apiserver/store/db.h"
#include "base/clock.h"
#include "crash_world.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- tests */

static struct crash_counts counts;
static uint64_t *seen;

static void run_seed(uint64_t seed, uint32_t density)
{
    struct crash_world w = { .seed = seed, .counts = &counts, .seen = seen, .density = density };
    crash_world_run(&w);
}

static void nothing_is_lost_in_10000_crashes(void)
{
    crash_vfs_install();
    seen = mem_zero(CRASH_WORLD_SEEN_SLOTS, sizeof(*seen));
    for (uint64_t seed = 1; counts.states < 10000 && !counts.failed; seed++)
        run_seed(seed, 2);
    free(seen);
    seen = NULL;
    crash_vfs_uninstall();
    EQ_INT(counts.failed, 0);
    OK(counts.refused > 0 && counts.checkpoints > 0 && counts.tampered_refused > 0);
    printf("# %llu states, %llu lives, %llu commits, %llu checkpoints, %llu refused; %llu of %llu "
           "tampered logs refused\n",
           (unsigned long long)counts.states, (unsigned long long)counts.lives,
           (unsigned long long)counts.commits, (unsigned long long)counts.checkpoints,
           (unsigned long long)counts.refused, (unsigned long long)counts.tampered_refused,
           (unsigned long long)counts.tampered);
}

/* The model can fail: a disk that does not sync loses what was acknowledged, and that is found. */
static void a_disk_that_lies_is_found_out(void)
{
    struct crash_counts lies = { 0 };
    struct crash_world w = { .seed = 7, .counts = &lies, .quiet = true };
    crash_vfs_install();
    random_init(&w.random, w.seed, 1);
    w.live = crash_disk_new("live");
    OK(crash_world_start(&w));
    w.live->drops_syncs = true;
    for (int i = 0; i < 5; i++)
        crash_world_run_batch(&w);
    w.checking = true;
    crash_world_check_crash(&w, CRASH_LOSE_ALL);
    OK(lies.failed > 0);
    store_close(w.store);
    crash_disk_free(w.live);
    crash_world_forget(&w, 0);
    vec_done(&w.writes);
    crash_vfs_uninstall();
}

/* A log that has been moved into the file and then loses its end puts old pages in the place of newer ones, although
 * the find_newest revision may be in a page that it does not hold. */
static void a_part_of_a_moved_log_is_refused(void)
{
    struct crash_counts found = { 0 };
    struct crash_world w = { .seed = 11, .counts = &found };
    int refused = 0;
    crash_vfs_install();
    for (; w.seed < 21; w.seed++) {
        random_init(&w.random, w.seed, 1);
        w.live = crash_disk_new("live");
        OK(crash_world_start(&w));
        for (int i = 0; i < 12; i++)
            crash_world_run_batch(&w);
        crash_world_run_tidy(&w, true);
        struct crash_file *log = crash_disk_file(w.live, "state.db-wal");
        for (size_t cut = 32; cut < log->now.n; cut += 4096 + 24) {
            struct crash_disk *d = crash_disk_after(w.live, "crash", CRASH_KILL, &w.random);
            struct store *s;
            crash_disk_file(d, "state.db-wal")->now.n = cut;
            if (crash_world_open_store("/crash/state.db", &s, NULL) < 0) {
                refused++;
            } else {
                crash_world_check_store(&w, s, w.acked);
                store_close(s);
            }
            crash_disk_free(d);
        }
        store_close(w.store);
        crash_disk_free(w.live);
        crash_world_forget(&w, 0);
        vec_done(&w.writes);
        w.acked = 0;
    }
    crash_vfs_uninstall();
    EQ_INT(found.failed, 0);
    OK(refused > 0);
}

static struct db *open_live(void)
{
    struct db *db = NULL;
    EQ_INT(db_open("/live/state.db", 0, &db, NULL), 0);
    EQ_INT(db_begin(db, NULL), 0);
    return db;
}

/* With a place: replaces the row of that number, as on a full disk. */
static void commit_row(struct db *db, int64_t rev, str key, int64_t place)
{
    struct db_row row = { .rev = rev, .key = key, .place = place, .value = S("{}") };
    struct db_transaction t = { &row, 1, &place, place != 0, place != 0, rev, false };
    size_t garbage;
    EQ_INT(db_commit(db, &t, &garbage, NULL), 0);
}

/* The first transaction of a log, kept from before a clean stop, beside a database that was started again and has
 * written nothing since. Only the seal reveals it: no row that the old page lacks has a higher number than the mark. */
static void a_log_from_before_a_clean_stop_is_refused(void)
{
    struct random random;
    random_init(&random, 1, 1);
    crash_vfs_install();
    struct crash_disk *live = crash_disk_new("live");
    struct db *db = open_live();
    commit_row(db, 1, S("/a"), 0);
    db_close(db);
    db = open_live();
    commit_row(db, 2, S("/b"), 0);
    struct crash_file *log = crash_disk_file(live, "state.db-wal");
    size_t n = log->now.n;
    auto_free char *old = mem_dup(log->now.p, n);
    commit_row(db, 3, S("/a"), 1);
    db_close(db);
    db = open_live();
    struct crash_disk *killed = crash_disk_after(live, "crash", CRASH_KILL, &random);
    struct db *again = NULL;
    crash_file_replace(crash_disk_file(killed, "state.db-wal"), (str){ old, n });
    EQ_INT(db_open("/crash/state.db", 0, &again, NULL), -EUCLEAN);
    db_close(again);
    crash_disk_free(killed);
    db_close(db);
    crash_disk_free(live);
    crash_vfs_uninstall();
}

/* What a power failure or a full disk leaves of a transaction behind the end of the log must not become valid when a
 * later one writes the page that was missing. */
static void check_leftovers(const uint64_t *seeds, size_t n, struct crash_world like)
{
    struct crash_counts found = { 0 };
    crash_vfs_install();
    seen = mem_zero(CRASH_WORLD_SEEN_SLOTS, sizeof(*seen));
    like.counts = &found;
    like.seen = seen;
    like.density = 16;
    for (size_t i = 0; i < n; i++) {
        struct crash_world w = like;
        w.seed = seeds[i];
        crash_world_run(&w);
    }
    free(seen);
    seen = NULL;
    crash_vfs_uninstall();
    EQ_INT(found.failed, 0);
    OK(found.states > 1000 && found.lives > 5);
    printf("# %llu states, %llu lives, %llu refused\n", (unsigned long long)found.states,
           (unsigned long long)found.lives, (unsigned long long)found.refused);
}

static void a_lost_write_stays_lost(void)
{
    static const uint64_t seeds[] = { 37, 38, 48 }; /* two of them found it */
    check_leftovers(seeds, countof(seeds), (struct crash_world){ .dies_late = true });
}

static void a_refused_write_stays_refused(void)
{
    static const uint64_t seeds[] = { 99, 100, 101 }; /* one of them found it */
    check_leftovers(seeds, countof(seeds), (struct crash_world){ .often_full = true });
}

/* Deletions, and updates that do not grow an object, on a disk that stays full. */
static void a_full_disk_takes_what_needs_no_room(void)
{
    static const uint64_t seeds[] = { 7, 8, 9 };
    check_leftovers(seeds, countof(seeds),
                    (struct crash_world){ .often_full = true, .stays_full = true });
}

/* The mark cannot be written on this disk: idle maintenance must give up until the next commit. It went on for ever. The
 * disk becomes full at each write of the maintenance in turn. */
static void maintenance_ends_without_a_mark(void)
{
    struct crash_counts found = { 0 };
    bool became_full = true;
    crash_vfs_install();
    for (uint32_t point = 1; became_full && point < 500; point++) {
        struct crash_world w = { .seed = 3, .counts = &found, .blind = true };
        crash_world_begin(&w);
        OK(crash_world_start(&w));
        for (int i = 0; i < 3; i++)
            crash_world_run_batch(&w);
        w.live->copies = true;
        w.full_in = point;
        crash_world_run_tidy(&w, true);
        became_full = w.live->full;
        crash_world_end(&w);
    }
    crash_vfs_uninstall();
    EQ_INT(found.failed, 0);
    OK(!became_full && found.runs > 20);
}

/* ---- ./dev crash */

struct job {
    struct crash_counts counts;
    uint64_t states, seed;
    int64_t until_ns;
};

static void run_job(struct job *job)
{
    crash_vfs_install();
    seen = mem_zero(CRASH_WORLD_SEEN_SLOTS, sizeof(*seen));
    for (; job->counts.states < job->states && clock_mono_ns() < job->until_ns; job->seed++) {
        bool full = job->seed % 4 == 0; /* most of the time, and crashes while it is */
        struct crash_world w = { .seed = job->seed,
                                 .counts = &job->counts,
                                 .seen = seen,
                                 .density = 6,
                                 .often_full = full,
                                 .stays_full = full };
        crash_world_run(&w);
        fflush(stdout);
    }
}

static struct crash_counts add_up(const struct job *jobs, size_t n)
{
    struct crash_counts sum = { 0 };
    uint64_t *to = (uint64_t *)&sum;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(sum) / sizeof(*to); k++)
            to[k] += ((const uint64_t *)&jobs[i].counts)[k];
    return sum;
}

static void print_table(const struct crash_counts *c)
{
    for (int i = 0; i < CRASH_KIND_N; i++)
        printf("%-44s %12llu\n", crash_world_kind_names[i], (unsigned long long)c->kinds[i]);
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = { { "tampered logs", c->tampered },
                 { "  refused at the start", c->tampered_refused },
                 { "runs", c->runs },
                 { "starts after a stop, kill or power failure", c->lives },
                 { "commits", c->commits },
                 { "commits refused by a full disk", c->refused },
                 { "commits taken by a full disk", c->taken_full },
                 { "checkpoints and other maintenance", c->checkpoints },
                 { "writes to the disk", c->writes },
                 { "syncs", c->syncs },
                 { "states seen before (not counted)", c->repeated } };
    for (size_t i = 0; i < countof(rows); i++)
        printf("%-44s %12llu\n", rows[i].name, (unsigned long long)rows[i].n);
}

static int run_jobs(uint64_t states, int64_t seconds, uint64_t seed, size_t n)
{
    struct job *jobs =
        mmap(NULL, n * sizeof(*jobs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED)
        return EXIT_FAILURE;
    size_t running = 0;
    for (size_t i = 0; i < n; i++) {
        jobs[i] = (struct job){ .states = states / n + 1,
                                .seed = seed + i * 1000000,
                                .until_ns = clock_mono_ns() + seconds * NS_PER_S };
        pid_t pid = fork();
        if (pid == 0) {
            run_job(&jobs[i]);
            _exit(0);
        }
        running += pid > 0;
    }
    uint64_t broken = n - running;
    for (int64_t ticks = 1; running; ticks++) {
        int status;
        for (pid_t pid; running && (pid = waitpid(-1, &status, WNOHANG)) > 0; running--)
            broken += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (running)
            sleep(1);
        struct crash_counts c = add_up(jobs, n);
        if (running && ticks % 30 == 0) {
            printf("%llu states, %llu failed\n", (unsigned long long)c.states,
                   (unsigned long long)c.failed);
            fflush(stdout);
        }
    }
    struct crash_counts c = add_up(jobs, n);
    print_table(&c);
    printf("%llu passed, %llu failed\n", (unsigned long long)(c.states + c.tampered - c.failed),
           (unsigned long long)(c.failed + broken));
    return c.failed + broken || !c.states ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    long states = 0, seconds = 3600, seed = 1, jobs = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        long value = strtol(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--states"))
            states = value;
        else if (!strcmp(argv[i], "--seconds"))
            seconds = value;
        else if (!strcmp(argv[i], "--seed"))
            seed = value;
        else if (!strcmp(argv[i], "--jobs"))
            jobs = MAX(value, 1);
    }
    if (states > 0)
        return run_jobs((uint64_t)states, seconds, (uint64_t)seed, (size_t)jobs);
    return tap_run((struct tap_case[]){ TAP(a_disk_that_lies_is_found_out),
                                        TAP(a_part_of_a_moved_log_is_refused),
                                        TAP(a_log_from_before_a_clean_stop_is_refused),
                                        TAP(a_lost_write_stays_lost),
                                        TAP(a_refused_write_stays_refused),
                                        TAP(a_full_disk_takes_what_needs_no_room),
                                        TAP(maintenance_ends_without_a_mark),
                                        TAP(nothing_is_lost_in_10000_crashes),
                                        { 0 } });
}
