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

struct resolved resolve(const struct resolve_question *q, const struct json *in_namespace,
                        const struct json *in_cluster)
{
    struct resolved r = { .config = in_namespace ? in_namespace : in_cluster };
    if (!r.config) {
        r.outcome =
            str_eqc(resolve_name(q), RUNTIMECONFIG_DEFAULT) ? RESOLVE_NONE : RESOLVE_MISSING;
        return r;
    }
    static const struct json empty = { .type = JSON_OBJ };
    r.outcome = in_namespace ? RESOLVE_NAMESPACE : RESOLVE_CLUSTER;
    r.spec = json_get(r.config, "spec");
    hash_json(r.spec ? r.spec : &empty, r.hash);
    return r;
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
