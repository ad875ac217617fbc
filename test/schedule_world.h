/* One schedule and one HPA without a server: carries out what schedule_plan() asks for and stores what an API
 * server would. The test sets the time. */
#ifndef FLYBALL_SCHEDULE_WORLD_H
#define FLYBALL_SCHEDULE_WORLD_H

#include "schedule/schedule_plan_core.h"

struct schedule_world_event {
    int64_t at;
    bool warning;
    const char *reason;
    str message;
};

enum { SCHEDULE_WORLD_EVENTS = 400, SCHEDULE_WORLD_PASSES = 20 };

struct schedule_world {
    struct arena arena;
    struct json *spec, *status;
    int64_t now, created, generation;
    bool gone, deleting, finalizer, paused;
    struct schedule_hpa hpa;
    int64_t workload; /* its replicas; -1: it cannot be scaled */
    str managed_by;
    struct schedule_memory memory;
    int failures;              /* the next writes that fail with a conflict */
    bool rejecting;            /* the server rejects the bounds... */
    bool forbidding;           /* ...because of RBAC, not because they are invalid */
    const char *advice_reason; /* why the analysis of the history has no result; NULL: it has */

    int64_t wake;
    struct schedule_plan plan; /* the last one */
    size_t hpa_writes, status_writes, scale_writes;
    struct schedule_world_event events[SCHEDULE_WORLD_EVENTS];
    size_t events_n;
};

void schedule_world_done(struct schedule_world *w);

/* One pass as the controller makes it: plans and applies until a plan needs no write. */
void schedule_world_pass(struct schedule_world *w);

bool schedule_world_has_event_since(const struct schedule_world *w, const char *reason,
                                    int64_t since);
size_t schedule_world_count(const struct schedule_world *w,
                            const char *reason); /* events with this reason */

#endif
