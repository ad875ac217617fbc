/* A model's traffic as the slo policy wants it: rates, token means and the share of requests within the latency
 * targets. Filled by the collectors, from Prometheus or from two scrapes of each pod; NaN is not known. */
#ifndef FLYBALL_TRAFFIC_CORE_H
#define FLYBALL_TRAFFIC_CORE_H

#include "../base/base.h"

enum { TRAFFIC_BUCKETS = 32 };

/* Requests of the last interval by latency: cumulative, sorted by bound; the last bound may be infinite. */
struct traffic_histogram {
    size_t n;
    double bound[TRAFFIC_BUCKETS], count[TRAFFIC_BUCKETS];
};

struct traffic {
    double arrival;               /* requests/s, mean of a minute */
    double arrival_now;           /* of the last scrape interval */
    double in_tokens, out_tokens; /* means */
    double in_tail;               /* tokens of a long prompt */
    double waiting, queued;       /* requests: anywhere, in the gateway */
    double seconds;               /* that the histograms cover */
    struct traffic_histogram ttft, itl;
};

extern const struct traffic traffic_unknown;

/* Of one replica, of the last minute. */
struct traffic_replica {
    double itl_sum, itl_count; /* s, tokens */
    double prompt_rate, gen_rate;
    double running, running_low, running_high;
    double kv, kv_tokens;
};

extern const struct traffic_replica traffic_replica_unknown;

/* Adds a bucket's count, which may come in any order and of several pods. Ignored: what cannot be, or does not
 * fit. */
void traffic_add_bucket(struct traffic_histogram *h, double bound, double count);

/* Requests in the histogram. 0: none. */
double traffic_count(const struct traffic_histogram *h);
/* Share of them at or below `target`; NaN without any. */
double traffic_share_within(const struct traffic_histogram *h, double target);
/* Share of requests within both targets, at least: who misses one may be who misses the other, or not. */
double traffic_ok(const struct traffic *t, double ttft, double itl);

#endif
