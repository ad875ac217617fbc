/* What the files of the node agent share; nobody else includes this. */
#ifndef FLYBALL_MARKET_AGENT_INTERNAL_H
#define FLYBALL_MARKET_AGENT_INTERNAL_H

#include "../base/set.h"
#include "../kube/manager.h"
#include "market_agent_config.h"
#include "market_agent_metrics.h"
#include "market_agent_pod.h"
#include "qtable_store.h"
#include "sampler.h"
#include "slo.h"
#include "slo_core.h"

#define MARKET_NODE "mbcas.io/node" /* label of a PodAllocation: whose agent wrote it */

struct agent_objective { /* for a pod's latency */
    double target_ms;
    int64_t told_ns; /* mono, of the last answer; 0: none */
    struct slo_state state;
};

struct agent_pod {          /* one pod in the market */
    struct set_node by_uid; /* hash of its uid */
    bool seen;              /* during a sync */
    struct sampled sampled;
    const struct agent_pod_record *record; /* one reference */
    struct agent_objective *objective;     /* owned; NULL: none */
    struct agent_changes *changes;         /* owned; NULL: nothing was asked for yet */
    int64_t written_ns;                    /* mono, of the last write; 0: never */
    int64_t priced_ns;                     /* mono, likewise of the price */
    int64_t infeasible_until_ns;           /* wall clock; 0: for ever */
    int32_t infeasible_milli;              /* the node cannot give this much; 0: not known */
    int32_t desired_request_milli;         /* goes with sampled.wanted_milli */
    int32_t written_milli;                 /* the limit its PodAllocation says; 0: none */
    float price;                           /* as its PodAllocation says; -1: it says none */
    struct agent_rewards rewards;
};

struct market_agent {
    struct manager *manager;
    struct loop *loop;
    str node;                /* borrowed from the settings */
    str excluded;            /* likewise: namespaces, commas between */
    str own_ns;              /* where we run, or what the setting says */
    str config_ns;           /* of mbcas-agent-config */
    struct buf node_label;   /* the node's name as a label's value */
    struct buf selectors[3]; /* of the caches; borrowed by them */
    struct cache *pods, *nodes, *allocations, *configs;
    struct controller *controller;
    struct cgroup_tree tree;
    struct sampler *sampler;
    struct set by_uid; /* struct agent_pod, owned */
    struct agent_config config;
    struct qtable_store *qtables;
    struct slo *slo;
    struct agent_metrics metrics;
    int64_t reserved_milli; /* requests of what does not take part */
    double price;           /* of the last clearing */
    int64_t short_ns;       /* mono: growth waits for others to shrink since then, or did */
    uint64_t seed, counted_errors;
    bool dirty;   /* pods or the node changed: look at all of them */
    bool reload;  /* the configuration changed */
    bool rounded; /* a slow round ran in this tick */
    bool running; /* caches are synced and the first configuration is read */
};

struct agent_pod *market_agent_find(struct market_agent *a, str ns, str name);

/* market_agent_sync.c: which pods take part, and the configuration */
void market_agent_sync(void *context);
int64_t market_agent_capacity(void *context);
void market_agent_drop_all(struct market_agent *a);
int market_agent_load_config(struct market_agent *a, err_t *e);

/* market_agent_write.c: PodAllocations */
bool market_agent_is_written(const struct market_agent *a, const struct agent_pod *pod);
struct reconciled market_agent_write(struct reconcile *r);
void market_agent_read_status(struct agent_pod *pod,
                              const struct agent_allocation_record *allocation);
const struct agent_allocation_record *market_agent_allocation(const struct market_agent *a, str ns,
                                                              str pod);

#endif
