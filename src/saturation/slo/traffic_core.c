/* See traffic_core.h.
 *
 * Histograms have few buckets, and the target is rarely one of their bounds. Latencies have tails
 * that fall off like an exponential, so inside a bucket (lo, hi] the tail S is interpolated
 * geometrically: a line would count the requests just above the target as just below. At least half
 * a request stays in the tail: an empty bucket of few requests does not prove that the tail is
 * empty. */
#include "traffic_core.h"

#include <math.h>

const struct sat_traffic sat_traffic_unknown = { NAN, NAN, NAN, NAN,   NAN,
                                                 NAN, NAN, NAN, { 0 }, { 0 } };
const struct sat_traffic_replica sat_traffic_replica_unknown = { NAN, NAN, NAN, NAN, NAN,
                                                                 NAN, NAN, NAN, NAN };

void sat_traffic_add_bucket(struct sat_traffic_histogram *h, double bound, double count)
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

double sat_traffic_count(const struct sat_traffic_histogram *h)
{
    return h->n ? h->count[h->n - 1] : 0;
}

double sat_traffic_share_within(const struct sat_traffic_histogram *h, double target)
{
    double all = sat_traffic_count(h), low = 0, tail = all;
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

double sat_traffic_share_ok(const struct sat_traffic *t, double ttft, double itl)
{
    double first = sat_traffic_share_within(&t->ttft, ttft),
           next = sat_traffic_share_within(&t->itl, itl);
    if (isnan(first))
        return NAN;
    return fmax(0, first - (isnan(next) ? 0 : 1 - next));
}
