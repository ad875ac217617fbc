/* Template caches: see templatecache_core.h.
 *
 * A shared cache uses artifacts without an owner, a dedicated one only its own: the two never mix, because deleting a
 * dedicated cache deletes its volumes. Of several artifacts with the same source and storage class the one that is
 * furthest is taken. */
#include "templatecache_core.h"

#include "derive_core.h"
#include "service_children_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static str meta_of(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static bool is_dedicated(const struct aim_templatecache_facts *f)
{
    str mode = json_text(json_at(f->cache, "spec", "mode", NULL));
    return str_eqc(mode, "Dedicated") || str_eqc(mode, "Never");
}

/* By scope: a namespaced template is not a cluster-scoped one of the same name. */
static const struct json *template_of(const struct aim_templatecache_facts *f)
{
    str scope = json_text(json_at(f->cache, "spec", "templateScope", NULL));
    if (str_eqc(scope, "Cluster"))
        return f->cluster_template;
    if (str_eqc(scope, "Namespace") || f->template)
        return f->template;
    return f->cluster_template;
}

static enum aim_engine_state word_of(const struct json *object)
{
    return aim_engine_state_of(json_text(json_at(object, "status", "status", NULL)));
}

/* ---- components */

static struct aim_engine_component config_component(const struct aim_templatecache_facts *f)
{
    bool missing = f->config_default_missing;
    return (struct aim_engine_component){
        .name = "RuntimeConfig",
        .state = ENGINE_READY,
        .reason = missing ? S("DefaultConfigNotFound") : S("ConfigFound"),
        .message = missing ? S("Default config was not found") : S(""),
        .has_reason = true,
        .upstream = true,
    };
}

/* The template's own condition Ready is ours about it. */
static struct aim_engine_component template_component(const struct json *template)
{
    const struct json *ready = aim_engine_find_condition(template, "Ready");
    enum aim_engine_state word = word_of(template);
    struct aim_engine_component c = { .name = "ServiceTemplate", .upstream = true };
    if (!template) {
        c.errors[0] = (struct aim_engine_error){ ENGINE_MISSING_UPSTREAM, S("ReferenceNotFound"),
                                                 S("Upstream dependency not found") };
        return c;
    }
    c.has_reason = true;
    c.reason = ready ? text_of(ready, "reason") : S("ResourceFound");
    c.message =
        ready ? text_of(ready, "message") : S("Resource found but no Ready condition present");
    bool holds = str_eqc(text_of(ready, "status"), "True");
    c.state = holds                                          ? ENGINE_READY
              : !ready                                       ? ENGINE_PROGRESSING
              : word != ENGINE_UNSET && word != ENGINE_READY ? word
                                                             : ENGINE_FAILED;
    return c;
}

static struct aim_engine_component new_component(enum aim_engine_state state, str reason,
                                                 str message)
{
    return (struct aim_engine_component){ .name = "Artifacts",
                                          .state = state,
                                          .reason = reason,
                                          .message = message,
                                          .has_reason = true };
}

/* The worst artifact speaks for all. */
static struct aim_engine_component worst_component(struct arena *a, const struct json *worst,
                                                   bool as_original)
{
    const struct json *ready = aim_engine_find_condition(worst, "Ready");
    enum aim_engine_state state = word_of(worst);
    state = state ? state : ENGINE_PROGRESSING;
    if (ready)
        return new_component(state, text_of(ready, "reason"),
                             arena_printf(a, "One or more caches are not ready: " STR_FMT,
                                          STR_ARG(text_of(ready, "message"))));
    return as_original
               ? new_component(state, S("Ready"), S(""))
               : new_component(state, S("CachesNotReady"), S("One or more caches are not ready"));
}

/* ---- artifacts */

static bool is_owned_by(const struct json *artifact, str uid)
{
    const struct json *owners = json_at(artifact, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < json_len(owners); i++)
        if (str_eq(text_of(json_item(owners, i), "uid"), uid))
            return true;
    return false;
}

/* Whether the cache may use an artifact: same source, same storage class, and the right owner. */
static bool can_use_artifact(const struct aim_templatecache_facts *f, const struct json *artifact,
                             str uri)
{
    str class = json_text(json_at(f->cache, "spec", "storageClassName", NULL));
    bool mine = is_dedicated(f) ? is_owned_by(artifact, meta_of(f->cache, "uid"))
                                : !json_len(json_at(artifact, "metadata", "ownerReferences", NULL));
    return mine && str_eq(json_text(json_at(artifact, "spec", "sourceUri", NULL)), uri) &&
           str_eq(json_text(json_at(artifact, "spec", "storageClassName", NULL)), class);
}

/* The artifact that is furthest; states are ordered from failed to ready. */
static const struct json *find_artifact(const struct aim_templatecache_facts *f, str uri)
{
    const struct json *best = NULL;
    for (size_t i = 0; i < json_len(f->artifacts); i++) {
        const struct json *one = json_item(f->artifacts, i);
        if (can_use_artifact(f, one, uri) && (!best || word_of(one) > word_of(best)))
            best = one;
    }
    return best;
}

/* "<uri>-<hash>": the same source with other credentials or on other storage is another artifact. */
static str artifact_name(struct arena *a, const struct aim_templatecache_facts *f, str uri,
                         struct json *env)
{
    enum { DIGITS = 10 };
    struct json *inputs = aim_derive_inputs(a, &uri, 1);
    auto_buf struct buf plain = { 0 };
    for (size_t i = 0; i < uri.n; i++)
        buf_putc(&plain, uri.p[i] == '.' ? '-' : uri.p[i]);
    json_push(a, inputs, env->n ? env : json_new_null(a));
    json_push(a, inputs,
              json_new_str(a, json_text(json_at(f->cache, "spec", "storageClassName", NULL))));
    if (is_dedicated(f)) {
        json_push(a, inputs, json_new_str(a, S("dedicated")));
        json_push(a, inputs, json_new_str(a, meta_of(f->cache, "name")));
    }
    str part = buf_str(&plain);
    return aim_derive_name(a, &part, 1, inputs, DIGITS);
}

/* Labels by which a person finds out what an artifact was made for; nothing selects by them. */
static void put_labels(struct arena *a, const struct aim_templatecache_facts *f,
                       const struct json *template, size_t index, struct json *artifact)
{
    struct json *labels = json_make(a, artifact, "metadata", "labels", NULL);
    const struct {
        const char *key;
        str value;
    } t[] = { { "template-cache.name", meta_of(f->cache, "name") },
              { "template.name", meta_of(template, "name") },
              { "template.scope", template == f->cluster_template ? S("Cluster") : S("Namespace") },
              { "template.index", arena_printf(a, "%zu", index) } };
    json_set_str(a, labels, "template-created", S("true"));
    for (size_t i = 0; i < countof(t); i++)
        json_set(a, labels, arena_printf(a, "%s/%s", f->group, t[i].key),
                 json_new_str(a, t[i].value));
}

/* Environment of the source wins over that of the cache. */
static struct json *new_artifact(struct arena *a, const struct aim_templatecache_facts *f,
                                 const struct json *template, size_t index,
                                 const struct json *source)
{
    static const char *const copied[] = { "storageClassName", "runtimeConfigName",
                                          "imagePullSecrets" };
    const struct json *from = json_get(f->cache, "spec");
    struct json *artifact = json_new_obj(a), *spec = json_make(a, artifact, "spec", NULL);
    struct json *env = aim_service_merge_named(a, json_get(from, "env"), json_get(source, "env"));
    str uri = text_of(source, "sourceUri"), size = text_of(source, "size");
    str image = text_of(from, "downloadImage");
    json_set_str(a, json_make(a, artifact, "metadata", NULL), "name",
                 artifact_name(a, f, uri, env));
    put_labels(a, f, template, index, artifact);
    json_set_str(a, spec, "sourceUri", uri);
    if (aim_service_source_id(source).n)
        json_set_str(a, spec, "modelId", aim_service_source_id(source));
    json_set_str(a, spec, "size", size.n ? size : S("0"));
    if (env->n)
        json_set(a, spec, S("env"), env);
    for (size_t i = 0; i < countof(copied); i++)
        if (json_get(from, copied[i]))
            json_set(a, spec, str_c(copied[i]), json_copy(a, json_get(from, copied[i])));
    if (image.n)
        json_set_str(a, spec, "modelDownloadImage", image);
    return artifact;
}

/* The entry of one artifact in status.artifacts, under its name. */
static void put_artifact(struct arena *a, struct json *map, const struct json *artifact,
                         const struct json *source)
{
    struct json *entry = json_new_obj(a);
    str claim = json_text(json_at(artifact, "status", "persistentVolumeClaim", NULL));
    json_set_str(a, entry, "name", meta_of(artifact, "name"));
    json_set_str(a, entry, "uid", meta_of(artifact, "uid"));
    json_set_str(a, entry, "model", aim_service_source_id(source));
    json_set_str(a, entry, "status", json_text(json_at(artifact, "status", "status", NULL)));
    if (claim.n)
        json_set_str(a, entry, "persistentVolumeClaim", claim);
    json_set(a, map, meta_of(artifact, "name"), entry);
}

/* One artifact per source of the template. Artifacts are created only for a template that is ready: before that
 * its sources may still change. */
struct aim_templatecache_state aim_templatecache_state(struct arena *a,
                                                       const struct aim_templatecache_facts *f)
{
    struct aim_templatecache_state s = { .owned = is_dedicated(f) };
    const struct json *template = template_of(f), *sources = aim_service_sources(template);
    struct json *map = json_new_obj(a), *creates = json_new_arr(a);
    const struct json *worst = NULL;
    s.components[s.n++] = config_component(f);
    s.components[s.n++] = template_component(template);
    bool ready = s.components[1].state == ENGINE_READY;
    for (size_t i = 0; ready && i < json_len(sources); i++) {
        const struct json *source = json_item(sources, i);
        const struct json *one = find_artifact(f, text_of(source, "sourceUri"));
        if (!one)
            json_push(a, creates, new_artifact(a, f, template, i, source));
        else
            put_artifact(a, map, one, source);
        if (one && (!worst || word_of(one) < word_of(worst)))
            worst = one;
    }
    s.components[s.n++] =
        creates->n ? new_component(ENGINE_PROGRESSING, S("CreatingCaches"),
                                   S("Waiting for the AIM artifacts to be created"))
        : !map->n  ? new_component(ENGINE_PROGRESSING, S("NoCaches"), S("No artifacts to track"))
        : word_of(worst) == ENGINE_READY
            ? new_component(ENGINE_READY, S("AllCachesReady"), S("All caches are ready"))
            : worst_component(a, worst, f->as_original);
    s.artifacts = map->n ? map : NULL;
    s.creates = creates->n ? creates : NULL;
    return s;
}
