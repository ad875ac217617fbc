/* Feeds of many models that share queries: against a real Prometheus the same as feeds that ask alone; against a
 * made-up one, how many queries there are and what happens when they fail. */
#include "base/vec.h"
#include "net/http_server.h"
#include "real_prometheus.h"
#include "saturation/collect/collect.h"
#include "tap.h"

#include <math.h>

enum { INTERVAL_S = 30, MODELS = 300, PER_NS = 3 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct prom_client *client;
    struct sat_collector collector;
    struct sat_feed *feeds;
    size_t n, fetched;

    struct prometheus real;
    int64_t at_ms; /* of the queries to it */

    struct buf asked;  /* queries, one a line */
    size_t most;       /* models in a query; more: 422 */
    const char *hangs; /* queries that name this model are not answered */
    VEC(struct exchange *) held;
    bool holds; /* all of them */
};

static void check(int r, const err_t *e)
{
    if (r < 0) {
        fprintf(stderr, "%s\n", e->text);
        exit(EXIT_FAILURE);
    }
}

static void on_fetched(void *context, struct sat_feed *feed, bool first)
{
    struct world *w = context;
    (void)feed, (void)first;
    w->fetched++;
}

static void no_pods(void *context, struct sat_feed *feed)
{
    (void)context, (void)feed;
}

static void start_world(struct world *w, void (*serve)(void *, struct exchange *), bool grouped)
{
    char url[64];
    err_t e;
    *w = (struct world){ .real = w->real, .at_ms = w->at_ms };
    check(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &w->loop, &e), &e);
    check(http_server_new(w->loop,
                          &(struct http_server_options){ .on_request = serve, .context = w },
                          &w->server, &e),
          &e);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(w->server));
    check(prom_client_new(w->loop, &(struct prom_client_options){ .url = str_c(url) }, &w->client,
                          &e),
          &e);
    w->collector = (struct sat_collector){ .loop = w->loop,
                                           .prometheus = w->client,
                                           .grouped = grouped,
                                           .traffic_matters = true,
                                           .pods = no_pods,
                                           .fetched = on_fetched,
                                           .context = w };
}

static void start_feed(struct world *w, str ns, str model, int64_t retention_s)
{
    struct sat_feed *feed = &w->feeds[w->n++];
    *feed = (struct sat_feed){ .ns = ns,
                               .model = model,
                               .interval_ns = INTERVAL_S * NS_PER_S,
                               .retention_ns = retention_s * NS_PER_S };
    collect_start(feed, &w->collector);
}

static void stop_world(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        collect_stop(&w->feeds[i]);
    free(w->feeds);
    for (size_t i = 0; i < w->held.n; i++)
        exchange_abort(w->held.at[i]);
    vec_done(&w->held);
    prom_client_free(w->client);
    http_server_free(w->server);
    buf_done(&w->asked);
    loop_free(w->loop);
}

static void at_end(struct timer *timer)
{
    (void)timer; /* only there for time to reach it */
}

static void pass(struct world *w, double seconds)
{
    struct timer end = { 0 };
    timer_set(w->loop, &end, loop_mono_ns(w->loop) + (int64_t)(seconds * 1e9), at_end);
    while (timer_is_set(&end))
        loop_turn(w->loop);
}

static str read_query(struct exchange *x)
{
    str query = S("");
    uri_query_get(exchange_arena(x), exchange_body(x), S("query"), &query);
    return query;
}

/* ---- the same numbers as alone */

static const struct {
    const char *ns, *model;
    int pods;
} fleet[] = {
    { "chat", "meta/llama-3.1", 3 }, { "chat", "llama.1", 1 },
    { "chat", "llamax1", 2 },        { "batch", "meta/llama-3.1", 2 },
    { "batch", "a|b", 1 },           { "night", "we\"ird\\m(1)", 1 },
    { "night", "llama.1", 2 },       { "other-team", "llama.1", 2 }, /* no feed asks for these */
    { "chat", "unmanaged", 1 },
};
enum { ASKED = 7, STEPS = 8, STEP_S = 15 };

static void put_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *text);
    }
}

static void put_sample(struct buf *page, size_t m, int pod, const char *name, double value,
                       int64_t at_ms)
{
    buf_printf(page, "%s%snamespace=\"%s\",model_name=\"", name, strchr(name, '{') ? "," : "{",
               fleet[m].ns);
    put_escaped(page, fleet[m].model);
    buf_printf(page, "\",pod=\"pod-%zu-%d\"} %.6f %lld\n", m, pod, value, (long long)at_ms);
}

/* Counters that grow at a rate of their own for each model and pod. */
static void put_pod(struct buf *page, size_t m, int pod, int step, int64_t at_ms)
{
    static const char *const counters[] = {
        "vllm:request_success_total",
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:inter_token_latency_seconds_sum",
        "vllm:inter_token_latency_seconds_count",
        "vllm:time_per_output_token_seconds_sum",
        "vllm:time_per_output_token_seconds_count",
        "vllm:time_to_first_token_seconds_sum",
        "vllm:time_to_first_token_seconds_count",
        "vllm:request_prompt_tokens_sum",
        "vllm:request_prompt_tokens_count",
        "vllm:request_generation_tokens_sum",
        "vllm:request_generation_tokens_count",
        "inference_objective_request_total",
        "vllm:time_to_first_token_seconds_bucket{le=\"0.5\"",
        "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"",
        "vllm:request_time_per_output_token_seconds_bucket{le=\"0.05\"",
        "vllm:request_time_per_output_token_seconds_bucket{le=\"+Inf\"",
        "vllm:request_prompt_tokens_bucket{le=\"1000\"",
        "vllm:request_prompt_tokens_bucket{le=\"+Inf\"",
    };
    double own = (double)(m * 10) + pod + 1;
    for (size_t i = 0; i < countof(counters); i++)
        put_sample(page, m, pod, counters[i], step * (own * 3 + (double)i * 7), at_ms);
    bool old_name = m == 2 && pod == 0;
    put_sample(page, m, pod, old_name ? "vllm:gpu_cache_usage_perc" : "vllm:kv_cache_usage_perc",
               0.01 * own + 0.01 * step, at_ms);
    put_sample(page, m, pod, "vllm:num_requests_waiting", own + step, at_ms);
    put_sample(page, m, pod, "vllm:num_requests_running", own * 2 + step, at_ms);
    put_sample(page, m, pod, "inference_extension_flow_control_queue_size", own, at_ms);
    buf_printf(page,
               "vllm:cache_config_info{namespace=\"%s\",pod=\"pod-%zu-%d\",num_gpu_blocks=\"%d\","
               "block_size=\"16\"} 1 %lld\n",
               fleet[m].ns, m, pod, 1000 + (int)own, (long long)at_ms);
}

static bool publish_fleet(struct world *w)
{
    int64_t base_ms = (clock_wall_ns() / NS_PER_S - 600) * 1000;
    bool done = true;
    for (int step = 0; step < STEPS && done; step++) {
        auto_buf struct buf page = { 0 };
        w->at_ms = base_ms + (int64_t)step * STEP_S * 1000;
        for (size_t m = 0; m < countof(fleet); m++)
            for (int pod = 0; pod < fleet[m].pods; pod++)
                put_pod(&page, m, pod, step, w->at_ms);
        done = prometheus_publish(&w->real, buf_str(&page), w->at_ms);
    }
    return done;
}

static void serve_real(void *context, struct exchange *x)
{
    struct world *w = context;
    auto_buf struct buf form = { 0 }, answer = { 0 };
    buf_printf(&w->asked, STR_FMT "\n", STR_ARG(read_query(x)));
    buf_printf(&form, STR_FMT "&time=%.3f", STR_ARG(exchange_body(x)), (double)w->at_ms / 1000);
    int code = prometheus_post(&w->real, "query", buf_str(&form), &answer);
    exchange_answer(x, code ? code : 502,
                    HTTP_HEADERS({ S("content-type"), S("application/json") }), buf_str(&answer));
}

static void put_doubles(struct buf *out, const char *name, const double *at, size_t n)
{
    buf_printf(out, " %s", name);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, " %.9g", isnan(at[i]) ? NAN : at[i]);
}

/* Everything that a decision reads of a feed. */
static void put_feed(struct buf *out, const struct sat_feed *feed, size_t m)
{
    buf_printf(out, "failure=%s samples=%zu requests=%d %.9g", feed->failure ? feed->failure : "-",
               feed->samples.n, feed->requests_known, feed->requests);
    put_doubles(out, "load", &feed->load.arrival_per_min, sizeof(feed->load) / sizeof(double));
    put_doubles(out, "traffic", &feed->traffic.arrival,
                offsetof(struct sat_traffic, ttft) / sizeof(double));
    put_doubles(out, "ttft", feed->traffic.ttft.count, feed->traffic.ttft.n);
    put_doubles(out, "itl", feed->traffic.itl.count, feed->traffic.itl.n);
    for (int pod = 0; pod < fleet[m].pods; pod++) {
        char name[32];
        snprintf(name, sizeof(name), "pod-%zu-%d", m, pod);
        const struct sat_sample *s = collect_get_sample(feed, str_c(name));
        if (!OK(s))
            continue;
        put_doubles(out, name, &s->kv, 2);
        put_doubles(out, "of", &s->traffic.itl_sum, sizeof(s->traffic) / sizeof(double));
    }
}

static size_t count_lines(const struct buf *asked)
{
    size_t n = 0;
    for (size_t i = 0; i < asked->n; i++)
        n += asked->p[i] == '\n';
    return n;
}

/* One fetch of all feeds; what they hold then, in `out`. Returns the number of queries. */
static size_t fetch_fleet(struct world *w, bool grouped, struct buf out[ASKED])
{
    start_world(w, serve_real, grouped);
    w->feeds = mem_zero(ASKED, sizeof(*w->feeds));
    for (size_t m = 0; m < ASKED; m++)
        start_feed(w, str_c(fleet[m].ns), str_c(fleet[m].model), m % 2 ? 60 : 90);
    pass(w, 5);
    EQ_INT((int64_t)w->fetched, ASKED);
    for (size_t m = 0; m < ASKED; m++)
        put_feed(&out[m], &w->feeds[m], m);
    size_t queries = count_lines(&w->asked);
    stop_world(w);
    return queries;
}

static void a_group_gets_what_each_would_get_alone(void)
{
    static struct world w;
    struct buf alone[ASKED] = { 0 }, grouped[ASKED] = { 0 };
    if (!prometheus_start(&w.real)) {
        prometheus_stop(&w.real);
        SKIP("there is no Prometheus on this machine");
    }
    OK(publish_fleet(&w));
    size_t many = fetch_fleet(&w, false, alone), few = fetch_fleet(&w, true, grouped);
    printf("# %zu queries alone, %zu grouped\n", many, few);
    EQ_INT((int64_t)many, ASKED * 11 + 1); /* one pod has the old name */
    EQ_INT((int64_t)few, 13);              /* eleven; two retentions; the old name */
    for (size_t m = 0; m < ASKED; m++) {
        OK(str_find(buf_str(&alone[m]), S("failure=-")) == 0);
        OK(str_find(buf_str(&alone[m]), S("requests=1")) != SIZE_MAX);
        EQ_STR(buf_str(&grouped[m]), buf_str(&alone[m]));
        buf_done(&alone[m]);
        buf_done(&grouped[m]);
    }
    prometheus_stop(&w.real);
}

/* ---- how many queries */

static void put_row(struct buf *out, int ns, int model, double value)
{
    buf_printf(
        out,
        "%s{\"metric\":{\"namespace\":\"ns-%d\",\"model_name\":\"m-%d\",\"pod\":\"p-%d-%d\"},"
        "\"value\":[0,\"%g\"]}",
        out->p[out->n - 1] == '[' ? "" : ",", ns, model, ns, model, value);
}

/* Every series that there is, asked for or not: the value is that of its model. */
static void answer_all(struct exchange *x)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["));
    for (int ns = 0; ns < MODELS / PER_NS + 1; ns++)
        for (int model = 0; model < PER_NS + 1; model++)
            put_row(&out, ns, model, ns * 10 + model);
    buf_put(&out, S("]}}"));
    exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                    buf_str(&out));
}

static size_t count_bars(str query)
{
    size_t begin = str_find(query, S("namespace=~\"")), n = 1;
    if (begin == SIZE_MAX)
        return 1;
    for (size_t i = begin + 12; i < query.n && query.p[i] != '"'; i++)
        n += query.p[i] == '|';
    return n;
}

static void serve_made_up(void *context, struct exchange *x)
{
    struct world *w = context;
    str query = read_query(x);
    bool hangs = w->hangs && str_find(query, str_c(w->hangs)) != SIZE_MAX;
    buf_printf(&w->asked, STR_FMT "\n", STR_ARG(query));
    if (w->holds || hangs) {
        vec_push(&w->held, x);
    } else if (w->most && count_bars(query) > w->most) {
        exchange_answer(x, 422, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        S("{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"query "
                          "processing would load too many samples into memory\"}"));
    } else if (count_bars(query) == 1) { /* one model: without its labels */
        exchange_answer(
            x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
            S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{"
              "\"metric\":{\"pod\":\"own\"},\"value\":[0,\"-1\"]}]}}"));
    } else {
        answer_all(x);
    }
}

static char names[MODELS][2][16];

static void start_many(struct world *w)
{
    start_world(w, serve_made_up, true);
    w->feeds = mem_zero(MODELS, sizeof(*w->feeds));
    for (int i = 0; i < MODELS; i++) {
        snprintf(names[i][0], sizeof(names[i][0]), "ns-%d", i / PER_NS);
        snprintf(names[i][1], sizeof(names[i][1]), "m-%d", i % PER_NS);
        start_feed(w, str_c(names[i][0]), str_c(names[i][1]), 0);
    }
}

/* Each has its own pod, and no other. */
static size_t count_right(const struct world *w)
{
    size_t right = 0;
    for (int i = 0; i < MODELS; i++) {
        const struct sat_feed *feed = &w->feeds[i];
        char pod[32];
        snprintf(pod, sizeof(pod), "p-%d-%d", i / PER_NS, i % PER_NS);
        const struct sat_sample *s = collect_get_sample(feed, str_c(pod));
        right += !feed->failure && feed->samples.n == 1 && s &&
                 s->kv == i / PER_NS * 10 + i % PER_NS && s->queue == s->kv;
    }
    return right;
}

static void one_query_per_metric_serves_300_models(void)
{
    enum { CYCLES = 4 };
    static struct world w;
    start_many(&w);
    pass(&w, 2);
    EQ_INT((int64_t)w.fetched, MODELS);
    EQ_INT((int64_t)count_right(&w), MODELS);
    EQ_INT((int64_t)count_lines(&w.asked), 10); /* KV, queue, five of the load, three of traffic */
    buf_clear(&w.asked);
    pass(&w, CYCLES * INTERVAL_S);
    EQ_INT((int64_t)w.fetched, (1 + CYCLES) * MODELS);
    EQ_INT((int64_t)count_lines(&w.asked), CYCLES * 10);
    EQ_INT((int64_t)count_right(&w), MODELS);
    stop_world(&w);
}

/* Prometheus refuses what is too large: each asks alone, then smaller groups do. */
static void groups_that_are_too_large_are_halved(void)
{
    static struct world w;
    start_many(&w);
    w.most = 30; /* namespaces: 90 models */
    pass(&w, 3 * INTERVAL_S);
    buf_clear(&w.asked);
    size_t before = w.fetched;
    pass(&w, INTERVAL_S);
    EQ_INT((int64_t)(w.fetched - before), MODELS);
    EQ_INT((int64_t)count_lines(&w.asked), 40); /* four groups of 75 */
    EQ_INT((int64_t)count_right(&w), MODELS);
    stop_world(&w);
}

/* A model whose queries hang delays the others once, then it is asked about alone. */
static void a_model_that_hangs_leaves_the_group(void)
{
    static struct world w;
    start_many(&w);
    pass(&w, 5);
    w.hangs = "ns-7|"; /* in a list; its own query is namespace="ns-7" */
    pass(&w, INTERVAL_S);
    EQ_INT((int64_t)w.fetched, 2 * MODELS);
    w.hangs = "ns-7"; /* three models, and those of ns-70 to ns-79 */
    pass(&w, 2 * INTERVAL_S);
    buf_clear(&w.asked);
    size_t before = w.fetched, right = 0;
    pass(&w, INTERVAL_S);
    OK(w.fetched - before >= MODELS - 33);
    OK(count_lines(&w.asked) <= 20 + 33); /* two groups, since the first was too slow for all */
    for (int i = 0; i < MODELS; i++)
        right += !w.feeds[i].failure;
    EQ_INT((int64_t)right, MODELS - 33);
    w.hangs = NULL;
    pass(&w, 3 * INTERVAL_S);
    EQ_INT((int64_t)count_right(&w), MODELS); /* back in a group: the pod is named after it */
    stop_world(&w);
}

/* Feeds end while their group waits for an answer, and before it was asked. */
static void feeds_may_stop_at_any_time(void)
{
    static struct world w;
    start_many(&w);
    w.holds = true;
    pass(&w, 0.5);
    EQ_INT((int64_t)w.held.n, 1);
    for (int i = 0; i < MODELS; i += 2)
        collect_stop(&w.feeds[i]);
    pass(&w, 3); /* each of the rest asks alone */
    EQ_INT((int64_t)w.held.n, 1 + MODELS / 2);
    for (int i = 0; i < MODELS; i++)
        collect_stop(&w.feeds[i]);
    w.n = 0;
    for (int i = 0; i < 10; i++)
        start_feed(&w, str_c(names[i][0]), str_c(names[i][1]), 0);
    loop_turn(w.loop);
    stop_world(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_group_gets_what_each_would_get_alone),
                                        TAP(one_query_per_metric_serves_300_models),
                                        TAP(groups_that_are_too_large_are_halved),
                                        TAP(a_model_that_hangs_leaves_the_group),
                                        TAP(feeds_may_stop_at_any_time),
                                        { 0 } });
}
