/* What WVA 0.9 added, in the running feature: the token analyzer, limits on accelerators, and
 * decisions served to others. */
#include "doors/wire_core.h"
#include "net/http_client.h"
#include "prom/exposition.h"
#include "saturation_world.h"

/* A page of a server with a KV cache of 16,000 tokens. */
static const char *page(struct models *w, double kv, double waiting)
{
    return arena_printf(&w->c.arena,
                        "vllm:kv_cache_usage_perc{model_name=\"llama\"} %g\n"
                        "vllm:num_requests_waiting{model_name=\"llama\"} %g\n"
                        "vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n",
                        kv, waiting)
        .p;
}

static void set_pages(struct models *w, double kv, double waiting)
{
    const char *text = page(w, kv, waiting);
    for (size_t i = 0; i < w->pod_n; i++)
        w->pods[i].page = text;
}

static str shown_desired(struct models *w, const char *variant)
{
    const struct json *v = cluster_get(&w->c, &saturation_variant_resource, MODELS_NS, variant);
    return json_to_str(&w->c.arena,
                       json_at(v, "status", "desiredOptimizedAlloc", "numReplicas", NULL));
}

static void start_web(struct models *w, const char *entry, const char *const *settings)
{
    models_start(w);
    models_config(w, MODELS_HOME, "saturation-scaling-config",
                  arena_printf(&w->c.arena, "{default: \"" MODELS_THRESHOLDS "%s\"}", entry).p);
    models_workload(w, "web", 2);
    models_variant(w, "web", "H100", "10", "");
    cluster_operator(&w->c, &saturation_feature, settings);
}

static void an_entry_selects_the_token_analyzer(void)
{
    struct models w;
    start_web(&w, "analyzerName: saturation\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    set_pages(&w, 0.5, 0);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("2"));
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    /* 2 * 14,400 of 2 * 12,800 tokens: 28,800 / 0.85 needs a third replica */
    EQ_STR(shown_desired(&w, "web"), S("3"));
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("V2 scale-up 2→3")) != SIZE_MAX);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"maxReplicas\":2}}"));
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("2"));
    OK(str_find(models_condition(&w, "web", "OptimizationReady", "message"),
                S("; limited by maxReplicas")) != SIZE_MAX);
    models_stop(&w);
}

/* A server of SGLang has other names, and no blocks: the same load, the same decision. */
static void sglang_is_scraped_by_its_names(void)
{
    struct models w;
    start_web(&w, "analyzerName: saturation\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].page = "sglang:token_usage{model_name=\"llama\"} 0.9\n"
                         "sglang:num_queue_reqs{model_name=\"llama\"} 2\n"
                         "sglang:max_total_num_tokens{model_name=\"llama\"} 16000\n"
                         "sglang:num_requests_total{model_name=\"llama\"} 7\n";
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("3"));
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    models_stop(&w);
}

/* A wrong modelID looks healthy for ever unless the message names what the pods serve. */
static void the_model_that_pods_report_is_named(void)
{
    struct models w;
    start_web(&w, "", (const char *[]){ "wva-metrics-source", "pods", "wva-metrics", "0.9", NULL });
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].page = "vllm:kv_cache_usage_perc{model_name=\"other/llama\"} 0.9\n";
    models_pass(&w, 120);
    OK(str_find(models_condition(&w, "web", "MetricsAvailable", "message"),
                S("Pods report model 'other/llama' instead")) != SIZE_MAX);
    EQ_INT(models_events(&w, "MetricsUnavailable"), 1);
    set_pages(&w, 0.5, 0);
    models_pass(&w, 120);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    models_stop(&w);
}

/* Dashboards of WVA query the name of the workload. */
static void a_variant_may_also_have_the_name_of_its_workload(void)
{
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", 2);
    models_create(
        &w, &saturation_variant_resource, MODELS_NS,
        S("{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: v, "
          "labels: {inference.optimization/acceleratorName: H100}}, spec: {modelID: llama, "
          "scaleTargetRef: {kind: Deployment, name: web}}}"));
    cluster_operator(&w.c, &saturation_feature,
                     (const char *[]){ "wva-metrics-source", "pods", "wva-variant-alias", "target",
                                       NULL });
    set_pages(&w, 0.5, 0);
    models_pass(&w, 60);
    OK(MODELS_GAUGE(&w, "wva_desired_replicas", "v", MODELS_NS, "H100") > 0);
    OK(MODELS_GAUGE(&w, "wva_desired_replicas", "web", MODELS_NS, "H100") > 0);
    cluster_ask(&w.c, (struct kube_request){ .verb = KUBE_DELETE,
                                             .resource = &saturation_variant_resource,
                                             .ns = S(MODELS_NS),
                                             .name = S("v") });
    models_pass(&w, 10);
    OK(MODELS_GAUGE(&w, "wva_desired_replicas", "v", MODELS_NS, "H100") < 0);
    OK(MODELS_GAUGE(&w, "wva_desired_replicas", "web", MODELS_NS, "H100") < 0);
    models_stop(&w);
}

/* Without the analyzer's name the entry means what it always did. */
static void other_entries_do_not(void)
{
    struct models w;
    start_web(&w, "", (const char *[]){ "wva-metrics-source", "pods", "wva-rules", "need", NULL });
    set_pages(&w, 0.5, 0);
    models_pass(&w, 120);
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("V2 ")) == SIZE_MAX);
    models_stop(&w);
}

/* The last accelerator goes to the model of higher priority, whatever their order; among equals each
 * gets a share. */
static void priority_decides_who_grows(void)
{
    for (int priority = 0; priority < 2; priority++) {
        struct models w;
        models_start(&w);
        models_config(&w, MODELS_HOME, "saturation-scaling-config",
                      arena_printf(&w.c.arena,
                                   "{default: \"" MODELS_THRESHOLDS
                                   "analyzerName: saturation\\nenableLimiter: true\\nlimiters: "
                                   "[{type: quota, name: all, scope: cluster, quotas: {H100: %d}}]"
                                   "\\n\", vip: \"model_id: qwen\\npriority: %d\\n\"}",
                                   priority ? 5 : 8, priority ? 7 : 1)
                          .p);
        models_workload(&w, "web", 2);
        models_workload(&w, "other", 2);
        models_variant(&w, "web", "H100", "10", "");
        models_variant(&w, "other", "H100", "10", "");
        models_patch(&w, &saturation_variant_resource, "other", NULL,
                     S("{\"spec\":{\"modelID\":\"qwen\"}}"));
        set_pages(&w, 1, 40);
        for (size_t i = 0; i < w.pod_n; i++)
            if (!strcmp(w.pods[i].workload, "other"))
                w.pods[i].page =
                    "vllm:kv_cache_usage_perc{model_name=\"qwen\"} 1\n"
                    "vllm:num_requests_waiting{model_name=\"qwen\"} 40\n"
                    "vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n";
        cluster_operator(&w.c, &saturation_feature,
                         (const char *[]){ "wva-metrics-source", "pods", NULL });
        models_pass(&w, 300);
        if (priority) {
            EQ_STR(shown_desired(&w, "other"), S("3"));
            EQ_STR(shown_desired(&w, "web"), S("2"));
            OK(models_events(&w, "ResourceConstrained") > 0);
        }
        int64_t sum = models_desired(&w, "web") + models_desired(&w, "other");
        OK(sum <= (priority ? 5 : 8));
        models_stop(&w);
    }
}

/* ---- names of ConfigMaps */

static void the_names_of_09_are_read_and_the_older_ones_win(void)
{
    struct models w;
    models_start(&w);
    models_config(&w, MODELS_HOME, "wva-saturation-scaling-config",
                  "{default: \"analyzerName: saturation\\n\"}");
    models_config(&w, MODELS_HOME, "wva-manager-config",
                  "{config.yaml: \"GLOBAL_OPT_INTERVAL: 20s\\n\"}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "H100", "10", "");
    cluster_operator(&w.c, &saturation_feature,
                     (const char *[]){ "wva-metrics-source", "pods", NULL });
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("3"));
    OK(models_logged(&w, "interval=20s"));
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
    models_pass(&w, 120);
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("V2 ")) == SIZE_MAX);
    models_stop(&w);
}

/* Also in the namespace of the models. */
static void a_namespace_may_use_the_name_of_09(void)
{
    struct models w;
    start_web(&w, "", (const char *[]){ "wva-metrics-source", "pods", NULL });
    models_config(&w, MODELS_NS, "wva-saturation-scaling-config",
                  "{default: \"analyzerName: saturation\\n\"}");
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("3"));
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("V2 ")) != SIZE_MAX);
    models_config(&w, MODELS_NS, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
    models_pass(&w, 120);
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("V2 ")) == SIZE_MAX);
    models_stop(&w);
}

/* ---- annotations */

static void create_hpa(struct models *w, const char *name, const char *managed)
{
    models_create(w, &resource_hpas, MODELS_NS,
                  arena_printf(&w->c.arena,
                               "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, "
                               "metadata: {name: %s, annotations: {llm-d.ai/managed: \"%s\", "
                               "llm-d.ai/model-id: llama, llm-d.ai/variant-cost: \"10\"}, labels: "
                               "{inference.optimization/acceleratorName: H100}}, spec: "
                               "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "
                               "web}, minReplicas: 1, maxReplicas: 9}}",
                               name, managed));
}

static double shown_metric(struct models *w, const char *variant)
{
    auto_buf struct buf text = { 0 };
    exposition_write(&text, kube_metrics(w->c.operator_kube));
    str key = arena_printf(&w->c.arena, "wva_desired_replicas{variant_name=\"%s\"", variant);
    size_t at = str_find(buf_str(&text), key);
    if (at == SIZE_MAX)
        return -1;
    str line = str_from(buf_str(&text), at);
    line = str_upto(line, str_find_char(line, '\n'));
    size_t blank = str_find_char(line, ' ');
    double value = -1;
    (void)str_to_f64(str_from(line, blank + 1), &value);
    return value;
}

static void an_annotated_hpa_is_a_variant_until_an_object_describes_it(void)
{
    struct models w;
    models_start(&w);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "analyzerName: saturation\\n\"}");
    models_workload(&w, "web", 2);
    create_hpa(&w, "scaler", "true");
    create_hpa(&w, "other", "no");
    cluster_operator(&w.c, &saturation_feature,
                     (const char *[]){ "wva-metrics-source", "pods", NULL });
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    OK(shown_metric(&w, "scaler") == 3);
    OK(shown_metric(&w, "other") == -1);
    models_variant(&w, "web", "H100", "10", ""); /* wins, and the series of the HPA go */
    models_pass(&w, 120);
    OK(shown_metric(&w, "scaler") == -1);
    OK(shown_metric(&w, "web") == 3);
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, MODELS_NS, "web", S(""));
    models_pass(&w, 120);
    OK(shown_metric(&w, "scaler") == 3);
    models_patch(&w, &resource_hpas, "scaler", NULL,
                 S("{\"metadata\":{\"annotations\":{\"llm-d.ai/managed\":null}}}"));
    models_pass(&w, 1);
    OK(shown_metric(&w, "scaler") == -1);
    models_stop(&w);
}

/* It has no status: its target is in the state of flyball. */
static void an_annotated_hpa_keeps_its_target_across_a_restart(void)
{
    struct models w;
    models_start(&w);
    models_config(&w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "\"}");
    models_workload(&w, "web", 2);
    models_load(&w, "web", 0.9, 9);
    create_hpa(&w, "scaler", "true");
    models_operate(&w, NULL);
    models_pass(&w, 90); /* the state is written at most once per minute */
    double desired = shown_metric(&w, "scaler");
    OK(desired > 2);
    cluster_operator_down(&w.c);
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    models_operate(&w, NULL);
    models_pass(&w, 90);
    EQ_REAL(shown_metric(&w, "scaler"), desired);
    str state = json_to_str(&w.c.arena, cluster_get(&w.c, &resource_configmaps, MODELS_HOME,
                                                    "flyball-saturation-state"));
    OK(str_find(state, S("\\\"variant\\\":\\\"scaler\\\"")) != SIZE_MAX);
    models_patch(&w, &resource_hpas, "scaler", NULL,
                 S("{\"metadata\":{\"annotations\":{\"llm-d.ai/managed\":null}}}"));
    models_pass(&w, 90);
    state = json_to_str(&w.c.arena, cluster_get(&w.c, &resource_configmaps, MODELS_HOME,
                                                "flyball-saturation-state"));
    OK(str_find(state, S("\\\"variant\\\":\\\"scaler\\\"")) == SIZE_MAX);
    models_stop(&w);
}

/* ---- doors */

struct answer {
    bool done;
    int status;
    str body;
    struct models *w;
};

static void on_answer(void *context, const struct http_response *response, const err_t *failure)
{
    struct answer *a = context;
    a->done = true;
    a->status = response ? response->status : -1;
    (void)failure;
    a->body = response ? arena_str(&a->w->c.arena, response->body) : S("");
}

static str ask_scaler(struct models *w, const char *method, str message)
{
    struct answer a = { .w = w };
    struct http_client *client;
    auto_buf struct buf frame = { 0 };
    err_t e;
    cluster_check(http_client_new(w->c.loop,
                                  &(struct http_client_options){ .url = S("http://127.0.0.1:19443"),
                                                                 .http2_plain = true },
                                  &client, &e),
                  &e);
    wire_put_frame(&frame, message);
    http_client_fetch(client,
                      &(struct http_fetch){
                          .method = S("POST"),
                          .target = arena_printf(&w->c.arena, "/externalscaler.ExternalScaler/%s",
                                                 method),
                          .headers = HTTP_HEADERS({ S("content-type"), S("application/grpc") }),
                          .body = buf_str(&frame),
                          .on_done = on_answer,
                          .context = &a });
    while (!a.done)
        loop_turn(w->c.loop);
    http_client_free(client);
    return a.body;
}

static void decisions_are_served(void)
{
    struct models w;
    auto_buf struct buf want = { 0 }, message = { 0 };
    str request = S("\x0a\x0a\x0a\x03web\x12\x03llm\x12\x01x");
    start_web(&w, "analyzerName: saturation\\n",
              (const char *[]){ "wva-metrics-source", "pods", "scaler-listen", "127.0.0.1:19443",
                                NULL });
    set_pages(&w, 0.9, 2);
    models_pass(&w, 120);
    wire_put_metrics(&message, &(struct wire_metric){ S("x"), 3, 3 }, 1);
    wire_put_frame(&want, buf_str(&message));
    EQ_STR(ask_scaler(&w, "GetMetrics", request), buf_str(&want));
    models_stop(&w);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(an_entry_selects_the_token_analyzer),
                             TAP(other_entries_do_not),
                             TAP(a_namespace_may_use_the_name_of_09),
                             TAP(sglang_is_scraped_by_its_names),
                             TAP(the_model_that_pods_report_is_named),
                             TAP(a_variant_may_also_have_the_name_of_its_workload),
                             TAP(priority_decides_who_grows),
                             TAP(the_names_of_09_are_read_and_the_older_ones_win),
                             TAP(an_annotated_hpa_is_a_variant_until_an_object_describes_it),
                             TAP(an_annotated_hpa_keeps_its_target_across_a_restart),
                             TAP(decisions_are_served),
                             { 0 } });
}
