/* The accelerators of the cluster: what the nodes have, what pods use, and what a variant needs. See saturation_limits.h.
 *
 *     pod template ─► saturation_limits_learn ─► accelerator that it selects (else the label of the variant)
 *     nodes, pods ──► stock_count ──► room of the variant on nodes where its pods can run
 *
 * Nodes are watched once a limiter needs them, and a cycle sends no request. If they cannot be listed the inventory does not limit:
 * a cluster where flyball may not read nodes must still scale. That is reported once, on the ConfigMap that asks for it. */
#include "../base/log.h"
#include "objects/workload_core.h"
#include "saturation_capacity.h"
#include "saturation_dra.h"
#include "saturation_limits.h"
#include "saturation_targets.h"

static const int64_t unknown_ready_ns = 40 * NS_PER_S; /* Kubernetes' node-monitor-grace-period */

/* ---- what a variant needs */

static int64_t count_gpus(const int64_t milli[static GPU_RESOURCE_N])
{
    int64_t sum = 0;
    for (size_t i = 0; i < GPU_RESOURCE_N; i++)
        sum += milli[i] / 1000;
    return sum;
}

static void find_most_gpus(void *context, const struct replica_record *pod)
{
    int64_t *most = context;
    *most = MAX(*most, count_gpus(pod->gpu_milli));
}

/* Of one replica, which may be a group of pods. */
int64_t saturation_limits_gpus(const struct saturation *s, const struct variant *v)
{
    const struct workload_record *w = saturation_get_workload(s, v);
    int64_t gpus = w ? count_gpus(w->gpu_milli) : 0;
    if (w && w->group_size > 1) /* a leader and its workers */
        gpus *= w->group_size - 1;
    if (w && w->group_size > 1)
        gpus += count_gpus(w->has_leader ? w->leader_milli : w->gpu_milli);
    gpus += v->claimed * (w ? MAX(w->group_size, (int64_t)1) : 0);
    if (w && !gpus && !saturation_is_built_in(v))
        saturation_each_pod(s, v, find_most_gpus, &gpus);
    return MAX(gpus, (int64_t)1);
}

/* The accelerator that a pod template selects: the first product label of its nodeSelector by name, else its
 * nodeAffinity. */
static str read_selection(struct arena *a, const struct workload_record *w)
{
    const struct labels *selector = w->has_leader ? w->leader_selector : w->node_selector;
    str text = w->has_leader ? w->leader_affinity : w->affinity, key = S(""), value = S("");
    struct json *affinity = NULL;
    for (size_t i = 0; selector && i < selector->n; i++) {
        str name = word_str(selector->at[i].key);
        if (stock_is_product_label(name) && (!key.n || str_cmp(name, key) < 0)) {
            key = name;
            value = word_str(selector->at[i].value);
        }
    }
    if (!key.n && text.n && json_parse(a, text, &affinity, NULL) == 0)
        value = workload_affinity_product(affinity);
    return value;
}

static void learn_selection(const struct saturation *s, struct variant *v)
{
    auto_arena struct arena a = { 0 };
    const struct workload_record *w = saturation_get_workload(s, v);
    if (!w || (v->selects && str_eq(w->meta.rv, str_c(v->selects_rv))))
        return;
    str found = read_selection(&a, w);
    free(v->selects);
    free(v->selects_rv);
    v->sglang = saturation_capacity_is_sglang(w);
    v->selects = mem_dup(found.p, found.n);
    v->selects_rv = mem_dup(w->meta.rv.p, w->meta.rv.n);
}

/* Whether all accelerators of the nodes are of one type: it is then that of a variant which names none. */
static void learn_only_type(struct saturation *s)
{
    auto_arena struct arena a = { 0 };
    struct gathering g = { .s = s, .a = &a };
    struct stock stock = saturation_limits_stock(&g);
    bool several = stock.n == 0;
    for (size_t i = 1; i < stock.n; i++)
        several |= !str_eq_nocase(stock.items[i].type, stock.items[0].type);
    free(take(s->only_type));
    if (!several)
        s->only_type = mem_dup(stock.items[0].type.p, stock.items[0].type.n);
}

static bool is_unknown(const struct variant *v)
{
    return str_eqc(v->accelerator, "unknown");
}

/* Once, when the workload of a variant is there and names no accelerator. */
static void report_unresolved(const struct saturation *s, struct variant *v)
{
    bool unresolved =
        is_unknown(v) && v->selects && str_eqc(saturation_limits_type(s, v), "unknown");
    if (unresolved && !v->unresolved)
        saturation_emit(s, v, true, "AcceleratorNotResolved",
                        S("neither the nodeSelector nor the nodeAffinity of the pods, nor the "
                          "label " SAT_ACCELERATOR_LABEL " names an accelerator"));
    v->unresolved = unresolved;
}

void saturation_limits_learn(struct saturation *s, const struct sat_policy *policy)
{
    bool names_none = false;
    if (policy)
        saturation_dra_learn(s);
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        struct variant *v = slot->value;
        learn_selection(s, v);
        const struct workload_record *w = policy && s->dra ? saturation_get_workload(s, v) : NULL;
        v->claimed = w ? saturation_dra_claimed(s, w) : 0;
        names_none |= is_unknown(v) && !(v->selects && *v->selects);
        report_unresolved(s, v);
    }
    if (policy && names_none && saturation_limits_uses_stock(s, policy))
        learn_only_type(s);
}

/* The accelerator that the template selects, else the label of the variant. */
str saturation_limits_type(const struct saturation *s, const struct variant *v)
{
    if (v->selects && *v->selects)
        return sat_accelerator_name(str_c(v->selects));
    if (is_unknown(v) && s->only_type)
        return str_c(s->only_type);
    return sat_accelerator_name(v->accelerator);
}

str saturation_limits_shown_type(const struct saturation *s, const struct variant *v)
{
    str type = is_unknown(v) ? saturation_limits_type(s, v) : v->accelerator;
    return str_eqc(type, "unknown") ? S("unresolved") : type;
}

/* ---- the nodes */

static void read_taints(struct arena *a, str text, struct stock_node *node)
{
    struct json *list = NULL;
    if (!text.n || json_parse(a, text, &list, NULL) < 0)
        return;
    struct stock_taint *taints = arena_array(a, json_len(list), sizeof(*taints));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *t = json_item(list, i);
        taints[i] =
            (struct stock_taint){ json_text(json_get(t, "key")), json_text(json_get(t, "value")),
                                  json_text(json_get(t, "effect")) };
    }
    node->taints = taints;
    node->taint_n = json_len(list);
}

/* A node whose kubelet is silent is given up by Kubernetes after 40 s, and not before. */
static bool is_ready(const struct saturation *s, const struct node_record *r)
{
    int64_t since_ns = loop_wall_ns(manager_loop(s->manager)) - r->ready_ns;
    return str_eqc(r->ready, "True") ||
           (str_eqc(r->ready, "Unknown") && r->ready_ns && since_ns < unknown_ready_ns);
}

/* All nodes and all pods of the cluster that have accelerators, from the watch caches. */
struct stock saturation_limits_stock(struct gathering *g)
{
    struct saturation *s = g->s;
    struct stock_node *nodes = arena_array(g->a, cache_count(s->nodes), sizeof(*nodes));
    struct stock_pod *pods = arena_array(g->a, cache_count(s->pods), sizeof(*pods));
    const struct node_record *r;
    const struct replica_record *p;
    size_t n = 0, pod_n = 0;
    cache_each(r, s->nodes) {
        if (!labels_match(&s->o.node_labels, saturation_get_label, r->labels))
            continue;
        struct stock_node *node = &nodes[n++];
        *node = (struct stock_node){ .name = r->meta.name,
                                     .unschedulable = r->unschedulable,
                                     .ready = is_ready(s, r) ? STOCK_READY : STOCK_NOT_READY };
        node->labels = sat_label_pairs(g->a, r->labels, &node->label_n);
        node->allocatable = sat_label_pairs(g->a, r->allocatable, &node->allocatable_n);
        read_taints(g->a, r->taints, node);
    }
    cache_each(p, s->pods) {
        int64_t gpus = count_gpus(p->gpu_milli);
        bool done = str_eqc(p->phase, "Succeeded") || str_eqc(p->phase, "Failed");
        if (gpus && p->node.n)
            pods[pod_n++] =
                (struct stock_pod){ .node = p->node, .type = S(""), .done = done, .gpus = gpus };
    }
    struct stock stock = stock_count(g->a, nodes, n, pods, pod_n, STOCK_OURS);
    return saturation_dra_merge(g, stock, nodes, n);
}

static void read_tolerations(struct arena *a, str text, struct stock_need *need)
{
    struct json *list = NULL;
    if (!text.n || json_parse(a, text, &list, NULL) < 0)
        return;
    struct stock_toleration *t = arena_array(a, json_len(list), sizeof(*t));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        t[i] = (struct stock_toleration){ json_text(json_get(x, "key")),
                                          json_text(json_get(x, "value")),
                                          json_text(json_get(x, "effect")),
                                          str_eqc(json_text(json_get(x, "operator")), "Exists") };
    }
    need->tolerations = t;
    need->toleration_n = json_len(list);
}

struct bound_count {
    int64_t bound; /* pods that are on a node */
};

static void count_bound(void *context, const struct replica_record *pod)
{
    struct bound_count *c = context;
    c->bound += pod->node.n && !pod->deleting;
}

int64_t saturation_limits_bound(const struct saturation *s, const struct variant *v)
{
    struct bound_count c = { 0 };
    saturation_each_pod(s, v, count_bound, &c);
    return c.bound;
}

/* Where pods of a variant could run. */
static struct stock_need need_of(struct gathering *g, const struct variant *v)
{
    const struct workload_record *w = saturation_get_workload(g->s, v);
    int64_t each = saturation_limits_gpus(g->s, v);
    struct stock_need need = { .type = saturation_limits_type(g->s, v),
                               .gpus_per_pod = each,
                               .pods_per_replica = 1 };
    if (w && w->group_size > 1) {
        need.pods_per_replica = w->group_size;
        need.gpus_per_pod = (each + w->group_size - 1) / w->group_size;
    }
    if (w) {
        need.node_selector = sat_label_pairs(g->a, w->node_selector, &need.node_selector_n);
        read_tolerations(g->a, w->tolerations, &need);
        struct json *affinity = NULL;
        if (w->affinity.n && json_parse(g->a, w->affinity, &affinity, NULL) == 0)
            need.terms = json_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
                                 "nodeSelectorTerms", NULL);
    }
    return need;
}

struct stock_room saturation_limits_room(struct gathering *g, const struct stock *stock,
                                         const struct variant *v)
{
    struct stock_need need = need_of(g, v);
    return stock_room_for(stock, &need);
}

bool saturation_limits_knows_stock(struct saturation *s)
{
    err_t e;
    if (!s->nodes && manager_cache(s->manager, &saturation_node_cache, &s->nodes, &e) < 0)
        log_error("cannot watch nodes", KV_C("error", e.text));
    bool known = s->nodes && cache_synced(s->nodes) && !cache_absent(s->nodes);
    struct metric_family *up =
        metrics_family(manager_metrics(s->manager),
                       &(struct metric_spec){ .name = "wva_gpu_discovery_up",
                                              .help =
                                                  "Whether the accelerators of the nodes are known",
                                              .kind = METRIC_GAUGE });
    metric_set(METRIC_ALONE(up), known);
    bool refused = s->nodes && cache_absent(s->nodes);
    if (refused && !s->inventory_warned)
        saturation_config_warn(
            s, "InventoryUnknown",
            S("flyball may not list nodes, so that accelerators are not limited; "
              "quotas are"));
    s->inventory_warned = refused;
    return known;
}

bool saturation_limits_uses_stock(struct saturation *s, const struct sat_policy *policy)
{
    bool has_quota = false;
    for (size_t i = 0; i < policy->limiter_n; i++)
        has_quota |= str_eqc(policy->limiters[i].type, "quota");
    return policy_uses_stock(policy) && !(has_quota && s->o.quota_alone) &&
           saturation_limits_knows_stock(s);
}
