/* What the controller would decide about one AIMService, and why, as text: for `flyball render`, which reads files, and
 * `flyball explain`, which reads a cluster. Pure: the decisions are those of resolve_core and route_core. */
#ifndef FLYBALL_RUNTIMECONFIG_REPORT_H
#define FLYBALL_RUNTIMECONFIG_REPORT_H

#include "resolve_core.h"
#include "route_core.h"

struct runtimeconfig_case {
    const char *group; /* API group of AIM */
    const struct json *service;
    str operator_ns;
    /* configurations of the name in the service's spec; NULL: not found */
    const struct json *in_namespace, *in_cluster;
    const struct json *cluster_default; /* the cluster's "default", for its requiredPrefix */
    struct aim_route_template template;
    enum aim_path_encoding encoding;
};

struct runtimeconfig_answer {
    struct aim_resolved config;
    struct runtimeconfig_spec settings, own;
    struct aim_route_plan plan;
    struct json *route; /* the HTTPRoute; NULL: none would be created */
    struct buf trace;   /* one line per placeholder; freed by the caller */
    bool fails;         /* the service would not be ready */
};

struct runtimeconfig_answer runtimeconfig_answer(struct arena *a,
                                                 const struct runtimeconfig_case *c);

/* Several lines; with `trace`, one per placeholder as well. */
void runtimeconfig_report(struct buf *out, const struct runtimeconfig_case *c,
                          const struct runtimeconfig_answer *answer, bool trace);

#endif
