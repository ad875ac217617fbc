/* The loop of a node's market: reads counters once a second and runs the fast and the slow
 * round. The node agent and the local mode each own one; they differ in where pods come from and
 * how a limit is set.
 *
 * There is one timer. At each tick the owner adds and removes pods, counters are read, and the
 * fast and the slow round run if they are due, each on its own windows. A failed read is retried
 * after 100 and 200 ms.
 *
 * The owner owns the pods; the sampler owns their open cgroups. */
#ifndef FLYBALL_SAMPLER_H
#define FLYBALL_SAMPLER_H

#include "../base/vec.h"
#include "../net/loop.h"
#include "cgroup_reader.h"
#include "round_core.h"

struct sampled { /* one pod; embedded in the owner's struct */
    struct market_pod market;
    struct cgroup *cgroup; /* NULL: not found yet */
    int32_t wanted_milli;  /* the limit last requested; 0: none. Pending until it is in force */
    int32_t wanted_request_milli; /* the request that goes with it; 0: none */
    bool
        excluded; /* cannot be resized: does not bid, and what it uses is taken from the capacity */
    float usage_milli, throttled; /* of the last fast window */
    float pressure; /* share of the last slow window in which a task waited for CPU; -1: unknown */
    int64_t pressure_usec; /* private */
    uint32_t place : 24;   /* private */
    uint32_t failures : 8; /* consecutive failures to find or read it */
};

struct round_report {
    struct clearing clearing;
    int64_t capacity_milli; /* that was divided */
    size_t pods;
    const struct market_node *node; /* borrowed until the callback returns */
    int64_t took_ns;                /* CPU time of the slow round */
};

struct sampler_options {
    struct loop *loop;
    struct cgroup_tree *tree;
    /* Called at each tick to update the pods: sampler_add(), sampler_remove(),
     * sampler_set_limit(). */
    void (*sync)(void *context);
    /* Finds the pod's cgroup; a path relative to the tree's root. */
    int (*locate)(void *context, struct sampled *pod, struct buf *ret_path, err_t *e);
    int64_t (*capacity)(void *context); /* millicores for all pods together */
    /* Millicores for the requests of all pods together; NULL: the capacity. */
    int64_t (*allocatable)(void *context);
    int64_t (*cores)(void *context); /* millicores of the whole node; NULL: the capacity */
    /* Requests this limit, and pod->wanted_request_milli. An owner that sets them at once calls
     * sampler_set_limit(). */
    void (*resize)(void *context, struct sampled *pod, int64_t limit_milli);
    void (*on_round)(void *context, const struct round_report *report); /* a slow round is over */
    void (*on_tick)(void *context);                                     /* a tick is over */
    void *context;
    bool sets_requests; /* otherwise limits never exceed the capacity: no weight protects a share */
};

struct sampler;

struct sampler *sampler_new(const struct sampler_options *options);
void sampler_free(struct sampler *s); /* closes the pods' cgroups */

/* Takes effect at once; the first call starts the timer. Copies the config. */
void sampler_configure(struct sampler *s, const struct market_config *config);
const struct market_pod_rules *sampler_rules(const struct sampler *s);
const struct market_node *sampler_node(const struct sampler *s); /* as of the last slow round */
int64_t sampler_limits_capacity(const struct sampler *s);        /* what limits may add up to */

/* `pod` must be zero; its market part is initialized here. */
void sampler_add(struct sampler *s, struct sampled *pod, uint64_t seed);
void sampler_remove(struct sampler *s, struct sampled *pod);

/* Sets what is in force. */
void sampler_set_limit(struct sampled *pod, int64_t limit_milli, int64_t request_milli);

size_t sampler_count(const struct sampler *s);
struct sampled *sampler_at(const struct sampler *s, size_t i);
uint64_t sampler_read_errors(const struct sampler *s);

#endif
