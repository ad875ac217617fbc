/* The decisions as doors/doors.h serves them.
 *
 * What is served is what the gauge wva_desired_replicas shows: after limits, bounds and tolerance. It
 * is fresh while the engine keeps deciding about the model: holding the last target, because metrics
 * are missing, is a decision too. The targets of the previous leader are served until the first
 * decision, so that a failover changes nothing. */
#include "saturation_doors.h"

#include "../base/log.h"
#include "../doors/doors.h"

static const int64_t stale_least_ns = 90 * NS_PER_S;

static bool is_fresh(const struct saturation *s, const struct variant *v)
{
    int64_t limit = MAX(3 * s->snapshot->interval_ns, stale_least_ns);
    int64_t age = loop_wall_ns(manager_loop(s->manager)) - v->model->looked_ns;
    return v->model->looked_ns && age <= limit;
}

/* False: nothing was ever decided about it, or it is not managed. */
static bool read_value(const struct saturation *s, const struct variant *v, struct door_value *ret)
{
    if (!v || !v->model || !v->series.model)
        return false;
    *ret = (struct door_value){
        .ns = v->ns,
        .variant = v->name,
        .target = v->spec.target_name,
        .model = v->spec.model,
        .accelerator = v->accelerator,
        .state = is_fresh(s, v) ? DOOR_FRESH : DOOR_STALE,
        .desired = v->series.desired,
        .current = v->series.current,
        .decided_ns = v->model->looked_ns,
    };
    return true;
}

static bool find_leader(void *context)
{
    const struct saturation *s = context;
    return manager_leads(s->manager);
}

static bool find_variant(void *context, str ns, str variant, struct door_value *ret)
{
    const struct saturation *s = context;
    return read_value(s, saturation_find(s, ns, variant), ret);
}

/* The variant of the same name, else the one whose workload the ScaledObject scales. */
static bool find_scaled(void *context, str ns, str name, struct door_value *ret)
{
    const struct saturation *s = context;
    if (find_variant(context, ns, name, ret))
        return true;
    const struct bounds_record *so =
        s->scaled_objects ? cache_get(s->scaled_objects, ns, name) : NULL;
    if (!so)
        return false;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (str_eq(v->ns, ns) && str_eq(v->spec.target_name, so->target_name) &&
            read_value(s, v, ret))
            return true;
    }
    return false;
}

static void each_variant(void *context, str ns, door_value_fn *fn, void *fn_context)
{
    const struct saturation *s = context;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        struct door_value value;
        if (str_eq(v->ns, ns) && read_value(s, v, &value))
            fn(fn_context, &value);
    }
}

/* ---- the label that Services select */

static void on_labeled(void *context, const struct kube_reply *reply)
{
    (void)context;
    if (reply->failure)
        log_warn("cannot label this pod; Services do not select it", KV_C("error", reply->failure));
}

/* Sets or removes the label of this pod; without POD_NAME there is none. */
static void label_pod(struct saturation *s, bool serving)
{
    const char *pod = getenv("POD_NAME"), *ns = getenv("POD_NAMESPACE");
    if (!pod || !*pod || !ns)
        return;
    kube_send(manager_kube(s->manager),
              &(struct kube_request){
                  .verb = KUBE_MERGE_PATCH,
                  .resource = &resource_pods,
                  .ns = str_c(ns),
                  .name = str_c(pod),
                  .body = serving
                              ? S("{\"metadata\":{\"labels\":{\"flyball.dev/serving\":\"true\"}}}")
                              : S("{\"metadata\":{\"labels\":{\"flyball.dev/serving\":null}}}"),
                  .no_gate = !serving, /* a standby removes what its predecessor in the pod left */
                  .done = on_labeled });
}

void saturation_doors_update(struct saturation *s)
{
    if (!s->doors)
        return;
    if (!s->serving)
        label_pod(s, true);
    s->serving = true;
    doors_notify(s->doors);
}

int saturation_doors_start(struct saturation *s, err_t *e)
{
    struct doors_options o = {
        .manager = s->manager,
        .source = { find_leader, find_variant, find_scaled, each_variant, s },
        .scaler_listen = saturation_options_get(s, "scaler-listen", NULL),
        .emetrics_listen = saturation_options_get(s, "external-metrics-listen", NULL),
        .cert_dir = saturation_options_get(s, "serving-cert-dir", NULL),
        .scaler_client_ca = saturation_options_get(s, "scaler-client-ca", NULL),
        .scaler_token_file = saturation_options_get(s, "scaler-token-file", NULL),
    };
    if (!o.scaler_listen && !o.emetrics_listen)
        return 0;
    int r = doors_new(&o, &s->doors, e);
    if (r == 0)
        label_pod(s, false);
    return r;
}
