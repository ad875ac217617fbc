/* flyball explain podallocation: how much CPU a pod should have and has, the result of the last
 * resize, the next step of the controller, and all pods in the market of the node. Takes the
 * name of the PodAllocation or of its pod.
 *
 * The next step is computed by actuate_decide() from records as the controller's cache would
 * hold them, so it is what the controller will do, apart from room: that depends on pods that
 * the user may not be allowed to read. */
#include "../market/market_status.h"
#include "../market/market_turn.h"
#include "explain.h"

#include "../base/quantity.h"

static str text_at(const struct json *object, const char *part, const char *field)
{
    return json_text(json_at(object, part, field, NULL));
}

static str node_name(const struct json *allocation)
{
    return json_text(json_at(allocation, "metadata", "labels", "mbcas.io/node", NULL));
}

static void put_cpu(struct buf *out, const char *title, str request, str limit)
{
    buf_printf(out, "  %-14s request " STR_FMT ", limit " STR_FMT "\n", title,
               STR_ARG(request.n ? request : S("none")), STR_ARG(limit.n ? limit : S("none")));
}

/* Shows the resources of each container before the first resize. */
static void put_original(struct buf *out, const struct json *status)
{
    const struct json *list = json_get(status, "originalResources");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        str request = json_text(json_get(c, "request")), limit = json_text(json_get(c, "limit"));
        buf_printf(out, "  %-14s container " STR_FMT ": request " STR_FMT ", limit " STR_FMT "\n",
                   i ? "" : "before", STR_ARG(json_text(json_get(c, "container"))),
                   STR_ARG(request.n ? request : S("none")), STR_ARG(limit.n ? limit : S("none")));
    }
}

/* Shows what the kubelet reports about the pod, and the annotations that affect it. */
static void put_pod(struct buf *out, const struct json *pod)
{
    static const char *const words[] = { MARKET_MANAGED, MARKET_SKIP_GUARANTEED,
                                         MARKET_ALLOW_RESTART };
    if (!pod) {
        buf_put(out, S("  pod            deleted; the PodAllocation will be deleted too\n"));
        return;
    }
    buf_printf(out, "  pod            " STR_FMT ", QoS " STR_FMT "\n",
               STR_ARG(text_at(pod, "status", "phase")),
               STR_ARG(text_at(pod, "status", "qosClass")));
    for (size_t i = 0; i < countof(words); i++) {
        str value = json_text(json_at(pod, "metadata", "annotations", words[i], NULL));
        if (value.n)
            buf_printf(out, "                 %s=" STR_FMT "\n", words[i], STR_ARG(value));
    }
    const struct json *conditions = json_at(pod, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(conditions); i++) {
        const struct json *c = json_item(conditions, i);
        if (str_starts(json_text(json_get(c, "type")), S("PodResize")))
            buf_printf(out, "                 " STR_FMT ": " STR_FMT " " STR_FMT "\n",
                       STR_ARG(json_text(json_get(c, "type"))),
                       STR_ARG(json_text(json_get(c, "reason"))),
                       STR_ARG(json_text(json_get(c, "message"))));
    }
}

/* Shows the desired, applied and original resources, and the result. */
static void put_status(struct explain *x, const struct json *allocation)
{
    const struct json *status = json_get(allocation, "status");
    str message = json_text(json_get(status, "message"));
    put_cpu(&x->out, "should have", text_at(allocation, "spec", "desiredCPURequest"),
            text_at(allocation, "spec", "desiredCPULimit"));
    put_cpu(&x->out, "has", json_text(json_get(status, "appliedCPURequest")),
            json_text(json_get(status, "appliedCPULimit")));
    put_original(&x->out, status);
    buf_printf(&x->out, "  therefore      " STR_FMT ", " STR_FMT "%s" STR_FMT "\n",
               STR_ARG(json_text(json_get(status, "phase"))),
               STR_ARG(json_text(json_get(status, "reason"))), message.n ? ": " : "",
               STR_ARG(message));
    str infeasible = json_text(json_get(status, "infeasibleCPULimit"));
    if (infeasible.n)
        buf_printf(&x->out, "  infeasible     " STR_FMT " on this node, until " STR_FMT "\n",
                   STR_ARG(infeasible), STR_ARG(json_text(json_get(status, "infeasibleUntil"))));
    if (json_get(status, "lastAppliedTime"))
        buf_printf(&x->out, "  last resize    " STR_FMT "\n",
                   STR_ARG(json_text(json_get(status, "lastAppliedTime"))));
}

/* ---- the next step of the controller */

/* The record that the controller's cache would hold. */
static const void *make_record(struct explain *x, struct projector *j,
                               const struct cache_spec *cache, const struct json *object,
                               struct projection **ret)
{
    struct record *record = NULL;
    if (!object || projection_new(j, cache->keep, 0, ret, NULL) < 0 ||
        project(*ret, json_to_str(&x->arena, object), &record, NULL) < 0)
        return NULL;
    return record;
}

/* Shows the decision of actuate_decide() as one line. */
static void put_plan(struct buf *out, const struct actuate_plan *plan)
{
    buf_put(out, S("  next           "));
    if (plan->patch)
        buf_printf(out, "resize the limit from %lldm to %lldm", (long long)plan->from_milli,
                   (long long)plan->to_milli);
    else if (plan->skip_status)
        buf_put(out, S("nothing: the pod is terminating"));
    else
        buf_printf(out, "nothing: %s", plan->reason);
    if (plan->wake_ns && !plan->patch)
        buf_printf(out, "; next check within %lld s", (long long)(plan->wake_ns / NS_PER_S));
    buf_putc(out, '\n');
}

/* Shows what the controller would do at this time. */
static void put_next(struct explain *x, const struct json *allocation, const struct json *pod)
{
    struct projector *j = projector_new();
    struct projection *allocations = NULL, *pods = NULL;
    const struct allocation_record *a =
        make_record(x, j, &allocation_cache, allocation, &allocations);
    const struct market_pod_record *p = make_record(x, j, &market_pod_cache, pod, &pods);
    if (a && p) {
        struct actuate_input in = { .pod = market_gather_pod(&x->arena, p),
                                    .desired_request = a->desired_request,
                                    .desired_limit = a->desired_limit,
                                    .room_milli = INT64_MAX,
                                    .now_ns = x->at * NS_PER_S };
        in.memory =
            market_status_memory(&x->arena, json_get(allocation, "status"), a->generation, &in.pod);
        struct actuate_plan plan = actuate_decide(&x->arena, &in);
        put_plan(&x->out, &plan);
    }
    record_unref(a ? &a->meta : NULL);
    record_unref(p ? &p->meta : NULL);
    if (allocations)
        projection_free(allocations);
    if (pods)
        projection_free(pods);
    projector_free(j);
}

/* ---- the market of the node */

static int64_t parse_milli(str quantity)
{
    int64_t value;
    err_t e;
    return quantity_parse_milli(quantity, &value, &e) < 0 ? 0 : value;
}

/* Shows all pods in the market of the node; the one in question is marked. */
static void put_market(struct explain *x, const struct json *list, const struct json *allocation,
                       const struct json *node)
{
    str capacity = json_text(json_at(node, "status", "allocatable", "cpu", NULL));
    int64_t sum = 0;
    buf_printf(&x->out, "\nMarket of node " STR_FMT ", price %g:\n", STR_ARG(node_name(allocation)),
               json_real(json_at(allocation, "status", "shadowPriceCPU", NULL), 0));
    buf_printf(&x->out, "  %-52s %10s %10s  %s\n", "pod", "desired", "applied", "phase");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *a = json_item(list, i);
        if (!str_eq(node_name(a), node_name(allocation)))
            continue;
        str limit = text_at(a, "spec", "desiredCPULimit");
        str pod =
            arena_printf(&x->arena, STR_FMT "/" STR_FMT, STR_ARG(text_at(a, "spec", "namespace")),
                         STR_ARG(text_at(a, "spec", "podName")));
        bool same = str_eq(text_at(a, "metadata", "uid"), text_at(allocation, "metadata", "uid"));
        sum += parse_milli(limit);
        buf_printf(&x->out, "%s %-52s %10s %10s  " STR_FMT "\n", same ? ">" : " ", pod.p, limit.p,
                   text_at(a, "status", "appliedCPULimit").p,
                   STR_ARG(text_at(a, "status", "phase")));
    }
    buf_printf(&x->out, "  sum of the limits %lldm", (long long)sum);
    if (capacity.n)
        buf_printf(&x->out, "; allocatable CPU of the node " STR_FMT, STR_ARG(capacity));
    buf_putc(&x->out, '\n');
}

/* Matches the name of the PodAllocation, or of its pod. */
static const struct json *find_allocation(const struct explain *x, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *a = json_item(list, i);
        bool named = str_eq(text_at(a, "metadata", "name"), x->name) &&
                     str_eq(text_at(a, "metadata", "namespace"), x->ns);
        bool of_pod = str_eq(text_at(a, "spec", "podName"), x->name) &&
                      str_eq(text_at(a, "spec", "namespace"), x->ns);
        if (named || of_pod)
            return a;
    }
    return NULL;
}

/* Fetches the allocation, its pod and its node, and shows them. */
static int explain_allocation(struct explain *x, err_t *e)
{
    struct json *all, *pod = NULL, *node = NULL;
    int r = explain_get(x, &podallocation_resource, S(""), S(""), &all, e);
    if (r < 0)
        return r;
    const struct json *list = json_get(all, "items"), *allocation = find_allocation(x, list);
    if (!allocation)
        return err_set(e, ENOENT,
                       "no PodAllocation found in namespace " STR_FMT " with the name " STR_FMT
                       " or for a pod of that name",
                       STR_ARG(x->ns), STR_ARG(x->name));
    x->name = text_at(allocation, "metadata", "name"); /* events refer to it, not to the pod */
    x->kind = S("PodAllocation");
    r = explain_get(x, &resource_pods, text_at(allocation, "spec", "namespace"),
                    text_at(allocation, "spec", "podName"), &pod, e);
    if (r < 0 && r != -ENOENT)
        return r;
    if (node_name(allocation).n) /* optional: the user may not be allowed to read nodes */
        (void)explain_get(x, &resource_nodes, S(""), node_name(allocation), &node, e);
    buf_printf(&x->out, "PodAllocation " STR_FMT "/" STR_FMT " of pod " STR_FMT "/" STR_FMT "\n",
               STR_ARG(text_at(allocation, "metadata", "namespace")),
               STR_ARG(text_at(allocation, "metadata", "name")),
               STR_ARG(text_at(allocation, "spec", "namespace")),
               STR_ARG(text_at(allocation, "spec", "podName")));
    put_status(x, allocation);
    put_pod(&x->out, pod);
    put_next(x, allocation, pod);
    if (node_name(allocation).n)
        put_market(x, list, allocation, node);
    return 0;
}

static const char *const words[] = { "pa", "podallocation", "podallocations", NULL };
const struct explainer explain_market = {
    words, "the desired and applied CPU of a pod, and the market of its node", explain_allocation
};
