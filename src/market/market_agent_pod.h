/* What the node agent keeps of a pod, and what it makes of it: whether the pod takes part in the market, what
 * limit is in force, and what its owner asked for. Pure: records in, plain values out. */
#ifndef FLYBALL_MARKET_AGENT_POD_H
#define FLYBALL_MARKET_AGENT_POD_H

#include "market_records.h"

#define MARKET_MIN_CPU "mbcas.io/min-cpu" /* annotations, quantities */
#define MARKET_MAX_CPU "mbcas.io/max-cpu"
#define MARKET_TARGET_LATENCY "mbcas.io/target-latency-ms" /* annotation, a number */

struct agent_container {
    uint64_t name_sum;                  /* names tell which status is whose */
    int64_t request_milli, limit_milli; /* -1: none */
    bool sidecar;                       /* of an init container: it goes on running */
    bool restarts;                      /* when resized */
};

struct agent_container_status {
    uint64_t name_sum;
    int64_t limit_milli;    /* in force; -1: not reported */
    int64_t admitted_milli; /* request that the node has room for; -1: not reported */
};

struct agent_pod_record {
    struct record meta;
    bool running, succeeded, failed; /* phase */
    bool best_effort, guaranteed;    /* quality of service */
    bool windows, deleting, mirror;
    bool opted_out[2], opted_in[2]; /* by label, by annotation */
    bool unskipped;                 /* though guaranteed */
    bool may_restart;               /* by a resize; else such containers stay as they are */
    int64_t min_milli, max_milli;   /* 0: not said, or not a quantity */
    str target_latency;
    str owner_kind, owner_name, template_hash;
    LIST(struct agent_container) containers, init_containers;
    LIST(struct agent_container_status) statuses, init_statuses;
};

struct agent_node_record {
    struct record meta;
    int64_t allocatable_milli; /* 0: not said */
};

struct agent_config_record { /* of the ConfigMap */
    struct record meta;
    str data; /* JSON */
};

struct agent_allocation_record { /* a PodAllocation, in the namespace of its pod */
    struct record meta;
    str pod_name, node;
    uint64_t owner_uid_sum;
    int64_t limit_milli, request_milli; /* desired; 0: not said, or not a quantity */
    int64_t infeasible_milli;           /* 0: none */
    int64_t infeasible_until_ns;        /* wall clock; 0: for ever */
    double price;                       /* -1: none */
};

/* Without selectors: the agent adds its node's name. */
extern const struct cache_spec agent_pod_cache, agent_node_cache, agent_config_cache,
    agent_allocation_cache;

/* Why a pod does not take part; the first that holds. */
enum agent_exclusion {
    AGENT_TAKES_PART,
    AGENT_NOT_RUNNING,
    AGENT_ENDING,
    AGENT_NAMESPACE,   /* excluded by the agent's settings */
    AGENT_OPTED_OUT,   /* mbcas.io/managed: "false" */
    AGENT_STATIC,      /* a mirror pod: cannot be resized */
    AGENT_WINDOWS,     /* likewise */
    AGENT_BEST_EFFORT, /* likewise */
    AGENT_GUARANTEED,  /* unless mbcas.io/skip-guaranteed: "false" */
    AGENT_NO_LIMIT, /* a container without a limit: one that is added cannot be removed again. Unless
                       mbcas.io/managed: "true" */
    AGENT_EXCLUSION_N
};

struct agent_pod_view {
    enum agent_exclusion exclusion;
    int64_t limit_milli, request_milli; /* in force, of all containers together; limit 0: none */
    int64_t reserved_milli;             /* its request, where the market must leave it room */
    int64_t min_milli, max_milli;       /* asked for, as far as a resize can do it; 0: none */
    double target_ms;                   /* 0: no objective */
};

/* `excluded` are namespaces with commas between. */
struct agent_pod_view agent_pod_view(const struct agent_pod_record *r, str excluded);

/* The request to wish along with a limit: one that a resize can give. */
int64_t agent_pod_request(const struct agent_pod_record *r, int64_t limit_milli);

/* Under which a workload's learning is kept: "shop.Deployment.web". Made of characters that a ConfigMap's
 * keys may have, at most 253. */
void agent_workload_key(const struct agent_pod_record *r, struct buf *out);

/* "<namespace>-<pod>", or a beginning of it and a fingerprint where that is too long. */
void agent_allocation_name(str ns, str pod, struct buf *out);

/* `text` when it is at most `most` bytes, else its beginning and a fingerprint. */
void agent_put_name(str text, size_t most, struct buf *out);

#endif
