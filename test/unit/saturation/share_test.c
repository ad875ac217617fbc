/* The token analyzer with several variants and models: accelerators that models share (by type, by
 * priority, and taken back), and capacity from templates and from before a restart. */
#include "saturation_world.h"

#define TOKENS "analyzerName: saturation\\nenableLimiter: true\\n"

/* A server with a KV cache of 16,000 tokens. */
static const char *page(struct models *w, const char *model, double kv, double waiting)
{
    return arena_printf(&w->c.arena,
                        "vllm:kv_cache_usage_perc{model_name=\"%s\"} %g\n"
                        "vllm:num_requests_waiting{model_name=\"%s\"} %g\n"
                        "vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n",
                        model, kv, model, waiting)
        .p;
}

static void load(struct models *w, const char *workload, const char *model, double kv,
                 double waiting)
{
    const char *text = page(w, model, kv, waiting);
    for (size_t i = 0; i < w->pod_n; i++)
        if (!strcmp(w->pods[i].workload, workload))
            w->pods[i].page = text;
}

static void configure(struct models *w, const char *entry, const char *others)
{
    models_config(w, MODELS_HOME, "saturation-scaling-config",
                  arena_printf(&w->c.arena, "{default: \"" MODELS_THRESHOLDS TOKENS "%s\"%s}",
                               entry, others)
                      .p);
}

/* Two models with one variant each: "llama" on web, "qwen" on other. */
static void start_two(struct models *w, int web, int other, const char *entry, const char *others)
{
    models_start(w);
    configure(w, entry, others);
    models_workload(w, "web", web);
    models_workload(w, "other", other);
    models_variant(w, "web", "H100", "10", "");
    models_variant(w, "other", "H100", "10", "");
    models_patch(w, &saturation_variant_resource, "other", NULL,
                 S("{\"spec\":{\"modelID\":\"qwen\"}}"));
}

static void operate(struct models *w)
{
    cluster_operator(&w->c, &saturation_feature,
                     (const char *[]){ "wva-metrics-source", "pods", NULL });
}

/* Without a share the cheapest variant would be chosen first and cut afterwards. */
static void a_model_grows_on_the_type_that_is_left(void)
{
    struct models w;
    models_start(&w);
    configure(&w,
              "limiters: [{type: quota, name: all, scope: cluster, quotas: {l40s: 2, H100: 8}}]\\n",
              "");
    models_workload(&w, "cheap", 2);
    models_workload(&w, "dear", 1);
    models_variant(&w, "cheap", "L40S", "5", "");
    models_variant(&w, "dear", "H100", "40", "");
    load(&w, "cheap", "llama", 1, 10);
    load(&w, "dear", "llama", 1, 10);
    operate(&w);
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "cheap"), 2);
    OK(models_desired(&w, "dear") > 1);
    OK(str_find(models_condition(&w, "dear", "OptimizationReady", "message"),
                S("optimizer greedy-by-score")) != SIZE_MAX);
    MODELS_SAYS(&w, "cheap", "ResourceConstrained", "status", "True");
    models_stop(&w);
}

/* A claim is a need times a priority: the model with the smaller one is not left without anything. */
static void a_priority_is_a_weight(void)
{
    struct models w;
    start_two(&w, 4, 4,
              "limiters: [{type: quota, name: all, scope: cluster, quotas: {H100: 10}}]\\n",
              ", vip: \"model_id: qwen\\npriority: 1.5\\n\"");
    load(&w, "web", "llama", 1, 0);
    load(&w, "other", "qwen", 1, 0);
    operate(&w);
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "other"), 5);
    EQ_INT(models_desired(&w, "web"), 5);
    MODELS_SAYS(&w, "web", "ResourceConstrained", "status", "True");
    models_stop(&w);
}

/* Running replicas are taken from a model only where an entry allows it. */
static void a_rescale_takes_from_the_model_with_less_demand(void)
{
    for (int rescale = 0; rescale < 2; rescale++) {
        struct models w;
        start_two(&w, 4, 2,
                  rescale ? "enableRescale: true\\nlimiters: [{type: quota, name: all, scope: "
                            "cluster, quotas: {H100: 6}}]\\n"
                          : "limiters: [{type: quota, name: all, scope: cluster, quotas: {H100: "
                            "6}}]\\n",
                  "");
        load(&w, "web", "llama", 0.7, 0);
        load(&w, "other", "qwen", 1, 0);
        operate(&w);
        models_pass(&w, 120);
        if (rescale)
            EQ_INT(models_desired(&w, "web"), 3);
        else
            EQ_INT(models_desired(&w, "web"), 4);
        OK(models_desired(&w, "other") == 2); /* until the accelerators are free */
        models_stop(&w);
    }
}

/* The template of a variant without replicas states its capacity; without a measurement two replicas are the most
 * that one decision adds. */
static void a_variant_without_replicas_grows_by_its_template(void)
{
    struct models w;
    models_start(&w);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "analyzerName: saturation\\n\"}");
    models_workload(&w, "cheap", 0);
    models_workload(&w, "dear", 4);
    models_variant(&w, "cheap", "L40S", "5", "minReplicas: 0,");
    models_variant(&w, "dear", "H100", "40", "");
    load(&w, "dear", "llama", 1, 10);
    operate(&w);
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "cheap"), 2);
    EQ_INT(models_desired(&w, "dear"), 4);
    OK(str_find(models_condition(&w, "cheap", "OptimizationReady", "message"), S("P0-store")) !=
       SIZE_MAX);
    models_stop(&w);
}

/* A replica that was saturated at half of its cache is known to be, also to the next process. */
static void a_restart_keeps_the_measured_capacity(void)
{
    struct models w;
    models_start(&w);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "analyzerName: saturation\\n\"}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "H100", "10", "");
    load(&w, "web", "llama", 0.5, 10);
    operate(&w);
    models_pass(&w, 120);
    load(&w, "web", "llama", 0.5, 0);
    models_pass(&w, 120);
    int64_t desired = models_desired(&w, "web");
    EQ_INT(desired, 3);
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"), S("P2-hist")) !=
       SIZE_MAX);
    cluster_operator_down(&w.c);
    operate(&w);
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "web"), desired);
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"), S("P2-hist")) !=
       SIZE_MAX);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_model_grows_on_the_type_that_is_left),
                                        TAP(a_priority_is_a_weight),
                                        TAP(a_rescale_takes_from_the_model_with_less_demand),
                                        TAP(a_variant_without_replicas_grows_by_its_template),
                                        TAP(a_restart_keeps_the_measured_capacity),
                                        { 0 } });
}
