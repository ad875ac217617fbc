/* See artifact_quota.h. Every artifact with a volume counts, and so does an older one that is about to get its own: volumes are
 * created in the order of the artifacts, so that two that fit one by one do not block each other. One that waits for room
 * does not count, or a large one would block smaller ones behind it. After a volume was granted, no other is until
 * the watch shows it (or 10 s have passed): a decision never rests on a list that lacks the last one. */
#include "artifact_quota.h"

#include "aim.h"
#include "artifact_core.h"
#include "names_core.h"
#include "quota_core.h"

#define GRANT_NS (10 * NS_PER_S)

static struct json *object_of(const struct aim_turn *t, const struct aim_record *r)
{
    return aim_record_object(t->r->arena, &aim_kinds_of(t->aim)->at[AIM_ARTIFACT], r);
}

/* Quotas belong to the cluster administrator: they are read from the cluster configuration that the artifact names, or else from
 * the cluster's default. NULL: none. */
static const struct json *find_spec(const struct aim_turn *t)
{
    str name = json_text(json_at(t->object, "spec", "runtimeConfigName", NULL));
    const struct aim_config *config =
        aim_configs_find(&t->aim->configs, S(""), name.n ? name : S(RUNTIMECONFIG_DEFAULT));
    const struct json *spec = config ? json_get(config->kept.object, "spec") : NULL;
    if (json_get(spec, "artifactStorageQuota"))
        return spec;
    config = aim_configs_find(&t->aim->configs, S(""), S(RUNTIMECONFIG_DEFAULT));
    return config ? json_get(config->kept.object, "spec") : NULL;
}

static bool is_blocked(const struct json *artifact)
{
    const struct json *c = aim_engine_find_condition(artifact, "StorageQuotaExceeded");
    return str_eqc(json_text(json_get(c, "status")), "True");
}

/* By creation, then by name, so that the order is the same in every turn and after a restart. */
static bool is_older(const struct json *x, const struct json *y)
{
    static const char *const keys[] = { "creationTimestamp", "namespace", "name" };
    for (size_t i = 0; i < countof(keys); i++) {
        int order = str_cmp(json_text(json_at(x, "metadata", keys[i], NULL)),
                            json_text(json_at(y, "metadata", keys[i], NULL)));
        if (order)
            return order < 0;
    }
    return false;
}

static bool has_volume(const struct json *artifact)
{
    return aim_artifact_quantity(json_at(artifact, "status", "allocatedSize", NULL)) > 0;
}

/* All that count, except for those that are being deleted; `ns` empty: of the cluster. */
static struct json *list_artifacts(struct aim_turn *t, str ns)
{
    struct json *list = json_new_arr(t->r->arena);
    const struct aim_record *r;
    cache_each(r, t->of->cache) {
        if (r->deleting || (ns.n && !str_eq(r->meta.ns, ns)))
            continue;
        struct json *one = object_of(t, r);
        if (has_volume(one) || (is_older(one, t->object) && !is_blocked(one)))
            json_push(t->r->arena, list, one);
    }
    return list;
}

/* The uids that the template caches of the cluster use. */
static struct json *list_used(struct aim_turn *t)
{
    struct json *list = json_new_arr(t->r->arena);
    const struct aim_record *r;
    cache_each(r, aim_cache(t->aim, AIM_TEMPLATE_CACHE)) {
        struct json *status = NULL;
        if (!r->status.n || json_parse(t->r->arena, r->status, &status, NULL) < 0)
            continue;
        json_each(m, json_get(status, "artifacts"))
            json_push(t->r->arena, list,
                      json_new_str(t->r->arena, json_text(json_get(m->value, "uid"))));
    }
    return list;
}

/* The namespace, with the annotation that may set its limit. */
static struct json *namespace_object(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    const struct aim_namespace_record *r = cache_get(aim_world(t->aim)->namespaces, S(""), t->ns);
    struct json *o = json_new_obj(a), *metadata = json_make(a, o, "metadata", NULL);
    json_set_str(a, metadata, "name", t->ns);
    if (r && r->quota.n)
        json_set(a, json_make(a, metadata, "annotations", NULL),
                 aim_names_label_key(a, aim_kinds_of(t->aim)->group, "artifact-storage-quota"),
                 json_new_str(a, r->quota));
    return o;
}

/* The uid precondition protects an artifact that was created again under the same name. */
static void evict_artifacts(struct aim_turn *t, const struct json *keys)
{
    for (size_t i = 0; i < json_len(keys); i++) {
        str name = json_text(json_item(keys, i)), ns;
        str_cut(&name, '/', &ns);
        const struct aim_record *r = cache_get(t->of->cache, ns, name);
        if (!r)
            continue;
        struct json *body = json_new_obj(t->r->arena);
        json_set_str(t->r->arena, json_make(t->r->arena, body, "preconditions", NULL), "uid",
                     r->meta.uid);
        aim_status_event(&t->status, false, "Evicting",
                         arena_printf(t->r->arena,
                                      "Evicting AIMArtifact " STR_FMT "/" STR_FMT " to make room",
                                      STR_ARG(ns), STR_ARG(name)));
        aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                            .resource = &aim_kinds_of(t->aim)->at[AIM_ARTIFACT],
                                            .ns = ns,
                                            .name = name,
                                            .body = json_to_str(t->r->arena, body) });
    }
    reconcile_again(t->r, NS_PER_S); /* until the watch shows that they are gone */
}

/* True: another volume was granted and is not in the cache yet. */
static bool awaits_grant(struct aim_turn *t)
{
    struct aim_quota_grant *g = &t->aim->quota_grant;
    int64_t now = loop_mono_ns(manager_loop(aim_manager(t->aim)));
    const struct aim_record *r;
    if (now >= g->until_ns)
        return false;
    cache_each(r, t->of->cache)
        if (str_eqc(r->meta.uid, g->uid) && !has_volume(object_of(t, r)))
            return !str_eqc(t->uid, g->uid);
    return false;
}

/* Of one artifact at a time: the next one waits for it in awaits_grant(). */
static void remember_grant(struct aim_turn *t)
{
    struct aim_quota_grant *g = &t->aim->quota_grant;
    size_t n = MIN(t->uid.n, sizeof(g->uid) - 1);
    memcpy(g->uid, t->uid.p, n);
    g->uid[n] = '\0';
    g->until_ns = loop_mono_ns(manager_loop(aim_manager(t->aim))) + GRANT_NS;
}

static void set_condition(struct aim_engine_condition *c, bool holds, const char *reason,
                          str message)
{
    *c = (struct aim_engine_condition){ .type = S("StorageQuotaExceeded"),
                                        .truth = holds ? ENGINE_TRUE : ENGINE_FALSE,
                                        .reason = str_c(reason),
                                        .message = message };
}

/* Without a quota nothing is listed: most clusters have none. */
bool aim_artifact_quota_turn(struct aim_turn *t, int64_t bytes, struct aim_engine_condition *ret)
{
    const struct json *spec = find_spec(t), *quota = json_get(spec, "artifactStorageQuota");
    struct aim_quota_question q = {
        .group = aim_kinds_of(t->aim)->group,
        .artifact = t->object,
        .bytes = bytes,
        .headroom_percent = aim_artifact_headroom_percent(t->config.spec),
        .ns = namespace_object(t),
        .quota = quota,
        .default_priority = json_at(spec, "artifact", "defaultRetentionPriority", NULL),
    };
    *ret = (struct aim_engine_condition){ 0 };
    if (!quota && !json_at(q.ns, "metadata", "annotations", NULL))
        return true;
    if (awaits_grant(t)) {
        reconcile_again(t->r, NS_PER_S);
        return false;
    }
    q.in_namespace = list_artifacts(t, t->ns);
    q.in_cluster = list_artifacts(t, S(""));
    q.in_use = list_used(t);
    struct aim_quota_answer answer = aim_quota_check(t->r->arena, &q);
    if (answer.warning.n)
        aim_status_event(&t->status, true, "InvalidStorageQuota", answer.warning);
    const char *reason =
        answer.namespace_exceeded ? "NamespaceQuotaExceeded" : "ClusterQuotaExceeded";
    if (answer.blocked)
        set_condition(ret, true, reason, answer.message);
    else if (answer.evict) {
        evict_artifacts(t, answer.evict);
        set_condition(ret, true, "Evicting",
                      arena_printf(t->r->arena, "Evicting %zu artifact(s) to make room",
                                   json_len(answer.evict)));
    } else {
        set_condition(ret, false, "WithinQuota", S("Storage is within the quota"));
        remember_grant(t);
        return true;
    }
    return false;
}

/* The condition is in the status only while an artifact waits, or right after it was served. */
void aim_artifact_quota_enqueue(const struct aim_consumers *of)
{
    const struct aim_record *r;
    cache_each(r, of->cache)
        if (str_find(r->status, S("\"StorageQuotaExceeded\"")) != SIZE_MAX &&
            !str_eqc(r->word, "Ready"))
            controller_add(of->controller, r->meta.ns, r->meta.name);
}
