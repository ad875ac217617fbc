/* The resolution rule: see resolve_core.h.
 *
 *     name          in the namespace    in the cluster    outcome
 *     any           yes                 -                 NAMESPACE
 *     any           no                  yes               CLUSTER
 *     "default"     no                  no                NONE: continue without settings
 *     other         no                  no                MISSING: an error that the status reports */
#include "resolve_core.h"

#include "../json/hash.h"

str aim_resolve_name(const struct aim_resolve_question *q)
{
    return q->name.n ? q->name : S(RUNTIMECONFIG_DEFAULT);
}

str aim_resolve_namespace(const struct aim_resolve_question *q)
{
    return q->ns.n ? q->ns : q->operator_ns;
}

/* An absent spec has the hash of an empty one, so that adding "spec: {}" is not a change. */
void aim_resolve_hash(const struct json *config, char ret_hex[SHA256_HEX + 1])
{
    static const struct json empty = { .type = JSON_OBJ };
    const struct json *spec = json_get(config, "spec");
    hash_json(spec ? spec : &empty, ret_hex);
}

/* The namespace wins exclusively: fields are not merged with the cluster configuration. */
struct aim_resolved aim_resolve_hashed(const struct aim_resolve_question *q,
                                       const struct aim_resolve_config *in_namespace,
                                       const struct aim_resolve_config *in_cluster)
{
    const struct aim_resolve_config *config = in_namespace ? in_namespace : in_cluster;
    struct aim_resolved r = { 0 };
    if (!config) {
        r.outcome =
            str_eqc(aim_resolve_name(q), RUNTIMECONFIG_DEFAULT) ? RESOLVE_NONE : RESOLVE_MISSING;
        return r;
    }
    r.outcome = in_namespace ? RESOLVE_NAMESPACE : RESOLVE_CLUSTER;
    r.config = config->object;
    r.spec = json_get(r.config, "spec");
    memcpy(r.hash, config->hash, sizeof(r.hash));
    return r;
}

struct aim_resolved aim_resolve_objects(const struct aim_resolve_question *q,
                                        const struct json *in_namespace,
                                        const struct json *in_cluster)
{
    struct aim_resolve_config config = { .object = in_namespace ? in_namespace : in_cluster };
    if (!config.object)
        return aim_resolve_hashed(q, NULL, NULL);
    aim_resolve_hash(config.object, config.hash);
    return in_namespace ? aim_resolve_hashed(q, &config, NULL)
                        : aim_resolve_hashed(q, NULL, &config);
}

const char *aim_resolve_outcome_name(enum aim_resolve_outcome outcome)
{
    static const char *const names[RESOLVE_N] = { [RESOLVE_UNKNOWN] = "unknown",
                                                  [RESOLVE_NAMESPACE] = "namespace",
                                                  [RESOLVE_CLUSTER] = "cluster",
                                                  [RESOLVE_NONE] = "default-missing",
                                                  [RESOLVE_MISSING] = "missing" };
    return names[outcome];
}

/* The form of status.effectiveRuntimeConfig: namespaceRef or clusterRef, never both. */
struct json *aim_resolve_effective(struct arena *a, const struct aim_resolved *r)
{
    if (!r->config)
        return NULL;
    bool cluster = r->outcome == RESOLVE_CLUSTER;
    const struct json *meta = json_get(r->config, "metadata");
    struct json *effective = json_new_obj(a);
    struct json *ref = json_make(a, effective, cluster ? "clusterRef" : "namespaceRef", NULL);
    json_set_str(a, ref, "kind", cluster ? S("AIMClusterRuntimeConfig") : S("AIMRuntimeConfig"));
    json_set_str(a, ref, "name", json_text(json_get(meta, "name")));
    if (!cluster)
        json_set_str(a, ref, "namespace", json_text(json_get(meta, "namespace")));
    json_set_str(a, ref, "scope", cluster ? S("Cluster") : S("Namespace"));
    if (json_get(meta, "uid"))
        json_set_str(a, ref, "uid", json_text(json_get(meta, "uid")));
    json_set_str(a, effective, "hash", str_c(r->hash));
    return effective;
}

bool aim_resolve_condition(const struct aim_resolved *r, const char **ret_reason)
{
    static const char *const reasons[RESOLVE_N] = {
        [RESOLVE_UNKNOWN] = "RuntimeConfigLookupFailed",
        [RESOLVE_NAMESPACE] = "RuntimeConfigResolved",
        [RESOLVE_CLUSTER] = "RuntimeConfigResolved",
        [RESOLVE_NONE] = "DefaultRuntimeConfigNotFound",
        [RESOLVE_MISSING] = "RuntimeConfigMissing",
    };
    *ret_reason = reasons[r->outcome];
    return r->outcome != RESOLVE_MISSING && r->outcome != RESOLVE_UNKNOWN;
}
