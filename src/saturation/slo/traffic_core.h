/* The traffic of a model as the slo policy needs it: rates, token means and the share of requests
 * within the latency targets. Filled by the collectors, from Prometheus or from two scrapes of each
 * pod. NaN: unknown. */
#ifndef FLYBALL_TRAFFIC_CORE_H
#define FLYBALL_TRAFFIC_CORE_H

#include "../../base/base.h"

enum { TRAFFIC_BUCKETS = 32 };

/* Requests of the last interval by latency: cumulative counts, sorted by bound; the last bound may
 * be infinite. */
struct sat_traffic_histogram {
    size_t n;
    double bound[TRAFFIC_BUCKETS], count[TRAFFIC_BUCKETS];
};

struct sat_traffic {
    double arrival;               /* requests/s, mean of a minute */
    double arrival_now;           /* of the last scrape interval */
    double in_tokens, out_tokens; /* means */
    double in_tail;               /* tokens of a long prompt */
    double waiting, queued;       /* requests: anywhere, in the gateway */
    double seconds;               /* covered by the histograms */
    struct sat_traffic_histogram ttft, itl;
    double queued_bytes; /* of the requests in the gateway; 0: unknown */
    double hit_rate;     /* of the prefix cache, 0 to 1; 0: unknown */
};

extern const struct sat_traffic sat_traffic_unknown;

/* One replica in the last minute. */
struct sat_traffic_replica {
    double itl_sum, itl_count; /* s, tokens */
    double prompt_rate, gen_rate;
    double running, running_low, running_high;
    double kv, kv_tokens;
};

extern const struct sat_traffic_replica sat_traffic_replica_unknown;

/* Adds the count of a bucket, in any order and from several pods. Invalid numbers and excess
 * buckets are ignored. */
void sat_traffic_add_bucket(struct sat_traffic_histogram *h, double bound, double count);

/* Number of requests in the histogram. */
double sat_traffic_count(const struct sat_traffic_histogram *h);
/* Share of requests at or below `target`; NaN if there are none. */
double sat_traffic_share_within(const struct sat_traffic_histogram *h, double target);
/* Lower bound of the share of requests within both targets: the requests that miss one may not be
 * those that miss the other. */
double sat_traffic_share_ok(const struct sat_traffic *t, double ttft, double itl);

#endif
