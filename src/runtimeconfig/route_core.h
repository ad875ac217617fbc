/* The route in front of an AIMService: whether there is one, under which path, as which HTTPRoute,
 * and what the gateway made of it. Pure; results live in the caller's arena. */
#ifndef FLYBALL_ROUTE_CORE_H
#define FLYBALL_ROUTE_CORE_H

#include "runtimeconfig_spec.h"

#define ROUTE_MANAGED_BY "aim-controller" /* the label app.kubernetes.io/managed-by of our routes */

enum aim_route_source { ROUTE_DEFAULT, ROUTE_CONFIG, ROUTE_SERVICE };

/* What serves, for the route's labels; it is made only once there is something behind it. */
struct aim_route_template {
    bool ready;
    str name;        /* of the template */
    str model_name;  /* its spec.modelName */
    str source_name; /* its first model source; empty: none */
};

struct aim_route_question {
    const char *group;                       /* of AIM: the domain of labels */
    const struct json *service;              /* the AIMService */
    const struct runtimeconfig_spec *own;    /* of it */
    const struct runtimeconfig_spec *config; /* that governs */
    const struct aim_route_template *template;
    str guard; /* a template; the path must lie under what it gives; empty: anywhere */
    enum aim_path_encoding encoding;
    aim_path_trace_fn *trace; /* told of every placeholder; NULL: nobody asks */
    void *trace_context;
};

enum aim_route_verdict {
    ROUTE_OFF,     /* routing is not enabled */
    ROUTE_INVALID, /* the path cannot be rendered, or is not allowed: PathTemplateInvalid */
    ROUTE_NOWHERE, /* there is no gatewayRef: RouteFailed, and the service is Failed */
    ROUTE_WAITING, /* not made, or not judged by the gateway yet: ConfiguringRoute, GatewayNotFound */
    ROUTE_CONFLICT, /* somebody else has the path: RouteConflict */
    ROUTE_REJECTED, /* by the gateway, with its reason */
    ROUTE_FAILED,   /* could not be written: RouteFailed */
    ROUTE_READY,
    ROUTE_VERDICT_N
};

struct aim_route_plan {
    enum aim_route_verdict verdict;
    enum aim_route_source source;
    str template;                          /* that was rendered; empty: the default */
    str path;                              /* rendered; empty while it cannot be */
    str gateway_ns, gateway_name, section; /* parentRef */
    bool is_gateway;                       /* the parent is a Gateway of the Gateway API */
    str served; /* the path to publish: of the route that is there, or is to come */
    /* the condition RoutingReady: True when the verdict is OFF or READY, else False */
    const char *reason;
    str message;
};

/* The settings, the path and where it leads; the verdict is OFF, INVALID, NOWHERE or WAITING. */
struct aim_route_plan aim_route_plan(struct arena *a, const struct aim_route_question *q);

/* The HTTPRoute of a plan whose verdict is WAITING or better. */
struct json *aim_route_object(struct arena *a, const struct aim_route_question *q,
                              const struct aim_route_plan *plan);

/* What the gateway says of a route (the HTTPRoute as it is; NULL: there is none): WAITING, REJECTED
 * or READY. The plan borrows its texts. */
void aim_route_read_status(struct aim_route_plan *plan, const struct json *route);

bool aim_route_is_under(str path, str prefix);           /* by whole segments */
str aim_route_path_of(const struct json *route);         /* of an HTTPRoute made here */
bool aim_route_is_ready(enum aim_route_verdict verdict); /* RoutingReady is True */
const char *aim_route_source_name(
    enum aim_route_source source); /* "Default", "RuntimeConfig", "Service" */
/* A duration as the Gateway API takes it: "1.5s" gives "1s500ms". -EINVAL with a sentence. */
int aim_route_parse_timeout(struct arena *a, str text, str *ret, err_t *e);

#endif
