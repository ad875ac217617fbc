/* Several nodes: which are short of CPU, which have some left, and what would help.
 *
 * The market of a node can only divide what the node has. This compares the nodes and recommends:
 *
 *   Move               a pod of the hottest node that would fit on the node with most left
 *   RaiseMaxReplicas   no node has room, and an HPA at its maximum scales a rationed workload
 *   ScaleOut           the same without an HPA
 *   ScaleIn            a workload on nodes with room has used less than 30 % of its requests for long
 *   AddNode            two thirds of the nodes are hot
 *
 * Recommendations are reported; flyball never evicts, scales or taints by itself. */
#ifndef FLYBALL_MARKET_ADVICE_CORE_H
#define FLYBALL_MARKET_ADVICE_CORE_H

#include "../base/arena.h"
#include "../base/base.h"
#include "../base/str.h"
#include "../base/vec.h"

struct market_advice_node {
    str name;
    int64_t capacity_milli; /* what its market divides */
    int64_t wanted_milli;   /* sum of what its pods can use */
    int64_t memory_free;    /* allocatable without the requests, in bytes; INT64_MAX: unknown */
    double price;           /* shadow price, mean of ten minutes */
    bool unknown;           /* not Ready: neither hot nor cold */
    bool closed;            /* cordoned: no target */
    int64_t spare_milli;    /* output: capacity - wanted; negative: lacks */
    bool hot, cold;         /* output */
};

struct market_advice_pod {
    str ns, name;
    size_t node, workload; /* indexes; workload SIZE_MAX: none */
    int64_t bid_max_milli, got_milli, memory_need;
    bool movable; /* owned by a workload, no local volume, not forbidden, its budget allows it */
};

struct market_advice_workload {
    str ns, kind, name;
    size_t pods;
    bool has_hpa, at_max;
    int64_t used_milli, requested_milli;
    int64_t low_since_s;             /* since when it has used so little; 0: it does not */
    size_t rationed, on_hot, on_any; /* output: pods */
};

enum market_advice_kind {
    MARKET_ADVICE_MOVE,
    MARKET_ADVICE_SCALE_OUT,
    MARKET_ADVICE_SCALE_IN,
    MARKET_ADVICE_RAISE_MAX,
    MARKET_ADVICE_ADD_NODE,
    MARKET_ADVICE_KIND_N
};
enum market_advice_state {
    MARKET_ADVICE_OPEN,
    MARKET_ADVICE_DONE,
    MARKET_ADVICE_EXPIRED,
    MARKET_ADVICE_STATE_N
};
extern const char *const market_advice_kind_names[MARKET_ADVICE_KIND_N];
extern const char *const market_advice_state_names[MARKET_ADVICE_STATE_N];

struct market_advice {
    enum market_advice_kind kind;
    enum market_advice_state state;
    str ns, name;     /* of the pod or workload; "" for AddNode */
    str object;       /* Pod, or the kind of the workload */
    str node, target; /* "" where there is none */
    int64_t gain_milli;
    int64_t since_s, ended_s; /* wall clock */
    str reason;
    bool fresh; /* made by this call */
};
typedef VEC(struct market_advice) market_advice_list;

struct market_advice_view {
    struct market_advice_node *nodes;
    size_t node_n;
    struct market_advice_pod *pods;
    size_t pod_n;
    struct market_advice_workload *workloads;
    size_t workload_n;
    int64_t now_s;
    /* May the pod run on the node: selector, affinity, taints? NULL: everywhere. */
    bool (*fits)(void *context, size_t pod, size_t node);
    void *context;
};

/* Updates `advices` (owned by the caller; texts live in the arena): ends what happened or is too
 * old, forgets what ended long ago, and adds what is new. Returns the number of new ones. */
size_t market_advice_update(struct market_advice_view *view, market_advice_list *advices,
                            struct arena *a);

#endif
