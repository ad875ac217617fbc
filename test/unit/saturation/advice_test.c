/* Warnings about scalers that do not follow decisions as their users expect. */
#include "saturation/objects/follow_core.h"
#include "saturation_world.h"
#include "json/yaml.h"

static unsigned check(bool by_keda, bool managed, int64_t fallback, int64_t min, const char *text)
{
    auto_arena struct arena a = { 0 };
    struct json *readings = NULL;
    OK(yaml_parse(&a, str_c(text), &readings, NULL) == 0);
    return follow_check(&(struct follow_scaler){ .by_keda = by_keda,
                                                 .managed = managed,
                                                 .readings = readings,
                                                 .has_fallback = fallback >= 0,
                                                 .fallback = fallback,
                                                 .min = min });
}

#define PUSH "[{type: external-push, metadata: {scalerAddress: 'flyball-scaler.x:9443'}}]"
#define HPA(type)                                                                                  \
    "[{type: External, external: {metric: {name: wva_desired_replicas}, target: {type: " type "}}}]"

static void mistakes_are_found(void)
{
    static const struct {
        bool by_keda, managed;
        int64_t fallback, min;
        const char *text;
        unsigned want;
    } cases[] = {
        { true, true, -1, 0, PUSH, 0 },
        { true, true, 0, 0, PUSH, FOLLOW_FALLBACK },
        { true, false, 0, 0, PUSH, FOLLOW_FALLBACK },
        { true, true, 0, 1, PUSH, 0 },
        { true, true, 3, 0, PUSH, 0 },
        { true, true, 0, 0, "[{type: cron}]", FOLLOW_NOT_CONSUMED },
        { true, false, 0, 0, "[{type: cron}]", 0 },
        { true, true, -1, 0, "[{type: external, metadata: {scalerAddress: 'other:1'}}]",
          FOLLOW_NOT_CONSUMED },
        { true, true, 0, 0,
          "[{type: prometheus, metricType: Value, metadata: {query: 'max(wva_desired_replicas)'}}]",
          FOLLOW_WRONG_TYPE | FOLLOW_FALLBACK },
        { false, true, -1, 1, HPA("AverageValue"), 0 },
        { false, false, -1, 1, HPA("Value"), FOLLOW_WRONG_TYPE },
        { false, true, -1, 1, "[{type: Resource, resource: {name: cpu}}]", FOLLOW_NOT_CONSUMED },
        { false, true, -1, 1, "[]", FOLLOW_NOT_CONSUMED },
        { false, true, -1, 1, "{a: [1, null]}", FOLLOW_NOT_CONSUMED },
    };
    for (size_t i = 0; i < countof(cases); i++)
        EQ_INT(check(cases[i].by_keda, cases[i].managed, cases[i].fallback, cases[i].min,
                     cases[i].text),
               cases[i].want);
}

/* Once for each state of the object, also after a restart: the new leader has not seen it. */
static void a_scaled_object_is_warned_about(void)
{
    struct models w;
    models_start(&w);
    models_define(&w, &saturation_scaled_object_resource);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "H100", "10", "");
    models_create(&w, &saturation_scaled_object_resource, MODELS_NS,
                  S("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, "
                    "spec: {scaleTargetRef: {name: web}, fallback: {failureThreshold: 3, replicas: "
                    "0}, triggers: " PUSH "}}"));
    models_operate(&w, NULL);
    models_pass(&w, 200);
    EQ_INT(models_events(&w, "DangerousFallback"), 1);
    EQ_INT(models_events(&w, "NotConsumed"), 0);
    models_patch(&w, &saturation_scaled_object_resource, "web", NULL,
                 S("{\"spec\":{\"fallback\":null,\"triggers\":[{\"type\":\"external-push\","
                   "\"metricType\":\"Value\",\"metadata\":{\"scalerAddress\":\"flyball-scaler:1\"}}"
                   "]}}"));
    models_pass(&w, 200);
    EQ_INT(models_events(&w, "WrongMetricType"), 1);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(mistakes_are_found), TAP(a_scaled_object_is_warned_about), { 0 } });
}
