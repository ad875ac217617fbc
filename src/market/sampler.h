/* A node's market as it runs: reads counters once a second, and lets the fast and the slow round follow
 * from them. The node agent and the local mode are two owners of one of these; they differ in where pods
 * come from and in how a limit is set.
 *
 * One timer. At each tick: the owner says which pods there are, counters are read, and then the fast and
 * the slow round run if their time has come, each on windows of its own. A read that fails is tried again
 * after 100 and 200 ms.
 *
 * The owner owns its pods and their options' texts; the sampler owns their open cgroups. */
#ifndef FLYBALL_SAMPLER_H
#define FLYBALL_SAMPLER_H

#include "../base/vec.h"
#include "../net/loop.h"
#include "cgroup_reader.h"
#include "round_core.h"

struct sampled { /* one pod; lives inside its owner's struct */
    struct market_pod market;
    struct cgroup *cgroup; /* NULL: not found yet */
    int32_t wanted_milli;  /* the limit last asked for; 0: none. Pending while it is not in force */
    float usage_milli, throttled; /* of the last fast window */
    float pressure; /* share of the last slow window in which a task waited for CPU; -1: unknown */
    int64_t pressure_usec; /* private */
    uint32_t place : 24;   /* private */
    uint32_t failures : 8; /* to find or read it, in a row */
};

struct round_report {
    struct clearing clearing;
    int64_t capacity_milli; /* that was shared out */
    size_t pods;
    int64_t took_ns; /* of CPU time, all of the slow round */
};

struct sampler_options {
    struct loop *loop;
    struct cgroup_tree *tree;
    /* Which pods there are: sampler_add(), sampler_remove(), sampled_set_limit(). */
    void (*sync)(void *context);
    /* Where the pod's cgroup is, below the tree's root. */
    int (*locate)(void *context, struct sampled *pod, struct buf *ret_path, err_t *e);
    int64_t (*capacity)(void *context); /* millicores for all pods together */
    /* The pod should have this limit; who can set it at once calls sampled_set_limit(). */
    void (*resize)(void *context, struct sampled *pod, int64_t limit_milli);
    void (*rounded)(void *context, const struct round_report *report); /* a slow round is over */
    void (*ticked)(void *context);                                     /* a tick is over */
    void *context;
};

struct sampler;

struct sampler *sampler_new(const struct sampler_options *options);
void sampler_free(struct sampler *s); /* pods' cgroups are closed */

/* Takes effect now; the first call starts the ticking. The config is copied. */
void sampler_configure(struct sampler *s, const struct market_config *config);
const struct market_pod_rules *sampler_rules(const struct sampler *s);

/* `pod` is zeroed but for what its owner set; its market part is begun here. */
void sampler_add(struct sampler *s, struct sampled *pod, uint64_t seed);
void sampler_remove(struct sampler *s, struct sampled *pod);

/* What really holds. */
void sampled_set_limit(struct sampled *pod, int64_t limit_milli, int64_t request_milli);

size_t sampler_count(const struct sampler *s);
struct sampled *sampler_at(const struct sampler *s, size_t i);
uint64_t sampler_read_errors(const struct sampler *s);

#endif
