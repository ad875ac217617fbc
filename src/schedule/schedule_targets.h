/* Who governs which HPA: every schedule under its own name, and under that of its target, so that an
 * HPA's event costs one lookup, and an older schedule for the same target is found. */
#ifndef FLYBALL_SCHEDULE_TARGETS_H
#define FLYBALL_SCHEDULE_TARGETS_H

#include "../base/map.h"
#include "schedule_records.h"

/* What came back from our last write, for as long as the cache still shows the state before it. */
struct schedule_echo {
    char *before_rv; /* owned; the cache is behind while it shows this version; NULL: nothing */
    char *status;    /* owned; of the schedule, JSON */
    struct schedule_bounds bounds; /* of the HPA */
    char *baseline;                /* owned; of the HPA */
};

struct schedule_turn;

/* One schedule. Lives from its first to its last appearance in the cache. */
struct schedule_tracked {
    char *key, *target_key;     /* owned "namespace/name"; target_key NULL: it names none */
    str ns, name;               /* parts of `key` */
    str target_ns, target_name; /* parts of `target_key` */
    uint64_t consent_epoch;     /* of the answer below; 0: none yet */
    bool consent;               /* namespaces and grants permit it to govern its target */
    int64_t created;
    bool deleting;
    bool waiting;                  /* a write failed because the server did not answer */
    bool keeps_zero;               /* its workload must stay at zero: replicas matter */
    struct schedule_tracked *next; /* with the same target */
    struct schedule_memory memory;
    struct schedule_echo own, hpa;
    struct schedule_turn *turn;      /* under way, in the turn's arena; NULL: none */
    char *active;                    /* owned; shown in the metrics as governing; NULL: none */
    int64_t advised;                 /* when history was last asked for, in seconds; 0: never */
    bool inquiring;                  /* it is being asked for */
    char *advice;                    /* owned; a recommendation to publish, JSON; NULL: none */
    char *learned;                   /* owned; triggers to apply, JSON; NULL: none */
    const struct resource *workload; /* what can be scaled; NULL: not known yet */
    char *workload_kind;             /* owned "apiVersion kind" that `workload` belongs to */
    char *trouble;                   /* owned; why it cannot be known */
};

struct schedule_targets {
    struct map by_key, by_target; /* of struct schedule_tracked; the second heads a list */
    size_t zero_keepers;          /* without any, nobody asks how many replicas there are */
    size_t abroad;                /* whose target is in another namespace */
};

void schedule_targets_done(struct schedule_targets *t);

/* Takes a record's present state over; a new one for a new name. */
struct schedule_tracked *schedule_targets_put(struct schedule_targets *t,
                                              const struct schedule_record *r);
void schedule_targets_drop(struct schedule_targets *t, str ns, str name);

struct schedule_tracked *schedule_targets_find(const struct schedule_targets *t, str ns, str name);
/* The first of those that govern this HPA; `next` leads to the others. */
struct schedule_tracked *schedule_targets_of(const struct schedule_targets *t, str ns, str name);

void schedule_targets_keep_zero(struct schedule_targets *t, struct schedule_tracked *one,
                                bool keeps_zero);

/* May a schedule of this namespace govern the target that all in question share? */
typedef bool schedule_may_govern_fn(void *context, str from_ns);
/* Another one with the same target that came first and may govern it; NULL: none did. Who may not keeps nobody
 * else from it. */
const struct schedule_tracked *schedule_targets_rival(const struct schedule_targets *t,
                                                      const struct schedule_tracked *one,
                                                      schedule_may_govern_fn *may_govern,
                                                      void *context);
static inline bool schedule_is_abroad(const struct schedule_tracked *one)
{
    return one->target_key && !str_eq(one->target_ns, one->ns);
}

void schedule_echo_clear(struct schedule_echo *e);
/* Is the cache still at the state before our write? Otherwise the echo is dropped. */
bool schedule_echo_holds(struct schedule_echo *e, str cached_rv);

#endif
