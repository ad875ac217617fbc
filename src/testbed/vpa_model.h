/* The Vertical Pod Autoscaler's recommender, as a reference for the market: decaying histograms of usage,
 * percentiles with a safety margin, bounds that are wider while there is little history. */
#ifndef FLYBALL_VPA_MODEL_H
#define FLYBALL_VPA_MODEL_H

#include "../base/base.h"

enum { VPA_BUCKETS_MAX = 256 };

struct vpa_histogram {
    double first;        /* width of the first bucket; each next one is 5 % wider */
    size_t n;            /* buckets */
    int64_t reference_s; /* weights are relative to this time; 0: no sample yet */
    double total;
    double weight[VPA_BUCKETS_MAX];
};

struct vpa {                          /* one container */
    struct vpa_histogram cpu, memory; /* cores, bytes */
    int64_t first_cpu_s, last_cpu_s;
    uint64_t samples;
    int64_t window_end_s, last_memory_s; /* of the day whose memory peak is being found; 0: none */
    double peak_bytes, oom_peak_bytes;
};

struct vpa_amount {
    int64_t cpu_milli, memory_bytes;
};

struct vpa_recommendation {
    struct vpa_amount target, lower, upper;
};

void vpa_init(struct vpa *vpa);
void vpa_add_cpu(struct vpa *vpa, int64_t at_s, double cores);
void vpa_add_memory(struct vpa *vpa, int64_t at_s, double bytes);
void vpa_add_oom(struct vpa *vpa, int64_t at_s, double requested_bytes);

double vpa_percentile(const struct vpa_histogram *histogram, double share);
struct vpa_recommendation vpa_recommend(const struct vpa *vpa, int containers_in_pod);

#endif
