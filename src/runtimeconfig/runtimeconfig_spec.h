/* The fields of a runtime configuration, and the same fields in the spec of an AIMService. Nothing is copied: texts and
 * trees borrow from the spec. */
#ifndef FLYBALL_RUNTIMECONFIG_SPEC_H
#define FLYBALL_RUNTIMECONFIG_SPEC_H

#include "../json/json.h"
#include "path_core.h"

enum { PVC_HEADROOM_DEFAULT = 10 };

struct aim_routing_spec {
    bool has_enabled, enabled;
    const struct json *gateway;     /* gatewayRef; NULL: unset */
    str path_template;              /* empty: unset */
    str timeout;                    /* requestTimeout as written; empty: unset */
    const struct json *annotations; /* NULL: unset */
    str required_prefix;            /* a template; cluster configurations only */
    const struct json *hostnames;   /* a list; NULL: unset */
    const struct json *header;      /* modelHeader; NULL: unset */
    const struct json *pool;        /* inferencePool; NULL: unset */
    str backend;                    /* Service or InferencePool; empty: unset */
    str group;                      /* services only: those that share a route; empty: none */
    int64_t weight;                 /* services only: in the group; 1 if unset */
};

struct runtimeconfig_spec {
    struct aim_routing_spec routing;
    str storage_class; /* empty: the cluster's default */
    bool has_headroom;
    int64_t headroom_percent;
    bool no_discovery;               /* model.autoDiscovery is false */
    const struct json *env;          /* a list; NULL: unset */
    const struct json *pull_secrets; /* a list; NULL: unset */
    str service_account;
    const struct json *propagate; /* labelPropagation.match while enabled; NULL: off */
    bool refused_credentials;     /* a cluster configuration has some; they are ignored */
};

/* Reason and text for a cluster configuration that was stored with credentials before its definition refused them. */
#define RUNTIMECONFIG_CREDENTIALS "CredentialsNotAllowed"
#define RUNTIMECONFIG_CREDENTIALS_TEXT                                                             \
    "credentials belong in an AIMRuntimeConfig: a cluster configuration holds no secrets"

/* Reads the spec of either kind of configuration, or of an AIMService. NULL is an empty spec. Credentials in a
 * cluster configuration are ignored: all namespaces would share them. */
struct runtimeconfig_spec runtimeconfig_spec_read(const struct json *spec, bool cluster);

/* Validates the path templates without an object: they must compile, placeholders must start with a field that every
 * object has, and the literal part must not be too long. -EINVAL and the problem. */
int runtimeconfig_lint(struct arena *a, const struct runtimeconfig_spec *spec,
                       struct aim_path_problem *problem);

#endif
