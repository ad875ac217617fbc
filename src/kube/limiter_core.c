/* The arithmetic of requests in flight: see limiter_core.h.
 *
 * Each answer gives the ratio of its latency to the base latency of its kind. At the end of a window, which is about one
 * round trip, the ratio that a quarter of them does not reach decides. Congestion slows all requests, also the fastest; a
 * webhook of one tenant slows only some, and must not take the others' share:
 *
 *     below 1.3   and the limit was used: grow, at first by doubling, later by half the square root of the limit
 *     1.3 to 1.7  stay
 *     above 1.7   shrink towards the limit at which the ratio would be 1.3, at most by half, not below LIMITER_FLOOR
 *     429, 504    shrink by half, down to one request, and stay below the limit that was refused for half a minute; Retry-After
 *                 holds everything back for that time
 *
 * The base is the latency of requests that were sent while at most LIMITER_FLOOR were in flight: we cause no more than
 * that in any case, so whatever it costs is the server's normal. It follows faster requests three times as fast as slower ones,
 * and so is low in their range, like the quartile that is compared with it: beside the mean, twice the latency would
 * look flat. Other requests only lower it. A server that becomes slow for
 * other reasons therefore drives the limit down to the floor, where the base follows, and the limit grows again. A minimum
 * without that rule would be a lucky sample, and would keep the limit down for ever.
 *
 * Rejected: a target in milliseconds (a server across an ocean is not in trouble), and the mean or the longest latency (one
 * slow webhook would lower the limit for all). Two requests in flight at least were rejected, too: on a small server the second
 * one already doubles the latency of everybody, and gains nothing. */
#include "limiter_core.h"

#include "../base/clock.h"

#include <math.h>

static const double grow_below = 1.3, shrink_above = 1.7;
/* Latencies below this are the scheduler's noise. */
static const double noise_ns = 300e3;
/* After a pause this long the limit is no longer evidence about the server. */
static const int64_t idle_ns = 60 * NS_PER_S;
static const int64_t hold_most_ns = 10 * NS_PER_S;
/* How long a limit that was refused is not tried again. */
static const int64_t ceiling_ns = 30 * NS_PER_S;
static const double follow = 0.1; /* weight of a new sample in base_ns */
enum { WINDOW_LEAST = 8 };

void limiter_init(struct limiter *l, size_t fixed)
{
    *l = (struct limiter){ .limit = LIMITER_FIRST, .fixed = fixed };
}

bool limiter_can_send(const struct limiter *l, int64_t now_ns)
{
    if (l->fixed)
        return l->in_flight < l->fixed;
    return l->in_flight < (size_t)l->limit && now_ns >= l->hold_until_ns;
}

int64_t limiter_wake_ns(const struct limiter *l, int64_t now_ns)
{
    return !l->fixed && l->hold_until_ns > now_ns ? l->hold_until_ns : INT64_MAX;
}

static void start_window(struct limiter *l)
{
    l->samples = 0;
    l->most_in_flight = l->in_flight;
}

void limiter_sent(struct limiter *l, int64_t now_ns)
{
    if (!l->in_flight && l->last_ns && now_ns - l->last_ns > idle_ns) {
        l->limit = MIN(l->limit, (double)LIMITER_FIRST);
        l->is_past_start = false;
        start_window(l);
    }
    l->in_flight++;
    l->most_in_flight = MAX(l->most_in_flight, l->in_flight);
    l->last_ns = now_ns;
}

static void set_limit(struct limiter *l, double limit, double least, int64_t now_ns)
{
    l->limit = MAX(least, MIN(limit, (double)LIMITER_MOST));
    if (now_ns < l->ceiling_until_ns)
        l->limit = MAX(1, MIN(l->limit, l->ceiling));
}

/* The server refused. Requests that were sent before the last change belong to the old limit. */
static void shrink_refused(struct limiter *l, const struct limiter_answer *answer, int64_t now_ns)
{
    l->hold_until_ns = MAX(l->hold_until_ns, now_ns + MIN(answer->hold_ns, hold_most_ns));
    if (now_ns - answer->latency_ns < l->shrunk_ns)
        return;
    l->shrunk_ns = now_ns;
    l->is_past_start = true;
    l->ceiling = l->limit * 0.8;
    l->ceiling_until_ns = now_ns + ceiling_ns;
    set_limit(l, l->limit / 2, 1, now_ns);
    start_window(l);
}

/* Learns the base latency of a kind; returns the ratio of this one to it. */
static double compare_latency(struct limiter *l, unsigned kind, double latency_ns)
{
    double *base = &l->base_ns[kind];
    latency_ns = MAX(latency_ns, noise_ns);
    if (*base <= 0)
        *base = latency_ns;
    else if (latency_ns < *base)
        *base += follow * (latency_ns - *base);
    else if (l->most_in_flight <= LIMITER_FLOOR)
        *base += follow / 3 * (latency_ns - *base);
    return latency_ns / *base;
}

static int by_ratio(const void *x, const void *y)
{
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* The end of a window. */
static void adapt_limit(struct limiter *l, int64_t now_ns)
{
    qsort(l->ratios, l->samples, sizeof(l->ratios[0]), by_ratio);
    double ratio = (double)l->ratios[l->samples / 4];
    bool is_used = l->most_in_flight >= (size_t)l->limit;
    if (ratio > shrink_above) {
        double share = MAX(grow_below / ratio, 0.5);
        l->is_past_start = true;
        l->shrunk_ns = now_ns;
        set_limit(l, l->limit * share, MIN(l->limit, (double)LIMITER_FLOOR), now_ns);
    } else if (ratio < grow_below && is_used) {
        double step = l->is_past_start ? MAX(1, sqrt(l->limit) / 2) : l->limit;
        set_limit(l, l->limit + step, 1, now_ns);
    } else if (ratio >= grow_below) {
        l->is_past_start = true;
    }
    start_window(l);
}

void limiter_answered(struct limiter *l, const struct limiter_answer *answer, int64_t now_ns)
{
    assert(l->in_flight && answer->kind < LIMITER_KINDS);
    l->last_ns = now_ns;
    if (answer->verdict == LIMITER_OVERLOADED)
        shrink_refused(l, answer, now_ns);
    if (answer->verdict == LIMITER_SERVED && now_ns - answer->latency_ns >= l->shrunk_ns) {
        l->ratios[l->samples++] =
            (float)compare_latency(l, answer->kind, (double)answer->latency_ns);
    }
    if (l->samples >= MAX((size_t)WINDOW_LEAST, (size_t)l->limit))
        adapt_limit(l, now_ns);
    l->in_flight--;
}
