/* Which schedules manage which HPA: every schedule by its own name, and by that of its target, so that an
 * HPA's event costs one lookup and an older schedule with the same target is found. */
#ifndef FLYBALL_SCHEDULE_TARGETS_H
#define FLYBALL_SCHEDULE_TARGETS_H

#include "../base/map.h"
#include "schedule_records.h"

/* The server's answer to our last write, used while the cache still has the state before it. */
struct schedule_echo {
    char *before_rv; /* owned; the cache is stale while it has this version; NULL: no echo */
    char *status;    /* owned; the schedule's status, JSON */
    struct schedule_bounds bounds; /* the HPA's */
    char *baseline;                /* owned; the HPA's annotation */
};

struct schedule_turn;

/* One schedule. Exists as long as the cache has the object. */
struct schedule_tracked {
    char *key, *target_key;     /* owned "namespace/name"; target_key NULL: no target */
    str ns, name;               /* parts of `key` */
    str target_ns, target_name; /* parts of `target_key` */
    uint64_t consent_epoch;     /* grants_epoch() of `consent`; 0: not evaluated yet */
    bool consent;               /* namespaces and grants permit it to manage its target */
    int64_t created;
    bool deleting;
    bool waiting;                  /* a write failed because the API server was unreachable */
    bool keeps_zero;               /* its workload must stay at zero: replica changes matter */
    struct schedule_tracked *next; /* with the same target */
    struct schedule_memory memory;
    struct schedule_echo own, hpa;
    struct schedule_turn *turn; /* in progress, in its own arena; NULL: none */
    char *active;               /* owned; the trigger in smarthpa_active_trigger_info; NULL: none */
    int64_t advised;            /* when history was last queried, in seconds; 0: never */
    bool query_in_flight;       /* a history query is in progress */
    char *advice;               /* owned; a recommendation to publish, JSON; NULL: none */
    char *learned;              /* owned; triggers to apply, JSON; NULL: none */
    const struct resource *workload; /* the workload's kind; NULL: unknown or not discovered yet */
    char *workload_kind;     /* owned "apiVersion kind" that `workload` was discovered for */
    char *discovery_failure; /* owned; why discovery failed; NULL: it did not */
};

struct schedule_targets {
    struct map by_key, by_target; /* of struct schedule_tracked; the second heads a list */
    size_t zero_keepers;          /* schedules with keeps_zero; 0: replica changes are ignored */
    size_t cross_namespace;       /* schedules whose target is in another namespace */
};

void schedule_targets_done(struct schedule_targets *t);

/* Adds or updates the entry of a record. */
struct schedule_tracked *schedule_targets_put(struct schedule_targets *t,
                                              const struct schedule_record *r);
void schedule_targets_drop(struct schedule_targets *t, str ns, str name);

struct schedule_tracked *schedule_targets_find(const struct schedule_targets *t, str ns, str name);
/* The first schedule with this target; `next` links to the others. */
struct schedule_tracked *schedule_targets_of(const struct schedule_targets *t, str ns, str name);

void schedule_targets_keep_zero(struct schedule_targets *t, struct schedule_tracked *one,
                                bool keeps_zero);

/* May a schedule in this namespace manage the common target? */
typedef bool schedule_can_govern_fn(void *context, str from_ns);
/* The oldest other schedule with the same target that may manage it; NULL: none. A schedule without consent
 * does not keep others from the target. */
const struct schedule_tracked *schedule_targets_find_older(const struct schedule_targets *t,
                                                           const struct schedule_tracked *one,
                                                           schedule_can_govern_fn *may_govern,
                                                           void *context);

static inline bool schedule_is_cross_namespace(const struct schedule_tracked *one)
{
    return one->target_key && !str_eq(one->target_ns, one->ns);
}

void schedule_echo_clear(struct schedule_echo *e);
/* Does the cache still have the state before our write? If not, the echo is dropped. */
bool schedule_echo_is_current(struct schedule_echo *e, str cached_rv);

#endif
