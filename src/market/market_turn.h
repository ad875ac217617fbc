/* One turn of the market's controller: gather, ask actuate() for the next step, take it, say so in the
 * status. Used by market_controller.c only. */
#ifndef FLYBALL_MARKET_TURN_H
#define FLYBALL_MARKET_TURN_H

#include "../kube/manager.h"
#include "actuate_core.h"
#include "market_metrics.h"
#include "market_track.h"

struct market_controller {
    struct manager *manager;
    struct controller *controller;
    struct cache *allocations, *pods;
    struct market_tracks tracks;
    struct market_metrics metrics;
    bool dry_run; /* --market-dry-run */
    bool restore; /* --market-restore */
};

struct market_turn {
    struct market_controller *state;
    struct market_track *track;
    struct actuate_input in;
    struct actuate_plan plan;
    str uid, rv;          /* of the allocation */
    str pod_ns, pod_name; /* as it names them */
    str pod_rv, node;
    int64_t generation, started_ns;
    const struct json *old;  /* the status as it is; NULL: there is none */
    const struct json *base; /* the same with what is known beside it */
};

struct reconciled market_reconcile(struct reconcile *r);

/* ---- market_gather.c: records to what actuate() wants */

/* NULL reads as "not found". Texts are copied into the arena. */
struct actuate_pod market_gather_pod(struct arena *a, const struct market_pod_record *pod);
/* May the allocation say what this pod gets? Whoever may write allocations in one namespace has no say in
 * another, and the agent of one node has none about pods of another. */
bool market_belongs(const struct allocation_record *allocation,
                    const struct market_pod_record *pod);
/* The allocation that governs this pod; NULL: none does. */
const struct allocation_record *market_allocation_of(const struct market_controller *m,
                                                     const struct market_pod_record *pod);
/* By how much limits of this node may grow before those that shall shrink have done so. A resize that was
 * sent and that the node has not carried out for half a minute is no longer waited for. */
int64_t market_room(struct market_controller *m, str node, int64_t now_ns);

#endif
