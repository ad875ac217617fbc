/* The shell around market_advice_core: see market_cluster.h.
 *
 *      reconcile_report(), every 60 s
 *        gather_nodes()       allocatable CPU, whether pods may be placed there
 *        gather_pods()        what their agents wrote: bids, usage, the node's price and capacity
 *        gather_hpas()        which workloads are at maxReplicas
 *        market_advice_update()      recommendations: new, done, expired
 *        make_status()        one server-side apply and one status patch, if anything changed
 *
 * Prices are averaged over ten minutes in memory; after a restart the average begins with what the
 * agents published last. Recommendations are read back from the status, so they survive. A cluster
 * without the definition of ClusterMarket gets none of this, and no errors. */
#include "market_cluster.h"

#include "../base/map.h"
#include "../base/metrics.h"
#include "../base/quantity.h"
#include "../base/rfc3339.h"
#include "../json/json.h"
#include "../json/merge.h"
#include "market_advice_core.h"
#include "market_records.h"

static const int64_t report_ns = 60 * NS_PER_S;
static const double price_part = 0.1; /* of a new price in the mean: ten minutes of reports */
static const double low_use = 0.3;    /* of its requests: a workload that could be smaller */

const struct resource market_cluster_resource = { "allocation.mbcas.io", "v1alpha1",
                                                  "clustermarkets", "ClusterMarket", false };

struct market_node_record {
    struct record meta;
    const struct labels *labels;
    int64_t cpu_milli;
    bool unschedulable, tainted, ready;
};

struct market_hpa_record {
    struct record meta;
    str target_kind, target_name;
    int64_t most, current;
};

struct market_status_record {
    struct record meta;
    str status;
};

struct remembered { /* between reports, of a node or a workload */
    double price;
    int64_t low_since_s;
    bool known, seen;
    char key[];
};

struct market_cluster {
    struct manager *manager;
    struct controller *controller;
    struct cache *allocations, *pods, *nodes, *hpas, *reports;
    struct map memory; /* struct remembered, owned, by "node/NAME" or "kind/namespace/name" */
    struct metric_family *recommendations, *prices;
};

/* ---- caches */

#define NODE(member) offsetof(struct market_node_record, member)
static const struct field node_fields[] = {
    { "metadata.labels", F_MAP, NODE(labels) },
    { "status.allocatable.cpu", F_MILLI, NODE(cpu_milli) },
    { "spec.unschedulable", F_BOOL, NODE(unschedulable) },
    { "spec.taints[effect=NoSchedule].key", F_HAS, NODE(tainted) },
    { "status.conditions[type=Ready].status", F_IS, NODE(ready), .text = "True" },
};
#undef NODE
#define HPA(member) offsetof(struct market_hpa_record, member)
static const struct field hpa_fields[] = {
    { "spec.scaleTargetRef.kind", F_WORD, HPA(target_kind) },
    { "spec.scaleTargetRef.name", F_STR, HPA(target_name) },
    { "spec.maxReplicas", F_INT, HPA(most) },
    { "status.currentReplicas", F_INT, HPA(current) },
};
#undef HPA
static const struct field report_fields[] = {
    { "status", F_RAW, offsetof(struct market_status_record, status) },
};
static const struct fields node_kept = { sizeof(struct market_node_record), node_fields,
                                         countof(node_fields) };
static const struct fields hpa_kept = { sizeof(struct market_hpa_record), hpa_fields,
                                        countof(hpa_fields) };

/* ---- what is remembered */

static struct remembered *find_remembered(struct market_cluster *c, str key)
{
    struct remembered *one = map_get(&c->memory, key);
    if (!one) {
        one = mem_zero(1, sizeof(*one) + key.n + 1);
        memcpy(one->key, key.p, key.n);
        map_put(&c->memory, str_c(one->key), one);
    }
    one->seen = true;
    return one;
}

/* Drops what the last report did not use: nodes and workloads come and go. */
static void forget_unseen(struct market_cluster *c)
{
    VEC(struct remembered *) gone = { 0 };
    for (struct map_slot *slot = NULL; (slot = map_next(&c->memory, slot));) {
        struct remembered *one = slot->value;
        if (!one->seen)
            vec_push(&gone, one);
        one->seen = false;
    }
    for (size_t i = 0; i < gone.n; i++) {
        map_del(&c->memory, str_c(gone.at[i]->key));
        free(gone.at[i]);
    }
    vec_done(&gone);
}

/* ---- gathering */

struct gathered {
    struct arena *a;
    VEC(struct market_advice_node) nodes;
    VEC(struct market_advice_pod) pods;
    VEC(struct market_advice_workload) workloads;
    VEC(const struct market_node_record *) node_records; /* beside nodes */
    VEC(const struct market_pod_record *) pod_records;   /* beside pods */
    VEC(int64_t) rounds;                   /* beside nodes: of the price that counts; -1: none */
    struct map node_index, workload_index; /* index + 1 */
};

static int64_t read_milli(const struct json *status, const char *field)
{
    int64_t milli = 0;
    str text = json_text(json_get(status, field));
    return text.n && quantity_parse_milli(text, &milli, NULL) == 0 ? MAX(milli, INT64_C(0)) : 0;
}

static void gather_nodes(struct market_cluster *c, struct gathered *g)
{
    const struct market_node_record *record;
    cache_each(record, c->nodes) {
        struct market_advice_node node = { .name = record->meta.name,
                                           .memory_free = INT64_MAX,
                                           .unknown = !record->ready,
                                           .closed = record->unschedulable || record->tainted };
        vec_push(&g->nodes, node);
        vec_push(&g->node_records, record);
        vec_push(&g->rounds, -1);
        map_put(&g->node_index, record->meta.name, (void *)(uintptr_t)g->nodes.n);
    }
}

/* The Deployment of a ReplicaSet, by the name: the hash of the template is its last part. */
static size_t find_workload(struct gathered *g, const struct market_pod_record *pod)
{
    str kind = pod->owner_kind, name = pod->owner_name;
    if (!name.n)
        return SIZE_MAX;
    size_t dash = name.n;
    while (dash > 0 && name.p[dash - 1] != '-')
        dash--;
    if (str_eqc(kind, "ReplicaSet") && dash > 1) {
        kind = S("Deployment");
        name = str_upto(name, dash - 1);
    }
    str key = arena_printf(g->a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(kind),
                           STR_ARG(pod->meta.ns), STR_ARG(name));
    size_t index = (size_t)(uintptr_t)map_get(&g->workload_index, key);
    if (!index) {
        struct market_advice_workload one = { .ns = pod->meta.ns, .kind = kind, .name = name };
        vec_push(&g->workloads, one);
        index = g->workloads.n;
        map_put(&g->workload_index, key, (void *)(uintptr_t)index);
    }
    return index - 1;
}

/* Adds a pod that takes part, and what its agent reports about the node. */
static void add_pod(struct gathered *g, const struct allocation_record *allocation,
                    const struct market_pod_record *pod, size_t at)
{
    struct json *status = NULL;
    if (!allocation->status.n || json_parse(g->a, allocation->status, &status, NULL) < 0)
        return;
    struct market_advice_node *node = &g->nodes.at[at];
    struct market_advice_pod one = { .ns = pod->meta.ns,
                                     .name = pod->meta.name,
                                     .node = at,
                                     .workload = find_workload(g, pod),
                                     .bid_max_milli = read_milli(status, "bidMaxCPU"),
                                     .got_milli = read_milli(status, "shareCPU") };
    if (!one.got_milli)
        one.got_milli = read_milli(status, "appliedCPULimit");
    one.movable = one.workload != SIZE_MAX && !str_eqc(pod->owner_kind, "DaemonSet") &&
                  !str_eqc(pod->owner_kind, "Job") && !pod->unmovable && !pod->node_affinity &&
                  !pod->deleting;
    node->wanted_milli += one.bid_max_milli;
    int64_t round = json_int(json_get(status, "priceRound"), 0);
    if (round >= g->rounds.at[at]) {
        g->rounds.at[at] = round;
        node->price = json_real(json_get(status, "shadowPriceCPU"), 0);
        node->capacity_milli = read_milli(status, "nodeCapacityCPU");
    }
    if (one.workload != SIZE_MAX) {
        struct market_advice_workload *w = &g->workloads.at[one.workload];
        w->pods++;
        w->used_milli += read_milli(status, "usageCPU");
        w->requested_milli += read_milli(status, "appliedCPURequest");
    }
    vec_push(&g->pods, one);
    vec_push(&g->pod_records, pod);
}

static void gather_pods(struct market_cluster *c, struct gathered *g)
{
    const struct allocation_record *allocation;
    cache_each(allocation, c->allocations) {
        const struct market_pod_record *pod =
            cache_get(c->pods, allocation->pod_ns, allocation->pod_name);
        size_t at = pod ? (size_t)(uintptr_t)map_get(&g->node_index, pod->node) : 0;
        if (at && str_eqc(pod->phase, "Running"))
            add_pod(g, allocation, pod, at - 1);
    }
}

static void gather_hpas(struct market_cluster *c, struct gathered *g)
{
    const struct market_hpa_record *hpa;
    cache_each(hpa, c->hpas) {
        str key = arena_printf(g->a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(hpa->target_kind),
                               STR_ARG(hpa->meta.ns), STR_ARG(hpa->target_name));
        size_t at = (size_t)(uintptr_t)map_get(&g->workload_index, key);
        if (!at)
            continue;
        g->workloads.at[at - 1].has_hpa = true;
        g->workloads.at[at - 1].at_max |= hpa->current >= hpa->most;
    }
}

/* Requests of the pods of a node: what an agent would leave, on a node without one. */
static int64_t sum_requests(const struct market_cluster *c, str node)
{
    const struct market_pod_record *pod;
    int64_t sum = 0;
    cache_each_in(pod, c->pods, MARKET_PODS_BY_NODE, node)
        for (size_t i = 0; i < pod->containers.n; i++)
            sum += MAX(pod->containers.at[i].request_milli, INT64_C(0));
    return sum;
}

/* Means of prices, nodes without bidders, and since when a workload has been idle. */
static void apply_memory(struct market_cluster *c, struct gathered *g, int64_t now_s)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct market_advice_node *node = &g->nodes.at[i];
        struct remembered *one =
            find_remembered(c, arena_printf(g->a, "node/" STR_FMT, STR_ARG(node->name)));
        if (g->rounds.at[i] < 0)
            node->capacity_milli =
                g->node_records.at[i]->cpu_milli * 9 / 10 - sum_requests(c, node->name);
        one->price =
            one->known ? one->price + price_part * (node->price - one->price) : node->price;
        one->known = true;
        node->price = one->price;
    }
    for (size_t i = 0; i < g->workloads.n; i++) {
        struct market_advice_workload *w = &g->workloads.at[i];
        struct remembered *one =
            find_remembered(c, arena_printf(g->a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(w->kind),
                                            STR_ARG(w->ns), STR_ARG(w->name)));
        bool low = (double)w->used_milli < low_use * (double)w->requested_milli;
        one->low_since_s = !low ? 0 : one->low_since_s ? one->low_since_s : now_s;
        w->low_since_s = one->low_since_s;
    }
    forget_unseen(c);
}

/* Does the node have every label that the pod selects? */
static bool has_selected_labels(void *context, size_t pod, size_t node)
{
    const struct gathered *g = context;
    const struct labels *wanted = g->pod_records.at[pod]->node_selector,
                        *has = g->node_records.at[node]->labels;
    for (size_t i = 0; wanted && i < wanted->n; i++)
        if (!str_eq(intern_labels_get(has, word_str(wanted->at[i].key)),
                    word_str(wanted->at[i].value)))
            return false;
    return true;
}

/* ---- the status */

static void set_milli(struct arena *a, struct json *o, const char *field, int64_t milli)
{
    json_set_str(a, o, field, arena_printf(a, "%lldm", (long long)milli));
}

static void set_time(struct arena *a, struct json *o, const char *field, int64_t s)
{
    char text[RFC3339_TEXT_MAX];
    if (s)
        json_set_str(a, o, field, rfc3339_text(s, text));
}

static struct json *make_node(struct arena *a, const struct market_advice_node *n)
{
    struct json *o = json_new_obj(a);
    json_set_str(a, o, "name", n->name);
    json_set_str(a, o, "state",
                 n->unknown ? S("Unknown")
                 : n->hot   ? S("Hot")
                 : n->cold  ? S("Cold")
                            : S("Balanced"));
    json_set(a, o, S("price"), json_new_real(a, (double)(int64_t)(n->price * 1000 + 0.5) / 1000));
    set_milli(a, o, "capacityCPU", n->capacity_milli);
    set_milli(a, o, "wantedCPU", n->wanted_milli);
    return o;
}

static struct json *make_advice(struct arena *a, const struct market_advice *x)
{
    struct json *o = json_new_obj(a);
    json_set_str(a, o, "kind", str_c(market_advice_kind_names[x->kind]));
    json_set_str(a, o, "state", str_c(market_advice_state_names[x->state]));
    const struct {
        const char *field;
        str text;
    } texts[] = { { "object", x->object }, { "namespace", x->ns },  { "name", x->name },
                  { "node", x->node },     { "target", x->target }, { "reason", x->reason } };
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i].text.n)
            json_set_str(a, o, texts[i].field, texts[i].text);
    if (x->gain_milli)
        set_milli(a, o, "gainCPU", x->gain_milli);
    set_time(a, o, "since", x->since_s);
    set_time(a, o, "ended", x->ended_s);
    return o;
}

static struct json *make_status(struct arena *a, const struct gathered *g,
                                const market_advice_list *list)
{
    struct json *status = json_new_obj(a), *nodes = json_new_arr(a), *advices = json_new_arr(a);
    for (size_t i = 0; i < g->nodes.n; i++)
        json_push(a, nodes, make_node(a, &g->nodes.at[i]));
    for (size_t i = 0; i < list->n; i++)
        json_push(a, advices, make_advice(a, &list->at[i]));
    json_set(a, status, S("nodes"), nodes);
    json_set(a, status, S("recommendations"), advices);
    return status;
}

static int find_name(const char *const *names, int n, str name)
{
    for (int i = 0; i < n; i++)
        if (str_eqc(name, names[i]))
            return i;
    return -1;
}

/* Reads back what an earlier report recommended. */
static void read_advices(const struct json *status, market_advice_list *ret)
{
    const struct json *list = json_get(status, "recommendations");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *o = json_item(list, i);
        int kind = find_name(market_advice_kind_names, MARKET_ADVICE_KIND_N,
                             json_text(json_get(o, "kind")));
        int state = find_name(market_advice_state_names, MARKET_ADVICE_STATE_N,
                              json_text(json_get(o, "state")));
        int64_t since = 0, ended = 0, gain = read_milli(o, "gainCPU");
        if (kind < 0 || state < 0 ||
            rfc3339_parse_ns(json_text(json_get(o, "since")), &since, NULL) < 0)
            continue;
        (void)rfc3339_parse_ns(json_text(json_get(o, "ended")), &ended, NULL);
        struct market_advice x = { .kind = (enum market_advice_kind)kind,
                                   .state = (enum market_advice_state)state,
                                   .object = json_text(json_get(o, "object")),
                                   .ns = json_text(json_get(o, "namespace")),
                                   .name = json_text(json_get(o, "name")),
                                   .node = json_text(json_get(o, "node")),
                                   .target = json_text(json_get(o, "target")),
                                   .reason = json_text(json_get(o, "reason")),
                                   .gain_milli = gain,
                                   .since_s = since / NS_PER_S,
                                   .ended_s = ended / NS_PER_S };
        vec_push(ret, x);
    }
}

/* ---- reporting */

static void ignore_missing(struct reconcile *r, const struct kube_reply *reply)
{
    if (reply->failure && reply->reason != KUBE_NOT_FOUND)
        reconcile_fail_call(r, reply);
}

static void write_report(struct reconcile *r, const struct market_status_record *old,
                         const struct json *old_status, const struct json *status)
{
    struct json *diff =
        merge_diff(r->arena, old_status ? old_status : json_new_obj(r->arena), status);
    if (!diff)
        return;
    str body = kube_status_body(r->arena, diff);
    if (!old) /* the status follows with the next report, when the object exists */
        reconcile_call(r,
                       &(struct kube_request){
                           .verb = KUBE_APPLY,
                           .resource = &market_cluster_resource,
                           .name = r->name,
                           .body = S("{\"apiVersion\":\"allocation.mbcas.io/v1alpha1\",\"kind\":"
                                     "\"ClusterMarket\",\"metadata\":{\"name\":\"cluster\"}}") },
                       ignore_missing);
    else
        reconcile_call(r,
                       &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                               .resource = &market_cluster_resource,
                                               .name = r->name,
                                               .subresource = "status",
                                               .body = body },
                       ignore_missing);
}

/* Events of new recommendations, and metrics of all. */
static void publish_advices(struct market_cluster *c, const struct gathered *g,
                            const market_advice_list *list)
{
    int counts[MARKET_ADVICE_KIND_N][MARKET_ADVICE_STATE_N] = { 0 };
    for (size_t i = 0; i < list->n; i++) {
        const struct market_advice *x = &list->at[i];
        counts[x->kind][x->state]++;
        if (!x->fresh || x->kind != MARKET_ADVICE_MOVE)
            continue;
        const struct record *pod = cache_get(c->pods, x->ns, x->name);
        if (pod)
            events_emit(manager_events(c->manager),
                        &(struct kube_event){ .resource = &resource_pods,
                                              .ns = x->ns,
                                              .name = x->name,
                                              .uid = pod->uid,
                                              .reason = "MarketMove",
                                              .message = x->reason });
    }
    for (int kind = 0; kind < MARKET_ADVICE_KIND_N; kind++)
        for (int state = 0; state < MARKET_ADVICE_STATE_N; state++)
            metric_set(METRIC(c->recommendations, str_c(market_advice_kind_names[kind]),
                              str_c(market_advice_state_names[state])),
                       counts[kind][state]);
    for (size_t i = 0; i < g->nodes.n; i++)
        metric_set(METRIC(c->prices, g->nodes.at[i].name), g->nodes.at[i].price);
}

static struct reconciled reconcile_report(struct reconcile *r)
{
    struct market_cluster *c = r->context;
    struct gathered g = { .a = r->arena };
    market_advice_list list = { 0 };
    const struct market_status_record *old = cache_get(c->reports, S(""), r->name);
    struct json *old_status = NULL;
    if (old && old->status.n)
        (void)json_parse(r->arena, old->status, &old_status, NULL);
    gather_nodes(c, &g);
    gather_pods(c, &g);
    gather_hpas(c, &g);
    apply_memory(c, &g, r->now_ns / NS_PER_S);
    read_advices(old_status, &list);
    struct market_advice_view view = { .nodes = g.nodes.at,
                                       .node_n = g.nodes.n,
                                       .pods = g.pods.at,
                                       .pod_n = g.pods.n,
                                       .workloads = g.workloads.at,
                                       .workload_n = g.workloads.n,
                                       .now_s = r->now_ns / NS_PER_S,
                                       .fits = has_selected_labels,
                                       .context = &g };
    market_advice_update(&view, &list, r->arena);
    publish_advices(c, &g, &list);
    bool news = old || list.n || (g.pods.n && g.nodes.n > 1); /* one node alone is no news */
    if (news && !cache_absent(c->reports))
        write_report(r, old, old_status, make_status(r->arena, &g, &list));
    vec_done(&list);
    vec_done(&g.nodes);
    vec_done(&g.pods);
    vec_done(&g.workloads);
    vec_done(&g.node_records);
    vec_done(&g.pod_records);
    vec_done(&g.rounds);
    map_done(&g.node_index);
    map_done(&g.workload_index);
    return reconciled_after(old || !news ? report_ns : 2 * NS_PER_S);
}

/* The object's own changes are those of reconcile_report(). */
static void on_report_changed(struct controller *c, const struct record *old,
                              const struct record *now)
{
    (void)c, (void)old, (void)now;
}

/* The first allocation starts the reports; after that they repeat by themselves. */
static void on_allocation_changed(struct controller *c, const struct record *old,
                                  const struct record *now)
{
    if (now && !old)
        controller_add_after(c, S(""), S("cluster"), report_ns);
}

int market_cluster_start(struct manager *manager, struct cache *allocations, struct cache *pods,
                         struct market_cluster **ret, err_t *e)
{
    struct market_cluster *c = mem_zero(1, sizeof(*c));
    *ret = c;
    c->manager = manager;
    c->allocations = allocations;
    c->pods = pods;
    static const struct cache_spec nodes = { .resource = &resource_nodes,
                                             .need = CACHE_IF_ALLOWED,
                                             .keep = &node_kept },
                                   hpas = { .resource = &resource_hpas,
                                            .need = CACHE_IF_ALLOWED,
                                            .keep = &hpa_kept };
    static const struct fields report_kept = { sizeof(struct market_status_record), report_fields,
                                               countof(report_fields) };
    static const struct cache_spec reports = { .resource = &market_cluster_resource,
                                               .need = CACHE_IF_ALLOWED,
                                               .keep = &report_kept };
    if (manager_cache(manager, &nodes, &c->nodes, e) < 0 ||
        manager_cache(manager, &hpas, &c->hpas, e) < 0 ||
        manager_cache(manager, &reports, &c->reports, e) < 0)
        return -e->code;
    c->recommendations =
        metrics_family(manager_metrics(manager),
                       &(struct metric_spec){ .name = "mbcas_cluster_recommendations",
                                              .help = "Recommendations of the last hour",
                                              .kind = METRIC_GAUGE,
                                              .labels = { "kind", "state" } });
    c->prices = metrics_family(manager_metrics(manager),
                               &(struct metric_spec){ .name = "mbcas_cluster_node_price",
                                                      .help = "Shadow price, mean of ten minutes",
                                                      .kind = METRIC_GAUGE,
                                                      .labels = { "node" } });
    c->controller =
        manager_controller(manager, &(struct controller_spec){ .name = "market-cluster",
                                                               .reconcile = reconcile_report,
                                                               .context = c,
                                                               .workers = 1 });
    controller_watch(c->controller, allocations, on_allocation_changed);
    controller_watch(c->controller, c->reports, on_report_changed);
    return 0;
}

void market_cluster_stop(struct market_cluster *c)
{
    if (!c)
        return;
    for (struct map_slot *slot = NULL; (slot = map_next(&c->memory, slot));)
        free(slot->value);
    map_done(&c->memory);
    free(c);
}
