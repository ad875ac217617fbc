/* One reconcile of one variant: write its status and, with actuation Scale, the replicas of its
 * workload. The engine has decided; this file only writes, and only what differs.
 *
 * A write is asynchronous. Until the watch delivers its result the cache shows the old object, and
 * the next reconcile would send the same patch again; on_status_written() therefore keeps the
 * server's answer (struct variant_echo) until the cache has moved on. */
#include "../base/log.h"
#include "saturation_state.h"

static const int64_t scale_period_ns =
    15 * NS_PER_S; /* between attempts while replicas lag behind the target */

/* ---- status */

/* Keeps the answer while it is newer than the cache. A variant that is gone is no failure. */
static void on_status_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct saturation *s = r->context;
    struct variant *v = saturation_find(s, r->ns, r->name);
    if (!v || reply->reason == KUBE_NOT_FOUND)
        return;
    if (reply->failure) {
        reconcile_fail(r, reply->failure);
        return;
    }
    const struct variant_record *record = cache_get(s->variant_records, r->ns, r->name);
    str rv = json_text(json_at(reply->object, "metadata", "resourceVersion", NULL));
    if (!record || str_eq(record->meta.rv, rv))
        return; /* the cache already has it */
    str status = json_to_str(r->arena, json_get(reply->object, "status"));
    free(v->echo.before_rv);
    free(v->echo.status);
    v->echo = (struct variant_echo){ mem_dup(record->meta.rv.p, record->meta.rv.n),
                                     mem_dup(status.p, status.n) };
}

static void write_status(struct reconcile *r, struct variant *v,
                         const struct variant_record *record, const struct sat_view *view)
{
    const struct json *old = saturation_get_status(r->arena, v, record);
    struct json *patch =
        sat_status_patch(r->arena, old, view, record->generation, r->now_ns / NS_PER_S);
    if (!patch)
        return;
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &variant_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .subresource = "status",
                                           .body = kube_status_body(r->arena, patch) },
                   on_status_written);
}

/* ---- scale */

static void emit_event(struct saturation *s, const struct variant *v, bool warning,
                       const char *reason, str message)
{
    events_emit(manager_events(s->manager), &(struct event){ .resource = &variant_resource,
                                                             .ns = v->ns,
                                                             .name = v->name,
                                                             .uid = v->uid,
                                                             .warning = warning,
                                                             .reason = reason,
                                                             .message = message });
}

/* Logs and emits the result of a write to the scale subresource, and counts it against the rate
 * limits. */
static void on_scaled(struct reconcile *r, const struct kube_reply *reply)
{
    struct saturation *s = r->context;
    struct variant *v = saturation_find(s, r->ns, r->name);
    if (!v)
        return;
    if (reply->failure) {
        emit_event(s, v, true, "ScaleFailed", str_c(reply->failure));
        if (reply->reason != KUBE_NOT_FOUND)
            reconcile_fail(r, reply->failure);
        return;
    }
    int to = (int)json_int(json_at(reply->object, "spec", "replicas", NULL), v->seen_wanted);
    int64_t now_s = r->now_ns / NS_PER_S;
    log_info("workload scaled", KV("namespace", v->ns), KV("workload", v->spec.target_name),
             KV_INT("from", v->seen_wanted), KV_INT("to", to));
    emit_event(s, v, false, "Scaled",
               arena_printf(r->arena, "%s " STR_FMT " scaled from %d to %d replicas",
                            saturation_is_statefulset(v) ? "StatefulSet" : "Deployment",
                            STR_ARG(v->spec.target_name), v->seen_wanted, to));
    scale_record_change(&v->history, now_s, v->seen_wanted, to);
    controller_add(s->engine, v->ns, v->spec.model); /* updates status.actuation.applied */
}

static void write_scale(struct reconcile *r, struct variant *v, int replicas)
{
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_MERGE_PATCH,
                       .resource = saturation_is_statefulset(v) ? &resource_statefulsets
                                                                : &resource_deployments,
                       .ns = v->ns,
                       .name = v->spec.target_name,
                       .subresource = "scale",
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
            emit_event(s, v, true, "ActuationConflict",
                       S("spec.actuation is Scale, but an HPA or ScaledObject also scales the "
                         "workload; replicas are not written"));
        v->warned_rival = true;
        return;
    }
    v->warned_rival = false;
    v->seen_wanted = (int)MIN(w->wanted, (int64_t)SAT_REPLICAS_MAX);
    int next = scale_next_replicas(&v->history, &v->spec.behavior, r->now_ns / NS_PER_S,
                                   v->seen_wanted, v->desired);
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
    if (!v || !record)
        return reconciled();
    if (!saturation_is_managed(s, v, &why)) {
        if (saturation_is_excluded(s, v) && v->decided) /* report it, and nothing more */
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
    if (!v->decided)
        return reconciled(); /* the engine queues the variant once it has decided */
    write_status(r, v, record, &v->shown.view);
    bool asleep = w && w->wanted == 0 && !(v->spec.has_min && v->spec.min == 0);
    if (w && v->spec.writes_scale && v->shown.view.has_desired && !asleep)
        scale_workload(r, v, w);
    return reconciled();
}
