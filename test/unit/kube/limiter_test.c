/* How many requests are in flight: the arithmetic against models of servers, in virtual time. */
#include "base/clock.h"
#include "base/random.h"
#include "kube/limiter_core.h"
#include "tap.h"

#include <math.h>

enum { CALLS_MAX = 4096 };

/* A server that works on `seats` requests at a time, each for `service_ns`; the rest waits in it, in order. */
struct model {
    struct limiter l;
    struct random random;
    int64_t now, service_ns;
    size_t seats;
    size_t refuse_above; /* in flight; 0: never */
    bool
        is_uneven; /* some requests take much longer than most, as on a machine that does other work */
    bool has_slow_ones; /* every second request waits 300 ms for something that is not the server */
    struct {
        int64_t sent, answered;
        bool refused;
    } calls[CALLS_MAX];
    size_t n;
    int64_t free_at[CALLS_MAX]; /* of each seat */
    size_t served, refused, most, sent;
};

static void start_model(struct model *m, size_t seats, int64_t service_ns, uint64_t seed)
{
    *m = (struct model){ .seats = seats, .service_ns = service_ns, .now = NS_PER_S };
    random_init(&m->random, seed, 1);
    limiter_init(&m->l, 0);
}

static void send_call(struct model *m)
{
    size_t seat = 0;
    for (size_t i = 1; i < m->seats; i++)
        seat = m->free_at[i] < m->free_at[seat] ? i : seat;
    bool refused = m->refuse_above && m->l.in_flight >= m->refuse_above;
    double share = random_unit(&m->random);
    share = m->is_uneven ? -log(1 - share) : 0.8 + 0.4 * share;
    int64_t took = (int64_t)((double)m->service_ns * share);
    limiter_sent(&m->l, m->now);
    m->calls[m->n].sent = m->now;
    m->calls[m->n].refused = refused;
    m->calls[m->n].answered = m->now + m->service_ns / 4;
    if (!refused) {
        m->free_at[seat] = MAX(m->free_at[seat], m->now) + took;
        m->calls[m->n].answered =
            m->free_at[seat] + (m->has_slow_ones && m->sent++ % 2 ? 300 * NS_PER_MS : 0);
    }
    m->n++;
    m->most = MAX(m->most, m->l.in_flight);
}

/* The next answer. */
static void answer_call(struct model *m)
{
    size_t first = 0;
    for (size_t i = 1; i < m->n; i++)
        first = m->calls[i].answered < m->calls[first].answered ? i : first;
    m->now = MAX(m->now, m->calls[first].answered);
    bool refused = m->calls[first].refused;
    limiter_answered(&m->l,
                     &(struct limiter_answer){ .kind = 1,
                                               .verdict =
                                                   refused ? LIMITER_OVERLOADED : LIMITER_SERVED,
                                               .latency_ns = m->now - m->calls[first].sent,
                                               .hold_ns = refused ? NS_PER_S : 0 },
                     m->now);
    m->calls[first] = m->calls[--m->n];
    m->served += !refused;
    m->refused += refused;
}

/* As many requests as are allowed, always, until so many were served. */
static void run_model(struct model *m, size_t served)
{
    for (size_t end = m->served + served; m->served < end;) {
        while (limiter_can_send(&m->l, m->now))
            send_call(m);
        if (m->n)
            answer_call(m);
        else
            m->now = limiter_wake_ns(&m->l, m->now);
    }
}

/* Enough to keep all seats busy, and hardly more: then the server is as fast as it can be, and no client waits for us. */
static void it_finds_what_the_server_takes(void)
{
    static const size_t seats[] = { 1, 2, 4, 8, 16, 32, 64 };
    for (size_t i = 0; i < countof(seats); i++) {
        static struct model m;
        start_model(&m, seats[i], 5 * NS_PER_MS, i);
        run_model(&m, 3000);
        int64_t start = m.now;
        run_model(&m, 3000);
        double best = 3000.0 * 5e6 / (double)seats[i], took = (double)(m.now - start);
        OK(took < 1.3 * best);
        OK(m.l.limit <= (double)MAX(seats[i] * 3, (size_t)(2 * LIMITER_FLOOR)));
    }
}

/* A server that one request keeps busy: more in flight would only make others wait. The latencies vary, so that a fast request
 * proves nothing. */
static void a_busy_server_is_left_to_others(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        static struct model m;
        start_model(&m, 1, 5 * NS_PER_MS, seed);
        m.is_uneven = true;
        run_model(&m, 500);
        double in_flight = 0;
        int64_t start = m.now;
        for (int i = 0; i < 5000; i++) {
            run_model(&m, 1);
            in_flight += (double)(m.l.in_flight + 1);
        }
        OK(in_flight / 5000 < 2);
        OK((double)(m.now - start) < 1.3 * 5000 * 5e6);
    }
}

/* A slow server is not a busy one: 200 ms across an ocean, with room for all. */
static void distance_is_not_load(void)
{
    static struct model m;
    start_model(&m, 1000, 200 * NS_PER_MS, 7);
    run_model(&m, 4000);
    OK(m.l.limit > 100);
}

/* A webhook that delays every second request is no reason to send less of the others. */
static void slow_objects_are_not_load(void)
{
    static struct model m;
    start_model(&m, 16, 5 * NS_PER_MS, 9);
    m.has_slow_ones = true;
    run_model(&m, 4000);
    OK(m.l.limit >= 16);
}

/* The server loses most of its seats: the limit follows, and grows again when they return. */
static void it_follows_the_server(void)
{
    static struct model m;
    start_model(&m, 32, 5 * NS_PER_MS, 3);
    run_model(&m, 3000);
    double before = m.l.limit;
    m.seats = 4;
    run_model(&m, 2000);
    OK(m.l.limit < before / 2);
    for (size_t i = 0; i < 32; i++)
        m.free_at[i] = m.now;
    m.seats = 32;
    run_model(&m, 6000);
    OK(m.l.limit > 24);
}

/* The latency of a server that became slow for other reasons is its new normal. */
static void a_new_normal_is_learned(void)
{
    static struct model m;
    start_model(&m, 32, 5 * NS_PER_MS, 4);
    run_model(&m, 3000);
    m.service_ns = 50 * NS_PER_MS;
    run_model(&m, 4000);
    OK(m.l.limit > 24);
}

/* A refusal halves the limit once per round trip and holds everything back for as long as the server asks. */
static void refusals_are_respected(void)
{
    struct limiter l;
    limiter_init(&l, 0);
    l.limit = 64;
    for (int i = 0; i < 64; i++)
        limiter_sent(&l, NS_PER_S);
    int64_t now = NS_PER_S + 10 * NS_PER_MS;
    for (int i = 0; i < 64; i++) /* all of one round trip */
        limiter_answered(&l,
                         &(struct limiter_answer){ .verdict = LIMITER_OVERLOADED,
                                                   .latency_ns = 10 * NS_PER_MS,
                                                   .hold_ns = 2 * NS_PER_S },
                         now);
    EQ_INT((int64_t)l.limit, 32);
    OK(!limiter_can_send(&l, now));
    EQ_INT(limiter_wake_ns(&l, now), now + 2 * NS_PER_S);
    OK(limiter_can_send(&l, now + 2 * NS_PER_S));
    static struct model m;
    start_model(&m, 100, 5 * NS_PER_MS, 5);
    m.refuse_above = 10;
    run_model(&m, 2000);
    OK(m.refused < m.served / 20);
    OK(m.l.in_flight <= 20);
}

/* After a minute of silence, the limit is careful again. */
static void silence_forgets(void)
{
    static struct model m;
    start_model(&m, 100, 5 * NS_PER_MS, 6);
    run_model(&m, 3000);
    OK(m.l.limit > LIMITER_FIRST);
    while (m.n)
        answer_call(&m);
    m.now += 61 * NS_PER_S;
    send_call(&m);
    EQ_INT((int64_t)m.l.limit, LIMITER_FIRST);
}

/* Whatever happens: at least one request may be in flight once the hold is over, and never more than the most. */
static void bounds_hold(void)
{
    struct random r;
    random_init(&r, 11, 1);
    for (int run = 0; run < 200; run++) {
        struct limiter l;
        int64_t now = NS_PER_S;
        limiter_init(&l, 0);
        for (int i = 0; i < 500; i++) {
            now += (int64_t)random_below(&r, 20 * NS_PER_MS);
            while (l.in_flight < 300 && limiter_can_send(&l, now) && random_below(&r, 8))
                limiter_sent(&l, now);
            if (l.in_flight)
                limiter_answered(&l,
                                 &(struct limiter_answer){
                                     .kind = (unsigned)random_below(&r, LIMITER_KINDS),
                                     .verdict = (enum limiter_verdict)random_below(&r, 3),
                                     .latency_ns = (int64_t)random_below(&r, 2000000000),
                                     .hold_ns = random_below(&r, 200) * NS_PER_S },
                                 now);
            if (!OK(l.limit >= 1 && l.limit <= LIMITER_MOST) ||
                !OK(l.hold_until_ns <= now + 10 * NS_PER_S))
                return;
        }
    }
    OK(true);
}

static void a_fixed_number_stays(void)
{
    struct limiter l;
    limiter_init(&l, 3);
    for (int i = 0; i < 3; i++) {
        OK(limiter_can_send(&l, 0));
        limiter_sent(&l, 0);
    }
    OK(!limiter_can_send(&l, 0));
    limiter_answered(&l, &(struct limiter_answer){ .verdict = LIMITER_OVERLOADED }, 1);
    OK(limiter_can_send(&l, 1));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(it_finds_what_the_server_takes),
                                        TAP(a_busy_server_is_left_to_others),
                                        TAP(distance_is_not_load),
                                        TAP(slow_objects_are_not_load),
                                        TAP(it_follows_the_server),
                                        TAP(a_new_normal_is_learned),
                                        TAP(refusals_are_respected),
                                        TAP(silence_forgets),
                                        TAP(bounds_hold),
                                        TAP(a_fixed_number_stays),
                                        { 0 } });
}
