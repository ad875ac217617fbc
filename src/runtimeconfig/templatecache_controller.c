/* See templatecache_controller.h; the rules are in templatecache_core.h. Artifacts of a shared cache have no owner: they are
 * kept for others when the cache is deleted. What is listed in status.artifacts stays listed while the template is away, because
 * quotas must not evict what a running service mounts. */
#include "templatecache_controller.h"

#include "engine_status.h"
#include "templatecache_core.h"

struct templatecache_view {
    struct aim_templatecache_state state;
};

bool aim_templatecache_is_newer(const struct aim_turn *t)
{
    const struct json *spec = json_get(t->object, "spec");
    return !json_text(json_get(spec, "templateRef")).n &&
           json_text(json_get(spec, "templateName")).n &&
           !cache_absent(aim_cache(t->aim, AIM_ARTIFACT));
}

static const struct json *find_object(const struct aim_turn *t, enum aim_kind kind, str ns,
                                      str name)
{
    const struct aim_record *r = cache_get(aim_cache(t->aim, kind), ns, name);
    return r && !r->deleting ? aim_record_object(t->r->arena, &aim_kinds_of(t->aim)->at[kind], r)
                             : NULL;
}

/* The artifacts of the namespace that are not being deleted. */
static struct json *list_artifacts(struct aim_turn *t)
{
    struct json *list = json_new_arr(t->r->arena);
    const struct aim_record *r;
    cache_each(r, aim_cache(t->aim, AIM_ARTIFACT))
        if (str_eq(r->meta.ns, t->ns) && !r->deleting)
            json_push(t->r->arena, list,
                      aim_record_object(t->r->arena, &aim_kinds_of(t->aim)->at[AIM_ARTIFACT], r));
    return list;
}

/* The scope in the spec decides which of two templates of the same name is meant; the core knows both. */
void aim_templatecache_observe(struct aim_turn *t)
{
    struct templatecache_view *v = arena_new(t->r->arena, struct templatecache_view);
    str template = json_text(json_at(t->object, "spec", "templateName", NULL));
    t->view = v;
    v->state = aim_templatecache_state(
        t->r->arena, &(struct aim_templatecache_facts){
                         .group = aim_kinds_of(t->aim)->group,
                         .cache = t->object,
                         .template = find_object(t, AIM_TEMPLATE, t->ns, template),
                         .cluster_template = find_object(t, AIM_CLUSTER_TEMPLATE, S(""), template),
                         .artifacts = list_artifacts(t),
                         .config_default_missing = t->config.outcome == RESOLVE_NONE });
    v->state.components[0] = aim_engine_config(t);
}

/* Nothing is created while the configuration or the template is missing: class and sources are unknown then. */
void aim_templatecache_reconcile(struct aim_turn *t)
{
    const struct aim_templatecache_state *s = &((struct templatecache_view *)t->view)->state;
    struct aim_engine_answer answer = aim_engine_turn(t, s->components, s->n, NULL, 0);
    for (size_t i = 0; answer.apply && i < json_len(s->creates); i++) {
        struct json *artifact = json_copy(t->r->arena, json_item(s->creates, i));
        if (s->owned)
            json_set(t->r->arena, json_get(artifact, "metadata"), S("ownerReferences"),
                     aim_owner(t));
        aim_apply(t, &aim_kinds_of(t->aim)->at[AIM_ARTIFACT], NULL, artifact);
    }
}

/* Artifacts that cannot be created are reported as the trouble of the whole cache. */
void aim_templatecache_set_status(struct aim_turn *t)
{
    struct aim_templatecache_state *s = &((struct templatecache_view *)t->view)->state;
    aim_engine_put_write_failure(t, &s->components[s->n - 1]);
    struct aim_engine_answer answer = aim_engine_turn(t, s->components, s->n, NULL, 0);
    if (s->artifacts)
        json_set(t->status.a, t->status.next, S("artifacts"), s->artifacts);
    aim_engine_set_status(t, &answer);
}
