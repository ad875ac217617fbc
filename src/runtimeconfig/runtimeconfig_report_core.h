/* What the controller would decide about one AIMService, and why, in words: for `flyball render`,
 * which has files, and `flyball explain`, which has a cluster. Pure: the decisions are those of
 * resolve_core and route_core. */
#ifndef FLYBALL_RUNTIMECONFIG_REPORT_H
#define FLYBALL_RUNTIMECONFIG_REPORT_H

#include "resolve_core.h"
#include "route_core.h"

struct runtimeconfig_case {
    const char *group; /* of AIM */
    const struct json *service;
    str operator_ns;
    /* configurations of the name that the service has; NULL where there is none */
    const struct json *in_namespace, *in_cluster;
    const struct json *cluster_default; /* the cluster's "default", for its guard */
    struct aim_route_template template;
    enum aim_path_encoding encoding;
};

struct runtimeconfig_answer {
    struct aim_resolved config;
    struct runtimeconfig_spec settings, own;
    struct aim_route_plan plan;
    struct json *route; /* the HTTPRoute; NULL: none would be made */
    struct buf trace;   /* a line a placeholder; of the caller to free */
    bool fails;         /* the service would be degraded */
};

struct runtimeconfig_answer runtimeconfig_answer(struct arena *a,
                                                 const struct runtimeconfig_case *c);

/* Several lines. `trace`: with every placeholder. */
void runtimeconfig_report(struct buf *out, const struct runtimeconfig_case *c,
                          const struct runtimeconfig_answer *answer, bool trace);

#endif
