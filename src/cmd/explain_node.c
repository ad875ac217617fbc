/* flyball explain node, nodes and pod: the market of one node or of all, and why a pod is or is not part of it.
 *
 * market_agent_pod_view() decides which pods take part, here and in the agent. The agent's list of excluded namespaces is
 * not stored in the cluster, so this command assumes the default. */
#include "../base/quantity.h"
#include "../market/market_agent_pod.h"
#include "../market/market_cluster.h"
#include "explain_market.h"

/* ---- the market of a node */

struct totals {
    size_t pods;
    int64_t usage, need, request, limit; /* millicores */
};

static int64_t parse_milli(str quantity)
{
    int64_t value;
    err_t e;
    return quantity_parse_milli(quantity, &value, &e) < 0 ? 0 : value;
}

static str or_dash(str text)
{
    return text.n ? text : S("-");
}

/* Quantities that are missing or invalid count as nothing: an agent of an older version does not write all of them. */
static void add_totals(struct totals *sum, const struct json *allocation)
{
    sum->pods++;
    sum->usage += parse_milli(explain_text_at(allocation, "status", "usageCPU"));
    sum->need += parse_milli(explain_text_at(allocation, "status", "needCPU"));
    sum->request += parse_milli(explain_text_at(allocation, "spec", "desiredCPURequest"));
    sum->limit += parse_milli(explain_text_at(allocation, "spec", "desiredCPULimit"));
}

/* One pod; what its agent has not written yet is shown as a dash. */
static void put_row(struct explain *x, const struct json *a, bool marked)
{
    str pod = arena_printf(&x->arena, STR_FMT "/" STR_FMT,
                           STR_ARG(explain_text_at(a, "spec", "namespace")),
                           STR_ARG(explain_text_at(a, "spec", "podName")));
    buf_printf(&x->out, "%s %-52s %8s %8s %8s %8s %8s  " STR_FMT "\n", marked ? ">" : " ", pod.p,
               or_dash(explain_text_at(a, "status", "usageCPU")).p,
               or_dash(explain_text_at(a, "status", "needCPU")).p,
               or_dash(explain_text_at(a, "spec", "desiredCPURequest")).p,
               or_dash(explain_text_at(a, "spec", "desiredCPULimit")).p,
               or_dash(explain_text_at(a, "status", "appliedCPULimit")).p,
               STR_ARG(explain_text_at(a, "status", "phase")));
}

/* Mode and prices are the same in all PodAllocations of a node; the one of the latest round is the newest. */
static const struct json *newest_status(const struct json *list, str node_name)
{
    const struct json *newest = NULL;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *a = json_item(list, i), *status = json_get(a, "status");
        if (str_eq(explain_market_node_name(a), node_name) && status &&
            (!newest || json_int(json_get(status, "priceRound"), 0) >
                            json_int(json_get(newest, "priceRound"), 0)))
            newest = status;
    }
    return newest;
}

/* What the agent reports about its node. Older agents write no NodeMarket, and the user may not be allowed to read it:
 * then this part is left out, and the rest comes from the PodAllocations alone. */
static void put_report(struct explain *x, str node_name)
{
    struct json *report = NULL;
    err_t e;
    if (explain_get(x, &market_node_resource, S(""), node_name, &report, &e) < 0)
        return;
    const struct json *status = json_get(report, "status"), *o = json_get(status, "overcommit"),
                      *problems = json_get(status, "problems");
    if (!o)
        return;
    buf_printf(&x->out,
               "  limits " STR_FMT " of " STR_FMT " (kappa %.2f of %.2f, " STR_FMT
               "), requests " STR_FMT " of " STR_FMT ", victims %.2f %%, round %lld\n",
               STR_ARG(json_text(json_get(o, "limitsCPU"))),
               STR_ARG(json_text(json_get(o, "limitsCapacityCPU"))),
               json_real(json_get(o, "kappa"), 0), json_real(json_get(o, "max"), 0),
               STR_ARG(json_text(json_get(o, "reason"))),
               STR_ARG(json_text(json_get(o, "requestsCPU"))),
               STR_ARG(json_text(json_get(o, "allocatableCPU"))),
               json_real(json_get(o, "victims"), 0) * 100,
               (long long)json_int(json_get(status, "round"), 0));
    if (json_get(status, "modeMemory"))
        buf_printf(&x->out, "  memory wanted " STR_FMT " of " STR_FMT " (" STR_FMT ", lambda %g)\n",
                   STR_ARG(json_text(json_get(status, "demandMemory"))),
                   STR_ARG(json_text(json_get(status, "capacityMemory"))),
                   STR_ARG(json_text(json_get(status, "modeMemory"))),
                   json_real(json_get(status, "lambdaMemory"), 0));
    for (size_t i = 0; i < json_len(problems); i++)
        buf_printf(&x->out, "  problem " STR_FMT ": " STR_FMT "\n",
                   STR_ARG(json_text(json_get(json_item(problems, i), "name"))),
                   STR_ARG(json_text(json_get(json_item(problems, i), "message"))));
}

void explain_market_put_node(struct explain *x, const struct json *list, str node_name,
                             const struct json *node, str marked_uid)
{
    const struct json *status = newest_status(list, node_name);
    str allocatable = json_text(json_at(node, "status", "allocatable", "cpu", NULL));
    struct totals sum = { 0 };
    buf_printf(&x->out, "Market of node " STR_FMT, STR_ARG(node_name));
    if (!status) {
        buf_put(&x->out, S(": no pods take part.\n"));
        return;
    }
    str mode = json_text(json_get(status, "mode"));
    buf_printf(&x->out, ": " STR_FMT "%sprice %g, lambda %g\n", STR_ARG(mode), mode.n ? ", " : "",
               json_real(json_get(status, "shadowPriceCPU"), 0),
               json_real(json_get(status, "lambdaCPU"), 0));
    put_report(x, node_name);
    buf_printf(&x->out, "  %-52s %8s %8s %8s %8s %8s  %s\n", "POD", "USES", "NEEDS", "REQUEST",
               "LIMIT", "APPLIED", "PHASE");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *a = json_item(list, i);
        if (!str_eq(explain_market_node_name(a), node_name))
            continue;
        add_totals(&sum, a);
        put_row(x, a, marked_uid.n && str_eq(explain_text_at(a, "metadata", "uid"), marked_uid));
    }
    buf_printf(&x->out, "  sum of %zu pods: uses %lldm, needs %lldm, requests %lldm, limits %lldm",
               sum.pods, (long long)sum.usage, (long long)sum.need, (long long)sum.request,
               (long long)sum.limit);
    if (allocatable.n)
        buf_printf(&x->out, "; allocatable CPU of the node " STR_FMT, STR_ARG(allocatable));
    buf_putc(&x->out, '\n');
}

/* ---- pods that take no part */

/* AGENT_EXCLUSION_N: the pod cannot be read. */
static enum agent_exclusion find_exclusion(struct explain *x, const struct json *pod)
{
    struct explain_record r = explain_record_make(x, &market_agent_pod_cache, pod);
    enum agent_exclusion exclusion = AGENT_EXCLUSION_N;
    if (r.record)
        exclusion = market_agent_pod_view(record_as(struct agent_pod_record, r.record),
                                          S(MARKET_EXCLUDED_NAMESPACES))
                        .exclusion;
    explain_record_done(&r);
    return exclusion;
}

/* Pods that would take part but have no PodAllocation yet are not listed: their agent is a second behind. */
static void put_excluded(struct explain *x, const struct json *pods)
{
    bool any = false;
    for (size_t i = 0; i < json_len(pods); i++) {
        const struct json *pod = json_item(pods, i);
        enum agent_exclusion exclusion = find_exclusion(x, pod);
        if (exclusion == AGENT_TAKES_PART || exclusion == AGENT_EXCLUSION_N)
            continue;
        if (!any)
            buf_put(&x->out, S("\nNot in the market:\n"));
        any = true;
        buf_printf(&x->out, "  " STR_FMT "/" STR_FMT ": %s\n",
                   STR_ARG(explain_text_at(pod, "metadata", "namespace")),
                   STR_ARG(explain_text_at(pod, "metadata", "name")),
                   market_agent_pod_exclusion_text(exclusion));
    }
}

/* ---- the commands */

/* A 404 here is about the definition, not about the object that the user named. */
static int list_allocations(struct explain *x, struct json **ret, err_t *e)
{
    int r = explain_get(x, &market_allocation_resource, S(""), S(""), ret, e);
    return r != -ENOENT ? r
                        : err_set(e, EIO,
                                  "the cluster does not serve PodAllocations; install them with: "
                                  "flyball install | kubectl apply --server-side -f -");
}

static int explain_node_market(struct explain *x, err_t *e)
{
    struct json *node, *all, *pods;
    int r = explain_get(x, &resource_nodes, S(""), x->name, &node, e);
    if (r == 0)
        r = list_allocations(x, &all, e);
    if (r < 0)
        return r;
    explain_market_put_node(x, json_get(all, "items"), x->name, node, S(""));
    str selector = arena_printf(&x->arena, "spec.nodeName=" STR_FMT, STR_ARG(x->name));
    r = explain_list_by_field(x, &resource_pods, selector, &pods, e);
    if (r == 0)
        put_excluded(x, json_get(pods, "items"));
    return r;
}

/* For a pod without a PodAllocation. */
static void put_absence(struct explain *x, const struct json *pod)
{
    str node = explain_text_at(pod, "spec", "nodeName");
    enum agent_exclusion exclusion = find_exclusion(x, pod);
    buf_printf(&x->out, "Pod " STR_FMT "/" STR_FMT " is not in the market", STR_ARG(x->ns),
               STR_ARG(x->name));
    if (!node.n)
        buf_put(&x->out, S(": it is not scheduled yet.\n"));
    else if (exclusion == AGENT_TAKES_PART)
        buf_printf(&x->out,
                   " yet: it can take part, but the agent of node " STR_FMT
                   " has written no PodAllocation. Check that the agent runs there.\n",
                   STR_ARG(node));
    else if (exclusion == AGENT_EXCLUSION_N)
        buf_put(&x->out, S(".\n"));
    else
        buf_printf(&x->out, ": %s.\n", market_agent_pod_exclusion_text(exclusion));
}

static int explain_pod_market(struct explain *x, err_t *e)
{
    struct json *pod, *all = NULL;
    int r = explain_get(x, &resource_pods, x->ns, x->name, &pod, e);
    if (r == 0)
        r = list_allocations(x, &all, e);
    if (r < 0)
        return r;
    const struct json *list = json_get(all, "items"), *allocation = explain_market_find(x, list);
    if (allocation)
        return explain_market_put(x, list, allocation, e);
    put_absence(x, pod);
    return 0;
}

/* ---- all nodes */

/* Prices are means of ten minutes: `explain node` shows the one of the last round.
 * The table of nodes, from what the controller last reported. */
static void put_nodes(struct explain *x, const struct json *nodes)
{
    buf_printf(&x->out, "%-40s %-9s %8s %10s %10s\n", "NODE", "STATE", "PRICE", "CAPACITY",
               "WANTED");
    for (size_t i = 0; i < json_len(nodes); i++) {
        const struct json *n = json_item(nodes, i);
        buf_printf(&x->out, "%-40s %-9s %8.3f %10s %10s\n",
                   or_dash(json_text(json_get(n, "name"))).p,
                   or_dash(json_text(json_get(n, "state"))).p, json_real(json_get(n, "price"), 0),
                   or_dash(json_text(json_get(n, "capacityCPU"))).p,
                   or_dash(json_text(json_get(n, "wantedCPU"))).p);
    }
}

/* One recommendation per line, with its reason; those of the last hour are kept. */
static void put_recommendations(struct explain *x, const struct json *list)
{
    buf_put(&x->out, json_len(list) ? S("\nRecommendations of the last hour:\n")
                                    : S("\nNo recommendations.\n"));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *r = json_item(list, i);
        str ns = json_text(json_get(r, "namespace")), name = json_text(json_get(r, "name"));
        buf_printf(&x->out, "  %-8s %s", json_text(json_get(r, "state")).p,
                   json_text(json_get(r, "kind")).p);
        if (name.n)
            buf_printf(&x->out, " " STR_FMT " " STR_FMT "/" STR_FMT,
                       STR_ARG(json_text(json_get(r, "object"))), STR_ARG(ns), STR_ARG(name));
        buf_printf(&x->out, ": " STR_FMT "\n", STR_ARG(json_text(json_get(r, "reason"))));
    }
}

/* `explain nodes` asks for the object "cluster"; any other name is that of a node, because `nodes NAME` means the
 * same as `node NAME`. */
static int explain_all_nodes(struct explain *x, err_t *e)
{
    struct json *market;
    if (!str_eqc(x->name, "cluster"))
        return explain_node_market(x, e);
    int r = explain_get(x, &market_cluster_resource, S(""), x->name, &market, e);
    if (r == -ENOENT)
        return err_set(
            e, EIO,
            "there is no ClusterMarket: flyball operator writes it a minute after pods of "
            "two or more nodes take part; for one node, use: flyball explain node NAME");
    if (r < 0)
        return r;
    put_nodes(x, json_at(market, "status", "nodes", NULL));
    put_recommendations(x, json_at(market, "status", "recommendations", NULL));
    return 0;
}

static const char *const all_words[] = { "nodes", "clustermarket", "clustermarkets", NULL };
const struct explainer explain_nodes = {
    all_words, "prices of all nodes, and recommendations (no name needed)", explain_all_nodes,
    &market_cluster_resource
};

static const char *const node_words[] = { "node", "no", NULL };
const struct explainer explain_node = {
    node_words, "the market of a node: prices, its pods, and which pods are excluded",
    explain_node_market, &resource_nodes
};

static const char *const pod_words[] = { "pod", "po", "pods", NULL };
const struct explainer explain_pod = { pod_words,
                                       "why a pod is or is not in the market, and its CPU",
                                       explain_pod_market, &resource_pods };
