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
    for (int t = 1; t <= (int)seconds;
         t++) { /* counters grow all the time, whenever they are read */
        double each = load / (double)models_count(w, "web"), busy = fmin(each * 0.19, 0.97);
        for (size_t i = 0; i < w->pod_n; i++) {
            serve(&servers[i], 1, each, busy);
            w->pods[i].page = servers[i].page;
        }
        models_pass(w, 1);
        if (t % STEP_S == 0)
            models_follow(w, "web");
    }
}

/* Four replicas of "web" that have served nothing yet, and the operator. */
static void start_web(struct models *w, struct server *servers)
{
    memset(servers, 0, MODELS_PODS * sizeof(*servers));
    models_begin(w);
    models_workload(w, "web", 4);
    models_variant(w, "web", "L40S", "15", "actuation: Scale,");
    models_operate(w, NULL);
}

static void latency_decides_where_tokens_are_counted(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    start_web(&w, servers);
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

/* The text of the model in flyball's own ConfigMap; NULL: none. */
static const struct json *find_saved(struct models *w)
{
    struct json *data =
        json_get(cluster_get(&w->c, &resource_configmaps, MODELS_HOME, "flyball-saturation-state"),
                 "data");
    struct json *tree = NULL;
    json_each(m, data)
        if (str_starts(m->key, S("slo.")) &&
            json_parse(&w->c.arena, json_text(m->value), &tree, NULL) == 0)
            return tree;
    return NULL;
}

/* Looks every 15 s for 10 minutes after a restart: the decision does not move. */
static void restart_holds(struct models *w, struct server *servers, int64_t held)
{
    cluster_operator_down(&w->c);
    buf_clear(&w->log);
    models_operate(w, NULL);
    for (int i = 0; i < 40; i++) {
        pass(w, servers, STEP_S, 6);
        EQ_INT(models_desired(w, "web"), held);
        EQ_INT(models_replicas(w, "web"), held);
    }
}

static void what_was_learned_outlives_the_process(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    start_web(&w, servers);
    pass(&w, servers, 900, 6);
    const struct json *saved = find_saved(&w);
    OK(saved != NULL);
    str key = json_text(json_get(json_item(json_get(saved, "variants"), 0), "name"));
    EQ_STR(key, S("web"));
    OK(json_real(json_at(saved, "now", "demand", NULL), 0) > 0);
    OK(json_len(json_get(saved, "decisions")) <= 10);
    int64_t held = models_replicas(&w, "web");
    for (int i = 0; i < 3; i++) {
        restart_holds(&w, servers, held);
        OK(str_find(buf_str(&w.log), S("Restored what was learned about a model")) != SIZE_MAX);
    }
    models_stop(&w);
}

/* Not permitted to save anything: a restart begins without knowledge, and must not guess by another rule. */
static void a_restart_without_saved_state_holds(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    memset(servers, 0, sizeof(servers));
    models_begin(&w);
    w.c.failures = 100000;
    w.c.fail_code = 403;
    w.c.fail_path = "flyball-saturation-state";
    models_workload(&w, "web", 4);
    models_variant(&w, "web", "L40S", "15", "actuation: Scale,");
    models_operate(&w, NULL);
    pass(&w, servers, 900, 6);
    int64_t held = models_replicas(&w, "web");
    cluster_operator_down(&w.c);
    models_operate(&w, NULL);
    for (int i = 0; i < 60; i++) { /* until the first rates are there, and a minute more */
        if (i % STEP_S == 0)
            pass(&w, servers, STEP_S, 6);
        models_pass(&w, 1);
        OK(models_desired(&w, "web") >= held);
    }
    models_stop(&w);
}

/* Nothing follows the number here, as an HPA that still waits. */
static void a_removal_is_not_taken_back_while_an_hpa_waits(void)
{
    static struct server servers[MODELS_PODS];
    struct models w;
    memset(servers, 0, sizeof(servers));
    models_begin(&w);
    models_workload(&w, "web", 8);
    models_variant(&w, "web", "L40S", "15", "");
    models_operate(&w, NULL);
    pass(&w, servers, 600, 4);
    int64_t last = models_desired(&w, "web");
    OK(last < 8);
    for (int i = 0; i < 20; i++) {
        pass(&w, servers, STEP_S, 4);
        OK(models_desired(&w, "web") <= last);
        last = models_desired(&w, "web");
    }
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(latency_decides_where_tokens_are_counted),
        TAP(targets_come_from_the_configmap),
        TAP(what_was_learned_outlives_the_process),
        TAP(a_restart_without_saved_state_holds),
        TAP(a_removal_is_not_taken_back_while_an_hpa_waits),
        { 0 },
    });
}
