/* Watches that enqueue services: see service_view.h and service_watch.h. A change of a template, model or cache affects
 * the services that mention it in their spec, or in the resolved references of their status. The JSON text is
 * searched for the quoted name: a false match costs one pass that changes nothing, while an index would have to
 * follow every rule of resolution. */
#include "service_view.h"

#include "service_watch.h"
#include "service_world.h"

/* Both versions count: a child may have changed its owner. */
void aim_watch_on_child_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const char *kind = aim_kinds_of(of->aim)->at[of->kind].kind;
    const struct record *both[] = { old, now };
    for (size_t i = 0; i < countof(both); i++) {
        const struct aim_child_record *child = record_as(struct aim_child_record, both[i]);
        if (child && str_eqc(child->owner_kind, kind) && child->owner_name.n)
            controller_add(c, child->meta.ns, child->owner_name);
    }
}

static bool aim_watch_mentions(const struct aim_record *r, str name)
{
    auto_buf struct buf quoted = { 0 };
    if (!name.n)
        return false;
    buf_printf(&quoted, "\"" STR_FMT "\"", STR_ARG(name));
    return str_find(r->spec, buf_str(&quoted)) != SIZE_MAX ||
           str_find(r->status, buf_str(&quoted)) != SIZE_MAX;
}

bool aim_watch_has_changed(const struct record *old, const struct record *now)
{
    const struct aim_record *x = record_as(struct aim_record, old),
                            *y = record_as(struct aim_record, now);
    return !x || !y || x->deleting != y->deleting || !str_eq(x->spec, y->spec) ||
           !str_eq(x->word, y->word) || !str_eq(x->status, y->status);
}

void aim_watch_enqueue_mentioning(const struct aim_consumers *of, str ns, const str *names,
                                  size_t n)
{
    const struct aim_record *r;
    cache_each(r, of->cache) {
        if (ns.n && !str_eq(r->meta.ns, ns))
            continue;
        bool named = false;
        for (size_t i = 0; i < n && !named; i++)
            named = aim_watch_mentions(r, names[i]);
        if (named)
            controller_add(of->controller, r->meta.ns, r->meta.name);
    }
}

static str image_of_model(const struct aim *aim, str ns, str name)
{
    const struct aim_record *m = cache_get(aim_cache(aim, AIM_MODEL), ns, name);
    if (!m)
        m = cache_get(aim_cache(aim, AIM_CLUSTER_MODEL), S(""), name);
    return m ? m->image : S("");
}

/* A service may mention the template, its model, or the image of that model. */
static void on_template_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_record *any = record_as(struct aim_record, now ? now : old);
    if (!aim_watch_has_changed(old, now))
        return;
    const str names[] = { any->meta.name, any->model_name,
                          image_of_model(of->aim, any->meta.ns, any->model_name) };
    aim_watch_enqueue_mentioning(of, any->meta.ns, names, countof(names));
}

static void on_model_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_record *any = record_as(struct aim_record, now ? now : old);
    if (!aim_watch_has_changed(old, now))
        return;
    const str names[] = { any->meta.name, any->image };
    aim_watch_enqueue_mentioning(of, any->meta.ns, names, countof(names));
}

static void on_cache_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_record *any = record_as(struct aim_record, now ? now : old);
    auto_arena struct arena a = { 0 };
    struct json *spec = NULL;
    if (!aim_watch_has_changed(old, now) || !any->spec.n ||
        json_parse(&a, any->spec, &spec, NULL) < 0)
        return;
    str ref = json_text(json_get(spec, "templateRef"));
    const str names[] = { any->meta.name, ref.n ? ref : json_text(json_get(spec, "templateName")) };
    aim_watch_enqueue_mentioning(of, any->meta.ns, names, countof(names));
}

/* One of another owner may take the name that a service needs, or release it. A name that was shortened with a hash is found
 * through the status, which has it while the service is blocked. */
static void on_inference_service_change(struct controller *c, const struct record *old,
                                        const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct record *any = now ? now : old;
    const struct aim_record *r;
    aim_watch_on_child_change(c, old, now);
    if (cache_get(of->cache, any->ns, any->name)) {
        controller_add(c, any->ns, any->name);
        return;
    }
    if (now)
        return;
    cache_each(r, of->cache)
        if (str_eq(r->meta.ns, any->ns) &&
            str_find(r->status, S("InferenceServiceConflict")) != SIZE_MAX)
            controller_add(c, r->meta.ns, r->meta.name);
}

/* Finds the service through the InferenceService that the pod belongs to. */
static void on_pod_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_predictor_record *pod =
        record_as(struct aim_predictor_record, now ? now : old);
    const struct aim_child_record *runtime =
        cache_get(aim_world(of->aim)->inference_services, pod->meta.ns, pod->inference_service);
    if (runtime)
        aim_watch_on_child_change(c, NULL, &runtime->meta);
}

/* New GPUs affect services that wait for a template. */
static void on_node_change(struct controller *c, const struct record *old, const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_record *r;
    (void)old;
    (void)now;
    cache_each(r, of->cache)
        if (str_eqc(r->word, "Pending"))
            controller_add(c, r->meta.ns, r->meta.name);
}

/* A service has no watch of its own on HTTPRoutes and Gateways here: route_controller.c has it. */
void aim_service_watch(struct aim *aim)
{
    struct controller *c = aim_consumers(aim, AIM_SERVICE)->controller;
    struct aim_world *w = aim_world(aim);
    controller_watch(c, w->inference_services, on_inference_service_change);
    controller_watch(c, w->claims, aim_watch_on_child_change);
    controller_watch(c, w->pods, on_pod_change);
    controller_watch(c, w->nodes, on_node_change);
    controller_watch(c, aim_cache(aim, AIM_TEMPLATE), on_template_change);
    controller_watch(c, aim_cache(aim, AIM_CLUSTER_TEMPLATE), on_template_change);
    controller_watch(c, aim_cache(aim, AIM_MODEL), on_model_change);
    controller_watch(c, aim_cache(aim, AIM_CLUSTER_MODEL), on_model_change);
    controller_watch(c, aim_cache(aim, AIM_TEMPLATE_CACHE), on_cache_change);
}
