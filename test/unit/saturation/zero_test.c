/* Models that may go to zero. */
#include "saturation_world.h"

/* By the environment, for a model that no entry is about. */
static void zero_may_be_the_rule(void)
{
    struct models w;
    setenv("WVA_SCALE_TO_ZERO", "True", 1);
    models_web(&w, 1, 0, 0, "actuation: Scale,");
    OK(models_logged(&w, "Scaling to zero is enabled"));
    w.pods[0].countless = true; /* a pod without a request counter may have had requests */
    models_pass(&w, 1200);
    EQ_INT(models_replicas(&w, "web"), 1);
    w.pods[0].countless = false;
    w.pods[0].queue = 1; /* none ends, but one waits */
    models_pass(&w, 1200);
    EQ_INT(models_replicas(&w, "web"), 1);
    w.pods[0].queue = 0;
    models_pass(&w, 500);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":1}}"));
    models_pass(&w, 600); /* who asked for one keeps it */
    EQ_INT(models_replicas(&w, "web"), 1);
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "saturation-only decision: idle, but its minimum of 1 holds (target: 1 replicas)");
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":null}}"));
    models_pass(&w, 31);
    MODELS_SAYS(&w, "web", "OptimizationReady", "message",
                "saturation-only decision: no requests within the retention period: scaled to zero "
                "(target: 0 replicas)");
    models_pass(&w, 400); /* the window for going down is over */
    EQ_INT(models_replicas(&w, "web"), 0);
    models_stop(&w);
    unsetenv("WVA_SCALE_TO_ZERO");
}

static void an_idle_model_may_go_to_zero_and_come_back(void)
{
    struct models w;
    models_begin(&w);
    models_config(
        &w, MODELS_HOME, "wva-model-scale-to-zero-config",
        "{a: \"model_id: llama\\nenable_scale_to_zero: true\\nretention_period: 5m\\n\"}");
    models_workload(&w, "web", 1);
    models_variant(&w, "web", "A100", "10", "actuation: Scale,");
    models_load(&w, "web", 0, 0);
    models_operate(&w, NULL);
    models_pass(&w, 200);
    EQ_INT(models_replicas(&w, "web"), 1);
    w.pods[0].requests = 1; /* a request arrived */
    models_pass(&w, 200);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_pass(&w, 900);
    EQ_INT(models_replicas(&w, "web"), 0);
    models_follow(&w, "web");
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 0);
    models_scale(&w, "web", 1); /* woken from outside */
    w.pods[w.pod_n - 1].requests = 1;
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 1);
    EQ_INT(models_replicas(&w, "web"), 1);
    models_stop(&w);
}

/* While another was asked the pods may have had requests: only the time since counts. */
static void idleness_is_watched_without_a_break(void)
{
    static const char map[] = "workload-variant-autoscaler-variantautoscaling-config";
    struct models w;
    setenv("WVA_SCALE_TO_ZERO", "true", 1);
    models_web(&w, 1, 0, 0, "");
    unsetenv("WVA_SCALE_TO_ZERO");
    models_pass(&w, 400);
    models_config(&w, MODELS_HOME, map,
                  "{PROMETHEUS_BASE_URL: 'http://127.0.0.1:1', PROMETHEUS_ALLOW_HTTP: 'true'}");
    models_pass(&w, 400);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
    w.pods[0].requests = 100;
    models_edit(&w, map, "{PROMETHEUS_BASE_URL: null}");
    models_pass(&w, 500);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsFound");
    EQ_INT(models_desired(&w, "web"), 1);
    models_pass(&w, 200);
    EQ_INT(models_desired(&w, "web"), 0);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(zero_may_be_the_rule),
        TAP(an_idle_model_may_go_to_zero_and_come_back),
        TAP(idleness_is_watched_without_a_break),
        { 0 },
    });
}
