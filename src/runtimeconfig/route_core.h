/* The route of an AIMService: whether it has one, the path, the HTTPRoute, and the gateway's answer. Pure;
 * results live in the caller's arena. */
#ifndef FLYBALL_ROUTE_CORE_H
#define FLYBALL_ROUTE_CORE_H

#include "runtimeconfig_spec.h"

#define ROUTE_MANAGED_BY "aim-controller" /* the label app.kubernetes.io/managed-by of our routes */
#define ROUTE_MANAGED_BY_NEWER "aim-engine" /* of those that the newer operator created */

enum aim_route_source { ROUTE_DEFAULT, ROUTE_CONFIG, ROUTE_SERVICE };

/* The template in use, for the labels of the route, and the InferenceService that it leads to. */
struct aim_route_template {
    bool ready;      /* the InferenceService exists, or is created in this turn */
    bool exists;     /* it exists: an existing route may be changed */
    str backend;     /* its name; empty: the default one */
    str name;        /* name of the template */
    str model_name;  /* its spec.modelName */
    str source_name; /* its first model source; empty: none */
};

/* What a rule sends requests to. */
struct aim_route_backend {
    str service;    /* the AIMService; for comparing */
    str isvc;       /* its InferenceService */
    str pool;       /* an InferencePool; empty: the Service of the predictor */
    int64_t weight; /* negative: none is written */
};

struct aim_route_question {
    const struct aim_route_backend *backends; /* of a group; NULL: the service's own */
    size_t backend_n;
    str pool;                                /* InferencePool of the service itself; empty: none */
    const char *group;                       /* API group of AIM: the domain of labels */
    const struct json *service;              /* the AIMService */
    const struct runtimeconfig_spec *own;    /* settings of the service itself */
    const struct runtimeconfig_spec *config; /* settings that apply to it */
    const struct aim_route_template *template;
    str guard; /* template of the required prefix; empty: no restriction */
    enum aim_path_encoding encoding;
    aim_path_trace_fn *trace; /* called with every placeholder; NULL: none */
    void *trace_context;
};

enum aim_route_verdict {
    ROUTE_UNKNOWN, /* not planned: nothing is written or deleted because of it */
    ROUTE_OFF,     /* routing is not enabled */
    ROUTE_INVALID, /* the path cannot be rendered, or is not allowed: PathTemplateInvalid */
    ROUTE_NOWHERE, /* there is no gatewayRef: RouteFailed, and the service is Failed */
    ROUTE_WAITING, /* not created, or the gateway has not answered: ConfiguringRoute, GatewayNotFound */
    ROUTE_CONFLICT,   /* another service or route owns the path: RouteConflict */
    ROUTE_REJECTED,   /* by the gateway, with its reason */
    ROUTE_NO_BACKEND, /* accepted, but the backend does not exist (yet) */
    ROUTE_FAILED,     /* the write failed: RouteFailed */
    ROUTE_READY,
    ROUTE_VERDICT_N
};

struct aim_route_plan {
    enum aim_route_verdict verdict;
    enum aim_route_source source;
    str template;                          /* the template that was rendered; empty: the default */
    str path;                              /* rendered; empty: not possible */
    str gateway_ns, gateway_name, section; /* parentRef */
    bool is_gateway;                       /* the parent is a Gateway of the Gateway API */
    const struct json *hostnames;          /* a list; NULL: all host names */
    str header_name, header_value;         /* of the model; value empty: no such rule */
    bool path_lost, header_lost; /* another service or route has it: the rule is left out */
    str served; /* the path to publish: of the existing route, or of the planned one */
    /* the condition RoutingReady: True if the verdict is OFF or READY, otherwise False */
    const char *reason;
    str message;
};

/* Settings, path and gateway; the verdict is OFF, INVALID, NOWHERE, FAILED or WAITING. */
struct aim_route_plan aim_route_plan(struct arena *a, const struct aim_route_question *q);

/* The HTTPRoute of a plan whose verdict is WAITING or better. */
struct json *aim_route_object(struct arena *a, const struct aim_route_question *q,
                              const struct aim_route_plan *plan);

/* Sets the verdict from the status of the HTTPRoute (NULL: none): WAITING, REJECTED, NO_BACKEND or READY. The plan borrows
 * texts from it. */
void aim_route_read_status(struct aim_route_plan *plan, const struct json *route);

str aim_route_path_of(const struct json *route);         /* of an HTTPRoute made here */
bool aim_route_is_ready(enum aim_route_verdict verdict); /* RoutingReady is True */
const char *aim_route_source_name(
    enum aim_route_source source); /* "Default", "RuntimeConfig", "Service" */
/* A duration in the format of the Gateway API: "1.5s" gives "1s500ms". -EINVAL with a sentence. */
int aim_route_parse_timeout(struct arena *a, str text, str *ret, err_t *e);

#endif
