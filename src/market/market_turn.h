/* One turn of the market's controller: gather the input, let actuate_decide() choose the next
 * step, carry it out and report it in the status. Used by market_controller.c only. */
#ifndef FLYBALL_MARKET_TURN_H
#define FLYBALL_MARKET_TURN_H

#include "../kube/manager.h"
#include "actuate_core.h"
#include "market_cluster.h"
#include "market_metrics.h"
#include "market_track.h"

struct market_controller {
    struct manager *manager;
    struct controller *controller;
    struct cache *allocations, *pods;
    struct market_tracks tracks;
    struct market_metrics metrics;
    struct market_cluster *cluster;
    bool dry_run; /* --market-dry-run */
    bool restore; /* --market-restore */
};

struct market_turn { /* in the arena of the reconcile; its `turn` */
    struct market_controller *state;
    struct market_track *track;
    struct actuate_input in;
    struct actuate_plan plan;
    str uid, rv;          /* of the allocation */
    str pod_ns, pod_name; /* as its spec names them */
    str pod_rv, node;
    int64_t generation, started_ns;
    const struct json *old;  /* the present status; NULL: none */
    const struct json *base; /* the same, with originals adopted from a deleted allocation */
};

struct reconciled market_reconcile(struct reconcile *r);

/* ---- market_gather.c: from records to the input of actuate_decide() */

/* NULL means "not found". Strings are copied into the arena. */
struct actuate_pod market_gather_pod(struct arena *a, const struct market_pod_record *pod);
/* Adds the memory that the allocation desires for each container. */
void market_gather_memory(struct actuate_pod *pod, const struct allocation_record *allocation);
/* May the allocation govern this pod? A writer of allocations in one namespace must not affect
 * another namespace, nor the agent of one node the pods of another. */
bool market_allocation_can_govern(const struct allocation_record *allocation,
                                  const struct market_pod_record *pod);
/* The allocation that governs this pod; NULL: none. */
const struct allocation_record *market_gather_allocation(const struct market_controller *m,
                                                         const struct market_pod_record *pod);
/* By how much limits on this node may grow before pending reductions are in force. A reduction
 * that the node has not enacted after 30 s is no longer waited for. */
int64_t market_gather_room(struct market_controller *m, str node, int64_t now_ns);

#endif
