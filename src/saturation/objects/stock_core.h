/* The stock of accelerators: which nodes have how many of which product, how many are free, and how
 * many replicas of a variant still fit.
 *
 * A node counts for a variant if the scheduler could place its pods there: it is not cordoned, it is
 * ready, the pods tolerate its taints and select it. A pod needs its GPUs on one node, so that four
 * free GPUs on each of two nodes are no place for a pod with eight. */
#ifndef FLYBALL_STOCK_CORE_H
#define FLYBALL_STOCK_CORE_H

#include "../../base/arena.h"
#include "text_core.h"

struct stock_resource {
    const char *vendor, *resource, *product_label;
};
enum { STOCK_RESOURCE_N = 5 };
extern const struct stock_resource stock_resources[STOCK_RESOURCE_N];

/* Whether a label of nodes names the product, by the vendor or by a cloud. */
bool stock_is_product_label(str label);

struct stock_taint {
    str key, value, effect;
};

struct stock_toleration {
    str key, value, effect; /* "": any */
    bool exists;            /* operator Exists: any value */
};

enum stock_ready { STOCK_NOT_READY, STOCK_READY };

struct stock_node {
    str name;
    const struct text_pair *labels;
    size_t label_n;
    const struct text_pair *allocatable; /* resource and quantity */
    size_t allocatable_n;
    bool unschedulable;
    enum stock_ready ready;
    const struct stock_taint *taints;
    size_t taint_n;
};

struct stock_pod {
    str node;  /* "": not bound yet */
    str type;  /* of the variant it belongs to; for pods that are not bound */
    bool done; /* Succeeded or Failed */
    int64_t gpus;
};

/* WVA counts every node with a product label, whatever its state, and only the newer label of AMD. */
enum stock_rules { STOCK_OURS, STOCK_WVA };

struct stock_item { /* the accelerators of one product on one node */
    str node, product;
    str type; /* short name */
    const char *vendor;
    int64_t count; /* allocatable */
    int64_t used;  /* by all pods that are bound to the node */
    const struct stock_node *at;
};

struct stock {
    struct stock_item *items;
    size_t n;
};

/* The node's items live in the arena and refer to the nodes. */
struct stock stock_count(struct arena *a, const struct stock_node *nodes, size_t node_n,
                         const struct stock_pod *pods, size_t pod_n, enum stock_rules rules);

/* ---- for one variant */

struct stock_need {
    str type; /* short name; compared without case */
    int64_t gpus_per_pod, pods_per_replica;
    const struct text_pair *node_selector;
    size_t node_selector_n;
    const struct stock_toleration *tolerations;
    size_t toleration_n;
    const struct json *terms; /* nodeSelectorTerms of the required nodeAffinity; NULL: none */
};

struct stock_room {
    int64_t total, free; /* accelerators on nodes that fit */
    int64_t replicas;    /* that can be placed now */
    int64_t excluded;    /* accelerators of that type on nodes that do not fit */
    bool fragmented;     /* enough are free for one more replica, but not on one node */
    const char *why;     /* why nodes are excluded: cordoned, not ready, tainted, not selected */
};

struct stock_room stock_room_for(const struct stock *stock, const struct stock_need *need);

/* GPUs of a pod: what its containers request together, or the largest init container. */
int64_t stock_pod_gpus(const int64_t *containers, size_t n, const int64_t *init, size_t init_n);

#endif
