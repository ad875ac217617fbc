/* The feature with a Prometheus (a made-up one on the same clock), and the optimizer. */
#include "base/vec.h"
#include "saturation_world.h"

#include <math.h>

struct fake_prometheus {
    struct http_server *server;
    struct loop *loop;
    struct buf asked;   /* the queries, one a line */
    const char *slow;   /* queries that name this are never answered, */
    const char *absent; /* and those that name this find no series */
    bool down;          /* answers 503 */
    double kv, queue;
    const char *pods[8];     /* of the answer */
    const char *old_pods[8]; /* whose KV cache has its old name */
    const char *label;       /* that has their names; NULL: pod */
    double arrival, tokens;
    VEC(struct exchange *) left_waiting;
};

static void put_vector(struct buf *out, const struct fake_prometheus *p, double value,
                       const char *const *pods, bool none)
{
    buf_put(out, S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["));
    for (size_t i = 0; !none && (pods ? pods[i] != NULL : i < 1); i++) {
        buf_printf(out, "%s{\"metric\":{", i ? "," : "");
        if (pods)
            buf_printf(out, "\"%s\":\"%s\"", p->label ? p->label : "pod", pods[i]);
        buf_printf(out, "},\"value\":[0,\"%g\"]}", value);
    }
    buf_put(out, S("]}}"));
}

/* A query about many models hangs if one of them does: their names are a list. */
static bool is_slow(const struct fake_prometheus *p, str query)
{
    str slow = str_c(p->slow ? p->slow : ""), by_name = S("model_name=\"");
    size_t list = str_find(query, S("model_name=~"));
    if (!slow.n || str_find(query, slow) != SIZE_MAX || list == SIZE_MAX)
        return slow.n && str_find(query, slow) != SIZE_MAX;
    return str_starts(slow, by_name) && str_find(str_from(query, list), S("slow")) != SIZE_MAX;
}

static void answer_query(void *context, struct exchange *x)
{
    struct fake_prometheus *p = context;
    struct arena *a = exchange_arena(x);
    str query = S("");
    if (uri_query_get(a, exchange_query(x), S("query"), &query) != 1)
        uri_query_get(a, exchange_body(x), S("query"), &query);
    buf_put(&p->asked, query);
    buf_putc(&p->asked, '\n');
    if (is_slow(p, query)) {
        vec_push(&p->left_waiting, x); /* ended by the caller's timeout */
        return;
    }
    auto_buf struct buf out = { 0 };
    bool by_pod = str_starts(query, S("max by (pod)"));
    bool old = str_find(query, S("gpu_cache_usage_perc")) != SIZE_MAX;
    bool kv = old || str_find(query, S("kv_cache_usage_perc")) != SIZE_MAX;
    put_vector(&out, p,
               by_pod ? (kv ? p->kv : p->queue)
               : str_starts(query, S("sum(rate(vllm:request_success_total")) ? p->arrival
                                                                             : p->tokens,
               !by_pod ? NULL
               : old   ? p->old_pods
                       : p->pods,
               p->absent && str_find(query, str_c(p->absent)) != SIZE_MAX);
    exchange_answer(x, p->down ? 503 : 200,
                    HTTP_HEADERS({ S("content-type"), S("application/json") }), buf_str(&out));
}

static void prometheus_start(struct fake_prometheus *p, struct models *w)
{
    err_t e;
    cluster_check(http_server_new(w->c.loop,
                                  &(struct http_server_options){ .on_request = answer_query,
                                                                 .context = p },
                                  &p->server, &e),
                  &e);
}

static void prometheus_stop(struct fake_prometheus *p)
{
    for (size_t i = 0; i < p->left_waiting.n; i++)
        exchange_abort(p->left_waiting.at[i]);
    vec_done(&p->left_waiting);
    http_server_free(p->server);
    buf_done(&p->asked);
}

#define BOTH { "web-1-0", "web-1-1" }

static bool asked(const struct fake_prometheus *p, const char *query)
{
    return str_find(buf_str(&p->asked), str_c(query)) != SIZE_MAX;
}

static void expect_asked(const struct fake_prometheus *p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!OK(asked(p, words[i])))
            printf("# %s\n", words[i]);
}

static const char *const *settings(struct models *w, const struct fake_prometheus *p,
                                   const char *name, const char *value)
{
    const char **s = arena_array(&w->c.arena, 8, sizeof(*s));
    s[0] = "wva-prometheus-url";
    s[1] = arena_printf(&w->c.arena, "http://127.0.0.1:%u", http_server_port(p->server)).p;
    s[2] = "wva-prometheus-allow-http";
    s[3] = "true";
    s[4] = name;
    s[5] = value;
    return s;
}

/* A model of two replicas. */
static void begin(struct models *w, struct fake_prometheus *p)
{
    models_begin(w);
    prometheus_start(p, w);
    models_workload(w, "web", 2);
    models_variant(w, "web", "A100", "10", "");
    models_operate(w, settings(w, p, NULL, NULL));
}

#define HERE "{namespace=\"llm\",model_name=\"llama\"}"
#define HERE_ALONE "{namespace=\"llm\",model_name=\"llama\",target_model_name=\"\"}"
#define LOAD "{model_name=\"llama\",namespace=\"llm\"}"
#define MEAN(metric)                                                                               \
    "sum(rate(" metric "_sum" LOAD "[1m]))/sum(rate(" metric "_count" LOAD "[1m]))\n"

static void prometheus_is_asked_in_the_originals_words(void)
{
    static const char *const words[] = {
        "max by (pod) (max_over_time(vllm:kv_cache_usage_perc" HERE "[1m]))\n",
        "max by (pod) (max_over_time(vllm:num_requests_waiting" HERE "[1m]))\n",
        "sum(rate(vllm:request_success_total" LOAD "[1m]))\n",
        MEAN("vllm:request_prompt_tokens"),
        MEAN("vllm:request_generation_tokens"),
        MEAN("vllm:time_to_first_token_seconds"),
        MEAN("vllm:time_per_output_token_seconds"),
        "sum(increase(vllm:request_success_total" HERE "[10m]))\n",
    };
    struct models w;
    struct fake_prometheus p = { .kv = 0.78, .queue = 4, .pods = BOTH, .tokens = 1 };
    setenv("WVA_SCALE_TO_ZERO", "true", 1);
    begin(&w, &p);
    unsetenv("WVA_SCALE_TO_ZERO");
    models_pass(&w, 2);
    expect_asked(&p, words, countof(words));
    OK(models_desired(&w, "web") > 2);
    int64_t held = models_desired(&w, "web");
    p.down = true;
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), held);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
    p.down = false;
    p.kv = 0.05;
    p.queue = 0;
    models_scale(&w, "web", (int)held);
    models_pass(&w, 100);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    EQ_INT(models_desired(&w, "web"),
           held); /* the new pods are not in the answer: not known idle */
    models_scale(&w, "web", 2);
    models_pass(&w, 400);
    EQ_INT(models_desired(&w, "web"), 1);
    prometheus_stop(&p);
    models_stop(&w);
}

/* The queue of the gateway has two names; SGLang is asked for by its own where the template runs it. */
static void other_names_are_asked_for(void)
{
    static const char *const words[] = {
        "label_replace(llm_d_epp_flow_control_queue_size{namespace=\"llm\",target_model_name=\"llama\"} or ",
        "or inference_extension_flow_control_queue_bytes" HERE_ALONE,
        "rate(vllm:prefix_cache_hits_total" HERE "[5m])",
        "[1m]) or max_over_time(sglang:token_usage" HERE "[1m]))",
        "rate(sglang:generation_tokens_histogram_sum" LOAD "[1m])",
    };
    struct models w;
    struct fake_prometheus p = { .kv = 0.78, .queue = 4, .pods = BOTH, .tokens = 1 };
    begin(&w, &p);
    models_pass(&w, 2);
    OK(!asked(&p, "sglang:"));
    models_patch(&w, &resource_deployments, "web", NULL,
                 S("{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                   "\"lmsysorg/SGLang:v1\"}]}}}}"));
    models_pass(&w, 100);
    expect_asked(&p, words, countof(words));
    prometheus_stop(&p);
    models_stop(&w);
}

static void a_slow_model_delays_no_other(void)
{
    struct models w;
    struct fake_prometheus p = { .kv = 0.5, .pods = { "web-1-0" }, .slow = "model_name=\"slow\"" };
    models_begin(&w);
    prometheus_start(&p, &w);
    models_workload(&w, "web", 1);
    models_workload(&w, "other", 1);
    models_variant(&w, "web", "A100", "10", "");
    models_variant(&w, "other", "A100", "10", "");
    models_patch(&w, &saturation_variant_resource, "other", NULL,
                 S("{\"spec\":{\"modelID\":\"slow\"}}"));
    models_operate(&w, settings(&w, &p, NULL, NULL));
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    MODELS_SAYS(&w, "other", "MetricsAvailable", "status", "");
    models_pass(&w, 60);
    MODELS_SAYS(&w, "other", "MetricsAvailable", "reason", "PrometheusError");
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    prometheus_stop(&p);
    models_stop(&w);
}

/* So many whose questions are never answered, and a workload for one whose are. */
static void begin_slow(struct models *w, struct fake_prometheus *p, int slow)
{
    models_begin(w);
    prometheus_start(p, w);
    for (int i = 0; i < slow; i++)
        models_create(w, &saturation_variant_resource, MODELS_NS,
                      arena_printf(&w->c.arena,
                                   "{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, "
                                   "metadata: {name: slow-%d}, spec: {modelID: slow-%d, "
                                   "scaleTargetRef: {kind: Deployment, name: none}}}",
                                   i, i));
    models_workload(w, "web", 1);
}

/* More of them than are asked about at a time: one that came first is passed after a second, and later its
 * questions, which never end, do not keep others from a connection. */
static void many_slow_models_delay_no_other(void)
{
    enum { SLOW = 300 };
    struct models w;
    struct fake_prometheus p = { .kv = 0.5, .pods = { "web-1-0" }, .slow = "model_name=\"slow" };
    begin_slow(&w, &p, SLOW);
    models_operate(&w, settings(&w, &p, NULL, NULL));
    models_variant(&w, "web", "A100", "10", "");
    models_pass(&w, 3);
    EQ_INT((int64_t)p.left_waiting.n, 1 + SLOW); /* one about all, then one about each */
    MODELS_SAYS(&w, "web", "MetricsAvailable", "status", "True");
    models_pass(&w, 120);
    OK(p.left_waiting.n > 2 * (size_t)SLOW);
    EQ_INT(models_desired(&w, "web"), 1);
    p.kv = 0.9;
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 2);
    prometheus_stop(&p);
    models_stop(&w);
}

/* Who hung is asked again only in the places for such: 384 of 1,024. When all answer, all are heard at once. */
static void models_that_hung_leave_the_places_to_others(void)
{
    enum { SLOW = 520, PLACES = 384 };
    struct models w;
    struct fake_prometheus p = { .kv = 0.5, .pods = { "web-1-0" }, .slow = "model_name=\"slow" };
    begin_slow(&w, &p, SLOW);
    setenv("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "4s", 1);
    models_operate(&w, settings(&w, &p, NULL, NULL));
    unsetenv("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL");
    models_pass(&w, 8);
    OK(http_server_connections(p.server) > PLACES);
    models_pass(&w, 22);
    OK(http_server_connections(p.server) <= PLACES);
    OK(http_server_connections(p.server) > PLACES / 2);
    p.slow = NULL;
    models_pass(&w, 11);
    buf_clear(&p.asked);
    models_pass(&w, 5);
    size_t queues = 0; /* models whose queue is asked for, once the KV cache is known */
    str line, name, rest = buf_str(&p.asked);
    while (str_cut(&rest, '\n', &line))
        if (str_find(line, S("max_over_time(vllm:num_requests_waiting")) != SIZE_MAX)
            while (str_cut(&line, '|', &name))
                queues += str_find(name, S("slow-")) != SIZE_MAX;
    OK(queues >= SLOW);
    prometheus_stop(&p);
    models_stop(&w);
}

/* While an answer does not come, the last one ages: first nothing shrinks by it, then nothing is decided. */
static void what_is_old_is_not_believed(void)
{
    struct models w;
    struct fake_prometheus p = { .kv = 0.01, .pods = { "web-1-0", "web-1-1" } };
    models_begin(&w);
    prometheus_start(&p, &w);
    models_config(&w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
                  "{GLOBAL_OPT_INTERVAL: 1s, PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL: 1s, "
                  "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD: 5s, "
                  "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD: 8s}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "minReplicas: 2,");
    models_operate(&w, settings(&w, &p, NULL, NULL));
    models_pass(&w, 5);
    EQ_INT(models_desired(&w, "web"), 2);
    p.slow = "kv_cache_usage_perc";
    models_pass(&w, 6);
    models_patch(&w, &saturation_variant_resource, "web", NULL,
                 S("{\"spec\":{\"minReplicas\":1}}"));
    models_pass(&w, 1);
    EQ_INT(models_desired(&w, "web"), 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "message",
                "Saturation metrics are complete for 0 of 2 ready replicas; until all report "
                "nothing is scaled down");
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsStale");
    models_pass(&w, 4); /* the question is given up */
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
    EQ_INT(models_desired(&w, "web"), 2);
    p.slow = NULL;
    models_pass(&w, 15);
    EQ_INT(models_desired(&w, "web"), 1);
    prometheus_stop(&p);
    models_stop(&w);
}

#define PROFILE                                                                                    \
    "modelProfile: {accelerators: [{acc: A100, accCount: 1, maxBatchSize: 8, perfParms: {"         \
    "decodeParms: {alpha: '20.58', beta: '0.41'}, prefillParms: {gamma: '5.2', delta: '0.1'}}}]},"

/* A model of two replicas with an optimizer, whose answer is in the status two seconds later. */
static void begin_hybrid(struct models *w, struct fake_prometheus *p, const char *mode)
{
    models_begin(w);
    prometheus_start(p, w);
    models_config(w, MODELS_HOME, "accelerator-unit-costs",
                  "{A100: '{\"device\": \"NVIDIA-A100\", \"cost\": \"40.00\"}'}");
    models_config(
        w, MODELS_HOME, "service-classes-config",
        "{premium.yaml: \"name: Premium\\npriority: 1\\ndata:\\n- {model: llama, slo-tpot: "
        "24, slo-ttft: 500}\\n\"}");
    models_workload(w, "web", 2);
    models_variant(w, "web", "A100", "10", PROFILE);
    models_operate(w, settings(w, p, "wva-optimizer", mode));
    models_pass(w, 2);
}

static void the_optimizer_and_capacity_agree_or_capacity_wins(void)
{
    struct models w;
    struct fake_prometheus p = {
        .kv = 0.3, .pods = { "web-1-0", "web-1-1" }, .arrival = 20, .tokens = 100
    };
    begin_hybrid(&w, &p, "on");
    OK(models_desired(&w, "web") >
       2); /* 20 requests a second, though the caches are nearly empty */
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "OptimizationSucceeded");
    OK(models_logged(&w, "Operating in HYBRID mode: capacity analyzer + model-based optimizer with "
                         "arbitration"));
    models_edit(&w, "service-classes-config", "{premium.yaml: 'name: ['}");
    models_edit(&w, "accelerator-unit-costs", "{A100: 'forty'}");
    models_pass(&w, 61);
    OK(models_logged(&w, "Invalid optimizer config; keeping the last good one "
                         "name=service-classes-config"));
    OK(models_logged(&w, "name=accelerator-unit-costs error="));
    static const char *const gone[] = { "service-classes-config", "accelerator-unit-costs" };
    for (size_t i = 0; i < countof(gone); i++)
        cluster_do(&w.c, KUBE_DELETE, &resource_configmaps, MODELS_HOME, gone[i], S(""));
    models_pass(&w, 61);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "OptimizationSucceeded");
    p.arrival = 0.01;
    p.kv = 0.79;
    p.queue = 4;
    models_scale(&w, "web", 2);
    models_pass(&w, 400);
    EQ_INT(models_desired(&w, "web"), 2); /* the optimizer would go down */
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "SaturationSafetyOverride");
    p.arrival = 0; /* nothing ends, but the queues are long: the optimizer has no answer */
    models_pass(&w, 61);
    OK(models_desired(&w, "web") > 2);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "SaturationOnlyMode");
    prometheus_stop(&p);
    models_stop(&w);
}

/* An optimizer alone takes a replica away where idleness is measured (the last of these), and only there. */
static void the_optimizer_takes_nothing_unknown_for_idle(void)
{
#define RATE "rate(vllm:request_success_total"
    static const struct {
        const char *pods[3], *absent, *slow;
        double kv, arrival, tokens;
        int desired;
        const char *reason;
    } t[] = {
        { BOTH, RATE, NULL, 0.45, 0, 0, 2, "SaturationOnlyMode" },
        { BOTH, NULL, NULL, 0.45, NAN, 0, 2, "SaturationOnlyMode" },
        { BOTH, NULL, RATE, 0.45, 0, 0, 2, "SaturationOnlyMode" },
        { BOTH, "generation_tokens", NULL, 0.45, 0.01, 0, 2, "SaturationOnlyMode" },
        { { "web-1-0" }, NULL, NULL, 0, 0, 0, 2, "SaturationOnlyMode" }, /* the other may be busy */
        { { "web-1-0" }, NULL, NULL, 0, 0.01, 100, 2, "OptimizationSucceeded" },
        { BOTH, "kv_cache_usage_perc", NULL, 0, 0, 0, 2, "SaturationOnlyMode" },
        { BOTH, "num_requests_waiting", NULL, 0, 0, 0, 2, "SaturationOnlyMode" },
        { { NULL }, NULL, NULL, 0, 0, 0, 2, "MetricsUnavailable" },
        { { NULL }, NULL, NULL, 0, 0.01, 100, 2, "OptimizationSucceeded" },
        { BOTH, NULL, NULL, 0, 0, 0, 1, "OptimizationSucceeded" },
    };
    struct models w;
    struct fake_prometheus p = { .kv = 0.45, .pods = BOTH, .absent = RATE };
    begin_hybrid(&w, &p, "model-only");
    for (size_t i = 0; i < countof(t); i++) {
        memcpy(p.pods, t[i].pods, sizeof(t[i].pods));
        p.absent = t[i].absent;
        p.slow = t[i].slow;
        p.kv = t[i].kv;
        p.arrival = t[i].arrival;
        p.tokens = t[i].tokens;
        models_pass(&w, 100); /* also for queries that are never answered */
        bool said =
            EQ_STR(models_condition(&w, "web", "OptimizationReady", "reason"), str_c(t[i].reason));
        if (!EQ_INT(models_desired(&w, "web"), t[i].desired) || !said)
            printf("# case %zu\n", i);
    }
    prometheus_stop(&p);
    models_stop(&w);
}

/* Without KV cache and queue the rate can still ask for more, and what it was is not believed for long. */
static void the_rate_alone_may_add_replicas(void)
{
    struct models w;
    struct fake_prometheus p = { .pods = { NULL }, .arrival = 20, .tokens = 100 };
    begin_hybrid(&w, &p, "on");
    int64_t grown = models_desired(&w, "web");
    OK(grown > 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsMissing");
    EQ_STR(models_condition(&w, "web", "OptimizationReady", "message"),
           arena_printf(&w.c.arena,
                        "Hybrid mode: model-based only (capacity unavailable) (target: %d "
                        "replicas)",
                        (int)grown));
    p.arrival = 0.01;
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), grown); /* it takes none away */
    p.arrival = 20;                           /* for which it would ask again, */
    models_pass(&w, 61);
    p.arrival = 200;
    p.down = true; /* but not for ever */
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), grown);
    MODELS_SAYS(&w, "web", "OptimizationReady", "reason", "MetricsUnavailable");
    prometheus_stop(&p);
    models_stop(&w);
}

/* Metrics of a pod that none of the model's workloads owns are ignored, whatever its name. */
static void pods_belong_to_variants_by_their_owners(void)
{
    struct models w;
    struct fake_prometheus p = { .kv = 0.35, .pods = { "web-1-0", "web-1-1", "web-1-9" } };
    models_begin(&w);
    prometheus_start(&p, &w);
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_create(&w, &resource_pods, MODELS_NS,
                  S("{apiVersion: v1, kind: Pod, metadata: {name: web-1-9, labels: {app: web}}, "
                    "spec: {containers: [{name: vllm, image: vllm}]}}"));
    models_ready(&w, "web-1-9", true);
    models_operate(&w, settings(&w, &p, NULL, NULL));
    models_pass(&w, 31);
    EQ_INT(models_desired(&w, "web"), 1); /* 0.7 in all; with the other pod it would be 2 */
    prometheus_stop(&p);
    models_stop(&w);
}

/* Neither an odd number nor its absence is idleness; pods may be named by another label; queues are whole. */
static void odd_samples_are_no_samples(void)
{
    static const struct {
        double kv, queue;
        const char *label, *reason;
        int desired;
    } t[] = {
        { -1, 0, NULL, "MetricsFound", 2 },           { INFINITY, 0, NULL, "MetricsFound", 2 },
        { 0.01, NAN, NULL, "MetricsFound", 2 },       { 0.01, 0, "instance", "MetricsMissing", 2 },
        { 0.01, 1.9, "pod_name", "MetricsFound", 2 }, /* nothing goes while requests wait */
        { 0.01, 0.9, "pod_name", "MetricsFound", 1 }, /* none waits */
    };
    struct models w;
    struct fake_prometheus p = { .kv = 0.6, .pods = BOTH };
    begin(&w, &p);
    for (size_t i = 0; i < countof(t); i++) {
        p.kv = t[i].kv;
        p.queue = t[i].queue;
        p.label = t[i].label;
        models_pass(&w, 100);
        bool said =
            EQ_STR(models_condition(&w, "web", "MetricsAvailable", "reason"), str_c(t[i].reason));
        if (!EQ_INT(models_desired(&w, "web"), t[i].desired) || !said)
            printf("# case %zu\n", i);
    }
    prometheus_stop(&p);
    models_stop(&w);
}

/* The old metric name is queried only for pods without the new one, and is then used. */
static void the_kv_cache_may_have_its_old_name(void)
{
    static const char old_name[] =
        "max by (pod) (max_over_time(vllm:gpu_cache_usage_perc{namespace=\"llm\",model_name=\"llama\""
        "}[1m]))\n";
    struct models w;
    struct fake_prometheus p = { .kv = 0.9, .pods = BOTH };
    begin(&w, &p);
    models_pass(&w, 2);
    EQ_INT(models_desired(&w, "web"), 3);
    OK(!asked(&p, old_name));
    p.absent = "vllm:kv_cache_usage_perc";
    p.kv = 0.1;
    models_scale(&w, "web", 2);
    models_pass(&w, 400);
    OK(asked(&p, old_name));
    OK(models_desired(&w, "web") > 1); /* no metric shows how full it is */
    p.old_pods[0] = "web-1-0";
    models_pass(&w, 100);
    OK(models_desired(&w, "web") > 1); /* one does not */
    p.old_pods[1] = "web-1-1";
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 1);
    p.kv = 0.9;
    models_pass(&w, 400);
    EQ_INT(models_desired(&w, "web"), 3);
    prometheus_stop(&p);
    models_stop(&w);
}

/* Before it has metrics of its own: an HPA must not see a gap. */
static void who_takes_over_shows_the_last_decision(void)
{
    struct models w;
    struct fake_prometheus p = { .kv = 0.78, .queue = 4, .pods = BOTH };
    begin(&w, &p);
    models_pass(&w, 2);
    int64_t desired = models_desired(&w, "web");
    OK(desired > 2);
    cluster_operator_down(&w.c);
    p.slow = "model_name";
    models_operate(&w, settings(&w, &p, NULL, NULL));
    models_pass(&w, 2);
    EQ_REAL(MODELS_GAUGE(&w, "wva_desired_replicas", "web", "llm", "A100"), (double)desired);
    prometheus_stop(&p);
    models_stop(&w);
}

/* Flags and environment win over the ConfigMap; without a URL the source may be missing. */
static void the_configmap_has_no_say_where_a_url_is_given(void)
{
    struct models w;
    struct fake_prometheus p = { .kv = 0.5, .pods = BOTH };
    models_begin(&w);
    prometheus_start(&p, &w);
    models_config(&w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
                  "{PROMETHEUS_BEARER_TOKEN: secret, PROMETHEUS_BASE_URL: 'https://elsewhere'}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_operate(&w, settings(&w, &p, NULL, NULL)); /* a token with http:// would be refused */
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsFound");
    cluster_operator_down(&w.c);
    cluster_do(&w.c, KUBE_DELETE, &resource_configmaps, MODELS_HOME,
               "workload-variant-autoscaler-variantautoscaling-config", S(""));
    models_operate(&w, (const char *const[]){ "wva-metrics-source", "prometheus", NULL });
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "message",
                "the URL of Prometheus is not set; set PROMETHEUS_BASE_URL");
    prometheus_stop(&p);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(other_names_are_asked_for),
        TAP(prometheus_is_asked_in_the_originals_words),
        TAP(a_slow_model_delays_no_other),
        TAP(many_slow_models_delay_no_other),
        TAP(models_that_hung_leave_the_places_to_others),
        TAP(what_is_old_is_not_believed),
        TAP(the_optimizer_and_capacity_agree_or_capacity_wins),
        TAP(the_optimizer_takes_nothing_unknown_for_idle),
        TAP(the_rate_alone_may_add_replicas),
        TAP(pods_belong_to_variants_by_their_owners),
        TAP(odd_samples_are_no_samples),
        TAP(the_kv_cache_may_have_its_old_name),
        TAP(who_takes_over_shows_the_last_decision),
        TAP(the_configmap_has_no_say_where_a_url_is_given),
        { 0 },
    });
}
