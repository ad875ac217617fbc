/* The pods' own /metrics, as vLLM servers of several kinds write them, and where they are found. */
#include "saturation/collect/collect.h"
#include "saturation_world.h"

#include <sys/resource.h>

#define CACHE(engine, value)                                                                       \
    "vllm:kv_cache_usage_perc{engine=\"" engine "\",model_name=\"llama\"} " value "\n"
#define QUEUE(engine, value)                                                                       \
    "vllm:num_requests_waiting{engine=\"" engine "\",model_name=\"llama\"} " value "\n"
#define OLD(value) "vllm:gpu_cache_usage_perc{model_name=\"llama\"} " value "\n"
#define IDLE CACHE("0", "0.01") QUEUE("0", "0")

/* Two replicas, the first with this page, the other idle: what becomes of them. */
static void a_pod_is_as_full_as_its_fullest_engine(void)
{
    static const struct {
        const char *page;
        int desired;
    } t[] = {
        { IDLE, 1 },
        { CACHE("0", "0.01") CACHE("1", "0.02") QUEUE("0", "0") QUEUE("1", "0"), 1 },
        { CACHE("0", "0.01") CACHE("1", "0.70") QUEUE("0", "0") QUEUE("1", "0"), 2 },
        { CACHE("0", "0.70") CACHE("1", "0.01") QUEUE("0", "0") QUEUE("1", "0"), 2 },
        { CACHE("0", "0.01") CACHE("1", "0.02") QUEUE("0", "4") QUEUE("1", "0"), 2 },
        { CACHE("0", "0.01") CACHE("1", "NaN") QUEUE("0", "0") QUEUE("1", "0"),
          2 }, /* who knows? */
        { CACHE("0", "NaN") CACHE("1", "0.01") QUEUE("0", "0") QUEUE("1", "0"), 2 },
        { CACHE("0", "0.01") CACHE("1", "0.02") QUEUE("0", "-1") QUEUE("1", "0"), 2 },
        { OLD("0.01") QUEUE("0", "0"), 1 },
        { OLD("0.70") QUEUE("0", "0"), 2 },
        { OLD("0.01") IDLE, 1 }, /* in between a server has both */
        { "vllm:gpu_cache_usage_perc{model_name=\"other\"} 0.01\n" QUEUE("0", "0"), 2 },
    };
    struct models w;
    models_web(&w, 2, 0.5, 0, "");
    for (size_t i = 0; i < countof(t); i++) {
        w.pods[0].page = w.pods[1].page = NULL;
        models_pass(&w, 400); /* until the target before is given up */
        EQ_INT(models_desired(&w, "web"), 2);
        w.pods[0].page = t[i].page;
        w.pods[1].page = IDLE;
        models_pass(&w, 100);
        if (!EQ_INT(models_desired(&w, "web"), t[i].desired))
            printf("# case %zu\n", i);
    }
    models_stop(&w);
}

/* An engine that does not report does not hide one that is full. */
static void a_silent_engine_does_not_hide_a_full_one(void)
{
    struct models w;
    models_web(&w, 1, 0.5, 0, "");
    w.pods[0].page = CACHE("0", "NaN") CACHE("1", "0.95") QUEUE("0", "0") QUEUE("1", "9");
    models_pass(&w, 100);
    EQ_INT(models_desired(&w, "web"), 3);
    models_stop(&w);
}

/* ---- a server on a real socket, asked by a feed alone */

struct pod_at {
    struct models_pod pod;
    const char *ip;
    bool fetched;
};

static void name_pod(void *context, struct sat_feed *feed)
{
    struct pod_at *at = context;
    collect_add_pod(feed, S("p"), str_c(at->ip), http_server_port(at->pod.server));
}

static void note_fetched(void *context, struct sat_feed *feed, bool first)
{
    struct pod_at *at = context;
    (void)feed;
    at->fetched = first;
}

static void pods_may_have_ipv6_addresses(void)
{
    struct pod_at at = { .pod = { .kv = 0.25, .queue = 3 }, .ip = "::1" };
    struct loop *loop;
    err_t e;
    cluster_check(loop_new(&(struct loop_options){ .time = LOOP_REAL }, &loop, &e), &e);
    int r = http_server_new(loop,
                            &(struct http_server_options){
                                .address = at.ip, .on_request = models_serve, .context = &at.pod },
                            &at.pod.server, &e);
    if (r == 0) {
        struct sat_collector collector = {
            .loop = loop, .pods = name_pod, .fetched = note_fetched, .context = &at
        };
        struct sat_feed feed = { .ns = S("llm"), .model = S("llama"), .interval_ns = NS_PER_S };
        collect_start(&feed, &collector);
        for (int64_t end = loop_mono_ns(loop) + 60 * NS_PER_S;
             !at.fetched && loop_mono_ns(loop) < end;)
            loop_turn(loop);
        const struct sat_sample *s = collect_get_sample(&feed, S("p"));
        if (OK(s))
            EQ_REAL(s->kv, 0.25);
        EQ_STR(str_c(feed.failure), S(""));
        collect_stop(&feed);
        http_server_free(at.pod.server);
    }
    loop_free(loop);
    if (r < 0)
        SKIP("this machine has no IPv6");
}

/* More pods than a program may have files at its start are asked at a time. */
static void many_pods_are_asked_at_once(void)
{
    enum { PODS = 40 };
    struct rlimit before, few;
    struct models w;
    models_begin(&w);
    models_workload(&w, "web", PODS);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.6, 0);
    OK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = before;
    few.rlim_cur = 3 * PODS; /* its servers listen, and a question and its answer are two files */
    OK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    models_operate(&w, NULL);
    models_pass(&w, 2);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "message",
                "Saturation metrics data is available for scaling decisions");
    models_stop(&w);
    OK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_pod_is_as_full_as_its_fullest_engine),
        TAP(a_silent_engine_does_not_hide_a_full_one),
        TAP(pods_may_have_ipv6_addresses),
        TAP(many_pods_are_asked_at_once),
        { 0 },
    });
}
