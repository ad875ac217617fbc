/* The start's question to Prometheus, which the original asks before it does anything: `up`, six times with
 * growing pauses, and who was never answered ends with 1. A rollout with a wrong address or token therefore stops
 * at its first pod, which never becomes ready, and the leader that can decide stays.
 *
 * Only the first client is asked so: a Prometheus that fails later costs nobody the process. */
#include "../base/log.h"
#include "saturation_state.h"

enum { ATTEMPTS = 6, FACTOR = 2 };
static const int64_t FIRST_PAUSE_NS = 5 * NS_PER_S;
static const double JITTER = 0.1;

static void ask(struct saturation *s);

static void on_pause_over(struct timer *timer)
{
    ask(container_of(timer, struct saturation, probe.pause));
}

static void answered(void *context, const struct prom_result *result, const err_t *failure)
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
    log_warn("Prometheus does not answer yet, and nothing begins before",
             KV_C("error", failure->text), KV_INT("attempts_left", p->attempts_left));
    double pause_ns = (double)p->pause_ns * (1 + JITTER * random_unit(&p->random));
    p->pause_ns *= FACTOR;
    timer_set(loop, &p->pause, loop_mono_ns(loop) + (int64_t)pause_ns, on_pause_over);
}

static void ask(struct saturation *s)
{
    s->probe.call =
        prom_client_query(s->collector.prometheus, &(struct prom_query){ .promql = S("up"),
                                                                         .retry = { .attempts = 1 },
                                                                         .on_done = answered,
                                                                         .context = s });
}

void saturation_probe(struct saturation *s)
{
    struct sat_probe *p = &s->probe;
    if (!p->due || !s->collector.prometheus)
        return;
    p->attempts_left = ATTEMPTS;
    p->pause_ns = FIRST_PAUSE_NS;
    random_init(&p->random, random_seed(), 1);
    ask(s);
}

void saturation_probe_stop(struct saturation *s)
{
    timer_stop(&s->probe.pause);
    prom_call_cancel(take(s->probe.call));
}

bool saturation_probe_over(const struct saturation *s, struct buf *why_not)
{
    bool asks = s->collector.prometheus;
    if (!s->probe.due || (!asks && cache_synced(s->optimization))) /* which names none either */
        return true;
    buf_put(why_not, asks ? S("waiting for Prometheus") : S("waiting for the ConfigMap"));
    return false;
}
