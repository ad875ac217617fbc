/* What makes the controller a drop-in replacement for WVA: environment, log lines, rules. */
#include "saturation_world.h"

/* The original's environment: where the ConfigMaps are, and the optimizer under each of its names. */
static void the_environment_is_the_originals(void)
{
    static const char *const optimizers[] = { "EXPERIMENTAL_PROACTIVE_MODEL",
                                              "WVA_EXPERIMENTAL_PROACTIVE_MODEL" };
    setenv("POD_NAMESPACE", MODELS_NS, 1);
    setenv("CONFIG_MAP_NAME", "ours", 1);
    setenv("SATURATION_CONFIG_MAP_NAME", "thresholds", 1);
    for (size_t i = 0; i < countof(optimizers); i++) {
        struct models w;
        setenv(optimizers[i], "True", 1);
        models_start(&w);
        models_config(&w, MODELS_NS, "ours", "{GLOBAL_OPT_INTERVAL: 7s}");
        models_config(&w, MODELS_NS, "thresholds", "{default: \"" MODELS_THRESHOLDS "\"}");
        models_operate(&w, NULL);
        OK(models_logged(&w, "Updated global optimization config from ConfigMap interval=7s"));
        OK(models_logged(&w, "Updated global saturation config from ConfigMap entries=1"));
        OK(models_logged(&w, "Operating in HYBRID mode"));
        models_stop(&w);
        unsetenv(optimizers[i]);
    }
    unsetenv("POD_NAMESPACE");
    unsetenv("CONFIG_MAP_NAME");
    unsetenv("SATURATION_CONFIG_MAP_NAME");
}

/* What people who know the original look for in the log; more of it in the cases above. */
static void the_log_has_the_originals_lines(void)
{
    static const char *const lines[] = {
        "Operating in CAPACITY-ONLY mode: reactive capacity-based scaling only",
        "Updated global saturation config from ConfigMap entries=1",
        "No active VariantAutoscalings found, skipping optimization",
        "Reconciling VariantAutoscaling namespace=llm name=web",
        "Grouped VAs by model",
        "Processing decision for VA",
        "Optimization completed successfully",
        "Updated namespace-local saturation config from ConfigMap",
        "Safety net activated: emitted fallback metrics",
        "Could not collect metrics for VA, skipping",
    };
    struct models w;
    models_begin(&w);
    models_operate(&w, NULL);
    models_pass(&w, 31);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.9, 9);
    models_pass(&w, 31);
    models_config(&w, MODELS_NS, "saturation-scaling-config", "{default: 'kvCacheThreshold: 0.5'}");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_pass(&w, 61);
    for (size_t i = 0; i < countof(lines); i++)
        if (!OK(models_logged(&w, lines[i])))
            printf("# %s\n", lines[i]);
    models_stop(&w);
}

/* The original's rules, with the line its users look for. */
static void compat_rules_wait_for_the_last_target(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.9, 9);
    models_operate(&w, (const char *const[]){ "wva-rules", "2026", NULL });
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 3); /* one step */
    OK(!models_logged(&w, "Model in transition"));
    models_pass(&w, 300);
    EQ_INT(models_desired(&w, "web"), 3);
    OK(models_logged(&w, "Model in transition, blocking scaling decisions"));
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(the_environment_is_the_originals),
        TAP(the_log_has_the_originals_lines),
        TAP(compat_rules_wait_for_the_last_target),
        { 0 },
    });
}
