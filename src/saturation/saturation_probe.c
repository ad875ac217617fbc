/* The startup check of Prometheus, as in WVA: query `up` up to six times with growing pauses, and
 * exit with status 1 if it is never answered. A rollout with a wrong address or token stops at its
 * first pod, which never becomes ready, and the old leader keeps deciding.
 *
 * Only the first client is checked: a Prometheus that fails later does not end the process. */
#include "../base/log.h"
#include "saturation_state.h"

enum { ATTEMPTS = 6, FACTOR = 2 };
static const int64_t FIRST_PAUSE_NS = 5 * NS_PER_S;
static const double JITTER = 0.1;

static void send_query(struct saturation *s);

static void on_retry_timer(struct timer *timer)
{
    send_query(container_of(timer, struct saturation, probe.pause));
}

static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct saturation *s = context;
    struct sat_probe *p = &s->probe;
    struct loop *loop = manager_loop(s->manager);
    p->call = NULL;
    if (result) {
        p->due = false;
        manager_recheck(s->manager);
        return;
    }
    if (--p->attempts_left == 0) {
        manager_fail(s->manager, failure->text);
        return;
    }
    log_warn("Prometheus unreachable; waiting for it before starting", KV_C("error", failure->text),
             KV_INT("attempts_left", p->attempts_left));
    double pause_ns = (double)p->pause_ns * (1 + JITTER * random_unit(&p->random));
    p->pause_ns *= FACTOR;
    timer_set(loop, &p->pause, loop_mono_ns(loop) + (int64_t)pause_ns, on_retry_timer);
}

static void send_query(struct saturation *s)
{
    s->probe.call =
        prom_client_query(s->collector.prometheus, &(struct prom_query){ .promql = S("up"),
                                                                         .retry = { .attempts = 1 },
                                                                         .on_done = on_answer,
                                                                         .context = s });
}

void saturation_probe_start(struct saturation *s)
{
    struct sat_probe *p = &s->probe;
    if (!p->due || !s->collector.prometheus)
        return;
    p->attempts_left = ATTEMPTS;
    p->pause_ns = FIRST_PAUSE_NS;
    random_init(&p->random, random_seed(), 1);
    send_query(s);
}

void saturation_probe_stop(struct saturation *s)
{
    timer_stop(&s->probe.pause);
    prom_call_cancel(take(s->probe.call));
}

bool saturation_probe_is_done(const struct saturation *s, struct buf *why_not)
{
    bool asks = s->collector.prometheus;
    if (!s->probe.due || (!asks && cache_synced(s->optimization))) /* and it has no URL either */
        return true;
    buf_put(why_not, asks ? S("waiting for Prometheus") : S("waiting for the ConfigMap"));
    return false;
}
