/* The status engine of the newer generation of AIM: conditions and a status word from the components that an object
 * depends on. Used for artifacts, model sources and template caches, and for every kind of its API group.
 *
 * A component is the condition of one dependency: a state, or errors from which the state follows. Pure; texts are borrowed from
 * the input or live in the arena. */
#ifndef FLYBALL_ENGINE_CORE_H
#define FLYBALL_ENGINE_CORE_H

#include "../json/json.h"

/* Ordered from worst to best; the worst component decides the word. */
enum aim_engine_state {
    ENGINE_UNSET, /* follows from the errors */
    ENGINE_FAILED,
    ENGINE_NOT_AVAILABLE,
    ENGINE_DEGRADED,
    ENGINE_PENDING,
    ENGINE_STARTING,
    ENGINE_PROGRESSING,
    ENGINE_READY,
    ENGINE_STATE_N
};

const char *aim_engine_state_name(enum aim_engine_state state);
enum aim_engine_state aim_engine_state_of(str word); /* UNSET: no such state */

/* Why a read or write failed. The class decides whether waiting, retrying or the user can help. */
enum aim_engine_class {
    ENGINE_OK,
    ENGINE_UNKNOWN_ERROR, /* counts as infrastructure, except for states and the grace period */
    ENGINE_INFRASTRUCTURE,
    ENGINE_AUTH,
    ENGINE_INVALID,
    ENGINE_EXHAUSTED,
    ENGINE_MISSING_UPSTREAM,   /* what the user refers to */
    ENGINE_MISSING_DOWNSTREAM, /* what we create */
    ENGINE_CLASS_N
};

const char *aim_engine_class_name(enum aim_engine_class class);

struct aim_engine_error {
    enum aim_engine_class class; /* OK: no error */
    str reason, message;
};

/* An error of the API server by its HTTP status; `reason` distinguishes AlreadyExists and Conflict. */
struct aim_engine_error aim_engine_http_error(int status, str reason);

/* An error of the network. */
enum aim_engine_network {
    NETWORK_REFUSED,
    NETWORK_TIMEOUT,
    NETWORK_RESET,
    NETWORK_DNS,
    NETWORK_OTHER
};
/* `about` is the host for DNS, else the operation. */
struct aim_engine_error aim_engine_network_error(struct arena *a, enum aim_engine_network kind,
                                                 str about);

struct aim_engine_component {
    const char *name; /* "Model": the condition is ModelReady; NULL or empty: ignored */
    enum aim_engine_state state;
    str reason, message; /* reason empty: of the first error */
    bool has_reason;     /* reason and message were given, even if empty */
    bool upstream;       /* the user provides it; otherwise we create it */
    struct aim_engine_error errors[2];
};

/* A component with a given state. */
struct aim_engine_component aim_engine_make(const char *name, enum aim_engine_state state,
                                            const char *reason, str message);
/* A condition in the status of an object; NULL: it has none of that type. */
const struct json *aim_engine_find_condition(const struct json *object, const char *type);

enum aim_engine_truth { ENGINE_FALSE, ENGINE_TRUE, ENGINE_UNKNOWN };

struct aim_engine_condition {
    str type;
    enum aim_engine_truth truth;
    str reason, message;
    int64_t since_s; /* last transition: of status or reason, not of the message */
};

struct aim_engine_question {
    const struct aim_engine_component *components;
    size_t n;
    const struct aim_engine_condition *old; /* of the previous status */
    size_t old_n;
    const struct aim_engine_condition
        *extra; /* set as they are: Discovered, DownloadComplete, ... */
    size_t extra_n;
    int64_t now_s;
    bool as_original; /* keep conditions of components that are gone, as the original does */
};

struct aim_engine_answer {
    enum aim_engine_state status;
    struct aim_engine_condition *conditions; /* in the arena, old ones first */
    size_t n;
    bool apply;              /* children may be created */
    bool retry_with_backoff; /* infrastructure: nothing will notify us */
};

enum { ENGINE_GRACE_S = 10 };

struct aim_engine_answer aim_engine_evaluate(struct arena *a, const struct aim_engine_question *q);

/* The state of a component: the given one, or what its errors amount to. */
enum aim_engine_state aim_engine_component_state(const struct aim_engine_component *c);

#endif
