/* AIMTemplateCache: see cache_controller.h and cache_core.h; AIMModelCache is in cache_model_controller.c, template caches of the
 * newer generation, which have artifacts instead, in templatecache_controller.c.
 *
 * Model caches are shared: one that already serves the source is used, whichever object created it. Those that we
 * create carry a label and no owner, so that a finished download outlives the template cache; unfinished ones are
 * deleted with it (finalizer template-cache-cleanup).
 *
 *     template --> its model sources --> for each: an existing model cache, or a new one
 *     status.modelCaches lists name, state and claim of each; the service mounts the claims from there. */
#include "cache_controller.h"

#include "cache_core.h"
#include "names_core.h"
#include "service_children_core.h"
#include "service_finalizer.h"
#include "service_view.h"
#include "service_watch.h"
#include "templatecache_controller.h"

#define FINALIZER "template-cache-cleanup"

struct cache_view {
    const struct json *template; /* NULL: not found */
    str template_name;
    struct aim_cache_candidate *candidates; /* model caches of the namespace */
    size_t n;
    struct json *found; /* status.modelCaches */
    struct aim_cache_template_facts facts;
};

static const struct resource *model_cache_kind(const struct aim_turn *t)
{
    return &aim_kinds_of(t->aim)->at[AIM_MODEL_CACHE];
}

/* All model caches of the namespace that are not being deleted. */
static void gather_candidates(struct aim_turn *t, struct cache_view *v)
{
    struct arena *a = t->r->arena;
    struct cache *caches = aim_cache(t->aim, AIM_MODEL_CACHE);
    const struct aim_record *r;
    v->candidates = arena_array(a, cache_count(caches) + 1, sizeof(*v->candidates));
    cache_each(r, caches) {
        struct json *spec = NULL;
        if (!str_eq(r->meta.ns, t->ns) || r->deleting || json_parse(a, r->spec, &spec, NULL) < 0)
            continue;
        v->candidates[v->n++] = (struct aim_cache_candidate){
            arena_str(a, r->meta.name), json_text(json_get(spec, "sourceUri")),
            json_text(json_get(spec, "storageClassName")), arena_str(a, r->word)
        };
    }
}

/* Finds the template and the candidates; the sources are matched in template_cache_reconcile(). */
static void template_cache_observe_turn(struct aim_turn *t)
{
    struct cache_view *v = arena_new(t->r->arena, struct cache_view);
    const struct json *spec = json_get(t->object, "spec");
    str ref = json_text(json_get(spec, "templateRef"));
    if (aim_templatecache_is_newer(t)) {
        aim_templatecache_observe(t);
        return;
    }
    t->view = v;
    v->template_name = ref.n ? ref : json_text(json_get(spec, "templateName"));
    v->template = aim_service_find(t, AIM_TEMPLATE, v->template_name);
    v->found = json_new_obj(t->r->arena);
    v->facts = (struct aim_cache_template_facts){
        .config_missing = t->config.outcome == RESOLVE_MISSING,
        .config_message = S("The runtime configuration does not exist"),
        .template_found = v->template != NULL,
        .template_name = v->template_name,
        .worst = aim_cache_rank(S("Available")),
    };
    gather_candidates(t, v);
}

/* ---- one source */

/* Adds one entry of status.modelCaches and counts it. */
static void add_source_status(struct aim_turn *t, struct cache_view *v, str source, str name,
                              str status)
{
    struct arena *a = t->r->arena;
    struct json *entry = json_new_obj(a);
    json_set_str(a, entry, "name", name);
    json_set_str(a, entry, "model", source);
    json_set_str(a, entry, "status", status.n ? status : S("Pending"));
    json_set_str(a, entry, "persistentVolumeClaim", aim_names_model_cache_volume(a, name));
    json_set(a, v->found, source, entry);
    v->facts.available += aim_cache_is_available(status);
    v->facts.worst = MIN(v->facts.worst, aim_cache_rank(status));
}

/* The name, or with a hash of the URI appended if a cache for another source already has it. */
static str free_name(struct aim_turn *t, const struct cache_view *v, str name, str uri)
{
    for (size_t i = 0; i < v->n; i++)
        if (str_eq(v->candidates[i].name, name))
            return aim_names_append_hash(t->r->arena, name, uri);
    return name;
}

/* Finds a model cache for a source, or creates one. */
static void ensure_source(struct aim_turn *t, struct cache_view *v, const struct json *source)
{
    str name = aim_service_source_id(source), uri = json_text(json_get(source, "sourceUri"));
    str class = json_text(json_at(t->object, "spec", "storageClassName", NULL));
    const struct aim_cache_candidate *have = aim_cache_choose(v->candidates, v->n, uri, class);
    if (have) {
        add_source_status(t, v, name, have->name, have->status);
        return;
    }
    struct json *cache = aim_cache_model_cache(t->r->arena, aim_kinds_of(t->aim)->group, t->object,
                                               source, &t->settings);
    struct json *metadata = json_get(cache, "metadata");
    str made = free_name(t, v, json_text(json_get(metadata, "name")), uri);
    json_set_str(t->r->arena, metadata, "name", made);
    add_source_status(t, v, name, made, S("Pending"));
    aim_apply(t, model_cache_kind(t), NULL, cache);
}

/* ---- deletion */

/* Deletes the unfinished objects of a kind that were created for this one; the label has its name. Returns how many. */
static size_t delete_unfinished(struct aim_turn *t, enum aim_kind kind, const char *label_name)
{
    struct arena *a = t->r->arena;
    const struct aim_record *r;
    str key = aim_names_label_key(a, aim_kinds_of(t->aim)->group, label_name);
    str label = aim_names_label_value(a, t->name);
    size_t leaving = 0;
    cache_each(r, aim_cache(t->aim, kind)) {
        struct json *labels = NULL;
        if (!str_eq(r->meta.ns, t->ns) || r->deleting || aim_cache_is_available(r->word) ||
            !r->labels.n || json_parse(a, r->labels, &labels, NULL) < 0 ||
            !str_eq(json_text(json_get_str(labels, key)), label))
            continue;
        leaving++;
        aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                            .resource = &aim_kinds_of(t->aim)->at[kind],
                                            .ns = t->ns,
                                            .name = r->meta.name });
    }
    return leaving;
}

/* Removes the finalizers, ours and that of the newer operator, when no unfinished cache is left. */
static void delete_unfinished_caches(struct aim_turn *t)
{
    static const char *const finalizers[] = { FINALIZER, AIM_TEMPLATECACHE_FINALIZER };
    if (!aim_finalizer_has(t, FINALIZER) && !aim_finalizer_has(t, AIM_TEMPLATECACHE_FINALIZER))
        return;
    if (delete_unfinished(t, AIM_MODEL_CACHE, "template-cache") +
        delete_unfinished(t, AIM_ARTIFACT, "template-cache.name"))
        reconcile_again(t->r, NS_PER_S); /* until the watch shows that they are being deleted */
    else
        aim_finalizer_release(t, finalizers, countof(finalizers));
}

/* Without a configuration no cache is created: its storage class and credentials are unknown. */
static void template_cache_reconcile(struct aim_turn *t)
{
    bool newer = aim_templatecache_is_newer(t);
    const char *finalizer = newer ? AIM_TEMPLATECACHE_FINALIZER : FINALIZER;
    struct cache_view *v = t->view;
    if (t->deleting) {
        delete_unfinished_caches(t);
        return;
    }
    if (!aim_finalizer_has(t, finalizer))
        aim_finalizer_send(t, finalizer, true);
    if (newer) {
        aim_templatecache_reconcile(t);
        return;
    }
    const struct json *sources = aim_service_sources(v->template);
    v->facts.sources = json_len(sources);
    if (v->facts.config_missing)
        return;
    for (size_t i = 0; i < json_len(sources); i++)
        ensure_source(t, v, json_item(sources, i));
}

/* Resolved reports the template, CacheWarm the sources; Ready, Progressing and Failure follow from the state. */
static void template_cache_set_status(struct aim_turn *t)
{
    struct cache_view *v = t->view;
    struct aim_status *s = &t->status;
    if (aim_templatecache_is_newer(t)) {
        aim_templatecache_set_status(t);
        return;
    }
    struct aim_cache_state state = aim_cache_template_state(s->a, &v->facts);
    bool warm = aim_cache_is_available(str_c(state.status)),
         failed = !strcmp(state.status, "Failed");
    aim_status_text(s, "status", str_c(state.status));
    aim_status_text(s, "resolvedTemplateKind", json_text(json_get(v->template, "kind")));
    if (!v->facts.config_missing)
        json_set(s->a, s->next, S("modelCaches"), v->found);
    bool resolved = v->facts.template_found;
    aim_status_set(&t->status, "Resolved", resolved, resolved ? "Resolved" : "AwaitingTemplate",
                   resolved ? S("The template exists") : state.message);
    aim_status_set(&t->status, "CacheWarm", warm, state.reason, state.message);
    aim_status_set(&t->status, "Ready", warm, state.reason, state.message);
    aim_status_set(&t->status, "Progressing", !warm && !failed, state.reason, state.message);
    aim_status_set(&t->status, "Failure", failed, failed ? state.reason : "NoFailure",
                   failed ? state.message : S("No active failures"));
}

/* ---- watches */

static void on_template_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    const struct record *any = now ? now : old;
    if (aim_watch_has_changed(old, now))
        aim_watch_enqueue_mentioning(controller_context(c), any->ns, &any->name, 1);
}

/* Any model cache or artifact of the namespace may serve a source that waits for one. */
static void on_source_cache_change(struct controller *c, const struct record *old,
                                   const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct record *any = now ? now : old;
    const struct aim_record *r;
    if (!aim_watch_has_changed(old, now))
        return;
    cache_each(r, of->cache)
        if (str_eq(r->meta.ns, any->ns))
            controller_add(c, r->meta.ns, r->meta.name);
}

static int template_cache_start(struct aim_consumers *of, err_t *e)
{
    (void)e;
    controller_watch(of->controller, aim_cache(of->aim, AIM_TEMPLATE), on_template_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_CLUSTER_TEMPLATE), on_template_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_MODEL_CACHE), on_source_cache_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_ARTIFACT), on_source_cache_change);
    return 0;
}

const struct aim_hooks aim_template_cache_hooks = {
    .start = template_cache_start,
    .observe = template_cache_observe_turn,
    .reconcile = template_cache_reconcile,
    .set_status = template_cache_set_status,
};
