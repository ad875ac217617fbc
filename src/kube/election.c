/* Leader election with a Lease; why it is safe is in election.h. One request at a time. The Lease is kept
 * as the server last returned it, so that labels and annotations of others survive our PUT.
 *
 *     CANDIDATE   GET the Lease. If it is free, or its holder has not renewed it for its own duration,
 *        |   ^    PUT it; otherwise GET again in 2 to 4.4 s.
 *   PUT  |   |
 *     ok v   |  no renewal until the deadline, or another holder
 *      LEADER     PUT every 2 s from the kept object. After a conflict, GET once and decide again.
 *        |
 *        v  election_stop()
 *     STOPPING    PUT with an empty holder, 3 s at most, so that the next leader need not wait.
 *
 * Durations are measured with our own monotonic clock, from the moment a change of the Lease was seen. The
 * times written in it come from another machine's clock and are only compared for equality. */
#include "election.h"

#include "../base/random.h"
#include "../base/rfc3339.h"

enum el_state { EL_CANDIDATE, EL_LEADER, EL_STOPPING };

static const int64_t release_wait_ns = 3 * NS_PER_S;

struct election {
    struct election_options o;
    struct arena names; /* ns, name, identity */
    struct loop *loop;
    struct random random;
    enum el_state state;
    struct kube_call *call;
    struct timer timer;    /* next attempt; STOPPING: give up the release */
    struct timer deadline; /* LEADER: leadership is lost without a renewal by then */
    struct buf object;     /* the Lease as last seen; empty: does not exist */
    struct buf holder;
    int64_t duration_s; /* leaseDurationSeconds as last seen */
    int64_t transitions;
    struct buf renewed;  /* renewTime as last seen: a change means the holder is alive */
    int64_t observed_ns; /* mono: when `renewed` or `holder` last changed */
    int64_t sent_ns;     /* mono: when the current PUT was sent */
    int64_t acquired_us; /* wall clock, microseconds */
    void (*stopped)(void *context);
    void *stopped_context;
};

static void read_lease(struct election *el);
static void write_lease(struct election *el, bool release);

static void report_trouble(struct election *el, const char *sentence)
{
    if (el->o.on_trouble)
        el->o.on_trouble(el->o.context, sentence);
}

/* ---- time */

static void timer_fired(struct timer *timer)
{
    struct election *el = container_of(timer, struct election, timer);
    if (el->state == EL_LEADER)
        write_lease(el, false);
    else
        read_lease(el);
}

static void schedule_retry(struct election *el)
{
    double period = (double)el->o.retry_period_ns;
    if (el->state == EL_CANDIDATE)
        period *= 1 + 1.2 * random_unit(&el->random);
    timer_set(el->loop, &el->timer, loop_mono_ns(el->loop) + (int64_t)period, timer_fired);
}

/* Closes the gate first: no write may follow, whatever the callback does. */
static void lose_lease(struct election *el)
{
    kube_gate(el->o.kube, 0);
    kube_call_cancel(el->call);
    el->call = NULL;
    timer_stop(&el->timer);
    timer_stop(&el->deadline);
    el->state = EL_CANDIDATE;
    if (el->o.on_lost)
        el->o.on_lost(el->o.context);
}

static void deadline_passed(struct timer *timer)
{
    struct election *el = container_of(timer, struct election, deadline);
    report_trouble(el, "lease was not renewed before the renew deadline");
    lose_lease(el);
}

/* ---- the Lease as observed */

static void set_text(struct buf *b, str text)
{
    buf_clear(b);
    buf_put(b, text);
}

/* Records what the server returned, and when the holder last showed a sign of life. */
static void observe_lease(struct election *el, const struct kube_reply *reply)
{
    const struct json *spec = json_get(reply->object, "spec");
    str holder = json_text(json_get(spec, "holderIdentity"));
    str renewed = json_text(json_get(spec, "renewTime"));
    set_text(&el->object, reply->body);
    if (!str_eq(holder, buf_str(&el->holder)) || !str_eq(renewed, buf_str(&el->renewed)) ||
        !el->observed_ns)
        el->observed_ns = loop_mono_ns(el->loop);
    set_text(&el->holder, holder);
    set_text(&el->renewed, renewed);
    el->duration_s = MAX(json_int(json_get(spec, "leaseDurationSeconds"), 0), 0);
    el->transitions = json_int(json_get(spec, "leaseTransitions"), 0);
    int64_t acquired;
    if (rfc3339_parse_micro(json_text(json_get(spec, "acquireTime")), &acquired, NULL) == 0)
        el->acquired_us = acquired;
}

static bool is_ours(const struct election *el)
{
    return str_eq(buf_str(&el->holder), el->o.identity);
}

/* Does an earlier process of this pod hold the Lease? It cannot be running any more. */
static bool is_predecessor(const struct election *el)
{
    str holder = buf_str(&el->holder);
    return el->o.pod.n && str_starts(holder, el->o.pod) && holder.n > el->o.pod.n &&
           holder.p[el->o.pod.n] == '_';
}

/* No holder, ourselves, or a holder that did not renew for its own duration (capped at a day). */
static bool is_free(const struct election *el)
{
    int64_t duration_ns = MIN(el->duration_s, 86400) * NS_PER_S;
    return !el->holder.n || is_ours(el) || is_predecessor(el) ||
           loop_mono_ns(el->loop) >= el->observed_ns + duration_ns;
}

/* ---- leading */

static void become_leader(struct election *el)
{
    int64_t until = el->sent_ns + el->o.renew_deadline_ns;
    bool first = el->state == EL_CANDIDATE;
    el->state = EL_LEADER;
    kube_gate(el->o.kube, until);
    timer_set(el->loop, &el->deadline, until, deadline_passed);
    schedule_retry(el);
    if (first && el->o.on_lead)
        el->o.on_lead(el->o.context);
}

/* A successful PUT makes us leader until `renew_deadline` after it was sent. */
static void on_lease_written(void *context, const struct kube_reply *reply)
{
    struct election *el = context;
    el->call = NULL;
    if (!reply->failure)
        observe_lease(el, reply);
    if (el->state == EL_STOPPING) {
        write_lease(el, true);
        return;
    }
    if (!reply->failure) {
        become_leader(el);
        return;
    }
    bool raced = reply->reason == KUBE_CONFLICT || reply->reason == KUBE_ALREADY_EXISTS ||
                 reply->reason == KUBE_NOT_FOUND;
    if (!raced)
        report_trouble(el, reply->failure);
    if (raced && el->state == EL_LEADER)
        read_lease(el); /* another client wrote the Lease: read it and decide again */
    else
        schedule_retry(el);
}

static struct json *lease_object(struct election *el, struct arena *a)
{
    struct json *lease = NULL;
    if (el->object.n && json_parse(a, buf_str(&el->object), &lease, NULL) == 0 &&
        json_is(lease, JSON_OBJ))
        return lease;
    lease = json_new_obj(a);
    json_set_str(a, lease, "apiVersion", S("coordination.k8s.io/v1"));
    json_set_str(a, lease, "kind", S("Lease"));
    struct json *meta = json_make(a, lease, "metadata", NULL);
    json_set_str(a, meta, "name", el->o.name);
    json_set_str(a, meta, "namespace", el->o.ns);
    return lease;
}

static void on_lease_released(void *context, const struct kube_reply *reply);
static void finish_stop(struct election *el);

/* Sends the Lease with us as holder, or with an empty holder and a duration of 1 s to release it. Counts a
 * transition only if the holder changes, as client-go does. */
static void write_lease(struct election *el, bool release)
{
    auto_arena struct arena a = { 0 };
    char renew[RFC3339_TEXT_MAX], acquire[RFC3339_TEXT_MAX];
    int64_t now_us = loop_wall_ns(el->loop) / 1000;
    struct json *lease = lease_object(el, &a), *spec = json_make(&a, lease, "spec", NULL);
    bool keeps = is_ours(el);
    if (!keeps || release)
        el->acquired_us = now_us;
    int64_t transitions = el->transitions + (!keeps && el->object.n);
    json_set_str(&a, spec, "holderIdentity", release ? S("") : el->o.identity);
    json_set_int(&a, spec, "leaseDurationSeconds",
                 release ? 1 : el->o.lease_duration_ns / NS_PER_S);
    json_set_str(&a, spec, "acquireTime", rfc3339_micro_text(el->acquired_us, acquire));
    json_set_str(&a, spec, "renewTime", rfc3339_micro_text(now_us, renew));
    json_set_int(&a, spec, "leaseTransitions", transitions);
    el->sent_ns = loop_mono_ns(el->loop);
    el->call =
        kube_send(el->o.kube,
                  &(struct kube_request){ .verb = el->object.n ? KUBE_UPDATE : KUBE_CREATE,
                                          .resource = &resource_leases,
                                          .ns = el->o.ns,
                                          .name = el->o.name,
                                          .body = json_to_str(&a, lease),
                                          .no_gate = true,
                                          .timeout_ns = el->o.renew_deadline_ns,
                                          .done = release ? on_lease_released : on_lease_written,
                                          .context = el });
}

static void release_if_ours(struct election *el, const struct kube_reply *reply)
{
    if (!reply->failure)
        observe_lease(el, reply);
    if (is_ours(el))
        write_lease(el, true);
    else
        finish_stop(el);
}

/* Decides what the Lease as read means: take it, give up leadership, or try again later. */
static void on_lease_read(void *context, const struct kube_reply *reply)
{
    struct election *el = context;
    el->call = NULL;
    if (el->state == EL_STOPPING) {
        release_if_ours(el, reply);
        return;
    }
    if (reply->reason == KUBE_NOT_FOUND) {
        buf_clear(&el->object);
        buf_clear(&el->holder);
        write_lease(el, false);
        return;
    }
    if (reply->failure) {
        report_trouble(el, reply->failure);
        schedule_retry(el);
        return;
    }
    observe_lease(el, reply);
    if (is_free(el)) {
        write_lease(el, false);
    } else if (el->state == EL_LEADER) {
        report_trouble(el, "another process holds the lease");
        lose_lease(el);
    } else {
        schedule_retry(el);
    }
}

static void read_lease(struct election *el)
{
    el->call = kube_send(el->o.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                             .resource = &resource_leases,
                                                             .ns = el->o.ns,
                                                             .name = el->o.name,
                                                             .no_gate = true,
                                                             .timeout_ns = el->o.renew_deadline_ns,
                                                             .done = on_lease_read,
                                                             .context = el });
}

/* ---- life */

int election_start(const struct election_options *options, struct election **ret, err_t *e)
{
    struct election_options o = *options;
    o.lease_duration_ns = o.lease_duration_ns ? o.lease_duration_ns : 15 * NS_PER_S;
    o.renew_deadline_ns = o.renew_deadline_ns ? o.renew_deadline_ns : 10 * NS_PER_S;
    o.retry_period_ns = o.retry_period_ns ? o.retry_period_ns : 2 * NS_PER_S;
    if (o.lease_duration_ns < NS_PER_S || o.renew_deadline_ns >= o.lease_duration_ns ||
        o.retry_period_ns <= 0 || o.retry_period_ns >= o.renew_deadline_ns)
        return err_set(e, EINVAL,
                       "leader election needs retry period < renew deadline < lease duration, and "
                       "a lease of at least 1s");
    struct election *el = mem_zero(1, sizeof(*el));
    el->o = o;
    el->o.ns = arena_str(&el->names, o.ns);
    el->o.name = arena_str(&el->names, o.name);
    el->o.identity = arena_str(&el->names, o.identity);
    el->o.pod = arena_str(&el->names, o.pod);
    el->loop = kube_loop(o.kube);
    random_init(&el->random, o.seed, 2);
    kube_gate(o.kube, 0);
    read_lease(el);
    *ret = el;
    return 0;
}

bool election_leads(const struct election *el)
{
    return el && el->state == EL_LEADER;
}

str election_holder(const struct election *el)
{
    return buf_str(&el->holder);
}

void election_free(struct election *el)
{
    if (!el)
        return;
    kube_call_cancel(el->call);
    timer_stop(&el->timer);
    timer_stop(&el->deadline);
    buf_done(&el->object);
    buf_done(&el->holder);
    buf_done(&el->renewed);
    arena_done(&el->names);
    free(el);
}

static void finish_stop(struct election *el)
{
    void (*stopped)(void *) = el->stopped;
    void *context = el->stopped_context;
    election_free(el);
    stopped(context);
}

static void on_lease_released(void *context, const struct kube_reply *reply)
{
    struct election *el = context;
    el->call = NULL;
    if (reply->failure)
        report_trouble(el, reply->failure);
    finish_stop(el);
}

static void on_release_timeout(struct timer *timer)
{
    finish_stop(container_of(timer, struct election, timer));
}

void election_stop(struct election *el, void (*done)(void *context), void *context)
{
    bool holds = el->state == EL_LEADER;
    timer_stop(&el->deadline);
    el->state = EL_STOPPING;
    el->stopped = done;
    el->stopped_context = context;
    kube_gate(el->o.kube, 0);
    if (holds && !el->call) /* a renewal in flight ends first: we release its version */
        write_lease(el, true);
    timer_set(el->loop, &el->timer, loop_mono_ns(el->loop) + (holds ? release_wait_ns : 0),
              on_release_timeout);
}
