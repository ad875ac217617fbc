/* Latencies from Prometheus: see latency.h. */
#include "latency.h"

#include "../base/log.h"
#include "../prom/query.h"

#include <math.h>

static const int64_t ask_every_ns = 5 * NS_PER_S, timeout_ns = 5 * NS_PER_S;

struct latency {
    struct latency_options o;
    struct prom_client *client; /* NULL: no Prometheus */
    struct buf url;
    struct prom_call *call;
    int64_t asked_ns;
    bool failing; /* the failure was already logged */
};

/* A dot would match any character in a pattern. */
static void put_literal(struct buf *out, str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '.')
            buf_put(out, S("[.]"));
        else
            buf_putc(out, name.p[i]);
    }
}

void latency_build_query(struct buf *out, const struct latency_pod *targets, size_t n)
{
    auto_buf struct buf spaces = { 0 }, pods = { 0 };
    for (size_t i = 0; i < n; i++) {
        bool again = false; /* few namespaces, and equal ones are neighbors */
        for (size_t j = i; j-- > 0 && !again;)
            again = str_eq(targets[i].ns, targets[j].ns);
        if (!again) {
            buf_put(&spaces, spaces.n ? S("|") : S(""));
            put_literal(&spaces, targets[i].ns);
        }
        buf_put(&pods, i ? S("|") : S(""));
        put_literal(&pods, targets[i].pod);
    }
    buf_printf(out,
               "histogram_quantile(0.99, sum by (namespace, pod, le) "
               "(rate(http_request_duration_seconds_bucket{namespace=~\"" STR_FMT
               "\",pod=~\"" STR_FMT "\"}[1m])))",
               STR_ARG(buf_str(&spaces)), STR_ARG(buf_str(&pods)));
}

/* Passes the latencies on. A failure is logged once, until a query succeeds again. */
static void on_query_done(void *context, const struct prom_result *result, const err_t *failure)
{
    struct latency *s = context;
    s->call = NULL;
    s->o.on_answer(s->o.context);
    if (failure) {
        if (!s->failing)
            log_warn("cannot read latencies from Prometheus; retrying",
                     KV_C("error", failure->text));
        s->failing = true;
        return;
    }
    s->failing = false;
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *series = &result->series[i];
        double seconds = series->samples[0].value;
        if (seconds > 0) /* NaN: there was no traffic */
            s->o.on_latency(s->o.context, prom_series_label(series, S("namespace")),
                            prom_series_label(series, S("pod")), seconds * 1000);
    }
}

void latency_request(struct latency *s, const struct latency_pod *targets, size_t n)
{
    int64_t now = loop_mono_ns(s->o.loop);
    if (!s->client || s->call || !n || (s->asked_ns && now - s->asked_ns < ask_every_ns))
        return;
    auto_buf struct buf query = { 0 };
    latency_build_query(&query, targets, n);
    s->asked_ns = now;
    s->call = prom_client_query(s->client, &(struct prom_query){ .promql = buf_str(&query),
                                                                 .retry = { .attempts = 1 },
                                                                 .on_done = on_query_done,
                                                                 .context = s });
}

int latency_set_url(struct latency *s, str url, err_t *e)
{
    struct prom_client *client = NULL;
    if (str_eq(url, buf_str(&s->url)))
        return 0;
    if (url.n) {
        struct prom_client_options o = { .url = url, .timeout_ns = timeout_ns, .seed = s->o.seed };
        int r = prom_client_new(s->o.loop, &o, &client, e);
        if (r < 0)
            return r;
    }
    if (s->call)
        prom_call_cancel(take(s->call));
    prom_client_free(s->client);
    s->client = client;
    buf_clear(&s->url);
    buf_put(&s->url, url);
    return 0;
}

struct latency *latency_new(const struct latency_options *options)
{
    struct latency *s = mem_zero(1, sizeof(*s));
    s->o = *options;
    return s;
}

void latency_free(struct latency *s)
{
    if (!s)
        return;
    if (s->call)
        prom_call_cancel(take(s->call));
    prom_client_free(s->client);
    buf_done(&s->url);
    free(s);
}
