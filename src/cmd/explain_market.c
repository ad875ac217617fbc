/* flyball explain podallocation: how much CPU a pod should have and has, the result of the last
 * resize, the next step of the controller, and all pods in the market of the node. Takes the
 * name of the PodAllocation or of its pod.
 *
 * The next step is computed by actuate_decide() from records as the controller's cache would
 * hold them, so it is what the controller will do, apart from room: that depends on pods that
 * the user may not be allowed to read. */
#include "explain_market.h"
#include "../market/market_status.h"
#include "../market/market_turn.h"

/* One line of request and limit; a quantity that is not set prints as "none". */
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
               STR_ARG(explain_text_at(pod, "status", "phase")),
               STR_ARG(explain_text_at(pod, "status", "qosClass")));
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

static str status_text(const struct json *status, const char *key)
{
    return json_text(json_get(status, key));
}

/* Shows the numbers that decided: written by the agent, absent with an older one. */
static void put_reasons(struct buf *out, const struct json *status)
{
    const struct json *peace = json_get(status, "hpaPeace"),
                      *problems = json_get(status, "problems");
    if (!status_text(status, "needCPU").n)
        return;
    buf_printf(out,
               "  uses           " STR_FMT ", throttled in %.0f %% of periods; needs " STR_FMT "\n",
               STR_ARG(status_text(status, "usageCPU")),
               json_real(json_get(status, "throttling"), 0) * 100,
               STR_ARG(status_text(status, "needCPU")));
    buf_printf(out, "  guaranteed     " STR_FMT "; can use " STR_FMT ", weight %.2g\n",
               STR_ARG(status_text(status, "guaranteedCPU")),
               STR_ARG(status_text(status, "bidMaxCPU")), json_real(json_get(status, "weight"), 0));
    if (!str_eqc(status_text(status, "shareCPU"), "0m"))
        buf_printf(out,
                   "  share          " STR_FMT " of the node, carried by the request; a higher "
                   "limit borrows what others leave idle\n",
                   STR_ARG(status_text(status, "shareCPU")));
    if (str_eqc(status_text(peace, "state"), "Held"))
        buf_printf(out, "  request held   HPA " STR_FMT " divides by it; least limit " STR_FMT "\n",
                   STR_ARG(status_text(peace, "hpa")), STR_ARG(status_text(peace, "floor")));
    buf_printf(out, "  node           " STR_FMT ", price %g, lambda %g, round %lld\n",
               STR_ARG(status_text(status, "mode")),
               json_real(json_get(status, "shadowPriceCPU"), 0),
               json_real(json_get(status, "lambdaCPU"), 0),
               (long long)json_int(json_get(status, "priceRound"), 0));
    const struct json *memory = json_get(status, "memory");
    /* Sums of all containers; absent while memoryManagement is off, or before the first reading. The
     * reason is that of the container whose memory is not enough, if there is one. */
    if (json_len(memory))
        buf_printf(out,
                   "  memory         " STR_FMT " of " STR_FMT ", needs " STR_FMT
                   "; request " STR_FMT " (" STR_FMT ")\n",
                   STR_ARG(status_text(memory, "workingSet")),
                   STR_ARG(status_text(memory, "limit")), STR_ARG(status_text(memory, "need")),
                   STR_ARG(status_text(memory, "request")), STR_ARG(status_text(memory, "reason")));
    for (size_t i = 0; i < json_len(problems); i++)
        buf_printf(out, "  problem        " STR_FMT "\n",
                   STR_ARG(json_text(json_item(problems, i))));
}

/* Shows the desired, applied and original resources, and the result. */
static void put_status(struct explain *x, const struct json *allocation)
{
    const struct json *status = json_get(allocation, "status");
    str message = json_text(json_get(status, "message"));
    put_cpu(&x->out, "should have", explain_text_at(allocation, "spec", "desiredCPURequest"),
            explain_text_at(allocation, "spec", "desiredCPULimit"));
    put_cpu(&x->out, "has", json_text(json_get(status, "appliedCPURequest")),
            json_text(json_get(status, "appliedCPULimit")));
    put_original(&x->out, status);
    put_reasons(&x->out, status);
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

/* Shows the decision of actuate_decide() as one line. */
static void put_plan(struct buf *out, const struct actuate_plan *plan)
{
    buf_put(out, S("  next           "));
    if (plan->of_memory)
        buf_put(out, S("resize the memory"));
    else if (plan->patch)
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
    struct explain_record allocations =
                              explain_record_make(x, &market_allocation_cache, allocation),
                          pods = explain_record_make(x, &market_pod_cache, pod);
    if (allocations.record && pods.record) {
        const struct allocation_record *a = record_as(struct allocation_record, allocations.record);
        struct actuate_input in = {
            .pod = market_gather_pod(&x->arena, record_as(struct market_pod_record, pods.record)),
            .desired_request = a->desired_request,
            .desired_limit = a->desired_limit,
            .room_milli = INT64_MAX,
            .now_ns = x->at * NS_PER_S
        };
        market_gather_memory(&in.pod, a);
        in.memory =
            market_status_memory(&x->arena, json_get(allocation, "status"), a->generation, &in.pod);
        struct actuate_plan plan = actuate_decide(&x->arena, &in);
        put_plan(&x->out, &plan);
    }
    explain_record_done(&allocations);
    explain_record_done(&pods);
}

/* Matches the name of the PodAllocation, or of its pod. */
const struct json *explain_market_find(const struct explain *x, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *a = json_item(list, i);
        bool named = str_eq(explain_text_at(a, "metadata", "name"), x->name) &&
                     str_eq(explain_text_at(a, "metadata", "namespace"), x->ns);
        bool of_pod = str_eq(explain_text_at(a, "spec", "podName"), x->name) &&
                      str_eq(explain_text_at(a, "spec", "namespace"), x->ns);
        if (named || of_pod)
            return a;
    }
    return NULL;
}

/* Shows the allocation, its pod and its node. */
int explain_market_put(struct explain *x, const struct json *list, const struct json *allocation,
                       err_t *e)
{
    struct json *pod = NULL, *node = NULL;
    str node_name = explain_market_node_name(allocation);
    x->name =
        explain_text_at(allocation, "metadata", "name"); /* events refer to it, not to the pod */
    x->kind = S("PodAllocation");
    int r = explain_get(x, &resource_pods, explain_text_at(allocation, "spec", "namespace"),
                        explain_text_at(allocation, "spec", "podName"), &pod, e);
    if (r < 0 && r != -ENOENT)
        return r;
    if (node_name.n) /* optional: the user may not be allowed to read nodes */
        (void)explain_get(x, &resource_nodes, S(""), node_name, &node, e);
    buf_printf(&x->out, "PodAllocation " STR_FMT "/" STR_FMT " of pod " STR_FMT "/" STR_FMT "\n",
               STR_ARG(explain_text_at(allocation, "metadata", "namespace")), STR_ARG(x->name),
               STR_ARG(explain_text_at(allocation, "spec", "namespace")),
               STR_ARG(explain_text_at(allocation, "spec", "podName")));
    put_status(x, allocation);
    put_pod(&x->out, pod);
    put_next(x, allocation, pod);
    if (node_name.n) {
        buf_putc(&x->out, '\n');
        explain_market_put_node(x, list, node_name, node,
                                explain_text_at(allocation, "metadata", "uid"));
    }
    return 0;
}

static int explain_allocation(struct explain *x, err_t *e)
{
    struct json *all;
    int r = explain_get(x, &market_allocation_resource, S(""), S(""), &all, e);
    if (r < 0)
        return r;
    const struct json *list = json_get(all, "items"), *allocation = explain_market_find(x, list);
    if (!allocation)
        return err_set(e, ENOENT,
                       "no PodAllocation found in namespace " STR_FMT " with the name " STR_FMT
                       " or for a pod of that name",
                       STR_ARG(x->ns), STR_ARG(x->name));
    return explain_market_put(x, list, allocation, e);
}

static const char *const words[] = { "pa", "podallocation", "podallocations", NULL };
const struct explainer explain_market = {
    words, "the desired and applied CPU of a pod, and the market of its node", explain_allocation,
    &market_allocation_resource
};
