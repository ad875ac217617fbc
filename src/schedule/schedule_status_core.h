/* The status of a schedule: conditions that keep their transition times, and the smallest merge patch
 * from the old status to the new one. */
#ifndef FLYBALL_SCHEDULE_STATUS_CORE_H
#define FLYBALL_SCHEDULE_STATUS_CORE_H

#include "../json/json.h"

/* A status under construction: starts as a copy of the old one, so that fields of other writers stay. */
struct schedule_status {
    struct arena *a;
    const struct json *old; /* NULL: there was none */
    struct json *next;
    int64_t now, generation;
};

struct schedule_status schedule_status(struct arena *a, const struct json *old, int64_t now,
                                       int64_t generation);

struct schedule_condition {
    const char *type;
    bool holds;
    const char *reason;
    str message;
};

/* lastTransitionTime changes only if the status does. */
void schedule_status_condition(struct schedule_status *s, const struct schedule_condition *c);
/* Sets a condition to False if it exists; does not add it. */
void schedule_status_clear(struct schedule_status *s, const struct schedule_condition *c);

/* Read the old status. */
const struct json *schedule_condition_find(const struct json *status, const char *type);
bool schedule_condition_is_true(const struct json *status, const char *type);
int64_t schedule_condition_since(const struct json *status, const char *type); /* 0: never */

void schedule_status_time(struct schedule_status *s, const char *field, int64_t at); /* 0: absent */
void schedule_status_text(struct schedule_status *s, const char *field, str value); /* "": absent */

/* The merge patch from the old status to the new one; NULL if they are equal. */
struct json *schedule_status_patch(const struct schedule_status *s);

#endif
