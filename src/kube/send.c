/* Which call is sent when. Calls wait in a queue (sendqueue.h) until everything that they need is there:
 *
 *     kube_call_wait --> sendqueue --> kube_pump: credentials? hard cap (--qps)? room in flight (limiter_core.h)? --> kube_call_run
 *                                          ^                                                                            |
 *                                          +------ kube_flight_ended: an answer makes room, and shows the latency <-----+
 *
 * If the next call cannot be sent, none is, and the pump runs again when credentials change, an answer arrives, or a timer of
 * the cap or of Retry-After fires: nothing polls. Leases, lists and watches are not counted: a lease must never wait, and the
 * duration of the others shows nothing about the server.
 *
 * Latency is taken from the moment of sending to the beginning of the loop's turn in which the answer arrived, so that the
 * time which this process needs for other work is counted as little as possible. */
#include "client_internal.h"

static const int64_t stuck_ns = NS_PER_S;
/* A call that waited longer than this asks whether it is still wanted. */
static const int64_t stale_after_ns = 100 * NS_PER_MS;
static const int64_t storm_ns = 10 * NS_PER_S;

/* ---- the hard cap */

/* Takes a token and returns 0, or returns how long until the next one. */
static int64_t take_token(struct kube *k)
{
    if (k->rate <= 0 || k->granted) {
        k->granted -= k->granted > 0;
        return 0;
    }
    int64_t now = loop_mono_ns(k->loop);
    double filled = k->tokens + (double)(now - k->tokens_ns) / NS_PER_S * k->rate;
    k->tokens = MIN(filled, k->burst);
    k->tokens_ns = now;
    if (k->tokens >= 1) {
        k->tokens -= 1;
        return 0;
    }
    return (int64_t)((1 - k->tokens) / k->rate * NS_PER_S) + 1;
}

void kube_add_burst(struct kube *k, size_t requests)
{
    k->granted += requests;
}

/* ---- requests in flight */

static bool is_counted(const struct kube_call *call)
{
    return call->class != SEND_URGENT;
}

void kube_flight_started(struct kube_call *call)
{
    struct kube *k = call->k;
    call->flight_ns = loop_exact_ns(k->loop);
    call->latency_ns = -1;
    if (!is_counted(call))
        return;
    list_append(&k->flights, &call->flight);
    limiter_sent(&k->limiter, loop_mono_ns(k->loop));
}

static struct limiter_answer judge_answer(const struct kube_call *call)
{
    struct limiter_answer answer = { .kind = call->method.p[0] == 'G' ? 0 : (unsigned)call->class,
                                     .latency_ns = MAX(call->latency_ns, (int64_t)0) };
    if (call->latency_ns < 0)
        answer.verdict = LIMITER_UNKNOWN;
    else if (call->status == 429 || call->status == 504 ||
             (call->status == 503 &&
              call->retry_after_s >= 0)) /* a plain 503 may be one API of others */
        answer.verdict = LIMITER_OVERLOADED;
    if (answer.verdict == LIMITER_OVERLOADED && call->retry_after_s > 0)
        answer.hold_ns = call->retry_after_s * NS_PER_S;
    return answer;
}

void kube_flight_ended(struct kube_call *call)
{
    struct kube *k = call->k;
    if (!call->flight.in)
        return;
    list_remove(&call->flight);
    struct limiter_answer answer = judge_answer(call);
    limiter_answered(&k->limiter, &answer, loop_mono_ns(k->loop));
    if (k->waiting.n)
        kube_pump_soon(k);
}

static size_t count_waiting(const struct kube *k)
{
    return k->waiting.classes[SEND_WORKLOAD].ages.n + k->waiting.classes[SEND_STATUS].ages.n;
}

static bool is_storm(const struct kube *k)
{
    return loop_mono_ns(k->loop) < k->storm_until_ns;
}

/* A storm lasts while some of its requests wait: the reports of many objects come with half of the workers. */
static void note_storm(struct kube *k)
{
    if (count_waiting(k) >= (is_storm(k) ? (size_t)KUBE_STORM / 10 : (size_t)KUBE_STORM))
        k->storm_until_ns = loop_mono_ns(k->loop) + storm_ns;
}

size_t kube_crowd(const struct kube *k)
{
    return MAX(count_waiting(k), is_storm(k) ? (size_t)KUBE_STORM : 0);
}

/* ---- the pump */

static void on_pump_timer(struct timer *timer)
{
    kube_pump(container_of(timer, struct kube, pump_later));
}

/* A request that is not answered within a second waits for something else than the server's capacity, such as a webhook: it
 * gives up its place, so that the requests of one tenant cannot occupy all. Returns when the next one does. */
static int64_t release_stuck(struct kube *k, int64_t now_ns)
{
    struct kube_call *oldest;
    while ((oldest = list_first(&k->flights, struct kube_call, flight)) &&
           now_ns - oldest->flight_ns >= stuck_ns)
        kube_flight_ended(oldest);
    return oldest ? oldest->flight_ns + stuck_ns : INT64_MAX;
}

/* If false, a timer, an answer or a change of credentials runs the pump again. */
static bool can_send_call(struct kube *k, struct kube_call *call)
{
    int64_t now = loop_mono_ns(k->loop);
    if (!credentials_ready(k->credentials))
        return false;
    if (is_counted(call) && !limiter_can_send(&k->limiter, now)) {
        int64_t at = release_stuck(k, now), held = limiter_wake_ns(&k->limiter, now);
        if (!limiter_can_send(&k->limiter, now)) {
            timer_set(k->loop, &k->pump_later, held != INT64_MAX ? held : at, on_pump_timer);
            return false;
        }
    }
    int64_t wait_ns = call->paid ? 0 : take_token(k);
    if (wait_ns)
        timer_set(k->loop, &k->pump_later, now + wait_ns, on_pump_timer);
    return !wait_ns;
}

/* Ends calls whose deadline passed while they waited behind others. */
static void fail_late_calls(struct kube *k, int64_t now_ns)
{
    for (size_t i = 0; i < SEND_CLASS_N;) {
        struct sendqueue_item *oldest =
            list_first(&k->waiting.classes[i].ages, struct sendqueue_item, age);
        struct kube_call *call = oldest ? container_of(oldest, struct kube_call, waiting) : NULL;
        if (!call || !call->deadline_ns || now_ns < call->deadline_ns) {
            i++;
            continue;
        }
        kube_call_fail(call, "not sent before its deadline: too many requests are waiting");
    }
}

/* Has a newer decision made this one obsolete while it waited? */
static bool is_superseded(const struct kube_call *call, int64_t now_ns)
{
    return call->is_stale && !call->riders.n && now_ns - call->waiting.since_ns >= stale_after_ns &&
           call->is_stale(call->context);
}

/* Sends waiting calls until one has to wait. What replaces superseded ones is made at the end of this turn of the loop, and
 * has their places: nothing else is sent before that. */
void kube_pump(struct kube *k)
{
    int64_t now = loop_mono_ns(k->loop);
    struct sendqueue_item *next;
    bool has_superseded = false;
    fail_late_calls(k, now);
    while ((next = sendqueue_next(&k->waiting, now))) {
        struct kube_call *call = container_of(next, struct kube_call, waiting);
        bool shut = call->gated && now >= k->gate_ns, superseded = is_superseded(call, now);
        if (!shut && !superseded && has_superseded) {
            kube_pump_soon(k);
            return;
        }
        if (!shut && !superseded && !can_send_call(k, call))
            return;
        if (superseded && !shut) { /* nothing is sent: it remains this flow's turn */
            sendqueue_remove(&k->waiting, next);
            kube_call_supersede(call);
            has_superseded = true;
            continue;
        }
        sendqueue_take(&k->waiting, next);
        call->paid = true;
        if (shut) {
            kube_call_fail(call, "not sent: this process is not the leader");
        } else {
            kube_join_waiting(call);
            kube_call_run(call);
        }
    }
}

static void on_pump_deferred(struct deferred *deferred)
{
    kube_pump(container_of(deferred, struct kube, pump));
}

void kube_pump_soon(struct kube *k)
{
    loop_defer(k->loop, LOOP_SOON, &k->pump, on_pump_deferred);
}

void kube_call_wait(struct kube_call *call)
{
    struct kube *k = call->k;
    sendqueue_add(&k->waiting, &call->waiting, call->class, call->owner, call->flow,
                  loop_mono_ns(k->loop));
    note_storm(k);
    kube_pump_soon(k);
}
