/* The metrics and events of WVA 0.9: exported while its names are in use, and gone with the variant. */
#include "saturation_world.h"

static void set_pages(struct models *w, double kv, double waiting)
{
    const char *text =
        arena_printf(&w->c.arena,
                     "vllm:kv_cache_usage_perc{model_name=\"llama\"} %g\n"
                     "vllm:num_requests_waiting{model_name=\"llama\"} %g\n"
                     "vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n",
                     kv, waiting)
            .p;
    for (size_t i = 0; i < w->pod_n; i++)
        w->pods[i].page = text;
}

static void start_web(struct models *w, const char *map, const char *entry)
{
    models_start(w);
    models_config(w, MODELS_HOME, map,
                  arena_printf(&w->c.arena, "{default: \"" MODELS_THRESHOLDS "%s\"}", entry).p);
    models_workload(w, "web", 2);
    models_variant(w, "web", "H100", "10", "");
    cluster_operator(&w->c, &saturation_feature,
                     (const char *[]){ "wva-metrics-source", "pods", NULL });
}

static void a_09_map_brings_its_metrics(void)
{
    struct models w;
    start_web(&w, "wva-saturation-scaling-config", "analyzerName: saturation\\n");
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    /* 2 * 14,400 of 2 * 12,800 tokens, of which 0.85 may be used */
    EQ_REAL(MODELS_GAUGE(&w, "wva_saturation_utilization", "web", "llm", "llama", "H100"), 1.125);
    EQ_REAL(MODELS_GAUGE(&w, "wva_kv_cache_tokens_used", "web", "llm", "llama"), 28800);
    EQ_REAL(MODELS_GAUGE(&w, "wva_kv_cache_tokens_capacity", "web", "llm", "llama"), 32000);
    OK(MODELS_GAUGE(&w, "wva_required_capacity", "web", "llm", "llama", "continuous") > 8000);
    EQ_REAL(MODELS_GAUGE(&w, "wva_saturation_metrics_up", "web", "llm"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_metrics_freshness_status", "web", "fresh"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_metrics_pods_discovered", "llm"), 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_models_processed", NULL), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_optimizer_active", "cost-aware"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_config_info", "saturation", "false", "false"), 1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "scale-up", "V2"), 1);
    OK(models_events(&w, "ScaledUp") > 0 && models_events(&w, "ScaleUp") > 0);
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_pass(&w, 400);
    EQ_REAL(MODELS_GAUGE(&w, "wva_saturation_metrics_up", "web", "llm"), 0);
    EQ_REAL(MODELS_GAUGE(&w, "wva_metrics_freshness_status", "web", "fresh"), -1);
    cluster_ask(&w.c, (struct kube_request){ .verb = KUBE_DELETE,
                                             .resource = &saturation_variant_resource,
                                             .ns = S(MODELS_NS),
                                             .name = S("web") });
    models_pass(&w, 60);
    EQ_REAL(MODELS_GAUGE(&w, "wva_saturation_metrics_up", "web", "llm"), -1);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "scale-up", "V2"), -1);
    models_stop(&w);
}

static void an_older_map_does_not(void)
{
    struct models w;
    start_web(&w, "saturation-scaling-config", "analyzerName: saturation\\n");
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    EQ_REAL(MODELS_GAUGE(&w, "wva_saturation_metrics_up", "web", "llm"), -1);
    EQ_INT(models_events(&w, "ScaledUp"), 0);
    OK(models_events(&w, "ScaleUp") > 0);
    models_stop(&w);
}

/* The counter of cuts goes with the variant too. */
static void cuts_are_counted_until_the_variant_is_gone(void)
{
    struct models w;
    start_web(
        &w, "saturation-scaling-config",
        "analyzerName: saturation\\nenableLimiter: true\\nlimiters: [{type: quota, name: team, "
        "scope: cluster, quotas: {H100: 2}}]\\n");
    set_pages(&w, 1, 10);
    models_pass(&w, 120);
    EQ_REAL(MODELS_GAUGE(&w, "wva_decisions_limited_total", "web", "llm", "team"), 1);
    cluster_ask(&w.c, (struct kube_request){ .verb = KUBE_DELETE,
                                             .resource = &saturation_variant_resource,
                                             .ns = S(MODELS_NS),
                                             .name = S("web") });
    models_pass(&w, 60);
    EQ_REAL(MODELS_GAUGE(&w, "wva_decisions_limited_total", "web", "llm", "team"), -1);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_09_map_brings_its_metrics),
                                        TAP(an_older_map_does_not),
                                        TAP(cuts_are_counted_until_the_variant_is_gone),
                                        { 0 } });
}
