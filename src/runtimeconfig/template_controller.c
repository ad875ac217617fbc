/* Templates: see template_controller.h, template_core.h and template_children_core.h.
 *
 *     observe    the model and the GPUs of the nodes -> state
 *     reconcile  if Ready: (Cluster)ServingRuntime, and a cache if caching is enabled
 *     status     sources and profile, from the spec or from discovery (template_discovery.c)
 *
 * A cluster template has no cache, because caches are per namespace. The serving runtime has no owner reference to its
 * template: runtime_controller.c deletes it, once no InferenceService names it. */
#include "template_controller.h"

#include "cache_core.h"
#include "discovery_core.h"
#include "runtime_controller.h"
#include "service_view.h"
#include "service_world.h"
#include "template_children_core.h"
#include "template_core.h"
#include "template_discovery.h"

struct template_view {
    const struct json *model;               /* NULL: not found */
    const struct aim_child_record *runtime; /* of its name, of any owner; NULL: none */
    struct aim_template_facts facts;
    struct aim_template_state state;
};

static bool is_ready(const struct template_view *v)
{
    return !strcmp(v->state.status, "Ready");
}

static void template_observe_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    struct template_view *v = arena_new(a, struct template_view);
    str model = json_text(json_at(t->object, "spec", "modelName", NULL));
    t->view = v;
    v->model = aim_service_find(t, AIM_MODEL, model);
    v->runtime = cache_get(aim_runtime_cache(aim_world(t->aim), t->of->kind), t->ns, t->name);
    v->facts = (struct aim_template_facts){
        .object = t->object,
        .config_missing = t->config.outcome == RESOLVE_MISSING,
        .config_message = S("The runtime configuration does not exist"),
        .model = v->model,
        .foreign_runtime = aim_runtime_is_foreign(v->runtime),
        .gpus = aim_world_gpus(aim_world(t->aim)),
    };
    v->state = aim_template_state(a, &v->facts);
    if (!strcmp(v->state.reason, "AwaitingDiscovery")) {
        aim_discovery_observe(t, v->model, &v->facts);
        v->state = aim_template_state(a, &v->facts);
    }
}

/* Compared with the live runtime: a template is reconciled far more often than it changes. */
static void make_runtime(struct aim_turn *t, const struct aim_template_basis *b)
{
    const struct template_view *v = t->view;
    if (cache_absent(aim_runtime_cache(aim_world(t->aim), t->of->kind)))
        return; /* KServe or this kind of it is not installed */
    if (v->runtime &&
        v->runtime->owner_name.n) /* of an earlier version: see runtime_controller.c */
        aim_runtime_release(t);
    aim_apply(t, aim_runtime_resource(t->of->kind), aim_child_object(t->r->arena, v->runtime),
              aim_template_serving_runtime(t->r->arena, b));
}

static void make_cache(struct aim_turn *t, const struct aim_template_basis *b)
{
    struct json *cache = t->ns.n ? aim_template_cache(t->r->arena, b) : NULL;
    if (!cache)
        return;
    const struct resource *kind = &aim_kinds_of(t->aim)->at[AIM_TEMPLATE_CACHE];
    const struct aim_record *live =
        cache_get(aim_cache(t->aim, AIM_TEMPLATE_CACHE), t->ns, t->name);
    aim_apply_owned(t, kind, live ? aim_record_object(t->r->arena, kind, live) : NULL, cache);
}

/* A template that is no longer ready keeps its children: services may be running with them. */
static void template_reconcile(struct aim_turn *t)
{
    const struct template_view *v = t->view;
    struct aim_template_basis b = { .group = aim_kinds_of(t->aim)->group,
                                    .template = t->object,
                                    .profile = v->state.profile,
                                    .model = v->model,
                                    .config = &t->settings };
    if (t->deleting)
        return;
    aim_discovery_advance(t);
    if (!is_ready(v))
        return;
    if (v->model)
        make_runtime(t, &b);
    make_cache(t, &b);
}

/* ---- status */

static void put_field(struct aim_turn *t, const char *field, const struct json *tree)
{
    struct aim_status *s = &t->status;
    if (tree)
        json_set(s->a, s->next, str_c(field), json_copy(s->a, tree));
    else
        json_del(s->next, str_c(field));
}

/* The condition exists only while caching is enabled. */
static void put_cache(struct aim_turn *t)
{
    const struct aim_record *cache =
        cache_get(aim_cache(t->aim, AIM_TEMPLATE_CACHE), t->ns, t->name);
    if (!json_bool(json_at(t->object, "spec", "caching", "enabled", NULL), false)) {
        aim_status_drop_condition(&t->status, "CacheWarm");
        return;
    }
    bool warm = cache && aim_cache_is_available(cache->word);
    aim_status_set(&t->status, "CacheWarm", warm, warm ? "Warm" : "CacheWarming",
                   warm ? S("All model sources are cached") : S("Model sources are being cached"));
}

/* The hardware of a ready template, and the nodes that have it. Discovery wrote that of the profile. */
static void put_hardware(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    const struct template_view *v = t->view;
    if (v->state.situation == TEMPLATE_INLINE) {
        struct aim_discovery_result r =
            aim_discovery_inline(s->a, aim_template_normal_spec(s->a, json_get(t->object, "spec")));
        put_field(t, "resolvedHardware", r.hardware);
        aim_status_text(s, "hardwareSummary", r.summary);
    }
    struct json *spec = json_new_obj(s->a);
    const struct json *hardware = json_get(s->next, "resolvedHardware");
    if (hardware)
        json_set(s->a, spec, S("hardware"), json_copy(s->a, hardware));
    if (is_ready(v))
        put_field(t, "resolvedNodeAffinity",
                  aim_discovery_gpu(s->a, spec, aim_template_memory_of(s->a, v->facts.gpus))
                      .node_affinity);
}

static void template_set_status(struct aim_turn *t)
{
    struct template_view *v = t->view;
    const struct aim_template_state *state = &v->state;
    if (t->discovery) { /* an answer may have arrived in this turn */
        aim_discovery_set_status(t);
        v->state = aim_template_state(t->r->arena, &v->facts);
    }
    struct aim_template_condition conditions[TEMPLATE_CONDITIONS];
    aim_template_conditions(state, conditions);
    aim_status_text(&t->status, "status", str_c(state->status));
    put_field(t, "modelSources", state->sources);
    put_field(t, "profile", state->profile);
    aim_status_reference(&t->status, "resolvedModel", v->model);
    for (size_t i = 0; i < countof(conditions); i++)
        aim_status_set(&t->status, conditions[i].type, conditions[i].holds, conditions[i].reason,
                       conditions[i].message);
    put_hardware(t);
    put_cache(t);
    aim_status_drop_newer(&t->status);
}

/* ---- watches */

static void enqueue_of_model(struct aim_consumers *of, str ns, str model)
{
    const struct aim_record *r;
    cache_each_in(r, of->cache, AIM_INDEX_MODEL, model)
        if (!ns.n || str_eq(r->meta.ns, ns))
            controller_add(of->controller, r->meta.ns, r->meta.name);
}

/* Only its existence and its spec (the image) matter. */
static void on_model_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    const struct aim_record *before = record_as(struct aim_record, old),
                            *after = record_as(struct aim_record, now);
    const struct record *any = now ? now : old;
    if (!before || !after || !str_eq(before->spec, after->spec))
        enqueue_of_model(controller_context(c), any->ns, any->name);
}

/* Its cache and its serving runtime have the name of the template. */
static void on_namesake_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct record *any = now ? now : old;
    if (cache_get(of->cache, any->ns, any->name))
        controller_add(c, any->ns, any->name);
}

/* Affects templates that require a GPU and are not ready. */
static void on_node_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_record *r;
    (void)old;
    (void)now;
    cache_each(r, of->cache)
        if (!str_eqc(r->word, "Ready") && (str_find(r->spec, S("\"gpuSelector\"")) != SIZE_MAX ||
                                           str_find(r->spec, S("\"gpu\"")) != SIZE_MAX))
            controller_add(c, r->meta.ns, r->meta.name);
}

/* A namespaced template also depends on namespaced models and on its cache. */
static int template_start(struct aim_consumers *of, err_t *e)
{
    bool cluster = of->kind == AIM_CLUSTER_TEMPLATE;
    struct aim_world *w = aim_world(of->aim);
    (void)e;
    aim_runtime_start(of);
    aim_discovery_watch(of);
    controller_watch(of->controller, aim_runtime_cache(w, of->kind), on_namesake_change);
    controller_watch(of->controller, w->nodes, on_node_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_CLUSTER_MODEL), on_model_change);
    if (cluster)
        return 0;
    controller_watch(of->controller, aim_cache(of->aim, AIM_MODEL), on_model_change);
    controller_watch(of->controller, aim_cache(of->aim, AIM_TEMPLATE_CACHE), on_namesake_change);
    return 0;
}

const struct aim_hooks aim_template_hooks = {
    .start = template_start,
    .observe = template_observe_turn,
    .reconcile = template_reconcile,
    .set_status = template_set_status,
};
