/* Shared by the files of the node agent only. */
#ifndef FLYBALL_MARKET_AGENT_INTERNAL_H
#define FLYBALL_MARKET_AGENT_INTERNAL_H

#include "../base/set.h"
#include "../kube/manager.h"
#include "hpa_peace_core.h"
#include "joint_core.h"
#include "latency.h"
#include "latency_core.h"
#include "market_agent_config.h"
#include "market_agent_metrics.h"
#include "market_agent_pod.h"
#include "memory_track_core.h"
#include "qtable_store.h"
#include "sampler.h"

#define MARKET_NODE "mbcas.io/node" /* label of a PodAllocation: the node whose agent wrote it */

struct agent_objective { /* latency objective of a pod */
    double target_ms;
    int64_t answered_ns; /* monotonic time of the last answer; 0: none */
    struct latency_state state;
};

struct agent_memory_container { /* the memory of one container */
    struct memory_track track;
    int64_t oom_kills, stalled_usec, read_usec; /* of the last reading; read_usec 0: none */
    int64_t oom_ns;                             /* wall clock of the last kill by the status */
    int64_t desired_limit, desired_request;     /* bytes; limit 0: nothing was decided yet */
    bool shrink, swap;
    const char *reason; /* of the last decision */
};

struct agent_memory {
    int64_t refused_until_ns; /* wall clock; 0: the node refused nothing */
    bool changed;             /* and not written yet */
    size_t n;
    struct agent_memory_container at[]; /* in the order of the pod's containers, then sidecars */
};

struct agent_memory_sum { /* of a pod's containers */
    bool is_known;
    int64_t working_set, need, limit, request;
    double psi; /* -1: unknown */
    const char *reason;
};

struct agent_pod {          /* one pod in the market */
    struct set_node by_uid; /* in market_agent.by_uid */
    bool seen;              /* found by the current sync */
    struct sampled sampled;
    const struct agent_pod_record *record; /* holds a reference */
    struct agent_objective *objective;     /* owned; NULL: none */
    struct agent_changes *changes;         /* owned; NULL: no limit was requested yet */
    struct agent_memory *memory;           /* owned; NULL: memoryManagement is off */
    int64_t written_ns;                    /* monotonic time of the last write; 0: never */
    int64_t priced_ns;                     /* the same for the price */
    int64_t infeasible_until_ns;           /* wall clock; 0: no end */
    int32_t infeasible_milli;       /* a limit that does not fit on the node; 0: none known */
    int32_t desired_request_milli;  /* goes with sampled.wanted_milli */
    int32_t written_milli;          /* desired limit in its PodAllocation; 0: none */
    int32_t original_request_milli; /* before the first resize; 0: none */
    int32_t least_milli;            /* limit that no resize can go below; 0: none */
    float price;                    /* in the status of its PodAllocation; -1: none */
    struct agent_rewards rewards;
};

struct market_agent {
    struct manager *manager;
    struct loop *loop;
    str node;                /* borrowed from the settings */
    str excluded;            /* the same: comma-separated namespaces */
    str own_ns;              /* --market-namespace, or where the agent runs */
    str config_ns;           /* of mbcas-agent-config */
    struct buf node_label;   /* the node's name as a label value */
    struct buf selectors[3]; /* of the caches, which borrow them */
    struct cache *pods, *nodes, *allocations, *configs, *hpas;
    struct controller *controller;
    struct cgroup_tree tree;
    struct sampler *sampler;
    struct set by_uid; /* struct agent_pod, owned */
    struct agent_config config;
    struct qtable_store *qtables;
    struct latency *latency;
    struct agent_metrics metrics;
    int64_t reserved_milli;    /* requests of the pods that do not take part */
    int64_t reserved_bytes;    /* the same of memory */
    struct memory_node memory; /* of the last round */
    int64_t memory_ns;         /* monotonic time of it; 0: none */
    struct joint_result joint; /* both prices, of the same round */
    VEC(char *) problems;      /* settings that are invalid, one sentence each; owned */
    int64_t excluded_n;        /* pods that do not take part */
    struct controller *reporter;
    int64_t reported_ns; /* monotonic time of the last NodeMarket; 0: write one */
    bool has_report;     /* the object exists */
    double price;        /* published: the same for all pods of the node */
    int64_t short_ns;    /* monotonic: when growth last had to wait for other pods to shrink */
    uint64_t seed, counted_errors;
    bool dirty;         /* pods or the node changed: sync all of them */
    bool reload;        /* the configuration changed */
    bool rounded;       /* a slow round ran in this tick */
    int startup_rounds; /* slow rounds since the start, up to STARTUP_ROUNDS */
    bool running;       /* the caches are synced and the Q-tables loaded */
};

static inline struct agent_pod *market_agent_at(const struct market_agent *a, size_t i)
{
    return container_of(sampler_at(a->sampler, i), struct agent_pod, sampled);
}

struct agent_pod *market_agent_find_pod(struct market_agent *a, str ns, str name);

/* market_agent_sync.c: which pods take part; configuration */
void market_agent_sync(void *context);
int64_t market_agent_capacity(void *context);
int64_t market_agent_allocatable(void *context);
int64_t market_agent_cores(void *context);
void market_agent_remove_all(struct market_agent *a);
int market_agent_load_config(struct market_agent *a, err_t *e);

/* market_agent_hpa.c: requests held for HPAs, startup boosts */
void market_agent_apply_guarantees(const struct market_agent *a, struct agent_pod *pod);
struct hpa_peace_result market_agent_peace(const struct market_agent *a,
                                           const struct agent_pod *pod, str *ret_hpa);

/* Does an HPA divide by the pod's request of this resource? */
bool market_agent_is_divided(const struct market_agent *a, const struct agent_pod_record *pod,
                             str resource);

/* market_agent_memory.c: memory of the node's pods */
void market_agent_read_memory(struct market_agent *a); /* at each tick */
struct json *market_agent_desired_memory(struct arena *a,
                                         const struct agent_pod *pod);                 /* or NULL */
struct json *market_agent_memory_status(struct arena *a, const struct agent_pod *pod); /* or NULL */
struct agent_memory_sum market_agent_sum_memory(const struct agent_pod *pod);

/* market_agent_status.c: what the agent writes into the status of a PodAllocation */
struct json *market_agent_make_status(struct arena *arena, const struct market_agent *a,
                                      const struct agent_pod *pod);

/* Members of a status: "250m"; a number with three decimals, at most PRICE_MAX. */
void market_agent_set_milli(struct arena *arena, struct json *o, const char *key, int64_t milli);
void market_agent_set_real(struct arena *arena, struct json *o, const char *key, double value);

/* What is wrong with the pod's annotations, one sentence each. */
struct json *market_agent_pod_problems(struct arena *arena, const struct agent_pod *pod);

/* market_agent_node.c: the NodeMarket */
void market_agent_add_problem(struct market_agent *a, const char *sentence);
void market_agent_clear_problems(struct market_agent *a);
void market_agent_emit_problems(struct market_agent *a);
void market_agent_queue_report(struct market_agent *a); /* after a slow round */
struct reconciled market_agent_report(struct reconcile *r);

/* market_agent_write.c: PodAllocations */
bool market_agent_is_written(const struct market_agent *a, const struct agent_pod *pod);
struct reconciled market_agent_write(struct reconcile *r);
void market_agent_read_status(struct agent_pod *pod,
                              const struct agent_allocation_record *allocation);
const struct agent_allocation_record *market_agent_find_allocation(const struct market_agent *a,
                                                                   str ns, str pod);

#endif
