/* A status that several parts of a turn write: it starts as a copy of the old one, each part sets its fields and
 * conditions, and the difference is written once. Transitions add events here, so that an event is emitted if and
 * only if the status changes with it. Pure. */
#ifndef FLYBALL_STATUS_CORE_H
#define FLYBALL_STATUS_CORE_H

#include "../json/json.h"

enum aim_truth { AIM_FALSE, AIM_TRUE, AIM_UNKNOWN };

struct aim_condition {
    const char *type;
    enum aim_truth truth;
    const char *reason; /* CamelCase */
    str message;        /* one sentence */
};

struct aim_event {
    bool warning;
    const char *reason;
    str message;
    struct aim_event *next;
};

struct aim_status {
    struct arena *a;
    const struct json *old; /* NULL: there was none */
    struct json *next;      /* set fields here; the others keep their values */
    int64_t now;            /* seconds since 1970 */
    int64_t generation;
    struct aim_event *events, **last_event; /* emitted if the status is written */
};

/* Starts from the old status, with observedGeneration set. */
void aim_status_begin(struct aim_status *s, struct arena *a, const struct json *old, int64_t now,
                      int64_t generation);

/* Sets a condition. lastTransitionTime changes with its status or reason. Returns whether they changed, that is,
 * whether an event is due. */
bool aim_status_condition(struct aim_status *s, const struct aim_condition *c);
/* The same for one that is True or False. */
bool aim_status_set(struct aim_status *s, const char *type, bool holds, const char *reason,
                    str message);
void aim_status_drop_condition(struct aim_status *s, const char *type);
/* Removes the conditions that only the newer operator writes, on services, models and templates: they are left behind when flyball
 * takes over from it. */
void aim_status_drop_newer(struct aim_status *s);
/* A condition of a status; NULL: there is none. */
const struct json *aim_status_find(const struct json *status, const char *type);

void aim_status_event(struct aim_status *s, bool warning, const char *reason, str message);

/* Sets a text, or removes the field if it is empty. */
void aim_status_text(struct aim_status *s, const char *field, str value);

/* Sets a reference to an object, with its kind, scope and uid, or removes it for NULL. */
void aim_status_reference(struct aim_status *s, const char *field, const struct json *object);

/* The merge patch to write; NULL if nothing changed. */
struct json *aim_status_patch(const struct aim_status *s);

#endif
