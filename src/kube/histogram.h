/* Counts of values by size, for latencies: cumulative when shown, plain while counting. */
#ifndef FLYBALL_KUBE_HISTOGRAM_H
#define FLYBALL_KUBE_HISTOGRAM_H

#include "../base/base.h"

enum { HISTOGRAM_BOUNDS_MAX = 16 };

struct histogram {
    const double *bounds;                      /* upper ends, rising; borrowed */
    size_t n;                                  /* of them */
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* the last: above all bounds */
    uint64_t total;
    double sum;
};

static inline void histogram_add(struct histogram *h, double value)
{
    size_t at = 0;
    while (at < h->n && value > h->bounds[at])
        at++;
    h->counts[at]++;
    h->total++;
    h->sum += value;
}

#endif
