/* Health on the board: leader, caches, queues, API server and Prometheus, from the metrics registry and the states
 * that /readyz and /metrics use. It has the time, so clients also see that the stream is alive. */
#include "../base/clock.h"
#include "../base/metrics.h"
#include "../base/rfc3339.h"
#include "../saturation/saturation_live.h"
#include "web_internal.h"

#include <stdio.h>

struct tally {
    struct buf caches, failures, queues, errors; /* JSON: ["name",number], ... */
    double requests, failed;
};

static void put_pair(struct buf *out, str name, double value)
{
    buf_put(out, out->n ? S(",[") : S("["));
    json_write_text(out, name);
    buf_printf(out, ",%.0f]", value);
}

/* Picks the few families that the page shows; all others are passed over. */
static void add_series(void *context, const struct metric_view *view)
{
    struct tally *t = context;
    const char *name = view->spec->name;
    if (!strcmp(name, "flyball_cache_objects"))
        put_pair(&t->caches, view->values[1], view->value);
    else if (!strcmp(name, "flyball_watch_failures_total") && view->value > 0)
        put_pair(&t->failures, view->values[1], view->value);
    else if (!strcmp(name, "workqueue_depth"))
        put_pair(&t->queues, view->values[0], view->value);
    else if (!strcmp(name, "controller_runtime_reconcile_errors_total") && view->value > 0)
        put_pair(&t->errors, view->values[0], view->value);
    else if (!strcmp(name, "rest_client_requests_total")) {
        t->requests += view->value;
        bool refused = view->values[0].n && view->values[0].p[0] != '2';
        t->failed += refused ? view->value : 0;
    }
}

static void put_list(struct buf *out, const char *key, struct buf *list)
{
    buf_printf(out, "\"%s\":[" STR_FMT "],", key, STR_ARG(buf_str(list)));
    buf_done(list);
}

static void put_prometheus(struct buf *out, const struct web *w)
{
    if (!w->saturation)
        return;
    struct saturation_feeds feeds = saturation_live_feeds(w->saturation);
    buf_printf(out, "\"metrics\":{\"prometheus\":%s,\"models\":%zu,\"failing\":%zu,",
               feeds.prometheus ? "true" : "false", feeds.models, feeds.failing);
    web_put_text(out, "failure", feeds.failure);
    out->n--; /* the comma */
    buf_put(out, S("},"));
}

void web_health_update(struct web *w)
{
    auto_buf struct buf json = { 0 }, why = { 0 };
    struct tally t = { 0 };
    char time[RFC3339_TEXT_MAX];
    metrics_read(manager_metrics(w->o.manager),
                 &(struct metrics_reader){ .series = add_series, .context = &t });
    bool ready = manager_ready(w->o.manager, &why);
    bool away = kube_probe(manager_kube(w->o.manager));
    buf_putc(&json, '{');
    web_put_text(&json, "time", rfc3339_text(loop_wall_ns(w->loop) / NS_PER_S, time));
    web_put_text(&json, "version", S(FLYBALL_VERSION));
    web_put_text(&json, "identity", manager_identity(w->o.manager));
    web_put_text(&json, "why", buf_str(&why));
    put_prometheus(&json, w);
    put_list(&json, "caches", &t.caches);
    put_list(&json, "failures", &t.failures);
    put_list(&json, "queues", &t.queues);
    put_list(&json, "errors", &t.errors);
    web_put_real(&json, "requests", t.requests);
    web_put_real(&json, "failed", t.failed);
    buf_printf(&json, "\"leader\":%s,\"ready\":%s,\"server\":%s,\"clients\":%zu}",
               manager_leads(w->o.manager) ? "true" : "false", ready ? "true" : "false",
               away ? "false" : "true", w->clients.n);
    board_put(&w->board, BOARD_HEALTH, S("flyball"), buf_str(&json), NULL);
}
