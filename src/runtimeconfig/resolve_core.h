/* Which runtime configuration a consumer gets: that of its namespace, exclusively; else the cluster's of the same name;
 * else none if the name is "default"; else it is an error. */
#ifndef FLYBALL_RESOLVE_CORE_H
#define FLYBALL_RESOLVE_CORE_H

#include "../base/sha256.h"
#include "../json/json.h"

#define RUNTIMECONFIG_DEFAULT "default"

enum aim_resolve_outcome {
    RESOLVE_UNKNOWN, /* not read */
    RESOLVE_NAMESPACE,
    RESOLVE_CLUSTER,
    RESOLVE_NONE,
    RESOLVE_MISSING,
    RESOLVE_N
};

struct aim_resolve_question {
    str name; /* spec.runtimeConfigName; empty: "default" */
    str ns;   /* of the consumer; empty: cluster-scoped, use operator_ns */
    str operator_ns;
};

/* Name and namespace to look up. */
str aim_resolve_name(const struct aim_resolve_question *q);
str aim_resolve_namespace(const struct aim_resolve_question *q);

struct aim_resolved {
    enum aim_resolve_outcome outcome;
    const struct json *config; /* the object that applies; NULL: none */
    const struct json *spec;   /* its spec; NULL: none */
    char hash[SHA256_HEX + 1]; /* of the canonical spec; "": none */
};

/* `in_namespace` and `in_cluster` are the objects of that name; NULL: not found. */
struct aim_resolved aim_resolve_objects(const struct aim_resolve_question *q,
                                        const struct json *in_namespace,
                                        const struct json *in_cluster);

/* The same with precomputed hashes: many consumers share a configuration. */
struct aim_resolve_config {
    const struct json *object;
    char hash[SHA256_HEX + 1]; /* aim_resolve_hash() of it */
};
struct aim_resolved aim_resolve_hashed(const struct aim_resolve_question *q,
                                       const struct aim_resolve_config *in_namespace,
                                       const struct aim_resolve_config *in_cluster);
void aim_resolve_hash(const struct json *config, char ret_hex[SHA256_HEX + 1]);

const char *aim_resolve_outcome_name(enum aim_resolve_outcome outcome);

/* status.effectiveRuntimeConfig: exactly one reference and the hash; NULL if no configuration applies. */
struct json *aim_resolve_effective(struct arena *a, const struct aim_resolved *r);

/* Status and reason of the condition ConfigResolved. */
bool aim_resolve_condition(const struct aim_resolved *r, const char **ret_reason);

#endif
