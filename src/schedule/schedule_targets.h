/* Which schedules manage which HPA: every schedule by its own name, and by that of its target, so that an
 * HPA's event costs one lookup and an older schedule with the same target is found. */
#ifndef FLYBALL_SCHEDULE_TARGETS_H
#define FLYBALL_SCHEDULE_TARGETS_H

#include "../base/list.h"
#include "../base/map.h"
#include "../kube/own_write.h"
#include "schedule_records.h"

enum { SCHEDULE_REPORTED_MAX = 8 };

/* An HPA that schedules name as their target. Exists as long as one does. */
struct schedule_shared {
    struct list schedules; /* struct schedule_tracked, by `of_target`; oldest first */
    str ns, name;          /* parts of `key` */
    char key[];            /* "namespace/name" */
};

/* One schedule. Exists as long as the cache has the object. */
struct schedule_tracked {
    char *key;                      /* owned "namespace/name" */
    str ns, name;                   /* parts of `key` */
    struct schedule_shared *target; /* NULL: none */
    struct list_item of_target;     /* in the list of `target` */
    enum schedule_target_kind kind; /* of `target` */
    uint64_t workload_hash;         /* of the kind of a workload, such as "Deployment" */
    uint64_t consent_epoch;         /* grants_epoch() of `consent`; 0: not evaluated yet */
    bool consent;                   /* namespaces and grants permit it to manage its target */
    int64_t created;
    bool deleting;       /* and done with its target: it has restored the bounds, or need not */
    bool uses_calendars; /* names calendars; all schedules use default ones */
    bool keeps_zero;     /* its workload must stay at zero: replica changes matter */
    struct schedule_memory memory;
    struct own_write status;                  /* the schedule's status, JSON */
    struct own_write hpa;                     /* the baseline annotation of its HPA */
    struct schedule_bounds hpa_bounds;        /* go with `hpa` */
    uint64_t reported[SCHEDULE_REPORTED_MAX]; /* hashes of events whose status is not written yet */
    size_t reported_n;
    bool has_unreported_write; /* bounds were written; the report waits for a quiet moment */
    struct schedule_bounds changed_from; /* what they were before */
    char *active;              /* owned; the trigger in smarthpa_active_trigger_info; NULL: none */
    int64_t advised;           /* when history was last queried, in seconds; 0: never */
    bool query_in_flight;      /* a history query is in progress */
    char *advice;              /* owned; a recommendation to publish, JSON; NULL: none */
    char *learned;             /* owned; triggers to apply, JSON; NULL: none */
    const char *advice_reason; /* why the last analysis has no result; NULL: it has, or none ran */
    char *advice_problem;      /* owned; the sentence that goes with it */
    const struct resource *workload; /* the workload's kind; NULL: unknown or not discovered yet */
    char *workload_kind;     /* owned "apiVersion kind" that `workload` was discovered for */
    char *discovery_failure; /* owned; why discovery failed; NULL: it did not */
};

struct schedule_targets {
    struct map by_key;      /* struct schedule_tracked, owned */
    struct map by_target;   /* struct schedule_shared, owned */
    size_t zero_keepers;    /* schedules with keeps_zero; 0: replica changes are ignored */
    size_t cross_namespace; /* schedules whose target is in another namespace */
};

void schedule_targets_done(struct schedule_targets *t);

/* Adds or updates the entry of a record. */
struct schedule_tracked *schedule_targets_put(struct schedule_targets *t,
                                              const struct schedule_record *r);
void schedule_targets_drop(struct schedule_targets *t, str ns, str name);

struct schedule_tracked *schedule_targets_find(const struct schedule_targets *t, str ns, str name);
/* The schedules with this target: struct schedule_tracked, by `of_target`. */
const struct list *schedule_targets_of(const struct schedule_targets *t, str ns, str name);

void schedule_targets_keep_zero(struct schedule_targets *t, struct schedule_tracked *one,
                                bool keeps_zero);

/* The order of precedence among schedules with one target: by age, then by name. */
bool schedule_targets_is_older(const struct schedule_tracked *x, const struct schedule_tracked *y);

/* Can both write to the common target? Workloads of different kinds may share a name, and only HPAs are managed from other
 * namespaces. */
bool schedule_targets_conflict(const struct schedule_tracked *one,
                               const struct schedule_tracked *other);

/* May a schedule in this namespace manage the common target? */
typedef bool schedule_can_govern_fn(void *context, str from_ns);
/* The oldest other schedule with the same target that may manage it; NULL: none. A schedule without consent
 * does not keep others from the target. */
const struct schedule_tracked *schedule_targets_find_older(const struct schedule_tracked *one,
                                                           schedule_can_govern_fn *may_govern,
                                                           void *context);

static inline bool schedule_is_cross_namespace(const struct schedule_tracked *one)
{
    return one->target && !str_eq(one->target->ns, one->ns);
}

#endif
