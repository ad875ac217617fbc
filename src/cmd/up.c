/* flyball up: the whole thing on one machine. The embedded API server, our CRDs, all controllers
 * and a simulated cluster share one loop and one process, and meet only through the API.
 *
 * Order of a start: server; definitions; controllers and simulated cluster; the scenario's
 * manifests. Each step begins when the one before it was answered. A second run finds the state
 * of the first in the data directory and goes on from there: only what is missing of the
 * scenario is made. */
#include "up.h"

#include "../base/log.h"
#include "../base/random.h"
#include "../base/rfc3339.h"
#include "../net/http_server.h"
#include "cmd.h"
#include "flags.h"
#include "manifests.h"
#include "runtime.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char about[] =
    "Usage: flyball up [FLAGS]\n\n"
    "Runs flyball on this machine without a cluster: a Kubernetes API server, all controllers and a\n"
    "simulated cluster to watch them work. Everything is kept in the data directory.\n\n";

/* ---- the end */

static void server_drained(void *context)
{
    loop_stop(((struct up *)context)->loop);
}

static void testbed_stopped(void *context)
{
    struct up *up = context;
    apiserver_drain(up->server, 5 * NS_PER_S, server_drained, up);
}

void up_agents_ended(struct up *up)
{
    if (up->testbed)
        manager_stop(up->testbed, testbed_stopped, up);
    else
        testbed_stopped(up);
}

static void controllers_stopped(void *context)
{
    up_agents_stop(context);
}

static void stop(struct up *up)
{
    if (up->stopping)
        _exit(EXIT_FAILURE); /* asked twice */
    up->stopping = true;
    timer_stop(&up->ending);
    timer_stop(&up->summary);
    apply_free(up->apply);
    up->apply = NULL;
    if (up->controllers)
        manager_stop(up->controllers, controllers_stopped, up);
    else
        controllers_stopped(up);
}

static void on_signal(void *context)
{
    stop(context);
}

static void time_is_over(struct timer *timer)
{
    stop(container_of(timer, struct up, ending));
}

static void give_up(struct up *up, const char *why)
{
    fprintf(stderr, "flyball up: %s\n", why);
    up->exit_code = EXIT_FAILURE;
    stop(up);
}

/* ---- the beginning, backwards: each step is called by the answer to the one above it */

static void scenario_applied(void *context, const char *failure)
{
    struct up *up = context;
    if (failure) {
        give_up(up, failure);
        return;
    }
    up->ready = true;
    up->ready_ms = (clock_mono_ns() - up->started_ns) / NS_PER_MS;
    apply_free(up->apply);
    up->apply = NULL;
    arena_done(&up->arena); /* the documents were applied */
    up_print_where(up);
    up_summary_start(up);
}

static const char *setting(void *context, const char *name)
{
    const struct up *up = context;
    if (!strcmp(name, "testbed-metrics-url"))
        return up->metrics_url;
    if (!strcmp(name, "testbed-cgroup-root"))
        return up->cgroup_root;
    return strcmp(name, "testbed-tick") == 0 ? up->tick : NULL;
}

static int start_manager(struct up *up, struct kube *kube, const char *identity,
                         struct manager **ret, err_t *e)
{
    return manager_new(&(struct manager_options){ .kube = kube,
                                                  .identity = str_c(identity),
                                                  .seed = random_seed(),
                                                  .setting = setting,
                                                  .context = up },
                       ret, e);
}

static int start_controllers(struct up *up, err_t *e)
{
    int r = start_manager(up, up->kube, "flyball-up", &up->controllers, e);
    for (const struct feature *const *f = features; r >= 0 && *f; f++)
        if (!(*f)->on_node)
            r = manager_add(up->controllers, *f, e);
    r = r < 0 ? r : manager_run(up->controllers, e);
    r = r < 0 ? r : start_manager(up, up->testbed_kube, "testbed", &up->testbed, e);
    r = r < 0 ? r : manager_add(up->testbed, &testbed_feature, e);
    r = r < 0 ? r : up_events_start(up, up->testbed, e);
    r = r < 0 ? r : up_agents_start(up, up->testbed, e);
    return r < 0 ? r : manager_run(up->testbed, e);
}

static void definitions_applied(void *context, const char *failure)
{
    struct up *up = context;
    err_t e;
    if (failure) { /* its words are the apply's */
        give_up(up, failure);
        return;
    }
    apply_free(up->apply);
    up->apply = NULL;
    if (start_controllers(up, &e) < 0)
        give_up(up, e.text);
    else
        up->apply =
            apply_start(up->kube, APPLY_MISSING, up->scenario_documents, scenario_applied, up);
}

static int read_manifests(struct up *up, const struct manifest *m, err_t *e)
{
    for (; m->name; m++) {
        struct json *documents;
        int r = manifest_read(m, &up->arena, &documents, e);
        if (r < 0)
            return r;
        for (size_t i = 0; i < json_len(documents); i++)
            json_push(&up->arena, up->definitions, json_item(documents, i));
    }
    return 0;
}

static int read_definitions(struct up *up, err_t *e)
{
    up->definitions = json_new_arr(&up->arena);
    int r = read_manifests(up, manifests_crds, e);
    return r < 0 ? r : read_manifests(up, manifests_shapes, e);
}

int up_connect(struct up *up, struct metrics *metrics, struct kube **ret, err_t *e)
{
    struct kube_config *config;
    int r = kube_config_load(&(struct kube_config_options){ .kubeconfig =
                                                                apiserver_kubeconfig(up->server) },
                             &config, e);
    if (r < 0)
        return r;
    r = kube_new(&(struct kube_options){ .loop = up->loop,
                                         .config = config,
                                         .rate = -1, /* the server is ours alone */
                                         .metrics = metrics },
                 ret, e);
    kube_config_free(config);
    return r;
}

static int start(struct up *up, err_t *e)
{
    int r = read_definitions(up, e);
    r = r < 0 ? r : up_read_scenario(up, e);
    if (r < 0)
        return r;
    /* Load moves five times a second, or in time that is faster a hundred times a real second. */
    snprintf(up->tick, sizeof(up->tick), "%dms", (int)MAX(200, up->speed * 10));
    if (snprintf(up->cgroup_root, sizeof(up->cgroup_root), "%s/nodes", up->data) >=
        (int)sizeof(up->cgroup_root))
        return err_set(e, ENAMETOOLONG, "--data is too long");
    bool scaled = up->speed > 1 || up->clock_s;
    r = loop_new(&(struct loop_options){ .time = scaled ? LOOP_SCALED : LOOP_REAL,
                                         .speed = up->speed,
                                         .start_wall_ns = up->clock_s * NS_PER_S },
                 &up->loop, e);
    if (r < 0)
        return r;
    up->started_s = loop_wall_ns(up->loop) / NS_PER_S;
    struct apiserver_options o = { .data = up->data };
    char listen[200];
    if (strlen(up->listen) >= sizeof(listen))
        return err_set(e, EINVAL, "--listen is too long");
    strcpy(listen, up->listen);
    r = flags_split_listen("listen", listen, &o.address, &o.port, e);
    r = r < 0 ? r : apiserver_new(up->loop, &o, &up->server, e);
    if (r < 0)
        return r;
    up->metrics = metrics_new();
    r = up_serve(up, e);
    r = r < 0 ? r : up_connect(up, up->metrics, &up->kube, e);
    r = r < 0 ? r : up_connect(up, NULL, &up->testbed_kube, e);
    if (r < 0)
        return r;
    signal_watch_new(up->loop, SIGTERM, on_signal, up, &up->term);
    signal_watch_new(up->loop, SIGINT, on_signal, up, &up->interrupt);
    if (up->for_ns)
        timer_set(up->loop, &up->ending,
                  loop_mono_ns(up->loop) + (int64_t)((double)up->for_ns * MAX(up->speed, 1)),
                  time_is_over);
    up->apply = apply_start(up->kube, APPLY_ALL, up->definitions, definitions_applied, up);
    return 0;
}

static void finish(struct up *up)
{
    signal_watch_free(up->term);
    signal_watch_free(up->interrupt);
    apply_free(up->apply);
    up_agents_done(up);
    manager_free(up->testbed);
    manager_free(up->controllers);
    kube_free(up->testbed_kube);
    kube_free(up->kube);
    http_server_free(up->http);
    apiserver_free(up->server);
    loop_free(up->loop);
    metrics_free(up->metrics);
    for (size_t i = 0; i < UP_FEATURE_N; i++)
        buf_done(&up->decisions[i].last);
    up_summary_done(up);
    arena_done(&up->arena);
}

static int parse(struct up *up, int argc, char **argv, err_t *e)
{
    const struct flag flags[] = {
        { "data", "DIR", FLAG_TEXT, &up->data, "where everything is kept" },
        { "listen", "ADDR:PORT", FLAG_TEXT, &up->listen,
          "where the API server listens; port 0 picks one" },
        { "testbed", "SCENARIO", FLAG_TEXT, &up->scenario,
          "what to show: a name or a file of manifests" },
        { "speed", "N", FLAG_REAL, &up->speed, "how fast time passes, 1 to 1000" },
        { "for", "DURATION", FLAG_DURATION, &up->for_ns,
          "stop after this long, by the real clock; 0: never" },
        { "clock", "TIME", FLAG_TEXT, &up->clock,
          "what the clock shows at the start, such as 2026-10-25T00:00:00Z; without it the time" },
        { "log-level", "LEVEL", FLAG_TEXT, &up->log_level, "debug, info, warn or error" },
        { 0 },
    };
    enum log_level level = LOG_ERROR;
    int r = flags_parse(flags, argc, argv, &up->help, NULL, e);
    if (r == 0 && up->help) {
        auto_buf struct buf text = { 0 };
        flags_help(&text, flags);
        printf("%s%s\nScenarios:", about, text.p);
        for (const struct manifest *m = manifests_examples; m->name; m++)
            printf(" %.*s", (int)strcspn(m->name, "."), m->name);
        printf("\n");
        return 0;
    }
    if (r == 0 && !(up->speed >= 1 && up->speed <= 1000))
        r = err_set(e, EINVAL, "--speed is %g, but must be between 1 and 1000", up->speed);
    if (r == 0 && up->clock && (r = rfc3339_parse(str_c(up->clock), &up->clock_s, e)) < 0)
        err_wrap(e, "--clock");
    if (r == 0 && log_level_parse(str_c(up->log_level), &level) < 0)
        r = err_set(e, EINVAL, "--log-level is debug, info, warn or error, not %s", up->log_level);
    log_setup(level, LOG_TEXT);
    return r;
}

int cmd_up(int argc, char **argv)
{
    struct up up = { .data = "flyball-data",
                     .listen = "127.0.0.1:0",
                     .scenario = "all",
                     .log_level = "error",
                     .speed = 1,
                     .started_ns = clock_mono_ns() };
    err_t e;
    if (parse(&up, argc, argv, &e) < 0) {
        fprintf(stderr, "flyball up: %s\n", e.text);
        return EXIT_USAGE;
    }
    if (up.help)
        return EXIT_SUCCESS;
    if (start(&up, &e) < 0) {
        fprintf(stderr, "flyball up: %s\n", e.text);
        up.exit_code = EXIT_FAILURE;
    } else {
        loop_run(up.loop);
        up_print_end(&up);
    }
    finish(&up);
    return up.exit_code;
}
