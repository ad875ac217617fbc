/* See traffic_core.h.
 *
 * Histograms have few buckets, and the target seldom is one of their bounds. Latencies have tails that fall off
 * like an exponential, so inside a bucket (lo, hi] the tail S is interpolated geometrically: a line would count
 * the requests just above the target as just below. At least half a request stays in the tail: an empty bucket of
 * few requests is no proof of none. */
#include "traffic_core.h"

#include <math.h>

const struct traffic traffic_unknown = { NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, { 0 }, { 0 } };
const struct traffic_replica traffic_replica_unknown = {
    NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN
};

void traffic_add_bucket(struct traffic_histogram *h, double bound, double count)
{
    size_t at = 0;
    if (isnan(bound) || !(count >= 0) || !isfinite(count))
        return;
    while (at < h->n && h->bound[at] < bound)
        at++;
    if (at < h->n && h->bound[at] == bound) {
        h->count[at] += count;
        return;
    }
    if (h->n == TRAFFIC_BUCKETS)
        return;
    memmove(h->bound + at + 1, h->bound + at, (h->n - at) * sizeof(*h->bound));
    memmove(h->count + at + 1, h->count + at, (h->n - at) * sizeof(*h->count));
    h->bound[at] = bound;
    h->count[at] = count;
    h->n++;
}

double traffic_count(const struct traffic_histogram *h)
{
    return h->n ? h->count[h->n - 1] : 0;
}

double traffic_share_within(const struct traffic_histogram *h, double target)
{
    double all = traffic_count(h), low = 0, tail = all;
    if (!(all > 0))
        return NAN;
    for (size_t i = 0; i < h->n; i++) {
        double next = fmax(all - h->count[i], 0);
        if (target <= h->bound[i]) {
            if (!isfinite(h->bound[i]) || tail <= 0) /* nothing is known beyond the last bound */
                return 1 - fmax(tail, 0) / all;
            double part = (target - low) / (h->bound[i] - low), least = fmin(fmax(next, 0.5), tail);
            return 1 - tail * pow(least / tail, part) / all;
        }
        low = h->bound[i];
        tail = next;
    }
    return 1 - tail / all;
}

double traffic_ok(const struct traffic *t, double ttft, double itl)
{
    double first = traffic_share_within(&t->ttft, ttft), next = traffic_share_within(&t->itl, itl);
    if (isnan(first))
        return NAN;
    return fmax(0, first - (isnan(next) ? 0 : 1 - next));
}
