/* Scrapes the /metrics endpoint of every ready pod; no Prometheus is needed.
 *
 * Gauges are taken as they are. Rates come from two scrapes of the same pod, so the previous
 * samples of the feed are the base: add_difference() subtracts them, and a counter that went down
 * (the server restarted) gives no rate. A pod that does not answer has no sample, which is never
 * treated as idle; the fetch fails only if no pod answered.
 *
 *     collect_add_pod ─► GET /metrics ─► take_page ─► sample (gauges, counters)
 *                                                        │ all have answered
 *     samples of the feed (previous scrape) ─► collect_sum_pods ─► load and traffic of the model
 *
 * A page is at most 8 MiB and a scrape takes at most 5 s: pods are untrusted. */
#include "collect.h"

#include "../../prom/scrape.h"

#include <math.h>

static const int64_t scrape_timeout_ns = 5 * NS_PER_S;
enum { SCRAPE_BYTES_MAX = 8 << 20, PORT_DEFAULT = 8000 };

struct collect_scrape {
    struct collect_scrape *next;
    struct sat_fetch *fetch;
    char *pod; /* owned */
    struct http_client *client;
    struct http_call *call; /* NULL: ended */
};

/* ---- reading */

struct page {
    str model;
    double kv, queue, running, kv_tokens;
    bool partial;
    struct sat_counters counters;
    char *other_model; /* owned */
};

static const struct {
    const char *name;
    size_t offset;
} counter_names[] = {
    { "vllm:request_success_total", offsetof(struct sat_counters, requests) },
    { "vllm:request_prompt_tokens_sum", offsetof(struct sat_counters, input_sum) },
    { "vllm:request_prompt_tokens_count", offsetof(struct sat_counters, input_count) },
    { "vllm:request_generation_tokens_sum", offsetof(struct sat_counters, output_sum) },
    { "vllm:request_generation_tokens_count", offsetof(struct sat_counters, output_count) },
    { "vllm:time_to_first_token_seconds_sum", offsetof(struct sat_counters, ttft_sum) },
    { "vllm:time_to_first_token_seconds_count", offsetof(struct sat_counters, ttft_count) },
    { "vllm:time_per_output_token_seconds_sum", offsetof(struct sat_counters, itl_sum) },
    { "vllm:time_per_output_token_seconds_count", offsetof(struct sat_counters, itl_count) },
    { "vllm:prompt_tokens_total", offsetof(struct sat_counters, prompt_tokens) },
    { "vllm:generation_tokens_total", offsetof(struct sat_counters, generation_tokens) },
    { "vllm:inter_token_latency_seconds_sum", offsetof(struct sat_counters, token_itl_sum) },
    { "vllm:inter_token_latency_seconds_count", offsetof(struct sat_counters, token_itl_count) },
    { "vllm:prefix_cache_hits_total", offsetof(struct sat_counters, prefix_hits) },
    { "vllm:prefix_cache_queries_total", offsetof(struct sat_counters, prefix_queries) },
};

/* Of several engines in a pod the fullest counts. Returns false if this one does not report a
 * usable value. */
static bool take_highest(double *value, double seen)
{
    bool known = isfinite(seen) && seen >= 0;
    if (known && !(*value >= seen))
        *value = seen;
    return known;
}

static void add_to(double *sum, double value)
{
    *sum = isnan(*sum) ? value : *sum + value;
}

static double number_label(const struct scrape_sample *s, str name)
{
    str text = scrape_label(s, name);
    double value = str_eqc(text, "+Inf") ? INFINITY : NAN;
    str_to_f64(text, &value);
    return value;
}

static void take_bucket(struct page *page, const struct scrape_sample *s)
{
    struct sat_counters *c = &page->counters;
    bool tpot = str_eqc(s->name, "vllm:request_time_per_output_token_seconds_bucket");
    if (str_eqc(s->name, "vllm:time_to_first_token_seconds_bucket"))
        sat_traffic_add_bucket(&c->ttft, number_label(s, S("le")), s->value);
    else if (tpot)
        sat_traffic_add_bucket(&c->tpot, number_label(s, S("le")), s->value);
}

/* The name that the line would have in a current vLLM. */
static str find_name(str name, char out[static COLLECT_NAME_MAX])
{
    const char *translated = collect_translate(name, false, out);
    if (str_eqc(name, "vllm:prefix_cache_hits"))
        return S("vllm:prefix_cache_hits_total");
    if (str_eqc(name, "vllm:prefix_cache_queries"))
        return S("vllm:prefix_cache_queries_total");
    return translated ? str_c(translated) : name;
}

/* Reads one line of a page; other metrics and other models are ignored. */
static int take_sample(void *context, const struct scrape_sample *line, err_t *e)
{
    struct page *page = context;
    char name[COLLECT_NAME_MAX];
    struct scrape_sample sample = *line, *s = &sample;
    (void)e;
    s->name = find_name(line->name, name);
    if (str_eqc(s->name, "vllm:cache_config_info")) /* has no label model_name */
        page->kv_tokens = number_label(s, S("num_gpu_blocks")) * number_label(s, S("block_size"));
    str model = scrape_label(s, S("model_name"));
    if (!str_starts(s->name, S("vllm:")))
        return 0;
    if (!str_eq(model, page->model)) {
        if (model.n && !page->other_model)
            page->other_model = mem_dup(model.p, model.n);
        return 0;
    }
    if (str_ends(s->name, S("_bucket")))
        take_bucket(page, s);
    if (str_eqc(s->name, "vllm:kv_cache_usage_perc") ||
        str_eqc(s->name, "vllm:gpu_cache_usage_perc"))
        page->partial |= !take_highest(&page->kv, s->value);
    else if (str_eqc(s->name, "vllm:num_requests_waiting"))
        page->partial |= !take_highest(&page->queue, s->value);
    else if (str_eqc(s->name, "vllm:num_requests_running"))
        take_highest(&page->running, s->value);
    else if (str_eqc(line->name, "sglang:max_total_num_tokens"))
        take_highest(&page->kv_tokens, s->value);
    else if (str_eqc(line->name, "sglang:prompt_tokens_total") && isfinite(s->value))
        add_to(&page->counters.prefix_queries, s->value);
    for (size_t i = 0; i < countof(counter_names); i++)
        if (str_eqc(s->name, counter_names[i].name) && isfinite(s->value))
            add_to((double *)(void *)((char *)&page->counters + counter_names[i].offset), s->value);
    return 0;
}

/* Reads a page into a sample; a page that cannot be parsed fails the pod. */
static void take_page(struct collect_scrape *x, str text, err_t *e)
{
    struct sat_fetch *q = x->fetch;
    struct sat_feed *feed = q->feed;
    struct page page = {
        .model = feed->model, .kv = NAN, .queue = NAN, .running = NAN, .kv_tokens = NAN
    };
    page.counters.requests = NAN; /* unknown unless reported: it shows whether there is work */
    int64_t now = loop_mono_ns(feed->collector->loop);
    bool valid = scrape_read(text, take_sample, &page, e) == 0;
    free(feed->other_model);
    feed->other_model = page.other_model;
    if (!valid) {
        collect_fail(q, e->text);
        return;
    }
    q->reached++;
    if (isnan(page.kv) && isnan(page.queue))
        return; /* no metrics of this model */
    struct sat_sample *s = collect_add_sample(&q->samples, str_c(x->pod), now);
    s->kv = page.kv;
    s->queue = trunc(page.queue);
    s->partial = page.partial;
    s->counters = s->counters ? s->counters : mem_zero(1, sizeof(*s->counters));
    *s->counters = page.counters;
    s->counters->running = page.running;
    s->traffic.kv = page.kv;
    s->traffic.kv_tokens = page.kv_tokens;
    if (page.queue > 0 || page.running > 0)
        feed->busy_ns = now;
}

static void on_scraped(void *context, const struct http_response *response, const err_t *failure)
{
    struct collect_scrape *x = context;
    struct sat_fetch *q = x->fetch;
    err_t e;
    x->call = NULL;
    if (failure) {
        err_set(&e, failure->code, "pod %s: %s", x->pod, failure->text);
        collect_fail(q, e.text);
    } else if (response->status != 200) {
        err_set(&e, EREMOTEIO, "pod %s: GET /metrics returned status %d", x->pod, response->status);
        collect_fail(q, e.text);
    } else {
        take_page(x, response->body, &e);
    }
    collect_finish_answer(q);
}

/* ---- sending */

void collect_add_pod(struct sat_feed *feed, str pod, str ip, int64_t port)
{
    struct sat_fetch *q = feed->fetch;
    bool v6 = str_find_char(ip, ':') != SIZE_MAX;
    auto_buf struct buf url = { 0 };
    err_t e;
    buf_printf(&url, "http://%s" STR_FMT "%s:%lld", v6 ? "[" : "", STR_ARG(ip), v6 ? "]" : "",
               (long long)(port > 0 ? port : PORT_DEFAULT));
    struct http_client *client;
    if (!ip.n ||
        http_client_new(feed->collector->loop,
                        &(struct http_client_options){ .url = buf_str(&url) }, &client, &e) < 0)
        return;
    struct collect_scrape *x = mem_zero(1, sizeof(*x));
    *x = (struct collect_scrape){
        .next = q->scrapes, .fetch = q, .pod = mem_dup(pod.p, pod.n), .client = client
    };
    q->scrapes = x;
    q->left++;
    struct loop *loop = feed->collector->loop;
    x->call =
        http_client_fetch(client, &(struct http_fetch){
                                      .method = S("GET"),
                                      .target = S("/metrics"),
                                      .headers = HTTP_HEADERS({ S("accept"), S(SCRAPE_ACCEPT) }),
                                      .deadline_ns = loop_mono_ns(loop) +
                                                     loop_scale_timeout(loop, scrape_timeout_ns),
                                      .max_body_bytes = SCRAPE_BYTES_MAX,
                                      .on_done = on_scraped,
                                      .context = x });
}

void collect_ask_pods(struct sat_fetch *q)
{
    if (!q->feed->since_ns)
        q->feed->since_ns = q->feed->busy_ns = loop_mono_ns(q->feed->collector->loop);
    q->feed->collector->pods(q->feed->collector->context, q->feed);
}

void collect_cancel_scrapes(struct sat_fetch *q)
{
    for (struct collect_scrape *x = q->scrapes, *next; x; x = next) {
        next = x->next;
        if (x->call)
            http_call_cancel(x->call);
        http_client_free(x->client);
        free(x->pod);
        free(x);
    }
    q->scrapes = NULL;
}

/* ---- rates, from this scrape and the one before */

struct sums {
    struct sat_counters more;
    double per_s; /* requests */
    double first_tokens_per_s, queue_slope;
    double waiting;
    bool any;
};

static void add_histogram(struct sat_traffic_histogram *sum,
                          const struct sat_traffic_histogram *old,
                          const struct sat_traffic_histogram *now)
{
    for (size_t i = 0; i < now->n && now->n == old->n; i++)
        if (now->bound[i] == old->bound[i])
            sat_traffic_add_bucket(sum, now->bound[i], fmax(0, now->count[i] - old->count[i]));
}

/* The input of the slo policy for one replica, from the tokens between two scrapes. */
static void set_replica_traffic(struct sat_sample *now, const struct sat_sample *old,
                                double seconds)
{
    const struct sat_counters *to = now->counters, *from = old->counters;
    struct sat_traffic_replica *t = &now->traffic;
    bool today = to->token_itl_count > 0; /* else the old name of the metric is used */
    t->itl_sum = today ? to->token_itl_sum - from->token_itl_sum : to->itl_sum - from->itl_sum;
    t->itl_count =
        today ? to->token_itl_count - from->token_itl_count : to->itl_count - from->itl_count;
    t->prompt_rate = (to->prompt_tokens - from->prompt_tokens) / seconds;
    t->gen_rate = (to->generation_tokens - from->generation_tokens) / seconds;
    t->running = (to->running + from->running) / 2;
    t->running_low = fmin(to->running, from->running);
    t->running_high = fmax(to->running, from->running);
}

/* Adds what one pod did since its previous scrape. */
static void add_difference(struct sums *sums, const struct sat_sample *old, struct sat_sample *now)
{
    double seconds = (double)(now->at_ns - old->at_ns) / (double)NS_PER_S;
    if (!old->counters || !now->counters || seconds <= 0 ||
        !(now->counters->requests >= old->counters->requests))
        return; /* new, restarted, or without a request counter */
    for (size_t i = 0; i < countof(counter_names); i++) {
        size_t at = counter_names[i].offset;
        const double *from = (const void *)((const char *)old->counters + at);
        const double *to = (const void *)((const char *)now->counters + at);
        *(double *)(void *)((char *)&sums->more + at) += fmax(0, *to - *from);
    }
    sums->per_s += (now->counters->requests - old->counters->requests) / seconds;
    double first = now->counters->ttft_count - old->counters->ttft_count;
    sums->first_tokens_per_s += fmax(0, first) / seconds;
    sums->queue_slope += isnan(now->queue - old->queue) ? 0 : (now->queue - old->queue) / seconds;
    add_histogram(&sums->more.ttft, &old->counters->ttft, &now->counters->ttft);
    add_histogram(&sums->more.tpot, &old->counters->tpot, &now->counters->tpot);
    set_replica_traffic(now, old, seconds);
    sums->any = true;
}

static double ratio(double sum, double count)
{
    return count > 0 ? sum / count : NAN;
}

static void set_model_traffic(struct sat_fetch *q, const struct sums *sums)
{
    const struct sat_counters *more = &sums->more;
    bool counts =
        more->ttft_count > 0 || more->ttft.n > 0; /* the server exports time to first token */
    q->traffic = (struct sat_traffic){
        .arrival = counts ? fmax(0, sums->first_tokens_per_s + sums->queue_slope) : NAN,
        .arrival_now = NAN, /* two scrapes already are the last interval */
        .in_tokens = ratio(more->prompt_tokens, more->ttft_count),
        .out_tokens = ratio(more->output_sum, more->output_count),
        .in_tail = NAN,
        .waiting = sums->waiting,
        .hit_rate =
            more->prefix_queries > 0 ? fmin(more->prefix_hits / more->prefix_queries, 1) : 0,
        .seconds = (double)q->feed->interval_ns / (double)NS_PER_S,
        .ttft = more->ttft,
        .itl = more->tpot,
    };
}

/* Whether every pod reports its request counter; one that does not may have served requests. */
static bool all_count_requests(const struct sat_fetch *q)
{
    for (const struct collect_scrape *x = q->scrapes; x; x = x->next) {
        const struct sat_sample *s = map_get(&q->samples, str_c(x->pod));
        if (!s || !s->counters || isnan(s->counters->requests))
            return false;
    }
    return true;
}

static bool any_counts_tokens(const struct sat_fetch *q)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&q->samples, slot));) {
        const struct sat_sample *s = slot->value;
        if (s->counters && s->counters->ttft_count > 0 && s->counters->prompt_tokens > 0)
            return true;
    }
    return false;
}

void collect_sum_pods(struct sat_fetch *q)
{
    struct sat_feed *feed = q->feed;
    struct sums sums = { 0 };
    if (q->reached)
        free(take(q->failure)); /* pods that answered count; the others have no sample */
    for (struct map_slot *slot = NULL; (slot = map_next(&q->samples, slot));) {
        const struct sat_sample *old = map_get(&feed->samples, slot->key);
        struct sat_sample *now = slot->value;
        sums.waiting += isnan(now->queue) ? 0 : now->queue;
        if (old)
            add_difference(&sums, old, now);
    }
    if (sums.any)
        set_model_traffic(q, &sums);
    feed->rates_follow = !sums.any && any_counts_tokens(q);
    int64_t now = loop_mono_ns(feed->collector->loop);
    if (sums.more.requests > 0)
        feed->busy_ns = now;
    if (sums.any)
        q->load = (struct sat_load_view){ sums.per_s * 60,
                                          ratio(sums.more.input_sum, sums.more.input_count),
                                          ratio(sums.more.output_sum, sums.more.output_count),
                                          ratio(sums.more.itl_sum, sums.more.itl_count) * 1000,
                                          ratio(sums.more.ttft_sum, sums.more.ttft_count) * 1000 };
    q->requests_known =
        feed->retention_ns && now - feed->since_ns >= feed->retention_ns && all_count_requests(q);
    q->requests = now - feed->busy_ns < feed->retention_ns ? 1 : 0;
}
