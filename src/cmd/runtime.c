/* Running the controllers: see runtime.h.
 *
 *      flags -> loop, metrics -> client -> manager with its features -> HTTP server -> loop_run()
 *      SIGTERM -> manager_stop(): pending writes, lease -> drain the HTTP server -> loop_stop()
 *
 * A process that loses its lease ends with exit code 1: its view may be outdated, and it is
 * restarted as a candidate. A second signal ends it at once.
 *
 * Memory is returned to the system twice after the start (start_trim.c), and malloc is tuned
 * for one thread with a small heap; the budgets of docs/operations.md depend on it. */
#include "../base/log.h"
#include "../base/random.h"
#include "runtime_internal.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const int64_t drain_ns = 2 * NS_PER_S;

/* ---- shutdown */

static void on_manager_stopped(void *context)
{
    runtime_serve_stop(context, drain_ns);
}

/* The first signal stops gracefully, the second at once. */
static void on_signal(void *context)
{
    struct runtime *rt = context;
    if (rt->stopping) {
        log_warn("second signal: exiting immediately");
        _exit(EXIT_FAILURE);
    }
    rt->stopping = true;
    log_info("stopping");
    manager_stop(rt->manager, on_manager_stopped, rt);
}

/* A process that lost the lease must end: its view may be outdated. */
static void on_lost(void *context)
{
    struct runtime *rt = context;
    rt->lost = true;
    loop_stop(rt->loop);
}

/* ---- startup */

/* Looks up a setting of a feature by the name of its flag. */
static const char *find_setting(void *context, const char *name)
{
    const struct runtime *rt = context;
    if (!strcmp(name, "node-name"))
        return rt->node_name;
    if (!strcmp(name, "allow-insecure-token"))
        return rt->insecure_token ? "true" : NULL;
    for (size_t i = 0; i < rt->settings.n; i++)
        if (!strcmp(rt->settings.at[i]->name, name))
            return rt->settings.at[i]->value;
    return NULL;
}

/* Loads the kubeconfig and creates the client. */
static int connect_cluster(struct runtime *rt, err_t *e)
{
    struct kube_config *config;
    int r = kube_config_load(&(struct kube_config_options){ .kubeconfig = rt->kubeconfig,
                                                            .context = rt->context,
                                                            .ns = rt->ns },
                             &config, e);
    if (r < 0)
        return r;
    log_info("connecting to the cluster", KV("server", config->server), KV("from", config->where));
    r = kube_new(&(struct kube_options){ .loop = rt->loop,
                                         .config = config,
                                         .rate = rt->qps,
                                         .burst = rt->burst,
                                         .timeout_ns = rt->timeout_ns,
                                         .metrics = rt->metrics,
                                         .tracer = rt->tracer,
                                         .insecure_token = rt->insecure_token },
                 &rt->kube, e);
    kube_config_free(config);
    return r;
}

/* A feature that cannot start, for example because of its Prometheus address, does not keep the others from running.
 * The health endpoint reports it. */
static int add_feature(struct manager *m, const struct feature *feature, err_t *e)
{
    int r = manager_add(m, feature, e);
    if (r != -ECANCELED)
        return r;
    log_error("feature cannot start; the others run without it", KV_C("feature", feature->name),
              KV_C("error", e->text));
    return 0;
}

/* Creates the manager with the enabled features and runs it. The identity is unique per process,
 * as leases require. */
static int start_manager(struct runtime *rt, err_t *e)
{
    char host[128] = "unknown", identity[160];
    uint64_t seed = random_seed();
    gethostname(host, sizeof(host) - 1);
    snprintf(identity, sizeof(identity), "%s_%016llx", rt->spec->on_node ? rt->node_name : host,
             (unsigned long long)seed);
    str lease_ns = rt->lease_namespace ? str_c(rt->lease_namespace) : kube_namespace(rt->kube);
    struct manager_options o = {
        .kube = rt->kube,
        .watch_namespace = str_c(rt->watch_namespace),
        .identity = str_c(identity),
        .seed = seed,
        .elect = rt->elect,
        .election = { .ns = lease_ns,
                      .name = str_c(rt->lease_name),
                      .pod = getenv("KUBERNETES_SERVICE_HOST") ? str_c(host) : S(""),
                      .lease_duration_ns = rt->lease_duration_ns,
                      .renew_deadline_ns = rt->renew_deadline_ns,
                      .retry_period_ns = rt->retry_period_ns },
        .setting = find_setting,
        .on_lost = on_lost,
        .context = rt,
    };
    int r = manager_new(&o, &rt->manager, e);
    for (const struct feature *const *f = features; r >= 0 && *f; f++)
        if (runtime_is_enabled(rt, *f))
            r = add_feature(rt->manager, *f, e);
    if (r == 0 && !manager_has_features(rt->manager))
        return -e->code; /* of the last one that failed */
    return r < 0 ? r : manager_run(rt->manager, e);
}

/* Starts everything in the order of the drawing above; free_runtime() frees what exists after a
 * failure. */
static int start_runtime(struct runtime *rt, err_t *e)
{
    int r = loop_new(&(struct loop_options){ 0 }, &rt->loop, e);
    if (r < 0)
        return r;
    rt->metrics = metrics_new();
    process_metrics_register(rt->metrics, loop_wall_ns(rt->loop));
    rt->tracer = tracer_new(rt->loop, rt->metrics);
    if ((r = connect_cluster(rt, e)) < 0 || (r = start_manager(rt, e)) < 0)
        return r;
    start_trim_begin(&rt->start_trim, rt->loop, 1);
    signal_watch_new(rt->loop, SIGTERM, on_signal, rt, &rt->term);
    signal_watch_new(rt->loop, SIGINT, on_signal, rt, &rt->interrupt);
    return runtime_serve(rt, e);
}

static void free_runtime(struct runtime *rt)
{
    start_trim_end(&rt->start_trim);
    signal_watch_free(rt->term);
    signal_watch_free(rt->interrupt);
    runtime_serve_done(rt);
    manager_free(rt->manager);
    kube_free(rt->kube);
    tracer_free(rt->tracer);
    loop_free(rt->loop);
    metrics_free(rt->metrics);
    runtime_flags_done(rt);
}

/* The exit status: 2 for a usage error, 1 if the process could not start or lost its lease. The allocator's
 * settings trade a little speed for memory that returns to the system after large responses. */
int runtime_run(const struct runtime_spec *spec, int argc, char **argv)
{
    struct runtime rt = { .spec = spec };
    err_t e;
    int code = EXIT_SUCCESS;
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* memory of a long response returns to the system */
    mallopt(M_TOP_PAD, 16 << 10);         /* do not reserve more than needed */
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
    mallopt(M_ARENA_MAX, 1); /* only one thread allocates; more arenas would cost address space */
    if (runtime_flags(&rt, argc, argv, &e) < 0) {
        fprintf(stderr, "flyball %s: %s\n", spec->name, e.text);
        code = 2;
    } else if (rt.help) {
        runtime_help(&rt);
    } else if (start_runtime(&rt, &e) < 0) {
        fprintf(stderr, "flyball %s: %s\n", spec->name, e.text);
        code = EXIT_FAILURE;
    } else {
        loop_run(rt.loop);
        code = rt.lost ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    free_runtime(&rt);
    return code;
}
