/* The status of an AIMService: its status word and seven conditions, from what was observed.
 *
 * Computed from scratch each time, so that a cause that is gone leaves no trace; only while the API server fails
 * does the previous word stay for a few seconds. Wording and reasons are those of the operator that this
 * replaces, except for the corrections listed with its golden vectors.
 *
 * The first cause in the order of `stages` (service_status_core.c) decides. Pure: facts in, answer out, texts in
 * the arena. */
#ifndef FLYBALL_SERVICE_STATUS_CORE_H
#define FLYBALL_SERVICE_STATUS_CORE_H

#include "../json/json.h"

enum aim_service_truth { SERVICE_ABSENT, SERVICE_FALSE, SERVICE_TRUE, SERVICE_UNKNOWN };

enum aim_service_condition_type {
    SERVICE_RESOLVED,
    SERVICE_CACHE_READY,
    SERVICE_RUNTIME_READY,
    SERVICE_ROUTING_READY,
    SERVICE_READY,
    SERVICE_PROGRESSING,
    SERVICE_FAILURE,
    SERVICE_SERVING, /* ours: does an InferenceService of this service answer, whatever else is wrong? */
    SERVICE_CONDITION_N
};

struct aim_service_condition {
    enum aim_service_truth truth;
    str reason, message;
};

/* ---- facts: the zero of every state is "unknown", and is never taken for ready, off or absent */

enum aim_service_route_state {
    SERVICE_ROUTE_UNKNOWN,
    SERVICE_ROUTE_OFF,
    SERVICE_ROUTE_READY,
    SERVICE_ROUTE_WAITING,
    SERVICE_ROUTE_REJECTED,     /* refused by a gateway, or the path is taken: Degraded */
    SERVICE_ROUTE_PATH_INVALID, /* the path template cannot be rendered: Degraded */
    SERVICE_ROUTE_NO_GATEWAY,   /* no gatewayRef: Failed */
    SERVICE_ROUTE_NO_BACKEND,   /* no backend yet: rejected if the runtime is ready, else waiting */
    SERVICE_ROUTE_N
};

struct aim_service_route_fact {
    enum aim_service_route_state state;
    str reason, message; /* of RoutingReady; empty: the defaults of the state */
    bool no_gateway;     /* with an invalid path: there is no gatewayRef either */
};

enum aim_service_model_state {
    SERVICE_MODEL_UNKNOWN,
    SERVICE_MODEL_READY,
    SERVICE_MODEL_UNRESOLVED, /* no model, or several for an image */
    SERVICE_MODEL_MISSING,    /* the template's model does not exist */
    SERVICE_MODEL_WAITING,
    SERVICE_MODEL_FAILED,
    SERVICE_MODEL_DEGRADED,
    SERVICE_MODEL_N
};

struct aim_service_model_fact {
    enum aim_service_model_state state;
    str reason, message;
};

enum aim_service_template_state {
    SERVICE_TEMPLATE_UNKNOWN,
    SERVICE_TEMPLATE_READY,
    SERVICE_TEMPLATE_REFUSED,  /* selection failed; only the user can fix it */
    SERVICE_TEMPLATE_AWAITED,  /* templates exist, none is ready yet */
    SERVICE_TEMPLATE_DERIVING, /* the template with the overrides is being created */
    SERVICE_TEMPLATE_MISSING,  /* named but not found */
    SERVICE_TEMPLATE_UNNAMED,  /* not named and none found */
    SERVICE_TEMPLATE_PENDING,  /* found, not ready */
    SERVICE_TEMPLATE_DEGRADED, /* found, not usable */
    SERVICE_TEMPLATE_FAILED,
    SERVICE_TEMPLATE_EMPTY, /* ready, but without model sources */
    SERVICE_TEMPLATE_N
};

struct aim_service_template_fact {
    enum aim_service_template_state state;
    str name, ns, uid; /* ns empty: cluster-scoped */
    bool found;
    str reason, message; /* message of a missing template; empty: the default */
};

enum aim_service_cache_state {
    SERVICE_CACHE_UNKNOWN,
    SERVICE_CACHE_OFF,
    SERVICE_CACHE_WAITING, /* does not exist yet */
    SERVICE_CACHE_WARMING,
    SERVICE_CACHE_WARM,
    SERVICE_CACHE_FAILED,
    SERVICE_CACHE_N
};

enum aim_service_config_state {
    SERVICE_CONFIG_UNKNOWN, /* not read */
    SERVICE_CONFIG_FOUND,   /* found, or the default one that need not exist */
    SERVICE_CONFIG_MISSING,
};

struct aim_service_runtime_fact {
    bool found, ready;
    bool failed;      /* KServe reports a failure, possibly without a message */
    str failure;      /* its message */
    str pull_reason;  /* a pod cannot pull its image: ImagePullAuthFailure, ...; empty: no */
    str pull_message; /* message of the condition Failure */
    str blocked;      /* an InferenceService of others has its name: a sentence; empty: no */
};

/* Why a pod cannot pull its image. */
enum aim_service_pull_kind { SERVICE_PULL_OTHER, SERVICE_PULL_AUTH, SERVICE_PULL_MISSING };

struct aim_service_pull_error {
    enum aim_service_pull_kind kind;
    str container;
    bool init; /* an init container */
    str reason, message;
};

enum aim_service_pull_kind aim_service_pull_kind(str word);     /* "auth", "not-found", "generic" */
enum aim_service_pull_kind aim_service_pull_cause(str message); /* from the kubelet's message */
void aim_service_set_pull_error(struct arena *a, struct aim_service_runtime_fact *r,
                                const struct aim_service_pull_error *error);

/* A request that the API server refused or did not answer. */
enum aim_service_phase { SERVICE_OBSERVING, SERVICE_PLANNING, SERVICE_APPLYING };

struct aim_service_trouble {
    enum aim_service_phase phase;
    str message;       /* empty: no failure */
    int64_t lasting_s; /* seconds since the first failure */
};

struct aim_service_facts {
    const struct json *old; /* the previous status; NULL: none */
    struct aim_service_trouble trouble;
    enum aim_service_config_state config;
    str config_message; /* why it is missing */
    struct aim_service_route_fact route;
    struct aim_service_model_fact model;
    struct aim_service_template_fact template;
    enum aim_service_cache_state cache;
    str cache_message;
    str volume_lost; /* a claim that it mounts has lost its volume: a sentence; empty: none */
    struct aim_service_runtime_fact runtime;
};

/* ---- answer */

enum { SERVICE_GRACE_S = 10 };

struct aim_service_answer {
    const char *status; /* Pending, Starting, Running, Degraded, Failed */
    struct aim_service_condition conditions[SERVICE_CONDITION_N];
};

struct aim_service_answer aim_service_status(struct arena *a,
                                             const struct aim_service_facts *facts);

const char *aim_service_condition_name(enum aim_service_condition_type type); /* "RuntimeReady" */

/* status.resolvedTemplate; NULL when no template is known by name. */
struct json *aim_service_resolved_template(struct arena *a,
                                           const struct aim_service_template_fact *t);

#endif
