/* Resolution: see resolve_core.h. */
#include "resolve_core.h"

#include "../json/hash.h"

str resolve_name(const struct resolve_question *q)
{
    return q->name.n ? q->name : S(RUNTIMECONFIG_DEFAULT);
}

str resolve_namespace(const struct resolve_question *q)
{
    return q->ns.n ? q->ns : q->operator_ns;
}

void resolve_hash(const struct json *config, char ret_hex[SHA256_HEX + 1])
{
    static const struct json empty = { .type = JSON_OBJ };
    const struct json *spec = json_get(config, "spec");
    hash_json(spec ? spec : &empty, ret_hex);
}

struct resolved resolve_kept(const struct resolve_question *q,
                             const struct resolve_config *in_namespace,
                             const struct resolve_config *in_cluster)
{
    const struct resolve_config *config = in_namespace ? in_namespace : in_cluster;
    struct resolved r = { 0 };
    if (!config) {
        r.outcome =
            str_eqc(resolve_name(q), RUNTIMECONFIG_DEFAULT) ? RESOLVE_NONE : RESOLVE_MISSING;
        return r;
    }
    r.outcome = in_namespace ? RESOLVE_NAMESPACE : RESOLVE_CLUSTER;
    r.config = config->object;
    r.spec = json_get(r.config, "spec");
    memcpy(r.hash, config->hash, sizeof(r.hash));
    return r;
}

struct resolved resolve(const struct resolve_question *q, const struct json *in_namespace,
                        const struct json *in_cluster)
{
    struct resolve_config config = { .object = in_namespace ? in_namespace : in_cluster };
    if (!config.object)
        return resolve_kept(q, NULL, NULL);
    resolve_hash(config.object, config.hash);
    return in_namespace ? resolve_kept(q, &config, NULL) : resolve_kept(q, NULL, &config);
}

const char *resolve_outcome_name(enum resolve_outcome outcome)
{
    static const char *const names[RESOLVE_N] = { "namespace", "cluster", "default-missing",
                                                  "missing" };
    return names[outcome];
}

struct json *resolve_effective(struct arena *a, const struct resolved *r)
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

bool resolve_condition(const struct resolved *r, const char **ret_reason)
{
    static const char *const reasons[RESOLVE_N] = { "RuntimeConfigResolved",
                                                    "RuntimeConfigResolved",
                                                    "DefaultRuntimeConfigNotFound",
                                                    "RuntimeConfigMissing" };
    *ret_reason = reasons[r->outcome];
    return r->outcome != RESOLVE_MISSING;
}
