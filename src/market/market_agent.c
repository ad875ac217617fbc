/* The node agent as a feature: see market_agent.h. This file connects the parts:
 *
 *      caches (pods, node, PodAllocations, ConfigMap)
 *         |  on_..._changed(): set `dirty` or `reload`
 *         v
 *      market_agent_sync()       at the next tick: which pods take part, capacity, configuration
 *         |
 *         v
 *      sampler                   counters, fast and slow rounds
 *         |  request_limit(), on_round(): add the pod's key to the controller
 *         v
 *      market_agent_write()      writes the PodAllocation if it differs
 *
 * Latencies come from Prometheus (latency.c), Q-tables from ConfigMaps (qtable_store.c). Everything
 * runs on the loop's thread. `struct market_agent` owns all of it and is freed by stop_agent(). */
#include "market_agent.h"

#include "../base/file.h"
#include "../base/log.h"
#include "../base/sum.h"
#include "market_agent_internal.h"
#include "milli.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>

enum { STARTUP_ROUNDS = 2, WORKERS = 4, LABEL_BYTES_MAX = 63, MOUNTINFO_MAX = 4 << 20 };

/* ---- callbacks of the sampler */

static struct agent_pod *pod_of(struct sampled *sampled)
{
    return container_of(sampled, struct agent_pod, sampled);
}

static void queue_write(struct market_agent *a, const struct agent_pod *pod)
{
    controller_add(a->controller, pod->record->meta.ns, pod->record->meta.name);
}

static int locate_pod(void *context, struct sampled *sampled, struct buf *ret_path, err_t *e)
{
    struct market_agent *a = context;
    return cgroup_tree_find(&a->tree, pod_of(sampled)->record->meta.uid, ret_path, e);
}

static void request_limit(void *context, struct sampled *sampled, int64_t limit_milli)
{
    struct market_agent *a = context;
    struct agent_pod *pod = pod_of(sampled);
    int64_t request = sampled->wanted_request_milli;
    pod->desired_request_milli =
        milli32(market_agent_pod_request(pod->record, limit_milli, request));
    if (!pod->changes)
        pod->changes = mem_zero(1, sizeof(*pod->changes));
    /* A change of the request alone is no resize of the limit: it would be timed as in force at
     * once, and the agent would believe that this node resizes quickly. */
    if (limit_milli != sampled->market.limit_milli) {
        pod->changes->asked_ns = loop_mono_ns(a->loop);
        if (limit_milli > sampled->market.limit_milli)
            pod->changes->ups++;
        else
            pod->changes->downs++;
    }
    queue_write(a, pod);
}

/* Derives weight and limit from the pod's latency. */
static void apply_objective(struct market_pod *m, struct latency_state *state)
{
    double ratio = (double)m->slo_ratio;
    m->slo_weight = (float)latency_weight(state, (double)m->slo_weight, ratio);
    m->slo_milli = (float)latency_limit(state, ratio, m->agent.usage_milli, m->limit_milli);
}

/* A pod that is not resized gets a PodAllocation too, with its present limit, so that users see
 * all managed pods. */
static void update_pod(struct market_agent *a, struct agent_pod *pod)
{
    struct sampled *s = &pod->sampled;
    if (!s->wanted_milli && s->market.limit_milli > 0) {
        s->wanted_milli = s->market.limit_milli;
        s->wanted_request_milli = pod->desired_request_milli = s->market.request_milli;
    }
    market_agent_metrics_add_reward(&pod->rewards, (double)s->market.reward);
    if (pod->objective)
        apply_objective(&s->market, &pod->objective->state);
    if (!market_agent_is_written(a, pod))
        queue_write(a, pod);
}

static void on_round(void *context, const struct round_report *report)
{
    struct market_agent *a = context;
    a->price = report->node->published.price;
    a->dirty = true; /* an infeasible limit may have become possible */
    a->rounded = true;
    market_agent_metrics_add_round(&a->metrics, report);
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        if (pod->sampled.market.last_ns)
            update_pod(a, pod);
    }
    market_agent_queue_report(a);
}

/* ---- latencies */

static void ask_latencies(struct market_agent *a)
{
    struct arena *scratch = loop_scratch(a->loop);
    size_t n = 0, count = sampler_count(a->sampler);
    if (!a->config.market.prometheus_url.n)
        return;
    struct latency_pod *targets = arena_array(scratch, count, sizeof(*targets));
    for (size_t i = 0; i < count; i++) {
        const struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        if (pod->objective)
            targets[n++] = (struct latency_pod){ pod->record->meta.ns, pod->record->meta.name };
    }
    latency_request(a->latency, targets, n);
}

/* Drops pages of code that only the start needed, such as TLS handshakes and the first lists; the
 * kernel maps them again if they are executed. Code is never written, so nothing can be lost. */
static void drop_startup_code(void)
{
    auto_buf struct buf maps = { 0 };
    if (file_read("/proc/self/maps", MOUNTINFO_MAX, &maps, NULL) < 0)
        return;
    str rest = buf_str(&maps);
    for (str line; str_cut(&rest, '\n', &line);) {
        unsigned long from, to;
        char mode[5];
        if (str_find_char(line, '/') < line.n &&
            sscanf(line.p, "%lx-%lx %4s", &from, &to, mode) == 3 && !strcmp(mode, "r-xp"))
            (void)madvise((void *)from, to - from,
                          MADV_DONTNEED); // NOLINT(performance-no-int-to-ptr)
    }
}

/* Returns the memory of a slow round to the system: it is not needed for 15 s. After the first
 * round, so is the code of the start. */
static void on_tick(void *context)
{
    struct market_agent *a = context;
    ask_latencies(a);
    market_agent_read_memory(a);
    if (a->rounded)
        malloc_trim(0);
    if (a->rounded && a->startup_rounds < STARTUP_ROUNDS && ++a->startup_rounds == STARTUP_ROUNDS)
        drop_startup_code();
    a->rounded = false;
}

static void clear_latencies(void *context)
{
    struct market_agent *a = context;
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        struct market_pod *m = &sampler_at(a->sampler, i)->market;
        m->slo_ratio = 0;
        m->slo_burns = false;
    }
}

/* Updates the error budget of a pod with a latency that holds since the last answer. */
static void note_latency(void *context, str ns, str name, double ms)
{
    static const double ratio_max =
        100; /* above the last bucket of the histogram, latency is infinite */
    static const double usual_s = 5, longest_s = 60; /* seconds between two answers */
    struct market_agent *a = context;
    struct agent_pod *pod = market_agent_find_pod(a, ns, name);
    if (!pod || !pod->objective)
        return;
    struct agent_objective *o = pod->objective;
    struct market_pod *m = &pod->sampled.market;
    int64_t now = loop_mono_ns(a->loop);
    double seconds =
        o->answered_ns ? MIN((double)(now - o->answered_ns) / 1e9, longest_s) : usual_s;
    o->answered_ns = now;
    double ratio = MIN(ms / o->target_ms, ratio_max);
    m->slo_ratio = (float)ratio;
    m->slo_burns =
        latency_is_burning(&o->state, ratio > sampler_rules(a->sampler)->slo_fast, seconds);
}

/* ---- Q-tables */

static void on_qtables_loaded(void *context)
{
    ((struct market_agent *)context)->dirty = true;
}

static void on_qtables_saved(void *context)
{
    struct market_agent *a = context;
    manager_flushed(a->manager);
}

static void collect_qtables(void *context)
{
    struct market_agent *a = context;
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        const struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        auto_buf struct buf key = { 0 };
        market_agent_pod_workload_key(pod->record, &key);
        qtable_store_put(a->qtables, buf_str(&key), &pod->sampled.market.agent);
    }
}

/* ---- callbacks of the caches */

static void on_pod_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct market_agent *a = controller_context(c);
    a->dirty = true;
    if (!now || (old && !str_eq(old->uid, now->uid)))
        controller_add(c, old->ns, old->name);
}

static void on_allocation_changed(struct controller *c, const struct record *old,
                                  const struct record *now)
{
    struct market_agent *a = controller_context(c);
    const struct agent_allocation_record *allocation =
        record_as(struct agent_allocation_record, now ? now : old);
    struct agent_pod *pod = market_agent_find_pod(a, allocation->meta.ns, allocation->pod_name);
    if (pod && now) {
        market_agent_read_status(pod, allocation);
        a->dirty = true;
    }
    controller_add(c, allocation->meta.ns, allocation->pod_name);
}

static void on_input_changed(void *context, const struct record *old, const struct record *now)
{
    (void)old, (void)now;
    ((struct market_agent *)context)->dirty = true;
}

static void on_config_changed(void *context, const struct record *old, const struct record *now)
{
    (void)old, (void)now;
    ((struct market_agent *)context)->reload = true;
}

/* ---- start */

static int start_tree(struct market_agent *a, err_t *e)
{
    auto_buf struct buf mountinfo = { 0 };
    int r = file_read("/proc/self/mountinfo", MOUNTINFO_MAX, &mountinfo, e);
    if (r < 0)
        return r;
    file_raise_limit();
    r = cgroup_tree_init(&a->tree, manager_setting(a->manager, "cgroup-root"), buf_str(&mountinfo),
                         e);
    if (r == 0)
        log_info("reading cgroups", KV_INT("version", a->tree.version), KV_C("cpu", a->tree.cpu));
    return r;
}

/* Declares the caches, restricted to this node by selectors, and the controller that writes. */
static int start_caches(struct market_agent *a, err_t *e)
{
    struct cache_spec pods = market_agent_pod_cache, nodes = market_agent_node_cache,
                      configs = market_agent_config_cache,
                      allocations = market_agent_allocation_cache;
    market_agent_pod_shorten_name(a->node, LABEL_BYTES_MAX, &a->node_label);
    buf_printf(&a->selectors[0], "spec.nodeName=" STR_FMT, STR_ARG(a->node));
    buf_printf(&a->selectors[1], "metadata.name=" STR_FMT, STR_ARG(a->node));
    buf_printf(&a->selectors[2], MARKET_NODE "=" STR_FMT, STR_ARG(buf_str(&a->node_label)));
    pods.field_selector = buf_str(&a->selectors[0]);
    nodes.field_selector = buf_str(&a->selectors[1]);
    allocations.label_selector = buf_str(&a->selectors[2]);
    configs.ns = a->config_ns; /* needs only a Role in this namespace */
    configs.field_selector = S("metadata.name=mbcas-agent-config");
    if (manager_cache(a->manager, &market_agent_hpa_cache, &a->hpas, e) < 0 ||
        manager_cache(a->manager, &pods, &a->pods, e) < 0 ||
        manager_cache(a->manager, &nodes, &a->nodes, e) < 0 ||
        manager_cache(a->manager, &allocations, &a->allocations, e) < 0 ||
        manager_cache(a->manager, &configs, &a->configs, e) < 0)
        return -e->code;
    a->controller =
        manager_controller(a->manager, &(struct controller_spec){ .name = "market-agent",
                                                                  .reconcile = market_agent_write,
                                                                  .context = a,
                                                                  .workers = WORKERS });
    a->reporter =
        manager_controller(a->manager, &(struct controller_spec){ .name = "market-node",
                                                                  .reconcile = market_agent_report,
                                                                  .context = a,
                                                                  .workers = 1 });
    controller_watch(a->controller, a->pods, on_pod_changed);
    controller_watch(a->controller, a->allocations, on_allocation_changed);
    cache_handle(a->pods, on_input_changed, a);
    cache_handle(a->nodes, on_input_changed, a);
    cache_handle(a->hpas, on_input_changed, a);
    cache_handle(a->configs, on_config_changed, a);
    return 0;
}

/* Creates the sampler and the two sources of data beside the caches; nothing runs before the
 * first configuration. */
static void start_loops(struct market_agent *a)
{
    a->sampler = sampler_new(&(struct sampler_options){ .loop = a->loop,
                                                        .tree = &a->tree,
                                                        .sync = market_agent_sync,
                                                        .locate = locate_pod,
                                                        .capacity = market_agent_capacity,
                                                        .allocatable = market_agent_allocatable,
                                                        .cores = market_agent_cores,
                                                        .sets_requests = true,
                                                        .resize = request_limit,
                                                        .on_round = on_round,
                                                        .on_tick = on_tick,
                                                        .context = a });
    a->latency = latency_new(&(struct latency_options){ .loop = a->loop,
                                                        .seed = a->seed,
                                                        .on_answer = clear_latencies,
                                                        .on_latency = note_latency,
                                                        .context = a });
    a->qtables = qtable_store_new(&(struct qtable_store_options){ .kube = manager_kube(a->manager),
                                                                  .ns = a->own_ns,
                                                                  .node = a->node,
                                                                  .on_loaded = on_qtables_loaded,
                                                                  .collect = collect_qtables,
                                                                  .on_saved = on_qtables_saved,
                                                                  .context = a });
}

static const struct feature_setting settings[] = {
    { "cgroup-root", "/sys/fs/cgroup", "Mount point of the node's cgroups" },
    { "market-namespace", NULL,
      "Namespace of mbcas-agent-config and mbcas-qtable-NODE (default: the agent's namespace)" },
    { "market-config-namespace", NULL,
      "Namespace of mbcas-agent-config; MBCAS uses mbcas-system (default: --market-namespace)" },
    { "market-exclude-namespaces", MARKET_EXCLUDED_NAMESPACES,
      "Comma-separated namespaces whose pods are excluded" },
    { 0 },
};

/* Starts the feature. On failure, the manager calls stop_agent() with what exists so far. */
static int start_agent(struct manager *m, void **ret_state, err_t *e)
{
    struct market_agent *a = mem_zero(1, sizeof(*a));
    *ret_state = a;
    a->manager = m;
    a->loop = manager_loop(m);
    const char *node = manager_setting(m, "node-name"),
               *ns = manager_setting(m, "market-namespace"),
               *config_ns = manager_setting(m, "market-config-namespace");
    if (!node || !*node)
        return err_set(e, EINVAL, "node name unknown; set --node-name or $NODE_NAME");
    a->node = str_c(node);
    a->own_ns = ns && *ns ? str_c(ns) : kube_namespace(manager_kube(m));
    a->config_ns = config_ns && *config_ns ? str_c(config_ns) : a->own_ns;
    a->excluded = str_c(manager_setting(m, "market-exclude-namespaces"));
    a->seed = sum64(manager_identity(m), 0);
    a->reload = a->dirty = true;

    int r = start_tree(a, e);
    if (r == 0)
        r = start_caches(a, e);
    if (r < 0)
        return r;
    start_loops(a);
    market_agent_metrics_init(&a->metrics, manager_metrics(m), a);
    return market_agent_load_config(a, e);
}

static bool flush_qtables(void *state)
{
    struct market_agent *a = state;
    return a->qtables && qtable_store_flush(a->qtables);
}

static void stop_agent(void *state)
{
    struct market_agent *a = state;
    market_agent_metrics_done(&a->metrics);
    if (a->sampler)
        market_agent_remove_all(a);
    sampler_free(a->sampler);
    latency_free(a->latency);
    qtable_store_free(a->qtables);
    market_agent_config_done(&a->config);
    market_agent_clear_problems(a);
    cgroup_tree_done(&a->tree);
    for (size_t i = 0; i < countof(a->selectors); i++)
        buf_done(&a->selectors[i]);
    buf_done(&a->node_label);
    free(a);
}

const struct feature market_agent_feature = {
    .name = "market-agent",
    .summary = "CPU limits for the pods of one node (PodAllocation)",
    .on_node = true,
    .settings = settings,
    .start = start_agent,
    .flush = flush_qtables,
    .stop = stop_agent,
};
