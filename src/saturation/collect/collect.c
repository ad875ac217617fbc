/* Feeds: see collect.h.
 *
 * A fetch (struct sat_fetch) collects into its own map. Only when its last answer is in does
 * finish_fetch() replace the samples of the feed, so a decision never sees half of a fetch, and a
 * fetch that fails leaves the old samples with their old time. Samples are owned by the map they
 * are in; the fetch is owned by its feed.
 *
 *     timer ─► start_fetch ─► queries or scrapes ─► collect_finish_answer (each) ─► finish_fetch ─► feed ─► `fetched`
 *
 * The first fetch starts at once. Later ones are grouped where Prometheus answers for many models in
 * one query (collect_group.c): their feeds have the same phase. Otherwise each feed has its own place
 * in the interval, derived from a hash of namespace and model, so that a thousand feeds do not fetch
 * at the same moment. */
#include "collect.h"

#include "../../base/sum.h"

#include <math.h>

static const struct sat_load_view unknown_load = { NAN, NAN, NAN, NAN, NAN };

/* ---- samples */

struct sat_sample *collect_add_sample(struct map *samples, str pod, int64_t at_ns)
{
    struct sat_sample *s = map_get(samples, pod);
    if (s)
        return s;
    s = mem_zero(1, sizeof(*s) + pod.n + 1);
    s->kv = s->queue = NAN;
    s->traffic = sat_traffic_replica_unknown;
    s->at_ns = at_ns;
    memcpy(s->pod, pod.p, pod.n);
    map_put(samples, (str){ s->pod, pod.n }, s);
    return s;
}

static void collect_samples_free(struct map *samples)
{
    for (struct map_slot *slot = NULL; (slot = map_next(samples, slot));) {
        struct sat_sample *s = slot->value;
        free(s->counters);
        free(s);
    }
    map_done(samples);
    *samples = (struct map){ 0 };
}

const struct sat_sample *collect_get_sample(const struct sat_feed *feed, str pod)
{
    return map_get(&feed->samples, pod);
}

/* ---- one fetch */

static void fetch_free(struct sat_fetch *q)
{
    if (!q)
        return;
    collect_leave_group(q);
    collect_cancel_queries(q);
    collect_cancel_scrapes(q);
    collect_samples_free(&q->samples);
    free(q->failure);
    free(q);
}

void collect_fail(struct sat_fetch *q, const char *failure)
{
    if (!q->failure)
        q->failure = mem_dup(failure, strlen(failure));
}

static void trace_fetch(const struct sat_fetch *q)
{
    const struct tracer_attribute at[] = {
        { "k8s.namespace.name", q->feed->ns, 0 },
        { "model", q->feed->model, 0 },
        { "source", q->feed->collector->prometheus ? S("prometheus") : S("pods"), 0 },
        { "replicas", S(""), (int64_t)q->samples.n }
    };
    tracer_end(q->feed->collector->tracer, &q->span,
               &(struct tracer_result){ "collect", at, countof(at), str_c(q->failure) });
}

/* Moves the results into the feed and frees the fetch. */
static void finish_fetch(struct sat_fetch *q)
{
    struct sat_feed *feed = q->feed;
    bool first = !feed->asked;
    trace_fetch(q);
    feed->fetch = NULL;
    feed->asked = true;
    free(feed->failure);
    feed->failure = take(q->failure);
    if (!feed->failure) {
        collect_samples_free(&feed->samples);
        feed->samples = q->samples;
        q->samples = (struct map){ 0 };
        feed->fetched_ns = q->begun_ns;
    }
    if (!feed->failure || isfinite(q->load.arrival_per_min)) { /* enough for the optimizer */
        feed->load = q->load;
        feed->load_ns = q->begun_ns;
    }
    if (isfinite(q->traffic.arrival)) {
        feed->traffic = q->traffic;
        feed->traffic_ns = q->begun_ns;
    }
    feed->requests_known = !feed->failure && q->requests_known;
    feed->requests = q->requests;
    feed->alone = (q->apart || feed->alone) && feed->failure;
    fetch_free(q);
    feed->collector->fetched(feed->collector->context, feed, first);
}

void collect_finish_answer(struct sat_fetch *q)
{
    if (--q->left)
        return;
    if (!q->feed->collector->prometheus)
        collect_sum_pods(q);
    finish_fetch(q);
}

struct sat_fetch *collect_open_fetch(struct sat_feed *feed)
{
    struct sat_fetch *q = mem_zero(1, sizeof(*q));
    *q = (struct sat_fetch){ .feed = feed,
                             .begun_ns = loop_mono_ns(feed->collector->loop),
                             .span = tracer_begin(feed->collector->tracer, NULL),
                             .left = 1,
                             .load = unknown_load,
                             .traffic = sat_traffic_unknown };
    feed->fetch = q;
    return q;
}

void collect_start_fetch(struct sat_feed *feed)
{
    struct sat_fetch *q = collect_open_fetch(feed);
    if (feed->collector->prometheus)
        collect_ask_prometheus(q);
    else
        collect_ask_pods(q);
    collect_finish_answer(q); /* the one that kept the fetch open while queries were sent */
}

/* ---- time */

static bool is_grouped(const struct sat_feed *feed)
{
    return feed->collector->grouped && feed->collector->prometheus && !feed->alone &&
           feed->model.n && feed->ns.n;
}

static void request_fetch(struct sat_feed *feed, int64_t delay_ns)
{
    if (feed->fetch)
        return;
    if (is_grouped(feed))
        collect_join_group(feed, delay_ns);
    else
        collect_start_fetch(feed);
}

/* When the next fetch begins. Grouped feeds have the same phase; the others keep their own. */
static int64_t next_fetch_ns(const struct sat_feed *feed, int64_t own_ns)
{
    const struct sat_collector *c = feed->collector;
    int64_t now = loop_mono_ns(c->loop);
    if (!is_grouped(feed) || feed->interval_ns <= 0)
        return now + own_ns;
    return c->epoch_ns + ((now - c->epoch_ns) / feed->interval_ns + 1) * feed->interval_ns;
}

static void on_timer(struct timer *timer)
{
    struct sat_feed *feed = container_of(timer, struct sat_feed, timer);
    timer_set(feed->collector->loop, timer, next_fetch_ns(feed, feed->interval_ns), on_timer);
    request_fetch(feed, 0);
}

/* The first fetch; it sets the place of the later ones in the interval. Variants of a new leader
 * arrive within a few turns of the loop: a short delay lets their models share one query. */
static void on_first_timer(struct timer *timer)
{
    static const int64_t first_delay_ns = 20 * NS_PER_MS;
    struct sat_feed *feed = container_of(timer, struct sat_feed, timer);
    struct sat_collector *c = feed->collector;
    uint64_t hash =
        sum64(feed->model, sum64(feed->ns, 0)); /* namespaces may have the same models */
    int64_t place = feed->interval_ns / 2 + (int64_t)(hash % 1024) * (feed->interval_ns / 2048);
    if (!c->epoch_ns) /* a quarter of an interval before each cycle, which also began just now */
        c->epoch_ns = loop_mono_ns(c->loop) - feed->interval_ns / 4;
    timer_set(c->loop, timer, next_fetch_ns(feed, place), on_timer);
    request_fetch(feed, first_delay_ns);
}

void collect_start(struct sat_feed *feed, struct sat_collector *collector)
{
    feed->collector = collector;
    feed->load = unknown_load;
    feed->traffic = sat_traffic_unknown;
    timer_set(collector->loop, &feed->timer, loop_mono_ns(collector->loop), on_first_timer);
}

void collect_set_interval(struct sat_feed *feed, int64_t interval_ns)
{
    bool sooner = timer_is_set(&feed->timer) && interval_ns < feed->interval_ns && feed->asked;
    feed->interval_ns = interval_ns;
    if (sooner)
        timer_set(feed->collector->loop, &feed->timer, next_fetch_ns(feed, interval_ns / 2),
                  on_timer);
}

void collect_stop(struct sat_feed *feed)
{
    timer_stop(&feed->timer);
    list_remove(&feed->due);
    if (feed->collector && !feed->collector->due.n)
        timer_stop(&feed->collector->gather);
    fetch_free(take(feed->fetch));
    collect_samples_free(&feed->samples);
    free(take(feed->failure));
    free(take(feed->other_model));
    feed->fetched_ns = feed->load_ns = feed->since_ns = feed->traffic_ns = 0;
    feed->asked = feed->alone = false;
}
