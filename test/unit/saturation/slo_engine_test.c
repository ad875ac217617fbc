/* The slo policy in the whole feature: pods that count tokens as a vLLM server does are decided about by latency. */
#include "saturation_world.h"

enum { STEP_S = 15 };

/* What each of `n` pods has counted by now, at `rate` requests/s of 1000 and 200 tokens in all. */
struct server {
    double requests, itl_sum, running;
    char page[4096];
};

static void serve(struct server *s, double seconds, double rate, double busy)
{
    double itl = 0.021 / (1 - busy);
    s->requests += rate * seconds;
    s->itl_sum += rate * seconds * 200 * itl;
    s->running = rate * 200 * itl;
    snprintf(s->page, sizeof(s->page),
             "vllm:kv_cache_usage_perc{model_name=\"llama\"} %g\n"
             "vllm:num_requests_waiting{model_name=\"llama\"} 0\n"
             "vllm:num_requests_running{model_name=\"llama\"} %g\n"
             "vllm:request_success_total{model_name=\"llama\"} %g\n"
             "vllm:prompt_tokens_total{model_name=\"llama\"} %g\n"
             "vllm:generation_tokens_total{model_name=\"llama\"} %g\n"
             "vllm:request_generation_tokens_sum{model_name=\"llama\"} %g\n"
             "vllm:request_generation_tokens_count{model_name=\"llama\"} %g\n"
             "vllm:inter_token_latency_seconds_sum{model_name=\"llama\"} %g\n"
             "vllm:inter_token_latency_seconds_count{model_name=\"llama\"} %g\n"
             "vllm:time_to_first_token_seconds_count{model_name=\"llama\"} %g\n"
             "vllm:time_to_first_token_seconds_bucket{model_name=\"llama\",le=\"2\"} %g\n"
             "vllm:time_to_first_token_seconds_bucket{model_name=\"llama\",le=\"+Inf\"} %g\n"
             "vllm:cache_config_info{num_gpu_blocks=\"11900\",block_size=\"16\"} 1\n",
             s->running * 1100 / 190400, s->running, s->requests, s->requests * 1000,
             s->requests * 200, s->requests * 200, s->requests, s->itl_sum, s->requests * 200,
             s->requests, s->requests, s->requests);
}

/* The load is spread over the pods that the Deployment has; what a replica can carry is about 3.3 requests/s. */
static void pass(struct models *w, struct server *servers, double seconds, double load)
{
    for (double t = 0; t < seconds; t += STEP_S) {
        double each = load / (double)models_count(w, "web"), busy = fmin(each * 0.19, 0.97);
        for (size_t i = 0; i < w->pod_n; i++) {
            serve(&servers[i], STEP_S, each, busy);
            w->pods[i].page = servers[i].page;
        }
        models_pass(w, STEP_S);
        models_follow(w, "web");
    }
}

static void latency_decides_where_tokens_are_counted(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    memset(servers, 0, sizeof(servers));
    models_begin(&w);
    models_workload(&w, "web", 4);
    models_variant(&w, "web", "L40S", "15", "actuation: Scale,");
    models_operate(&w, NULL);
    pass(&w, servers, 600, 6);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "LatencyTargets");
    str message = models_condition(&w, "web", "OptimizationReady", "message");
    OK(str_find(message, S("busy replicas now")) != SIZE_MAX);
    OK(str_find(message, S("derived: none are set")) != SIZE_MAX);
    EQ_REAL(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "saturation"), -1);
    int64_t quiet = models_replicas(&w, "web");
    pass(&w, servers, 300, 18); /* the KV cache is a tenth full: need would not move */
    OK(models_replicas(&w, "web") > quiet);
    OK(MODELS_GAUGE(&w, "wva_replica_scaling_total", "web", "llm", "up", "slo") >= 1);
    int64_t busy = models_replicas(&w, "web");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true; /* nothing is known: nothing moves */
    models_pass(&w, 600);
    EQ_INT(models_replicas(&w, "web"), busy);
    models_stop(&w);
}

static void targets_come_from_the_configmap(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    memset(servers, 0, sizeof(servers));
    models_start(&w);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS
                  "slo: {ttft: 1500ms, itl: 60ms, goal: 95}\\n\"}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "L40S", "15", "");
    models_operate(&w, NULL);
    pass(&w, servers, 90, 2);
    str message = models_condition(&w, "web", "OptimizationReady", "message");
    OK(str_find(message, S("TTFT 1.50 s, ITL 0.060 s, goal 95%, from the ConfigMap")) != SIZE_MAX);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(latency_decides_where_tokens_are_counted),
        TAP(targets_come_from_the_configmap),
        { 0 },
    });
}
