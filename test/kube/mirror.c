/* A small controller for the tests against real servers: every ConfigMap labelled mirror=source has a
 * copy labelled mirror=copy, made by server-side apply and written by the leader. It gets what to show on its
 * standard input:
 *
 *   dump     what the caches hold, sorted: "source NAME VALUE" and "copy NAME VALUE", then "."
 *   stats    "synced=1 leads=1 ..."
 *   verbs    tries every verb on objects of its own; a line "ok WHAT" or "not ok WHAT: WHY" each
 *   end      an orderly stop, as at the end of input
 */
#include "base/log.h"
#include "base/random.h"
#include "base/vec.h"
#include "kube/kube.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct map {
    struct record meta;
    str value;
};

static const struct field map_fields[] = { { "data.value", F_STR, offsetof(struct map, value) } };

static struct mirror {
    struct loop *loop;
    struct kube *kube;
    struct manager *manager;
    struct cache *sources, *copies;
    struct fd_watch *commands;
    struct buf input;
    bool stopping, lost;
} mirror;

/* ---- the controller */

static str copy_name(struct arena *a, str source)
{
    return arena_printf(a, STR_FMT "-copy", STR_ARG(source));
}

static void remove_copy(struct reconcile *r, str name)
{
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_DELETE,
                                              .resource = &resource_configmaps,
                                              .ns = r->ns,
                                              .name = name });
}

static struct reconciled reconcile(struct reconcile *r)
{
    const struct map *source = cache_get(mirror.sources, r->ns, r->name);
    str name = copy_name(r->arena, r->name);
    const struct map *copy = cache_get(mirror.copies, r->ns, name);
    if (!source && copy)
        remove_copy(r, name);
    if (!source || (copy && str_eq(copy->value, source->value)))
        return reconciled();
    struct json *object = json_new_obj(r->arena);
    struct json *meta = json_make(r->arena, object, "metadata", NULL);
    json_set_str(r->arena, meta, "name", name);
    json_set_str(r->arena, json_make(r->arena, meta, "labels", NULL), "mirror", S("copy"));
    struct json *data = json_make(r->arena, object, "data", NULL);
    json_set_str(r->arena, data, "value", source->value);
    json_set_str(r->arena, data, "writer", manager_identity(mirror.manager));
    reconcile_apply(r, &resource_configmaps, object);
    events_emit(manager_events(mirror.manager),
                &(struct kube_event){ .resource = &resource_configmaps,
                                      .ns = r->ns,
                                      .name = r->name,
                                      .uid = source->meta.uid,
                                      .reason = "Mirrored",
                                      .message = S("the copy follows") });
    return reconciled();
}

static void map_copy(struct controller *c, const struct record *old, const struct record *now)
{
    const struct record *r = now ? now : old;
    if (str_ends(r->name, S("-copy")))
        controller_add(c, r->ns, str_upto(r->name, r->name.n - 5));
}

static int start_mirror(struct manager *m, void **ret_state, err_t *e)
{
    struct cache_spec labelled = { .resource = &resource_configmaps,
                                   .keep = FIELDS(struct map, map_fields) };
    *ret_state = NULL;
    labelled.label_selector = S("mirror=source");
    int r = manager_cache(m, &labelled, &mirror.sources, e);
    labelled.label_selector = S("mirror=copy");
    if (r < 0 || (r = manager_cache(m, &labelled, &mirror.copies, e)) < 0)
        return r;
    struct controller *c =
        manager_controller(m,
                           &(struct controller_spec){ .name = "mirror", .reconcile = reconcile });
    controller_watch(c, mirror.sources, NULL);
    controller_watch(c, mirror.copies, map_copy);
    return 0;
}

static const struct feature feature = { .name = "mirror", .start = start_mirror };

/* ---- commands */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump(void)
{
    VEC(char *) lines = { 0 };
    const struct {
        const char *word;
        struct cache *cache;
    } caches[] = { { "source", mirror.sources }, { "copy", mirror.copies } };
    for (size_t i = 0; i < countof(caches); i++) {
        const struct map *m;
        cache_each(m, caches[i].cache) {
            struct buf line = { 0 };
            buf_printf(&line, "%s " STR_FMT " " STR_FMT, caches[i].word, STR_ARG(m->meta.name),
                       STR_ARG(m->value));
            vec_push(&lines, buf_take(&line));
        }
    }
    qsort(lines.at, lines.n, sizeof(char *), by_text);
    for (size_t i = 0; i < lines.n; i++) {
        puts(lines.at[i]);
        free(lines.at[i]);
    }
    vec_done(&lines);
    puts(".");
}

struct total {
    double lists, events, failures, errors, refused;
};

static void add_up(void *context, const struct metric_view *v)
{
    struct total *t = context;
    const struct {
        const char *name;
        double *sum;
    } wanted[] = { { "flyball_watch_lists_total", &t->lists },
                   { "flyball_watch_events_total", &t->events },
                   { "flyball_watch_failures_total", &t->failures },
                   { "controller_runtime_reconcile_errors_total", &t->errors } };
    for (size_t i = 0; i < countof(wanted); i++)
        if (!strcmp(v->spec->name, wanted[i].name))
            *wanted[i].sum += v->value;
    if (!strcmp(v->spec->name, "rest_client_requests_total") && str_eq(v->values[0], S("429")))
        t->refused += v->value;
}

static void no_family(void *context, const struct metric_spec *spec)
{
    (void)context;
    (void)spec;
}

static void stats(void)
{
    struct total t = { 0 };
    auto_buf struct buf why = { 0 };
    metrics_read(manager_metrics(mirror.manager),
                 &(struct metrics_reader){ no_family, add_up, &t });
    printf("synced=%d leads=%d lists=%.0f events=%.0f failures=%.0f errors=%.0f refused=%.0f\n",
           manager_ready(mirror.manager, &why), manager_leads(mirror.manager), t.lists, t.events,
           t.failures, t.errors, t.refused);
}

static void stopped(void *context)
{
    (void)context;
    loop_stop(mirror.loop);
}

static void end(void)
{
    if (mirror.stopping)
        return;
    mirror.stopping = true;
    manager_stop(mirror.manager, stopped, NULL);
}

void verbs_run(struct kube *k, str ns); /* verbs.c */

static void command(str word)
{
    if (str_eq(word, S("dump")))
        dump();
    else if (str_eq(word, S("stats")))
        stats();
    else if (str_eq(word, S("verbs")))
        verbs_run(mirror.kube, S("default"));
    else
        end();
    fflush(stdout);
}

static void on_input(void *context, unsigned events)
{
    (void)context;
    (void)events;
    ssize_t n = read(STDIN_FILENO, buf_reserve(&mirror.input, 4096), 4096);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        fd_watch_set(mirror.commands, 0);
        end();
        return;
    }
    mirror.input.n += (size_t)n;
    for (size_t at; (at = str_find_char(buf_str(&mirror.input), '\n')) != SIZE_MAX;) {
        command(str_trim(str_upto(buf_str(&mirror.input), at)));
        buf_consume(&mirror.input, at + 1);
    }
}

/* ---- life */

static void on_lost(void *context)
{
    (void)context;
    mirror.lost = true;
    loop_stop(mirror.loop);
}

static int64_t seconds(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return (text ? atoll(text) : otherwise) * NS_PER_S;
}

static int begin(err_t *e)
{
    struct kube_config *config;
    int r = loop_new(&(struct loop_options){ 0 }, &mirror.loop, e);
    if (r < 0 || (r = kube_config_load(&(struct kube_config_options){ 0 }, &config, e)) < 0)
        return r;
    r = kube_new(
        &(struct kube_options){ .loop = mirror.loop, .config = config, .rate = 200, .burst = 200 },
        &mirror.kube, e);
    kube_config_free(config);
    if (r < 0)
        return r;
    const char *identity = getenv("MIRROR_IDENTITY");
    struct manager_options o = {
        .kube = mirror.kube,
        .watch_namespace = S("default"),
        .identity = str_c(identity ? identity : "mirror"),
        .seed = random_seed(),
        .elect = identity != NULL,
        .election = { .ns = S("default"),
                      .name = S("mirror"),
                      .lease_duration_ns = seconds("MIRROR_LEASE_S", 5),
                      .renew_deadline_ns = seconds("MIRROR_DEADLINE_S", 3),
                      .retry_period_ns = NS_PER_S },
        .on_lost = on_lost,
    };
    if ((r = manager_new(&o, &mirror.manager, e)) < 0 ||
        (r = manager_add(mirror.manager, &feature, e)) < 0)
        return r;
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    fd_watch_new(mirror.loop, STDIN_FILENO, on_input, NULL, &mirror.commands);
    fd_watch_set(mirror.commands, FD_READ);
    return manager_run(mirror.manager, e);
}

int main(void)
{
    err_t e;
    log_setup(LOG_DEBUG, LOG_TEXT);
    if (begin(&e) < 0) {
        fprintf(stderr, "mirror: %s\n", e.text);
        return EXIT_FAILURE;
    }
    loop_run(mirror.loop);
    fd_watch_free(mirror.commands);
    buf_done(&mirror.input);
    manager_free(mirror.manager);
    kube_free(mirror.kube);
    loop_free(mirror.loop);
    return mirror.lost ? 3 : EXIT_SUCCESS;
}
