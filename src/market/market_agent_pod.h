/* The fields of pods, nodes and PodAllocations that the node agent caches, and what follows from
 * them: whether a pod takes part in the market, which limit is in force, and what its owner
 * requested. Pure: records in, plain values out. */
#ifndef FLYBALL_MARKET_AGENT_POD_H
#define FLYBALL_MARKET_AGENT_POD_H

#include "market_records.h"

#define MARKET_MIN_CPU "mbcas.io/min-cpu" /* annotations, quantities */
#define MARKET_MAX_CPU "mbcas.io/max-cpu"
#define MARKET_TARGET_LATENCY "mbcas.io/target-latency-ms" /* annotation, a number */
#define MARKET_ELASTIC "mbcas.io/elastic"             /* annotation, "true": its work can wait */
#define MARKET_HPA "mbcas.io/hpa"                     /* annotation, "hold" or "move" */
#define MARKET_MEMORY_SHRINK "mbcas.io/memory-shrink" /* annotation, "true": limits may fall */
#define MARKET_STARTUP_BOOST "mbcas.io/startup-boost" /* annotation: see boost_core.h */

struct agent_container {
    uint64_t name_sum; /* matches spec and status */
    str name;
    int64_t request_milli, limit_milli;   /* -1: none */
    bool sidecar;                         /* an init container with restartPolicy Always */
    bool restarts;                        /* a resize restarts it */
    bool memory_restarts;                 /* the same, of memory */
    int64_t memory_request, memory_limit; /* thousandths of a byte; -1: none */
};

struct agent_container_status {
    uint64_t name_sum;
    int64_t limit_milli;                   /* in force; -1: not reported */
    int64_t admitted_milli;                /* request that the node admitted; -1: not reported */
    int64_t memory_limit, memory_admitted; /* the same, in thousandths of a byte */
    uint64_t id_sum;                       /* of the container's id with its runtime */
    int64_t ended_ns;                      /* wall clock of its last end; 0: none */
    bool oom_killed;                       /* that was for lack of memory */
};

struct agent_pod_record {
    struct record meta;
    bool running, succeeded, failed; /* phase */
    bool best_effort, guaranteed;    /* QoS class */
    bool windows, deleting, mirror;
    bool opted_out[2], opted_in[2]; /* [0] by label, [1] by annotation */
    bool unskipped;                 /* takes part although it is Guaranteed */
    bool may_restart;     /* a resize may restart containers; otherwise these are not resized */
    str min_cpu, max_cpu; /* annotations, not validated; "": none */
    bool elastic, memory_shrink;
    str hpa, startup_boost;
    int64_t started_ns, ready_ns; /* wall clock; 0: unknown */
    bool ready;                   /* since ready_ns */
    str target_latency;
    str owner_kind, owner_name, template_hash;
    LIST(struct agent_container) containers, init_containers;
    LIST(struct agent_container_status) statuses, init_statuses;
};

struct agent_node_record {
    struct record meta;
    int64_t allocatable_milli;  /* 0: unknown */
    int64_t allocatable_memory; /* thousandths of a byte; 0: unknown */
    str kubelet_version;        /* "v1.34.2" */
};

struct agent_config_record { /* of the ConfigMap */
    struct record meta;
    str data; /* JSON */
};

struct agent_original {                 /* of a container, before the first resize */
    int64_t request_milli, limit_milli; /* 0: none */
};

struct agent_allocation_record { /* a PodAllocation, in the namespace of its pod */
    struct record meta;
    str pod_name, node;
    uint64_t owner_uid_sum;
    int64_t limit_milli, request_milli; /* desired; 0: none, or invalid */
    int64_t infeasible_milli;           /* 0: none */
    int64_t infeasible_until_ns;        /* wall clock; 0: no end */
    int64_t memory_refused_until_ns;    /* wall clock; 0: not refused */
    double price;                       /* -1: none */
    LIST(struct agent_original) originals;
};

struct agent_hpa_metric {
    str type, name, target, container_name, container_target;
    int64_t percent, container_percent; /* of a utilization target; 0: none */
};

struct agent_hpa_record {
    struct record meta;
    str target_kind, target_name;
    int64_t tolerance_milli; /* upward */
    LIST(struct agent_hpa_metric) metrics;
};
enum { AGENT_HPAS_BY_TARGET }; /* index by the name of the target */

extern const struct resource market_node_resource; /* NodeMarket: market_agent_node.c */

/* Without selectors: the agent adds those of its node. */
extern const struct cache_spec market_agent_pod_cache, market_agent_node_cache,
    market_agent_config_cache, market_agent_allocation_cache, market_agent_hpa_cache;

/* Why a pod does not take part: the first reason that applies. */
enum agent_exclusion {
    AGENT_TAKES_PART,
    AGENT_NOT_RUNNING,
    AGENT_ENDING,
    AGENT_NAMESPACE,   /* excluded by the agent's settings */
    AGENT_OPTED_OUT,   /* mbcas.io/managed: "false" */
    AGENT_STATIC,      /* a mirror pod: cannot be resized */
    AGENT_WINDOWS,     /* the same */
    AGENT_BEST_EFFORT, /* the same */
    AGENT_GUARANTEED,  /* unless mbcas.io/skip-guaranteed: "false" */
    AGENT_RESTART,  /* a resize would restart all its containers; unless mbcas.io/allow-restart */
    AGENT_NO_LIMIT, /* a container has no limit, and an added one cannot be removed again; unless
                       mbcas.io/managed: "true" */
    AGENT_EXCLUSION_N
};

struct agent_pod_view {
    enum agent_exclusion exclusion;
    int64_t limit_milli, request_milli; /* in force, sum of all containers; limit 0: none */
    int64_t reserved_milli;             /* its request, if the market must leave it room */
    int64_t reserved_bytes;             /* the same for memory */
    int64_t min_milli, max_milli;       /* of the annotations, bounded by what a resize can give */
    uint32_t problems;                  /* bits of floor_problem: invalid annotations */
    int64_t least_milli; /* of containers that must not be resized; 0: there are none */
    double target_ms;    /* 0: no objective */
};

/* Namespaces whose pods take no part unless the agent is configured otherwise. */
#define MARKET_EXCLUDED_NAMESPACES "kube-system,mbcas-system,flyball-system,flyball-agent"

/* Why, as a sentence without a full stop; "" for a pod that takes part. */
const char *market_agent_pod_exclusion_text(enum agent_exclusion exclusion);

/* `excluded` is a comma-separated list of namespaces. */
struct agent_pod_view market_agent_pod_view(const struct agent_pod_record *r, str excluded);

/* The request to desire along with this limit: the nearest that a resize can give. */
int64_t market_agent_pod_request(const struct agent_pod_record *r, int64_t limit_milli,
                                 int64_t request_milli);

/* The Deployment that owns the pod through a ReplicaSet, from the hash in its name; "": none. */
str market_agent_pod_deployment(const struct agent_pod_record *r);

/* The key of a workload's Q-table: "shop.Deployment.web". A valid key of a ConfigMap, at most 253
 * bytes. */
void market_agent_pod_workload_key(const struct agent_pod_record *r, struct buf *out);

/* The name of the pod's PodAllocation: "<namespace>-<pod>", shortened if necessary. */
void market_agent_pod_allocation_name(str ns, str pod, struct buf *out);

/* Appends `text` if it has at most `most` bytes, otherwise its beginning and a hash. */
void market_agent_pod_shorten_name(str text, size_t most, struct buf *out);

#endif
