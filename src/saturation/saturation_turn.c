/* One reconcile of one variant: write its status and, with actuation Scale, the replicas of its
 * workload. The engine has decided; this file only writes, and only what differs.
 *
 * A write is asynchronous: until the watch delivers its result, the next reconcile starts from the
 * server's answer to it (kube/own_write.h). */
#include "../base/log.h"
#include "saturation_slo.h"
#include "saturation_wake.h"

static const int64_t scale_period_ns =
    15 * NS_PER_S; /* between attempts while replicas lag behind the target */

/* ---- status */

/* A variant that is gone is no failure. */
static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct saturation *s = r->context;
    struct variant *v = r->turn;
    if (reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        reconcile_fail_call(r, reply);
        return;
    }
    const struct variant_record *record = cache_get(s->variant_records, r->ns, r->name);
    if (record)
        own_write_end(&v->status, reply, record->meta.rv,
                      json_to_str(r->arena, json_get(reply->object, "status")));
}

static void write_status(struct reconcile *r, struct variant *v,
                         const struct variant_record *record, const struct sat_view *view)
{
    const struct json *old = saturation_get_status(r->arena, v, record);
    struct json *patch =
        sat_status_patch(r->arena, old, view, record->generation, r->now_ns / NS_PER_S);
    if (!patch)
        return;
    reconcile_status_then(r, &saturation_variant_resource, patch, on_status_written);
}

/* ---- scale */

void saturation_fail_scale(struct reconcile *r, struct variant *v, const struct kube_reply *reply)
{
    saturation_emit(r->context, v, true, "ScaleFailed", str_c(reply->failure));
    if (reply->reason != KUBE_NOT_FOUND)
        reconcile_fail_call(r, reply);
}

/* Logs and emits the result of a write to the scale subresource, and counts it against the rate
 * limits. */
static void on_scaled(struct reconcile *r, const struct kube_reply *reply)
{
    struct saturation *s = r->context;
    struct variant *v = r->turn;
    if (reply->reason == KUBE_SUPERSEDED) /* the next turn of this variant decides */
        return;
    if (reply->failure) {
        saturation_fail_scale(r, v, reply);
        return;
    }
    /* kube-apiserver omits the field of a scale to 0 */
    int to = (int)json_int(json_at(reply->object, "spec", "replicas", NULL), 0);
    int64_t now_s = r->now_ns / NS_PER_S;
    log_info("workload scaled", KV("namespace", v->ns), KV("workload", v->spec.target_name),
             KV_INT("from", v->seen_wanted), KV_INT("to", to));
    saturation_emit(s, v, false, "Scaled",
                    arena_printf(r->arena, STR_FMT " " STR_FMT " scaled from %d to %d replicas",
                                 STR_ARG(saturation_kind_name(v)), STR_ARG(v->spec.target_name),
                                 v->seen_wanted, to));
    scale_record_change(&v->history, now_s, v->seen_wanted, to);
    controller_add(s->engine, v->ns, v->spec.model); /* updates status.actuation.applied */
}

static void write_scale(struct reconcile *r, struct variant *v, int replicas)
{
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_MERGE_PATCH,
                       .resource = saturation_get_resource(r->context, v),
                       .ns = v->ns,
                       .name = v->spec.target_name,
                       .subresource = "scale",
                       .is_decision = true,
                       .body = arena_printf(r->arena, "{\"spec\":{\"replicas\":%d}}", replicas) },
                   on_scaled);
}

/* Moves the workload toward the target as fast as spec.behavior allows; retries while it lags
 * behind. */
static void scale_workload(struct reconcile *r, struct variant *v, const struct workload_record *w)
{
    struct saturation *s = r->context;
    if (saturation_get_bounds(s, v).hpa) {
        if (!v->warned_rival)
            saturation_emit(s, v, true, "ActuationConflict",
                            S("spec.actuation is Scale, but an HPA or ScaledObject also scales the "
                              "workload; replicas are not written"));
        v->warned_rival = true;
        return;
    }
    v->warned_rival = false;
    v->seen_wanted = (int)MIN(w->wanted, (int64_t)SAT_REPLICAS_MAX);
    int next = scale_next_replicas(&v->history, &v->spec.behavior, r->now_ns / NS_PER_S,
                                   v->seen_wanted, v->desired);
    if (!v->spec.has_behavior && saturation_slo_decides(v->model))
        next = v->desired; /* it paces itself: five more minutes would only cost */
    if (next != v->seen_wanted)
        write_scale(r, v, next);
    if (next != v->desired)
        reconcile_again(r, scale_period_ns);
}

/* ---- reconcile */

struct reconciled saturation_reconcile(struct reconcile *r)
{
    struct saturation *s = r->context;
    struct variant *v = saturation_find(s, r->ns, r->name);
    const struct variant_record *record = cache_get(s->variant_records, r->ns, r->name);
    str why;
    if (!v)
        return reconciled();
    r->turn = v;
    if (!saturation_is_managed(s, v, &why)) {
        if (record && saturation_is_excluded(s, v) && v->decided) /* report it, nothing more */
            write_status(r, v, record, &v->shown.view);
        return reconciled();
    }
    const struct workload_record *w = saturation_get_workload(s, v);
    log_debug("Reconciling VariantAutoscaling", KV("namespace", r->ns), KV("name", r->name));
    if (!w)
        log_info("Scale target Deployment not found, waiting for deployment watch",
                 KV("namespace", r->ns), KV("variant", r->name), KV("target", v->spec.target_name));
    else
        saturation_bind_workload(v, w);
    if (w && v->start.to)
        saturation_wake_write(r, v, w);
    if (!record || !v->decided)
        return reconciled(); /* the engine queues the variant once it has decided */
    write_status(r, v, record, &v->shown.view);
    bool asleep = w && w->wanted == 0 && (v->start.to || !(v->spec.has_min && v->spec.min == 0));
    if (w && v->spec.writes_scale && v->shown.view.has_desired && !asleep)
        scale_workload(r, v, w);
    return reconciled();
}
