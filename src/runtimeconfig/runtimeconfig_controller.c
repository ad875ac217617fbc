/* Watches and settings of the feature; turns are in consumer.c.
 *
 *     consumer changed        -> link it to its configuration and path, enqueue it
 *     configuration changed   -> nothing if its hash is the same; otherwise exactly the consumers that use it, used
 *                                it, or will use it
 *     requiredPrefix changed  -> all services that it applies to, even with a configuration of their own
 *
 * Invariant: links (which configuration, which path) are updated when an event arrives, not when a turn runs, so that
 * every turn and the status of every configuration see all of them. At startup aim_link_all() does this once for
 * everything that the caches hold, before the first turn. */
#include "runtimeconfig_controller.h"

#include "../base/file.h"
#include "../base/log.h"
#include "aim.h"
#include "artifact_controller.h"
#include "cache_controller.h"
#include "model_controller.h"
#include "model_inspection.h"
#include "modelsource_controller.h"
#include "route_group.h"
#include "service_controller.h"
#include "template_controller.h"

enum { WORKERS = 16 };

/* What each kind does in addition to resolving its configuration. */
static const struct aim_hooks *const hooks[AIM_CONSUMER_N] = {
    [AIM_SERVICE] = &aim_service_hooks,           [AIM_MODEL] = &aim_model_hooks,
    [AIM_CLUSTER_MODEL] = &aim_model_hooks,       [AIM_TEMPLATE] = &aim_template_hooks,
    [AIM_CLUSTER_TEMPLATE] = &aim_template_hooks, [AIM_TEMPLATE_CACHE] = &aim_template_cache_hooks,
    [AIM_MODEL_CACHE] = &aim_model_cache_hooks,   [AIM_ARTIFACT] = &aim_artifact_hooks,
    [AIM_MODEL_SOURCE] = &aim_modelsource_hooks,
};

/* ---- links */

/* Configurations first, then foreign routes, then consumers: each step needs the one before. */
void aim_link_all(struct aim *aim)
{
    const struct aim_record *r;
    const struct aim_route_record *route;
    bool changed;
    if (aim->primed)
        return;
    aim->primed = true;
    for (int kind = AIM_CONFIG; kind <= AIM_CLUSTER_CONFIG; kind++)
        cache_each(r, aim->caches[kind])
            aim_configs_put(&aim->configs, &aim->kinds->at[kind], r, &changed);
    cache_each(route, aim->routes)
        aim_route_track_foreign(aim, route);
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++)
        cache_each(r, aim->caches[kind])
            aim_resolution_link(aim, aim_consumer_put(&aim->consumers[kind], r), r);
}

/* Services that share a route: each change of one may change what it leads to. */
static void enqueue_groups(struct aim *aim, const struct aim_record *before,
                           const struct aim_record *after)
{
    const struct aim_record *both[] = { before, after };
    for (size_t i = 0; aim_record_has_changed(before, after) && i < countof(both); i++)
        if (both[i] && both[i]->route_group.n)
            aim_route_group_enqueue(aim, both[i]->meta.ns, both[i]->route_group);
}

/* A change of the status alone needs a turn only if it is not our own write. */
static void on_consumer_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct aim_consumers *of = controller_context(c);
    const struct aim_record *before = record_as(struct aim_record, old),
                            *after = record_as(struct aim_record, now);
    aim_link_all(of->aim);
    if (of->kind == AIM_SERVICE)
        enqueue_groups(of->aim, before, after);
    if (!after) {
        aim_consumer_drop(of, old->ns, old->name);
        return;
    }
    if (!aim_record_has_changed(before, after)) {
        struct aim_tracked *tracked = aim_consumer_find(of, now->ns, now->name);
        if (tracked && !own_write_is_ours(&tracked->status, now)) /* once ours has expired */
            controller_add_after(c, now->ns, now->name, AIM_OWN_WRITE_NS);
        return;
    }
    aim_resolution_link(of->aim, aim_consumer_put(of, after), after);
    controller_add(c, now->ns, now->name);
}

/* ---- configurations */

static void requeue_consumer(struct aim *aim, struct aim_consumers *of, const struct aim_record *r)
{
    aim_resolution_link(aim, aim_consumer_put(of, r), r);
    controller_add(of->controller, r->meta.ns, r->meta.name);
}

static bool names_config(const struct aim_record *r, str config_name)
{
    return r->config_name.n ? str_eq(r->config_name, config_name)
                            : str_eqc(config_name, RUNTIMECONFIG_DEFAULT);
}

/* Does this configuration apply to an object that names it, or is it shadowed by one of its namespace? */
static bool is_affected(const struct aim *aim, const struct aim_record *r, str config_ns, str name)
{
    str home = r->meta.ns.n ? r->meta.ns : str_c(aim->operator_ns);
    if (config_ns.n)
        return str_eq(home, config_ns);
    return !aim_configs_find(&aim->configs, home, name);
}

/* Relinks and enqueues every consumer that this configuration applies to. */
static void revisit_consumers(struct aim *aim, const struct record *config)
{
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++) {
        struct aim_consumers *of = &aim->consumers[kind];
        const struct aim_record *r;
        if (str_eqc(config->name,
                    RUNTIMECONFIG_DEFAULT)) { /* consumers without a name are not in the index */
            cache_each(r, of->cache)
                if (names_config(r, config->name) && is_affected(aim, r, config->ns, config->name))
                    requeue_consumer(aim, of, r);
            continue;
        }
        cache_each_in(r, of->cache, AIM_INDEX_CONFIG, config->name)
            if (is_affected(aim, r, config->ns, config->name))
                requeue_consumer(aim, of, r);
    }
}

/* requiredPrefix of a cluster configuration applies to services with a configuration of their own as well. */
static void revisit_guarded(struct aim *aim, str name)
{
    const struct aim_record *r;
    struct aim_consumers *services = &aim->consumers[AIM_SERVICE];
    bool all = str_eqc(name, RUNTIMECONFIG_DEFAULT);
    cache_each(r, services->cache)
        if (all || names_config(r, name))
            requeue_consumer(aim, services, r);
}

static str guard_of(const struct aim_config *config)
{
    return config ? config->spec.routing.required_prefix : S("");
}

/* A configuration in use can be deleted, but that is reported as a warning. */
static void warn_if_in_use(struct aim *aim, const struct aim_config *config, const struct record *r,
                           enum aim_kind kind)
{
    auto_arena struct arena a = { 0 };
    if (!config || !config->total)
        return;
    events_emit(manager_events(aim->manager),
                &(struct kube_event){
                    .resource = &aim->kinds->at[kind],
                    .ns = r->ns,
                    .name = r->name,
                    .uid = r->uid,
                    .warning = true,
                    .reason = "RuntimeConfigInUse",
                    .message = arena_printf(&a,
                                            "deleted while %zu objects used it; they are resolved "
                                            "again",
                                            config->total) });
}

/* Updates the index of configurations and revisits the consumers that the change affects. */
static void on_config_change(struct controller *c, const struct record *old,
                             const struct record *now, enum aim_kind kind)
{
    struct aim *aim = controller_context(c);
    const struct record *any = now ? now : old;
    aim_link_all(aim);
    struct aim_config *config = aim_configs_find(&aim->configs, any->ns, any->name);
    auto_arena struct arena a = { 0 };
    str guard = arena_str(&a, guard_of(config));
    bool changed = config != NULL;
    if (now) {
        config = aim_configs_put(&aim->configs, &aim->kinds->at[kind],
                                 record_as(struct aim_record, now), &changed);
        changed |= old && !str_eq(old->uid, now->uid); /* the object was recreated */
        controller_add(c, now->ns, now->name);
    } else {
        warn_if_in_use(aim, config, old, kind);
        aim_configs_drop(&aim->configs, any->ns, any->name);
        runtimeconfig_metrics_forget(&aim->metrics, any->ns, any->name);
        config = NULL;
    }
    if (!changed)
        return;
    revisit_consumers(aim, any);
    if (!str_eq(guard, guard_of(config)))
        revisit_guarded(aim, any->name);
}

static void on_namespaced_change(struct controller *c, const struct record *old,
                                 const struct record *now)
{
    on_config_change(c, old, now, AIM_CONFIG);
}

static void on_cluster_change(struct controller *c, const struct record *old,
                              const struct record *now)
{
    on_config_change(c, old, now, AIM_CLUSTER_CONFIG);
}

/* ---- for the controllers of the kinds */

const struct aim_kinds *aim_kinds_of(const struct aim *aim)
{
    return aim->kinds;
}

struct manager *aim_manager(const struct aim *aim)
{
    return aim->manager;
}

struct aim_consumers *aim_consumers(struct aim *aim, enum aim_kind kind)
{
    assert(kind < AIM_CONSUMER_N);
    return &aim->consumers[kind];
}

struct cache *aim_cache(const struct aim *aim, enum aim_kind kind)
{
    return aim->caches[kind];
}

const struct runtimeconfig_metrics *aim_metrics(const struct aim *aim)
{
    return &aim->metrics;
}

struct aim_world *aim_world(struct aim *aim)
{
    return &aim->world;
}

str aim_operator_namespace(const struct aim *aim)
{
    return str_c(aim->operator_ns);
}

/* ---- start and stop */

static const struct feature_setting settings[] = {
    { "aim-group", AIM_GROUP, "API group of AIM: " AIM_GROUP " or " AIM_GROUP_NEWER },
    { "aim-operator-namespace", NULL,
      "Namespace of the configurations of cluster-scoped objects (default: "
      "$AIM_OPERATOR_NAMESPACE, the pod's own namespace, or kaiwo-system)" },
    { "aim-path-encoding", "rfc3986",
      "Encoding of paths: rfc3986, or rfc1123 as in later versions of AIM" },
    AIM_INSPECTION_SETTINGS,
    { 0 },
};

static char *copy_text(str text)
{
    return mem_dup(text.p, text.n);
}

/* Flag, environment, service account, default, in this order; logs the source. */
static char *operator_namespace(const struct manager *m)
{
    static const char path[] = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    const char *flag = manager_setting(m, "aim-operator-namespace");
    const char *env = getenv("AIM_OPERATOR_NAMESPACE");
    auto_buf struct buf file = { 0 };
    str found = S("kaiwo-system");
    const char *source = "the default";
    if (flag && *flag) {
        found = str_c(flag);
        source = "--aim-operator-namespace";
    } else if (env && *env) {
        found = str_c(env);
        source = "AIM_OPERATOR_NAMESPACE";
    } else if (file_read(path, 1024, &file, NULL) == 0 && str_trim(buf_str(&file)).n) {
        found = str_trim(buf_str(&file));
        source = path;
    }
    log_info("AIM operator namespace", KV("namespace", found), KV_C("from", source));
    return copy_text(found);
}

static int start_caches(struct aim *aim, err_t *e)
{
    for (int kind = 0; kind < AIM_KIND_N; kind++) {
        struct cache_spec spec = aim_cache_spec(&aim->kinds->at[kind]);
        int r = manager_cache(aim->manager, &spec, &aim->caches[kind], e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* One controller per kind; all of them share aim_consumer_reconcile(). */
static void start_consumers(struct aim *aim)
{
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++) {
        struct aim_consumers *of = &aim->consumers[kind];
        *of = (struct aim_consumers){ .aim = aim,
                                      .kind = (enum aim_kind)kind,
                                      .cache = aim->caches[kind],
                                      .hooks = hooks[kind] };
        of->controller =
            manager_controller(aim->manager,
                               &(struct controller_spec){ .name = aim->kinds->at[kind].plural,
                                                          .reconcile = aim_consumer_reconcile,
                                                          .context = of,
                                                          .workers = WORKERS });
        controller_watch(of->controller, of->cache, on_consumer_change);
    }
}

/* Runs last, because the hooks watch caches of other kinds. */
static int start_hooks(struct aim *aim, err_t *e)
{
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++) {
        const struct aim_hooks *h = aim->consumers[kind].hooks;
        int r = h && h->start ? h->start(&aim->consumers[kind], e) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Called before every scrape: counting then is cheaper than on every change. */
static void count_statuses(void *context)
{
    static const char *const words[] = { "Pending", "Starting", "Running", "Degraded", "Failed" };
    struct aim *aim = context;
    size_t counts[countof(words)] = { 0 };
    const struct aim_record *r;
    cache_each(r, aim->caches[AIM_SERVICE])
        for (size_t i = 0; i < countof(words); i++)
            counts[i] += str_eqc(r->word, words[i]);
    for (size_t i = 0; i < countof(words); i++)
        metric_set(METRIC(aim->metrics.statuses, str_c(words[i])), (double)counts[i]);
}

/* Configurations, routes and hooks need the consumers, so these are created first. On failure the manager calls
 * runtimeconfig_stop(). */
static int runtimeconfig_start(struct manager *m, void **ret_state, err_t *e)
{
    struct aim *aim = mem_zero(1, sizeof(*aim));
    const char *group = manager_setting(m, "aim-group");
    *ret_state = aim;
    aim->manager = m;
    aim->kinds = aim_kinds(group);
    if (!aim->kinds)
        return err_set(e, EINVAL,
                       "--aim-group is \"%s\", but must be " AIM_GROUP " or " AIM_GROUP_NEWER,
                       group);
    if (aim_path_encoding_parse(str_c(manager_setting(m, "aim-path-encoding")), &aim->encoding, e) <
        0)
        return -e->code;
    aim->operator_ns = operator_namespace(m);
    runtimeconfig_metrics_init(&aim->metrics, manager_metrics(m));
    int r = aim_inspection_start(aim, e);
    if (r == 0)
        r = start_caches(aim, e);
    if (r < 0)
        return r;
    start_consumers(aim);
    aim_config_start(aim);
    controller_watch(aim->config_controllers[0], aim->caches[AIM_CONFIG], on_namespaced_change);
    controller_watch(aim->config_controllers[1], aim->caches[AIM_CLUSTER_CONFIG],
                     on_cluster_change);
    r = aim_route_start(aim, e);
    metrics_on_read(manager_metrics(m), count_statuses, aim);
    return r < 0 ? r : start_hooks(aim, e);
}

/* Consumers release their claims before the claims are freed; `stopping` keeps that from enqueuing anything. */
static void runtimeconfig_stop(void *state)
{
    struct aim *aim = state;
    metrics_off_read(manager_metrics(aim->manager), aim);
    aim->stopping = true;
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++)
        if (aim->consumers[kind].aim)
            aim_consumers_done(&aim->consumers[kind]);
    aim_inspection_stop(aim);
    aim_route_stop(aim);
    aim_world_done(&aim->world);
    aim_configs_done(&aim->configs);
    free(aim->operator_ns);
    free(aim);
}

const struct feature runtimeconfig_feature = {
    .name = "runtimeconfig",
    .summary = "settings and routes of model services (AIM)",
    .settings = settings,
    .start = runtimeconfig_start,
    .stop = runtimeconfig_stop,
};
