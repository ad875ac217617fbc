/* The node agent as a feature: see market_agent.h. Caches lead to a sync at the next tick of the sampler; its
 * rounds lead to keys; a key leads to a PodAllocation that says what the pod should have. */
#include "market_agent.h"

#include "../base/file.h"
#include "../base/log.h"
#include "../base/sum.h"
#include "market_agent_internal.h"
#include "milli.h"

#include <malloc.h>

enum { WORKERS = 4, LABEL_BYTES_MAX = 63, MOUNTINFO_MAX = 4 << 20 };

/* ---- what the sampler asks and tells */

static struct agent_pod *pod_of(struct sampled *sampled)
{
    return container_of(sampled, struct agent_pod, sampled);
}

static void write_soon(struct market_agent *a, const struct agent_pod *pod)
{
    controller_add(a->controller, pod->record->meta.ns, pod->record->meta.name);
}

static int locate(void *context, struct sampled *sampled, struct buf *ret_path, err_t *e)
{
    struct market_agent *a = context;
    return cgroup_tree_find(&a->tree, pod_of(sampled)->record->meta.uid, ret_path, e);
}

static void resize(void *context, struct sampled *sampled, int64_t limit_milli)
{
    struct market_agent *a = context;
    struct agent_pod *pod = pod_of(sampled);
    pod->desired_request_milli = milli32(agent_pod_request(pod->record, limit_milli));
    if (!pod->changes)
        pod->changes = mem_zero(1, sizeof(*pod->changes));
    pod->changes->asked_ns = loop_mono_ns(a->loop);
    if (limit_milli > sampled->market.limit_milli)
        pod->changes->ups++;
    else
        pod->changes->downs++;
    write_soon(a, pod);
}

static void steer(struct market_pod *m, struct slo_state *state)
{
    double ratio = (double)m->slo_ratio;
    m->slo_weight = (float)slo_weight(state, (double)m->slo_weight, ratio);
    m->slo_milli = (float)slo_limit(state, ratio, m->agent.usage_milli, m->limit_milli);
}

/* Who is left as it is gets a PodAllocation that says so: all managed pods can be seen. */
static void settle(struct market_agent *a, struct agent_pod *pod)
{
    struct sampled *s = &pod->sampled;
    if (!s->wanted_milli && s->market.limit_milli > 0) {
        s->wanted_milli = s->market.limit_milli;
        pod->desired_request_milli = s->market.request_milli;
    }
    agent_rewards_add(&pod->rewards, (double)s->market.reward);
    if (pod->objective)
        steer(&s->market, &pod->objective->state);
    if (!market_agent_is_written(a, pod))
        write_soon(a, pod);
}

static void rounded(void *context, const struct round_report *report)
{
    struct market_agent *a = context;
    a->price = report->clearing.price;
    a->dirty = true; /* what the node could not give may be possible by now */
    a->rounded = true;
    agent_metrics_round(&a->metrics, report);
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        if (pod->sampled.market.last_ns)
            settle(a, pod);
    }
}

/* ---- latencies */

static void ask_latencies(struct market_agent *a)
{
    struct arena *scratch = loop_scratch(a->loop);
    size_t n = 0, count = sampler_count(a->sampler);
    if (!a->config.market.prometheus_url.n)
        return;
    struct slo_target *targets = arena_array(scratch, count, sizeof(*targets));
    for (size_t i = 0; i < count; i++) {
        const struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        if (pod->objective)
            targets[n++] = (struct slo_target){ pod->record->meta.ns, pod->record->meta.name };
    }
    slo_ask(a->slo, targets, n);
}

/* What a slow round needed is not needed for a while. */
static void ticked(void *context)
{
    struct market_agent *a = context;
    ask_latencies(a);
    if (a->rounded)
        malloc_trim(0);
    a->rounded = false;
}

static void latencies_begin(void *context)
{
    struct market_agent *a = context;
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        struct market_pod *m = &sampler_at(a->sampler, i)->market;
        m->slo_ratio = 0;
        m->slo_burns = false;
    }
}

static void latency(void *context, str ns, str name, double ms)
{
    static const double ratio_max = 100; /* what is off the histogram's scale is infinite */
    static const double usual_s = 5, longest_s = 60; /* between two answers */
    struct market_agent *a = context;
    struct agent_pod *pod = market_agent_find(a, ns, name);
    if (!pod || !pod->objective)
        return;
    struct agent_objective *o = pod->objective;
    struct market_pod *m = &pod->sampled.market;
    int64_t now = loop_mono_ns(a->loop);
    double seconds = o->told_ns ? MIN((double)(now - o->told_ns) / 1e9, longest_s) : usual_s;
    o->told_ns = now;
    double ratio = MIN(ms / o->target_ms, ratio_max);
    m->slo_ratio = (float)ratio;
    m->slo_burns = slo_burns(&o->state, ratio > sampler_rules(a->sampler)->slo_fast, seconds);
}

/* ---- what was learnt */

static void learnt_loaded(void *context)
{
    ((struct market_agent *)context)->dirty = true;
}

static void collect_learnt(void *context)
{
    struct market_agent *a = context;
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        const struct agent_pod *pod = pod_of(sampler_at(a->sampler, i));
        auto_buf struct buf key = { 0 };
        agent_workload_key(pod->record, &key);
        qtable_store_put(a->qtables, buf_str(&key), &pod->sampled.market.agent);
    }
}

/* ---- what the caches tell */

static void pod_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct market_agent *a = controller_context(c);
    a->dirty = true;
    if (!now || (old && !str_eq(old->uid, now->uid)))
        controller_add(c, old->ns, old->name);
}

static void allocation_changed(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct market_agent *a = controller_context(c);
    const struct agent_allocation_record *allocation = (const void *)(now ? now : old);
    struct agent_pod *pod = market_agent_find(a, allocation->meta.ns, allocation->pod_name);
    if (pod && now) {
        market_agent_read_status(pod, allocation);
        a->dirty = true;
    }
    controller_add(c, allocation->meta.ns, allocation->pod_name);
}

static void any_changed(void *context, const struct record *old, const struct record *now)
{
    (void)old, (void)now;
    ((struct market_agent *)context)->dirty = true;
}

static void config_changed(void *context, const struct record *old, const struct record *now)
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
    file_allow_many();
    r = cgroup_tree_init(&a->tree, manager_setting(a->manager, "cgroup-root"), buf_str(&mountinfo),
                         e);
    if (r == 0)
        log_info("reading cgroups", KV_INT("version", a->tree.version), KV_C("cpu", a->tree.cpu));
    return r;
}

static int start_caches(struct market_agent *a, err_t *e)
{
    struct cache_spec pods = agent_pod_cache, nodes = agent_node_cache,
                      configs = agent_config_cache, allocations = agent_allocation_cache;
    agent_put_name(a->node, LABEL_BYTES_MAX, &a->node_label);
    buf_printf(&a->selectors[0], "spec.nodeName=" STR_FMT, STR_ARG(a->node));
    buf_printf(&a->selectors[1], "metadata.name=" STR_FMT, STR_ARG(a->node));
    buf_printf(&a->selectors[2], MARKET_NODE "=" STR_FMT, STR_ARG(buf_str(&a->node_label)));
    pods.field_selector = buf_str(&a->selectors[0]);
    nodes.field_selector = buf_str(&a->selectors[1]);
    allocations.label_selector = buf_str(&a->selectors[2]);
    configs.ns = a->config_ns; /* a role there is enough */
    configs.field_selector = S("metadata.name=mbcas-agent-config");
    if (manager_cache(a->manager, &pods, &a->pods, e) < 0 ||
        manager_cache(a->manager, &nodes, &a->nodes, e) < 0 ||
        manager_cache(a->manager, &allocations, &a->allocations, e) < 0 ||
        manager_cache(a->manager, &configs, &a->configs, e) < 0)
        return -e->code;
    a->controller =
        manager_controller(a->manager, &(struct controller_spec){ .name = "market-agent",
                                                                  .reconcile = market_agent_write,
                                                                  .context = a,
                                                                  .workers = WORKERS });
    controller_watch(a->controller, a->pods, pod_changed);
    controller_watch(a->controller, a->allocations, allocation_changed);
    cache_handle(a->pods, any_changed, a);
    cache_handle(a->nodes, any_changed, a);
    cache_handle(a->configs, config_changed, a);
    return 0;
}

static void start_loops(struct market_agent *a)
{
    a->sampler = sampler_new(&(struct sampler_options){ .loop = a->loop,
                                                        .tree = &a->tree,
                                                        .sync = market_agent_sync,
                                                        .locate = locate,
                                                        .capacity = market_agent_capacity,
                                                        .resize = resize,
                                                        .rounded = rounded,
                                                        .ticked = ticked,
                                                        .context = a });
    a->slo = slo_new(&(struct slo_options){ .loop = a->loop,
                                            .seed = a->seed,
                                            .began = latencies_begin,
                                            .latency = latency,
                                            .context = a });
    a->qtables = qtable_store_new(&(struct qtable_store_options){ .kube = manager_kube(a->manager),
                                                                  .ns = a->own_ns,
                                                                  .node = a->node,
                                                                  .loaded = learnt_loaded,
                                                                  .collect = collect_learnt,
                                                                  .context = a });
}

static const struct feature_setting settings[] = {
    { "cgroup-root", "/sys/fs/cgroup", "where the node's cgroups are mounted" },
    { "market-namespace", NULL,
      "Namespace of mbcas-agent-config and of what was learnt (default: where the agent runs)" },
    { "market-config-namespace", NULL,
      "Namespace of mbcas-agent-config alone (default: --market-namespace); MBCAS has it in "
      "mbcas-system" },
    { "market-exclude-namespaces", "kube-system,mbcas-system,flyball-system,flyball-agent",
      "namespaces whose pods are left alone" },
    { 0 },
};

static int start(struct manager *m, void **ret_state, err_t *e)
{
    struct market_agent *a = mem_zero(1, sizeof(*a));
    *ret_state = a;
    a->manager = m;
    a->loop = manager_loop(m);
    const char *node = manager_setting(m, "node-name"),
               *ns = manager_setting(m, "market-namespace"),
               *config_ns = manager_setting(m, "market-config-namespace");
    if (!node || !*node)
        return err_set(e, EINVAL, "which node is this? Say --node-name or set $NODE_NAME");
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
    agent_metrics_init(&a->metrics, manager_metrics(m), a);
    return market_agent_load_config(a, e);
}

static bool flush(void *state)
{
    struct market_agent *a = state;
    return a->qtables && qtable_store_flush(a->qtables);
}

static void stop(void *state)
{
    struct market_agent *a = state;
    agent_metrics_done(&a->metrics);
    if (a->sampler)
        market_agent_drop_all(a);
    sampler_free(a->sampler);
    slo_free(a->slo);
    qtable_store_free(a->qtables);
    agent_config_done(&a->config);
    cgroup_tree_done(&a->tree);
    for (size_t i = 0; i < countof(a->selectors); i++)
        buf_done(&a->selectors[i]);
    buf_done(&a->node_label);
    free(a);
}

const struct feature market_agent_feature = {
    .name = "market-agent",
    .summary = "how much CPU each pod of the node gets (PodAllocation)",
    .on_node = true,
    .settings = settings,
    .start = start,
    .flush = flush,
    .stop = stop,
};
