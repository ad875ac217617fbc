/* What an AIMService says of itself: its status word and seven conditions, from what was observed.
 *
 * Computed from nothing each time, so that a cause that is gone leaves no trace; only while the API server
 * fails does the word before stay for a few seconds. The wording and reasons are those of the operator that
 * this replaces, but for the corrections listed beside its golden vectors.
 *
 * The first cause in the order of enum service_stage decides. Pure: facts in, answer out, texts in the
 * arena. */
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
    SERVICE_CONDITION_N
};

struct aim_service_condition {
    enum aim_service_truth truth;
    str reason, message;
};

/* ---- facts */

enum aim_service_route_state {
    SERVICE_ROUTE_OFF,
    SERVICE_ROUTE_READY,
    SERVICE_ROUTE_WAITING,
    SERVICE_ROUTE_REJECTED,     /* by a gateway, or another holds the path: degrades */
    SERVICE_ROUTE_PATH_INVALID, /* the template cannot be rendered: degrades */
    SERVICE_ROUTE_NO_GATEWAY,   /* fails */
    SERVICE_ROUTE_N
};

struct aim_service_route_fact {
    enum aim_service_route_state state;
    str reason, message; /* of RoutingReady; empty: the usual ones of the state */
};

enum aim_service_model_state {
    SERVICE_MODEL_READY,
    SERVICE_MODEL_UNRESOLVED, /* none, or several for an image */
    SERVICE_MODEL_MISSING,    /* the template's model does not exist */
    SERVICE_MODEL_WAITING,
    SERVICE_MODEL_FAILED,
    SERVICE_MODEL_DEGRADED,
};

struct aim_service_model_fact {
    enum aim_service_model_state state;
    str reason, message;
};

enum aim_service_template_state {
    SERVICE_TEMPLATE_READY,
    SERVICE_TEMPLATE_REFUSED,  /* selection failed for good */
    SERVICE_TEMPLATE_AWAITED,  /* none is ready yet, or it is being made */
    SERVICE_TEMPLATE_MISSING,  /* named and not there */
    SERVICE_TEMPLATE_UNNAMED,  /* none named, none found */
    SERVICE_TEMPLATE_PENDING,  /* there, not ready */
    SERVICE_TEMPLATE_DEGRADED, /* there, cannot be used */
    SERVICE_TEMPLATE_FAILED,
    SERVICE_TEMPLATE_EMPTY, /* ready, without model sources */
};

struct aim_service_template_fact {
    enum aim_service_template_state state;
    str name, ns, uid; /* ns empty: of the cluster */
    bool found;
    str reason, message;
};

enum aim_service_cache_state {
    SERVICE_CACHE_OFF,
    SERVICE_CACHE_WAITING, /* not there yet */
    SERVICE_CACHE_WARMING,
    SERVICE_CACHE_WARM,
    SERVICE_CACHE_FAILED,
};

struct aim_service_runtime_fact {
    bool found, ready;
    str failure;      /* what KServe reports; empty: nothing */
    str pull_reason;  /* a pod cannot pull its image: ImagePullAuthFailure, ...; empty: no */
    str pull_message; /* of Failure */
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
enum aim_service_pull_kind aim_service_pull_cause(str message); /* from what the kubelet says */
void aim_service_set_pull_error(struct arena *a, struct aim_service_runtime_fact *r,
                                const struct aim_service_pull_error *error);

/* The server refused or did not answer something. */
enum aim_service_phase { SERVICE_OBSERVING, SERVICE_PLANNING, SERVICE_APPLYING };

struct aim_service_trouble {
    enum aim_service_phase phase;
    str message;       /* empty: there is no trouble */
    int64_t lasting_s; /* since it began */
};

struct aim_service_facts {
    const struct json *old; /* the status before; NULL: none */
    struct aim_service_trouble trouble;
    bool config_missing;
    str config_message;
    struct aim_service_route_fact route;
    struct aim_service_model_fact model;
    struct aim_service_template_fact template;
    enum aim_service_cache_state cache;
    str cache_message;
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
