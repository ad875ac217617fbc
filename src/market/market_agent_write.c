/* Writing PodAllocations: see market_agent.h. The key is the pod. A turn writes what the pod
 * should have now, so a late or repeated key does no harm, and nothing is sent if the object
 * already has these values.
 *
 * The invariant: the desired limits of a node never add up to more than its capacity. Until a
 * lower limit is in force, the higher one counts (held_milli), and a pod that grows waits until
 * those that must shrink have done so. Meanwhile shrinking pods skip their writeInterval.
 *
 * The spec is written with server-side apply; the price goes into the status with a merge patch
 * when the node publishes another one (price_core.h), for all its pods in the same round. Objects are deleted with their pod by
 * the owner reference; remove_allocation() handles those that were left over. */
#include "market_agent_internal.h"
#include "milli.h"

#include "../base/quantity.h"
#include "../base/sum.h"

#include <math.h>
#include <stdio.h>

static const int64_t status_every_ns = 60 * NS_PER_S; /* with changes of the spec */

const struct agent_allocation_record *market_agent_find_allocation(const struct market_agent *a,
                                                                   str ns, str pod)
{
    auto_buf struct buf name = { 0 };
    market_agent_pod_allocation_name(ns, pod, &name);
    return cache_get(a->allocations, ns, buf_str(&name));
}

void market_agent_read_status(struct agent_pod *pod,
                              const struct agent_allocation_record *allocation)
{
    pod->infeasible_milli = milli32(MAX(allocation->infeasible_milli, (int64_t)0));
    pod->infeasible_until_ns = allocation->infeasible_until_ns;
    pod->price = (float)allocation->price;
    if (pod->memory)
        pod->memory->refused_until_ns = allocation->memory_refused_until_ns;
    int64_t request = 0, limit = 0;
    for (size_t i = 0; i < allocation->originals.n; i++) {
        request += allocation->originals.at[i].request_milli;
        limit += allocation->originals.at[i].limit_milli;
    }
    if (allocation->originals.n) {
        pod->sampled.market.original_limit_milli = milli32(limit);
        pod->original_request_milli = milli32(request);
    }
}

/* ---- deletion */

static void on_optional_reply(struct reconcile *r, const struct kube_reply *reply)
{
    if (reply->failure && reply->reason != KUBE_NOT_FOUND && reply->reason != KUBE_CONFLICT)
        reconcile_fail_call(r, reply);
}

/* Usually the garbage collector deletes it along with the pod. The uid is a precondition: a pod
 * of the same name may have started on another node, with a PodAllocation of its own. */
static void remove_allocation(struct reconcile *r, const struct agent_allocation_record *allocation)
{
    str body = arena_printf(
        r->arena,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"" STR_FMT
        "\"}}",
        STR_ARG(allocation->meta.uid));
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_DELETE,
                                           .resource = &market_allocation_resource,
                                           .ns = allocation->meta.ns,
                                           .name = allocation->meta.name,
                                           .body = body },
                   on_optional_reply);
}

/* ---- the price */

static double rounded_price(const struct market_agent *a)
{
    return isfinite(a->price) ? (double)milli_round(a->price * 1000) / 1000 : 0;
}

/* Writes the price and the numbers behind the pod's limit. */
static void write_status(struct reconcile *r, struct agent_pod *pod, str name)
{
    struct market_agent *a = r->context;
    struct json *status = market_agent_make_status(r->arena, a, pod);
    json_set(r->arena, status, S("shadowPriceCPU"), json_new_real(r->arena, rounded_price(a)));
    pod->priced_ns = loop_mono_ns(a->loop);
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &market_allocation_resource,
                                           .ns = r->ns,
                                           .name = name,
                                           .subresource = "status",
                                           .body = kube_status_body(r->arena, status) },
                   on_optional_reply);
}

static bool is_price_current(const struct market_agent *a, const struct agent_pod *pod)
{
    return pod->price >= 0 && fabs(rounded_price(a) - (double)pod->price) < 0.001;
}

/* ---- the spec */

static str milli_text(struct arena *a, int64_t milli)
{
    return arena_printf(a, "%lldm", (long long)milli);
}

static struct json *make_meta(struct arena *a, const struct market_agent *agent,
                              const struct agent_pod_record *pod, str name)
{
    struct json *meta = json_new_obj(a), *labels = json_new_obj(a);
    json_set_str(a, labels, MARKET_NODE, buf_str(&agent->node_label));
    json_set_str(a, meta, "name", name);
    json_set_str(a, meta, "namespace", pod->meta.ns);
    json_set(a, meta, S("labels"), labels);
    json_set(a, meta, S("ownerReferences"),
             kube_owners(a, &(struct kube_owner){ .resource = &resource_pods,
                                                  .name = pod->meta.name,
                                                  .uid = pod->meta.uid }));
    return meta;
}

struct amounts {
    int32_t limit_milli, request_milli;
};

static struct json *make_object(struct arena *a, const struct market_agent *agent,
                                const struct agent_pod *pod, str name, struct amounts desired)
{
    struct json *object = json_new_obj(a), *spec = json_new_obj(a);
    json_set_str(a, object, "apiVersion", S("allocation.mbcas.io/v1alpha1"));
    json_set_str(a, object, "kind", S("PodAllocation"));
    json_set(a, object, S("metadata"), make_meta(a, agent, pod->record, name));
    json_set_str(a, spec, "namespace", pod->record->meta.ns);
    json_set_str(a, spec, "podName", pod->record->meta.name);
    json_set_str(a, spec, "nodeName", agent->node);
    json_set_str(a, spec, "desiredCPURequest", milli_text(a, desired.request_milli));
    json_set_str(a, spec, "desiredCPULimit", milli_text(a, desired.limit_milli));
    struct json *memory = market_agent_desired_memory(a, pod);
    if (memory)
        json_set(a, spec, S("desiredMemory"), memory);
    json_set(a, object, S("spec"), spec);
    return object;
}

static bool is_spec_current(const struct market_agent *a,
                            const struct agent_allocation_record *allocation,
                            const struct agent_pod *pod)
{
    return allocation && allocation->owner_uid_sum == sum64(pod->record->meta.uid, 0) &&
           str_eq(allocation->node, a->node) &&
           allocation->limit_milli == pod->sampled.wanted_milli &&
           allocation->request_milli == pod->desired_request_milli;
}

static int64_t read_limit(const struct json *allocation)
{
    int64_t milli = 0;
    str text = json_text(json_at(allocation, "spec", "desiredCPULimit", NULL));
    return quantity_parse_milli(text, &milli, NULL) == 0 ? milli : 0;
}

/* Asks for the pod again instead of keeping it in r->turn: it may have been deleted during the call. */
static void on_spec_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_agent *a = r->context;
    struct agent_pod *pod = market_agent_find_pod(a, r->ns, r->name);
    if (reply->failure) {
        reconcile_fail_call(r, reply);
        if (pod && pod->memory)
            pod->memory->changed = true;
    } else if (pod) {
        auto_buf struct buf name = { 0 };
        market_agent_pod_allocation_name(r->ns, r->name, &name);
        pod->written_ns = loop_mono_ns(a->loop);
        pod->written_milli = milli32(read_limit(reply->object));
        bool is_old = loop_mono_ns(a->loop) - pod->priced_ns >= status_every_ns;
        if (!is_price_current(a, pod) || !pod->priced_ns || is_old)
            write_status(r, pod, buf_str(&name));
    }
}

static void write_spec(struct reconcile *r, struct agent_pod *pod, struct amounts desired)
{
    struct market_agent *a = r->context;
    auto_buf struct buf name = { 0 };
    bool equal = desired.request_milli == desired.limit_milli && !pod->record->guaranteed;
    if (desired.request_milli > desired.limit_milli || equal) { /* the API server would refuse it */
        metric_add(a->metrics.refused_writes, 1);
        return;
    }
    market_agent_pod_allocation_name(r->ns, r->name, &name);
    struct json *object = make_object(r->arena, r->context, pod, buf_str(&name), desired);
    if (pod->memory)
        pod->memory->changed = false;
    pod->written_milli =
        MAX(pod->written_milli,
            desired.limit_milli); /* assume that it arrives, even if the answer is lost */
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_APPLY,
                                           .resource = &market_allocation_resource,
                                           .ns = r->ns,
                                           .name = buf_str(&name),
                                           .body = json_to_str(r->arena, object) },
                   on_spec_written);
}

/* ---- timing */

/* What a pod holds or was promised, whichever is higher. */
static int64_t held_milli(const struct agent_pod *pod)
{
    return MAX(pod->sampled.market.limit_milli, pod->written_milli);
}

/* Does the node have room for the pod's growth, given what all pods hold? */
static bool has_room(struct market_agent *a, const struct agent_pod *pod)
{
    int64_t sum = pod->sampled.wanted_milli - held_milli(pod);
    for (size_t i = 0; i < sampler_count(a->sampler); i++)
        sum += held_milli(container_of(sampler_at(a->sampler, i), struct agent_pod, sampled));
    return sum <= sampler_limits_capacity(a->sampler) ||
           pod->sampled.wanted_milli <= pod->sampled.market.share_milli + 1; /* its own share */
}

static void queue_shrinks(struct market_agent *a)
{
    a->short_ns = loop_mono_ns(a->loop);
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        const struct agent_pod *pod =
            container_of(sampler_at(a->sampler, i), struct agent_pod, sampled);
        if (pod->sampled.wanted_milli && pod->sampled.wanted_milli < pod->written_milli)
            controller_add(a->controller, pod->record->meta.ns, pod->record->meta.name);
    }
}

/* How long a write must wait; 0: write now. Growth waits for room; a pod shrinks at most once per
 * writeInterval, unless another pod waits for the room. */
static int64_t write_delay(struct market_agent *a, const struct agent_pod *pod)
{
    int64_t now = loop_mono_ns(a->loop);
    if (pod->sampled.wanted_milli > held_milli(pod)) {
        if (has_room(a, pod))
            return 0;
        queue_shrinks(a);
        return NS_PER_S;
    }
    bool room_is_short = a->short_ns && now - a->short_ns <= 2 * NS_PER_S;
    return pod->written_ns && !room_is_short
               ? MAX(pod->written_ns + a->config.market.write_ns - now, (int64_t)0)
               : 0;
}

bool market_agent_is_written(const struct market_agent *a, const struct agent_pod *pod)
{
    const struct record *meta = &pod->record->meta;
    return is_spec_current(a, market_agent_find_allocation(a, meta->ns, meta->name), pod) &&
           is_price_current(a, pod);
}

struct reconciled market_agent_write(struct reconcile *r)
{
    struct market_agent *a = r->context;
    const struct agent_allocation_record *allocation =
        market_agent_find_allocation(a, r->ns, r->name);
    struct agent_pod *pod = market_agent_find_pod(a, r->ns, r->name);
    if (allocation && !cache_get(a->pods, r->ns, r->name))
        remove_allocation(r, allocation);
    if (!pod || !pod->sampled.wanted_milli)
        return reconciled();
    bool memory_changed = pod->memory && pod->memory->changed;
    if (!is_spec_current(a, allocation, pod)) {
        const struct market_pod *m = &pod->sampled.market;
        int64_t wait = write_delay(a, pod);
        if (!wait)
            write_spec(r, pod,
                       (struct amounts){ pod->sampled.wanted_milli, pod->desired_request_milli });
        else if (!allocation && m->limit_milli > 0) /* show the pod while it waits */
            write_spec(r, pod, (struct amounts){ m->limit_milli, m->request_milli });
        else if (memory_changed && allocation && allocation->limit_milli > 0) /* cannot wait */
            write_spec(r, pod,
                       (struct amounts){ milli32(allocation->limit_milli),
                                         milli32(allocation->request_milli) });
        if (wait)
            return reconciled_after(wait);
    } else if (memory_changed) {
        write_spec(r, pod,
                   (struct amounts){ pod->sampled.wanted_milli, pod->desired_request_milli });
    } else if (!is_price_current(a, pod)) {
        write_status(r, pod, allocation->meta.name);
    }
    return reconciled();
}
