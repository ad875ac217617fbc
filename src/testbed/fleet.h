/* A fleet of simulated replicas under recorded traffic and a scaling policy, in virtual time.
 *
 * One model, up to FLEET_VARIANTS_MAX variants of it (the same model on other hardware). Pure: no clock, no
 * I/O; the same configuration, trace and seed give the same result, byte for byte. The rules:
 *
 *   router      a request goes to the ready replica with the least
 *               (blocks in use * block size + 4 * waiting prompt tokens) / cache size in tokens.
 *               No replica ready: it waits in the gateway's queue. A replica that becomes ready takes
 *               FLEET_TAKEN_AT_ONCE of that queue; the rest follows when a replica has nothing waiting.
 *   start       a replica serves `start_mean_s` +- `start_sd_s` (normal, at least half the mean) after it was
 *               asked for, and costs from that moment on.
 *   scale down  replicas that are not ready go first, then the youngest. A ready one drains: it gets nothing
 *               new, gives back what waits, finishes what runs, and costs until it is gone. Requests that take
 *               longer than `grace_s` to finish there count as broken: a kubelet would have killed the pod. With
 *               `marks_victims` the least busy goes instead of the youngest, as with --wva-deletion-cost.
 *   scrapes     every `scrape_s`, each replica at a phase of its own; the gateway likewise. Policies see only
 *               what Prometheus would answer them (fleet_query.h), from second FLEET_POLICY_FROM_S on.
 *   score       a request attains its objective when its time to first token and its mean time per output
 *               token are within the targets. What has not ended when the fleet is given up on, has not.
 *   cost        sum over replicas of cost * hours from creation until gone, up to the end of the trace. */
#ifndef FLYBALL_FLEET_H
#define FLYBALL_FLEET_H

#include "replica_model.h"
#include "series.h"

#include "../base/str.h"

enum {
    FLEET_VARIANTS_MAX = 16,
    FLEET_REASON_ROOM = 256,
    FLEET_TAKEN_AT_ONCE = 64,
    FLEET_POLICY_FROM_S = 30,
    FLEET_AT_ONCE_S = 1,
    FLEET_GATEWAY_SCRAPES = 64,
};

struct fleet_variant {
    str name;
    double cost; /* of a replica for an hour */
    int min, max;
    int initial; /* < 0: not given */
    struct replica_profile profile;
};

struct fleet_config {
    const struct fleet_variant *variants;
    size_t variant_n;
    double ttft_s, itl_s;
    double goal;                      /* share of requests, 0..1 */
    double reserve, reserve_replicas; /* of slo: share and replicas to hold free; 0: none */
    double start_mean_s, start_sd_s;
    double scrape_s;
    double scrape_loss;              /* share of scrapes that fail */
    bool has_gateway;                /* its metrics are there */
    double grace_s;                  /* that a replica has to finish what runs */
    bool marks_victims;              /* the least busy replica is removed first */
    double mean_prompt, mean_output; /* tokens of the trace, for peers that are tuned beforehand */
    uint64_t seed;
    const struct policy_history
        *history; /* of slo; borrowed; NULL: nothing is known at the start */
};

struct fleet;

/* What a policy answers: replicas wanted of each variant, and why. */
struct fleet_answer {
    int targets[FLEET_VARIANTS_MAX];
    char reason[FLEET_REASON_ROOM];
};

/* A scaling policy. `step` gets targets set to the current ones. */
struct fleet_policy {
    const char *name;
    double period_s;
    void (*step)(struct fleet_policy *p, const struct fleet *f, struct fleet_answer *answer);
    void (*free)(struct fleet_policy *p); /* may be NULL */
    bool at_once; /* its metrics are older than the run: the first step is after FLEET_AT_ONCE_S */
};

enum fleet_phase { FLEET_STARTING, FLEET_READY, FLEET_DRAINING, FLEET_GONE };

struct fleet_replica {
    struct replica model;  /* not of one that starts or is gone */
    struct series *series; /* owned; NULL before it was ready */
    size_t variant;
    enum fleet_phase phase;
    struct fleet *fleet;
    int64_t created_ns, ready_ns, drained_ns, gone_ns;
    int64_t scrape_ns; /* next */
    char name[24];     /* the pod's */
};

struct fleet_gateway_scrape {
    double at_s, requests, queued;
};

struct fleet_request {    /* outcome */
    float ttft_s, tpot_s; /* NaN: not served */
};

struct fleet_point { /* every FLEET_POINT_S, for pictures */
    float arrivals;  /* requests per second */
    float attained;  /* share of those that arrived; NaN: none */
    uint32_t count, ok;
    int16_t ready[FLEET_VARIANTS_MAX], current[FLEET_VARIANTS_MAX];
};
enum { FLEET_POINT_S = 15 };

struct fleet_points {
    VEC(struct fleet_point) points;
};

struct fleet {
    const struct fleet_config *config;
    struct fleet_policy *policy; /* NULL: nothing changes */
    int64_t now_ns, end_ns;
    struct random random;
    VEC(struct fleet_replica *)
    replicas;                        /* that exist or whose series can still be asked; by age */
    int current[FLEET_VARIANTS_MAX]; /* wanted, and so existing and not draining */
    int ready[FLEET_VARIANTS_MAX];
    uint64_t made; /* replicas so far */
    int64_t timer_ns;

    VEC(struct replica_request) gateway_queue; /* from `gateway_first` on */
    size_t gateway_first;
    uint64_t gateway_requests;
    struct fleet_gateway_scrape gateway[FLEET_GATEWAY_SCRAPES]; /* ring */
    size_t gateway_n;
    int64_t gateway_scrape_ns;
    /* replicas that became ready since the last step, and their mean time to it; NaN: none */
    int started[FLEET_VARIANTS_MAX];
    double start_s[FLEET_VARIANTS_MAX];

    struct fleet_request *outcome; /* borrowed from the caller of fleet_run(), [requests] */
    int64_t step_ns;
    double cost;
    uint64_t changes;
    uint64_t served, missed, broken;
    uint64_t misses_max; /* 0: any number */
    bool aborted;
    const struct fleet_hooks *hooks;
    struct fleet_points course;
};

struct fleet_hooks { /* each may be NULL */
    void (*decided)(void *context, const struct fleet *f, const int *before,
                    const struct fleet_answer *answer);
    bool (*progress)(void *context, double share); /* false: give up */
    void *context;
};

struct fleet_trace {
    const struct replica_request *at; /* ascending arrived_ns, from 0 on; ids are not used */
    size_t n;
};

struct fleet_score {
    double attained; /* share, 0..1 */
    double cost;
    double
        worst_minute; /* least share of a minute with at least 10 requests; of all if there is none */
    double changes_per_hour;
    double p99_ttft_s, p99_tpot_s; /* unserved requests count as infinite */
    uint64_t requests, served;
    uint64_t broken; /* still running when the grace period of their replica ended */
    bool aborted;    /* the run was given up: the numbers are of a part */
};

struct fleet_run {
    const struct fleet_config *config;
    struct fleet_trace trace;
    const int *initial; /* replicas of each variant, ready at second 0 */
    struct fleet_policy *policy;
    const struct fleet_hooks *hooks; /* may be NULL */
    uint64_t misses_max;             /* give up beyond so many requests that missed; 0: never */
};

/* `ret_course` (the caller's to vec_done, may be NULL) gets the course of the run. */
struct fleet_score fleet_simulate(const struct fleet_run *run, struct fleet_points *ret_course);

static inline double fleet_now_s(const struct fleet *f)
{
    return (double)f->now_ns / 1e9;
}

#endif
