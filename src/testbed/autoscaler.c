/* The HorizontalPodAutoscaler controller of the simulated cluster. Every 15 seconds, the default period of
 * kube-controller-manager, and whenever its object changes:
 *
 *     spec.metrics  --autoscaler_metrics.c--> hpa_metric --+
 *     spec.behavior --read_rules-----------> hpa_rules  --+--> hpa_model_decide --> desired
 *                                            history    --+
 *     desired != spec.replicas of the target:    PATCH deployments/NAME/scale
 *     status differs from the cached one:        PATCH status
 *
 * The arithmetic is in hpa_model.c, which knows nothing of the API; this file reads specs and writes
 * answers. Nothing is written when nothing changed.
 *
 * The history behind stabilization windows and scaling policies (struct autoscaler_memory, owned by
 * `cluster.histories`) is kept in memory only, as in Kubernetes: after a restart, hpa_model_decide() takes the
 * current count for the first recommendation, so a restart never scales down at once. Histories of deleted
 * autoscalers stay until the testbed stops.
 *
 * Left out: targets other than Deployments, and more than METRICS_MAX metrics. */
#include "cluster.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

#include <stdio.h>

enum { METRICS_MAX = 8 };

struct autoscaler {
    struct record meta;
    str target_kind, target;
    int64_t min, max, generation;
    str metrics, behavior;                          /* raw JSON */
    int64_t shown_current, shown_desired, observed; /* as the status has them */
    str shown_metrics;                              /* raw status.currentMetrics */
};

struct readings { /* of one reconciliation */
    struct hpa_metric metrics[METRICS_MAX];
    struct json *current; /* status.currentMetrics, in the arena of the reconciliation */
};

static const struct field autoscaler_fields[] = {
    { "metadata.generation", F_INT, offsetof(struct autoscaler, generation) },
    { "spec.scaleTargetRef.kind", F_WORD, offsetof(struct autoscaler, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, offsetof(struct autoscaler, target) },
    { "spec.minReplicas", F_INT, offsetof(struct autoscaler, min), .otherwise = 1 },
    { "spec.maxReplicas", F_INT, offsetof(struct autoscaler, max), .otherwise = 1 },
    { "spec.metrics", F_RAW, offsetof(struct autoscaler, metrics) },
    { "spec.behavior", F_RAW, offsetof(struct autoscaler, behavior) },
    { "status.currentReplicas", F_INT, offsetof(struct autoscaler, shown_current) },
    { "status.desiredReplicas", F_INT, offsetof(struct autoscaler, shown_desired) },
    { "status.observedGeneration", F_INT, offsetof(struct autoscaler, observed) },
    { "status.currentMetrics", F_RAW, offsetof(struct autoscaler, shown_metrics) },
};

static const struct cache_spec autoscaler_cache = {
    .resource = &resource_hpas, .keep = FIELDS(struct autoscaler, autoscaler_fields)
};

struct autoscaler_memory {
    struct hpa_history history;
    char key[]; /* namespace/name */
};

void autoscaler_memory_free(struct autoscaler_memory *memory)
{
    hpa_model_history_done(&memory->history);
    free(memory);
}

/* Finds or makes the history of an autoscaler; `cluster.histories` owns it. */
static struct autoscaler_memory *get_memory(struct cluster *c, const struct autoscaler *a)
{
    char key[600];
    int n =
        snprintf(key, sizeof(key), STR_FMT "/" STR_FMT, STR_ARG(a->meta.ns), STR_ARG(a->meta.name));
    struct autoscaler_memory *memory = map_get(&c->histories, str_c(key));
    if (memory)
        return memory;
    memory = mem_zero(1, sizeof(*memory) + (size_t)n + 1);
    memcpy(memory->key, key, (size_t)n + 1);
    map_put(&c->histories, str_c(memory->key), memory);
    return memory;
}

/* ---- the spec */

/* Overrides the defaults in `rules` with one direction of spec.behavior. Policies replace the default ones
 * as a whole. */
static void read_rules(struct hpa_rules *rules, const struct json *spec)
{
    const struct json *policies = json_get(spec, "policies");
    str select = json_text(json_get(spec, "selectPolicy"));
    rules->stabilization_s =
        (int32_t)json_int(json_get(spec, "stabilizationWindowSeconds"), rules->stabilization_s);
    if (select.n)
        rules->select = str_eqc(select, "Min")        ? HPA_SELECT_MIN
                        : str_eqc(select, "Disabled") ? HPA_SELECT_DISABLED
                                                      : HPA_SELECT_MAX;
    if (!json_len(policies))
        return;
    rules->policy_n = MIN(json_len(policies), countof(rules->policies));
    for (size_t i = 0; i < rules->policy_n; i++) {
        const struct json *p = json_item(policies, i);
        rules->policies[i] =
            (struct hpa_policy){ str_eqc(json_text(json_get(p, "type")), "Percent") ? HPA_PERCENT
                                                                                    : HPA_PODS,
                                 (int32_t)json_int(json_get(p, "value"), 1),
                                 (int32_t)json_int(json_get(p, "periodSeconds"), 15) };
    }
}

/* Everything that hpa_model_decide() needs. Metrics that cannot be read stay in the list, because they forbid
 * scaling down, but not in the status. */
static struct hpa_input read_input(struct reconcile *r, const struct autoscaler *a,
                                   const struct workload *d, struct readings *readings)
{
    struct json *list = NULL, *behavior = NULL;
    (void)json_parse(r->arena, a->metrics, &list, NULL);
    (void)json_parse(r->arena, a->behavior, &behavior, NULL);
    struct hpa_input in = {
        .now_s = r->now_ns / NS_PER_S,
        .current = (int32_t)d->replicas,
        .ready = (int32_t)d->shown_ready,
        .min = (int32_t)a->min,
        .max = (int32_t)a->max,
        .metrics = readings->metrics,
        .metric_n = MIN(json_len(list), METRICS_MAX),
        .behavior = hpa_model_default_behavior(),
    };
    read_rules(&in.behavior.up, json_get(behavior, "scaleUp"));
    read_rules(&in.behavior.down, json_get(behavior, "scaleDown"));
    readings->current = json_new_arr(r->arena);
    for (size_t i = 0; i < in.metric_n; i++) {
        struct json *status = json_new_obj(r->arena);
        readings->metrics[i] = cluster_read_metric(r, d, json_item(list, i), status);
        if (readings->metrics[i].available)
            json_push(r->arena, readings->current, status);
    }
    return in;
}

/* ---- the answer */

static void scale_target(struct reconcile *r, const struct autoscaler *a, int32_t replicas)
{
    str body = arena_printf(r->arena, "{\"spec\":{\"replicas\":%d}}", replicas);
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &resource_deployments,
                                              .ns = r->ns,
                                              .name = a->target,
                                              .subresource = "scale",
                                              .body = body });
}

/* The outcome of a reconciliation, for the status. */
struct verdict {
    struct hpa_decision decision;
    struct json *current;
};

static bool is_status_current(struct reconcile *r, const struct autoscaler *a,
                              const struct workload *d, const struct verdict *v)
{
    struct json *shown = NULL;
    if (a->shown_metrics.n)
        (void)json_parse(r->arena, a->shown_metrics, &shown, NULL);
    bool same_metrics = shown ? json_eq(shown, v->current) : !json_len(v->current);
    return same_metrics && a->shown_current == d->replicas &&
           a->shown_desired == v->decision.desired && a->observed == a->generation;
}

/* Writes the status with the three conditions of Kubernetes, unless it is current. */
static void write_status(struct reconcile *r, const struct autoscaler *a, const struct workload *d,
                         const struct verdict *v)
{
    struct hpa_decision decision = v->decision;
    if (is_status_current(r, a, d, v))
        return;
    struct json *status = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
    const struct {
        const char *type, *reason;
        bool holds;
    } rows[] = {
        { "AbleToScale", "SucceededGetScale", true },
        { "ScalingActive", decision.active ? "ValidMetricFound" : "FailedGetMetrics",
          decision.active },
        { "ScalingLimited", decision.limited, strcmp(decision.limited, "DesiredWithinRange") != 0 },
    };
    char text[RFC3339_TEXT_MAX];
    for (size_t i = 0; i < countof(rows); i++) {
        struct json *c = json_new_obj(r->arena);
        json_set_str(r->arena, c, "type", str_c(rows[i].type));
        json_set_str(r->arena, c, "status", rows[i].holds ? S("True") : S("False"));
        json_set_str(r->arena, c, "reason", str_c(rows[i].reason));
        json_push(r->arena, conditions, c);
    }
    json_set_int(r->arena, status, "observedGeneration", a->generation);
    json_set_int(r->arena, status, "currentReplicas", d->replicas);
    json_set_int(r->arena, status, "desiredReplicas", decision.desired);
    json_set(r->arena, status, S("currentMetrics"), v->current);
    json_set(r->arena, status, S("conditions"), conditions);
    if (decision.desired != d->replicas)
        json_set_str(r->arena, status, "lastScaleTime", rfc3339_text(r->now_ns / NS_PER_S, text));
    reconcile_status(r, &resource_hpas, status);
}

/* One decision, every 15 s. A target that does not exist yet is looked for again at the next one. */
static struct reconciled reconcile_autoscaler(struct reconcile *r)
{
    static const int64_t period_ns = 15 * NS_PER_S;
    struct cluster *c = r->context;
    const struct autoscaler *a = cache_get(c->hpas, r->ns, r->name);
    if (!a || !str_eqc(a->target_kind, "Deployment"))
        return reconciled();
    const struct workload *d = cache_get(c->deployments, r->ns, a->target);
    if (!d)
        return reconciled_after(period_ns);
    struct readings readings;
    struct hpa_input in = read_input(r, a, d, &readings);
    struct autoscaler_memory *memory = get_memory(c, a);
    struct hpa_decision decision = hpa_model_decide(&memory->history, &in);
    if (decision.desired != in.current) {
        scale_target(r, a, decision.desired);
        hpa_model_scaled(&memory->history, in.now_s, in.current, decision.desired);
    }
    write_status(r, a, d, &(struct verdict){ decision, readings.current });
    return reconciled_after(period_ns);
}

int cluster_start_autoscaler(struct cluster *c, err_t *e)
{
    int failed = adapter_start(&c->adapter, manager_loop(c->manager),
                               manager_setting(c->manager, "testbed-metrics-url"), e);
    failed = failed ? failed : manager_cache(c->manager, &autoscaler_cache, &c->hpas, e);
    if (failed)
        return failed;
    c->autoscaler =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-autoscaler",
                                                                  .reconcile = reconcile_autoscaler,
                                                                  .context = c });
    controller_watch(c->autoscaler, c->hpas, NULL);
    return 0;
}
