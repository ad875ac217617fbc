/* Which runtime configuration a consumer gets: the one of its namespace, exclusively, else the
 * cluster's of that name, else nothing if the name is "default", else it is an error. */
#ifndef FLYBALL_RESOLVE_CORE_H
#define FLYBALL_RESOLVE_CORE_H

#include "../base/sha256.h"
#include "../json/json.h"

#define RUNTIMECONFIG_DEFAULT "default"

enum aim_resolve_outcome {
    RESOLVE_NAMESPACE,
    RESOLVE_CLUSTER,
    RESOLVE_NONE,
    RESOLVE_MISSING,
    RESOLVE_N
};

struct aim_resolve_question {
    str name; /* spec.runtimeConfigName; empty: "default" */
    str ns;   /* of the consumer; empty: it has none, and looks in the operator's */
    str operator_ns;
};

/* Where to look, from the question alone. */
str aim_resolve_name(const struct aim_resolve_question *q);
str aim_resolve_namespace(const struct aim_resolve_question *q);

struct aim_resolved {
    enum aim_resolve_outcome outcome;
    const struct json *config; /* the object that governs; NULL: none */
    const struct json *spec;   /* its spec; NULL: none */
    char hash[SHA256_HEX + 1]; /* of the spec, canonical; "" when there is none */
};

/* `in_namespace` and `in_cluster` are the objects of that name, NULL where there is none. */
struct aim_resolved aim_resolve_objects(const struct aim_resolve_question *q,
                                        const struct json *in_namespace,
                                        const struct json *in_cluster);

/* The same for who keeps the hashes: many consumers share a configuration. */
struct aim_resolve_config {
    const struct json *object;
    char hash[SHA256_HEX + 1]; /* aim_resolve_hash() of it */
};
struct aim_resolved aim_resolve_hashed(const struct aim_resolve_question *q,
                                       const struct aim_resolve_config *in_namespace,
                                       const struct aim_resolve_config *in_cluster);
void aim_resolve_hash(const struct json *config, char ret_hex[SHA256_HEX + 1]);

const char *aim_resolve_outcome_name(enum aim_resolve_outcome outcome);

/* status.effectiveRuntimeConfig: exactly one reference and the hash; NULL when nothing governs. */
struct json *aim_resolve_effective(struct arena *a, const struct aim_resolved *r);

/* What the condition ConfigResolved says. */
bool aim_resolve_condition(const struct aim_resolved *r, const char **ret_reason);

#endif
