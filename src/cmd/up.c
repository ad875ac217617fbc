/* flyball up: everything on one machine. The embedded API server, our CRDs, all controllers and
 * a simulated cluster run in one process on one loop, and communicate only through the API.
 *
 *      start   server -> CRDs -> controllers, simulated cluster -> scenario -> summary
 *      stop    controllers -> node agents, in sequence -> simulated cluster -> server -> loop
 *
 * Each step begins when the one before it has completed. A second run continues from the state
 * in the data directory: only missing objects of the scenario are created.
 *
 * struct up owns everything and is freed by free_up(). A failure after the start is reported by
 * abort_run(), which stops in the same order. */
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

static const char usage[] =
    "Usage: flyball up [FLAGS]\n\n"
    "Runs flyball on this machine without a cluster: a Kubernetes API server, all controllers and a\n"
    "simulated cluster. All state is kept in the data directory.\n\n";

/* ---- shutdown, in the order of the calls */

static void on_server_drained(void *context)
{
    loop_stop(((struct up *)context)->loop);
}

static void on_testbed_stopped(void *context)
{
    struct up *up = context;
    apiserver_drain(up->server, 5 * NS_PER_S, on_server_drained, up);
}

void up_on_agents_stopped(struct up *up)
{
    if (up->testbed)
        manager_stop(up->testbed, on_testbed_stopped, up);
    else
        on_testbed_stopped(up);
}

static void on_controllers_stopped(void *context)
{
    up_agents_stop(context);
}

static void on_page_drained(void *context)
{
    (void)context; /* nothing waits for the page */
}

/* Stops in the order of the drawing above. Called again, it exits at once. */
static void stop_all(struct up *up)
{
    up_screen_stop(up);
    if (up->stopping)
        _exit(EXIT_FAILURE); /* the second signal: do not wait */
    up->stopping = true;
    timer_stop(&up->ending);
    start_trim_end(&up->start_trim);
    up_clock_stop(up);
    manifest_apply_free(up->apply);
    up->apply = NULL;
    if (up->web)
        web_stop(up->web, 2 * NS_PER_S, on_page_drained, NULL);
    if (up->controllers)
        manager_stop(up->controllers, on_controllers_stopped, up);
    else
        on_controllers_stopped(up);
}

void up_stop(struct up *up)
{
    stop_all(up);
}

static void on_signal(void *context)
{
    stop_all(context);
}

static void on_deadline(struct timer *timer)
{
    stop_all(container_of(timer, struct up, ending));
}

static void abort_run(struct up *up, const char *why)
{
    fprintf(stderr, "flyball up: %s\n", why);
    up->exit_code = EXIT_FAILURE;
    stop_all(up);
}

/* ---- startup, last step first: each is called when the one below it has completed */

/* The last step of the start: the cluster is complete. */
static void on_scenario_applied(void *context, const char *failure)
{
    struct up *up = context;
    if (failure) {
        abort_run(up, failure);
        return;
    }
    up->ready = true;
    up->ready_ms = (clock_mono_ns() - up->started_ns) / NS_PER_MS;
    manifest_apply_free(up->apply);
    up->apply = NULL;
    arena_done(&up->arena); /* the documents are no longer needed */
    start_trim_begin(&up->start_trim, up->loop, up->speed);
    up_summary_print_urls(up);
    up_screen_start(up);
    if (up->open)
        up_open_page(up);
}

/* Settings of the features; NULL means the default. */
static const char *find_setting(void *context, const char *name)
{
    const struct up *up = context;
    if (!strcmp(name, "testbed-metrics-url"))
        return up->metrics_url;
    if (!strcmp(name, "registry-mirror"))
        return up->registry_mirror;
    if (!strcmp(name, "aim-operator-namespace"))
        return "default"; /* where the Jobs of cluster-scoped templates run: it exists */
    if (!strcmp(name, "testbed-cgroup-root"))
        return up->cgroup_root;
    if (!strcmp(name, "smarthpa-calendars"))
        return "true"; /* its account may read all ConfigMaps */
    return strcmp(name, "testbed-tick") == 0 ? up->tick : NULL;
}

static int start_manager(struct up *up, struct kube *kube, const char *identity,
                         struct manager **ret, err_t *e)
{
    return manager_new(&(struct manager_options){ .kube = kube,
                                                  .identity = str_c(identity),
                                                  .seed = random_seed(),
                                                  .setting = find_setting,
                                                  .context = up },
                       ret, e);
}

/* Two managers: one for the controllers under test, one for the simulated cluster with its own
 * client. */
static int start_controllers(struct up *up, err_t *e)
{
    int r = start_manager(up, up->kube, "flyball-up", &up->controllers, e);
    for (const struct feature *const *f = features; r >= 0 && *f; f++)
        if (!(*f)->on_node)
            r = manager_add(up->controllers, *f, e);
    r = r < 0 ? r : up_serve_page(up, e);
    r = r < 0 ? r : manager_run(up->controllers, e);
    r = r < 0 ? r : start_manager(up, up->testbed_kube, "testbed", &up->testbed, e);
    r = r < 0 ? r : manager_add(up->testbed, &testbed_feature, e);
    r = r < 0 ? r : up_events_start(up, up->testbed, e);
    r = r < 0 ? r : up_agents_start(up, up->testbed, e);
    return r < 0 ? r : manager_run(up->testbed, e);
}

/* All kinds are served: controllers can watch them now. */
static void on_definitions_applied(void *context, const char *failure)
{
    struct up *up = context;
    err_t e;
    if (failure) { /* names the object that failed */
        abort_run(up, failure);
        return;
    }
    manifest_apply_free(up->apply);
    up->apply = NULL;
    if (start_controllers(up, &e) < 0)
        abort_run(up, e.text);
    else
        up->apply = manifest_apply_start(up->kube, MANIFEST_APPLY_MISSING, up->scenario_documents,
                                         on_scenario_applied, up);
}

/* Appends the documents of a table of embedded manifests to the definitions. */
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
    r = kube_new(
        &(struct kube_options){ .loop = up->loop,
                                .config = config,
                                .rate = -1, /* no rate limit: no other client uses this server */
                                .metrics = metrics,
                                .tracer =
                                    metrics ? up->tracer : NULL }, /* not the testbed's work */
        ret, e);
    kube_config_free(config);
    return r;
}

/* Starts the server and begins to apply the CRDs; the rest follows in callbacks. */
static int start_up(struct up *up, err_t *e)
{
    int r = read_definitions(up, e);
    r = r < 0 ? r : up_scenario_read(up, e);
    if (r < 0)
        return r;
    up->speed = MAX(up->speed, 1); /* 0: neither the user nor the scenario chose one */
    /* The load is updated five times per simulated second, but at most a hundred times per real
     * second. */
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
    if (r == -EPERM)
        return err_set(
            e, EPERM,
            "--listen is \"%s\", but must be a loopback address such as 127.0.0.1:0; to serve other "
            "machines, run \"flyball apiserver --allow-remote\"",
            up->listen);
    if (r < 0)
        return r;
    up_clock_start(up);
    up->metrics = metrics_new();
    up->tracer = tracer_new(up->loop, up->metrics);
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
                  on_deadline);
    up->apply = manifest_apply_start(up->kube, MANIFEST_APPLY_ALL, up->definitions,
                                     on_definitions_applied, up);
    return 0;
}

/* Frees in the reverse order of creation. */
static void free_up(struct up *up)
{
    signal_watch_free(up->term);
    signal_watch_free(up->interrupt);
    up_screen_done(up);
    manifest_apply_free(up->apply);
    web_free(up->web);
    up_agents_done(up);
    manager_free(up->testbed);
    manager_free(up->controllers);
    kube_free(up->testbed_kube);
    kube_free(up->kube);
    tracer_free(up->tracer);
    http_server_free(up->http);
    apiserver_free(up->server);
    loop_free(up->loop);
    metrics_free(up->metrics);
    for (size_t i = 0; i < UP_FEATURE_N; i++)
        buf_done(&up->decisions[i].last);
    arena_done(&up->arena);
}

/* Parses the flags and sets up logging; prints the help if requested. */
static int parse_flags(struct up *up, int argc, char **argv, err_t *e)
{
    const struct flag flags[] = {
        { "data", "DIR", FLAG_TEXT, &up->data, "Directory for all state" },
        { "listen", "ADDR:PORT", FLAG_TEXT, &up->listen,
          "Address of the API server; port 0 selects a free port" },
        { "web-listen", "ADDR:PORT", FLAG_TEXT, &up->web_listen,
          "Address of the live page; none: no page" },
        { "testbed", "SCENARIO", FLAG_TEXT, &up->scenario,
          "Scenario to run: a name, or a file with manifests" },
        { "speed", "N", FLAG_TEXT, &up->speed_text,
          "Speed of simulated time, 1 to 1000 (default: that of the scenario, or 1)" },
        { "for", "DURATION", FLAG_DURATION, &up->for_ns, "Stop after this real time; 0: never" },
        { "clock", "TIME", FLAG_TEXT, &up->clock,
          "Simulated time at the start, such as 2026-10-25T00:00:00Z (default: that of the scenario, or now)" },
        { "open", NULL, FLAG_BOOL, &up->open, "Open the live page in a browser" },
        { "log-level", "LEVEL", FLAG_TEXT, &up->log_level,
          "Log level: debug, info, warn or error" },
        { 0 },
    };
    enum log_level level = LOG_ERROR;
    int r = flags_parse(flags, argc, argv, &up->help, NULL, e);
    if (r == 0 && up->help) {
        auto_buf struct buf text = { 0 };
        flags_help(&text, flags);
        printf("%s%s\nScenarios:", usage, text.p);
        for (const struct manifest *m = manifests_examples; m->name; m++)
            printf(" %.*s", (int)strcspn(m->name, "."), m->name);
        printf("\n");
        return 0;
    }
    bool fast = up->speed_text && str_to_f64(str_c(up->speed_text), &up->speed) == 0;
    if (r == 0 && up->speed_text && !(fast && up->speed >= 1 && up->speed <= 1000))
        r = err_set(e, EINVAL, "--speed is \"%s\", but must be a number between 1 and 1000",
                    up->speed_text);
    if (r == 0 && up->for_ns < 0)
        r = err_set(e, EINVAL,
                    "--for is negative, but must be a time such as 30s, or 0 for no limit");
    if (r == 0 && up->open && !strcmp(up->web_listen, "none"))
        r = err_set(e, EINVAL,
                    "--open needs the page, but --web-listen is none; remove one of both");
    if (r == 0 && up->clock && (r = rfc3339_parse(str_c(up->clock), &up->clock_s, e)) < 0)
        err_wrap(e, "--clock");
    if (r == 0 && log_level_parse(str_c(up->log_level), &level) < 0)
        r = err_set(e, EINVAL, "--log-level is \"%s\", but must be debug, info, warn or error",
                    up->log_level);
    log_setup(level, LOG_TEXT);
    return r;
}

/* Runs until Ctrl-C or --for, then prints what was decided. */
int cmd_up(int argc, char **argv)
{
    struct up up = { .data = "flyball-data",
                     .listen = "127.0.0.1:0",
                     .web_listen = "127.0.0.1:0",
                     .scenario = "all",
                     .log_level = "error",
                     .screen.tty = -1,
                     .started_ns = clock_mono_ns() };
    err_t e;
    if (parse_flags(&up, argc, argv, &e) < 0) {
        fprintf(stderr, "flyball up: %s\n", e.text);
        return EXIT_USAGE;
    }
    if (up.help)
        return EXIT_SUCCESS;
    if (start_up(&up, &e) < 0) {
        fprintf(stderr, "flyball up: %s\n", e.text);
        up.exit_code = EXIT_FAILURE;
    } else {
        loop_run(up.loop);
        up_summary_print_totals(&up);
    }
    free_up(&up);
    return up.exit_code;
}
