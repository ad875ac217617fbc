/* Models: see model_controller.h and model_core.h. */
#include "model_controller.h"

#include "model_core.h"
#include "service_watch.h"

static const struct resource *template_kind(const struct aim_turn *t)
{
    return &aim_kinds_of(t->aim)
                ->at[t->of->kind == AIM_MODEL ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE];
}

static struct cache *template_cache_of(const struct aim_turn *t)
{
    return aim_cache(t->aim, t->of->kind == AIM_MODEL ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE);
}

static void reconcile(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    const struct json *list = model_deployments(t->object, &t->settings);
    if (t->deleting || t->config.outcome == RESOLVE_MISSING)
        return;
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *template =
            model_template(a, aim_kinds_of(t->aim)->group, t->object, json_item(list, i));
        struct json *metadata = json_get(template, "metadata");
        json_set(a, metadata, S("ownerReferences"), aim_owner(t));
        const struct aim_record *live =
            cache_get(template_cache_of(t), t->ns, json_text(json_get(metadata, "name")));
        aim_apply(t, template_kind(t), live ? aim_record_object(a, template_kind(t), live) : NULL,
                  template);
    }
}

/* Made by us from a recommendation, or written by a user? */
static void count(struct aim_turn *t, enum aim_kind kind, struct model_facts *f)
{
    const struct aim_record *r;
    auto_buf struct buf mark = { 0 };
    buf_printf(&mark, "\"%s/auto-generated\"", aim_kinds_of(t->aim)->group);
    cache_each_in(r, aim_cache(t->aim, kind), AIM_INDEX_MODEL, t->name) {
        bool made = str_find(r->labels, buf_str(&mark)) != SIZE_MAX;
        if ((t->ns.n && !str_eq(r->meta.ns, t->ns)) || r->deleting)
            continue;
        model_count_template(made ? &f->made : &f->other, r->word);
    }
}

static void put_condition(struct aim_turn *t, const char *type, bool holds, const char *reason,
                          str message)
{
    aim_status_condition(&t->status, &(struct aim_condition){ type, holds ? AIM_TRUE : AIM_FALSE,
                                                              reason, message });
}

static void finish(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    struct model_facts f = { .object = t->object,
                             .config_missing = t->config.outcome == RESOLVE_MISSING,
                             .config_message = S("The runtime configuration does not exist"),
                             .config = &t->settings };
    count(t, AIM_TEMPLATE, &f);
    if (t->of->kind == AIM_CLUSTER_MODEL)
        count(t, AIM_CLUSTER_TEMPLATE, &f);
    struct model_state state = model_state(s->a, &f);
    bool ready = !strcmp(state.status, "Ready"),
         bad = !strcmp(state.status, "Degraded") || !strcmp(state.status, "Failed");
    aim_status_text(s, "status", str_c(state.status));
    if (state.metadata)
        json_set(s->a, s->next, S("imageMetadata"), json_copy(s->a, state.metadata));
    else
        json_del(s->next, S("imageMetadata"));
    put_condition(t, "MetadataExtracted", state.extracted, state.extracted_reason,
                  state.extracted_message);
    put_condition(t, "Ready", ready, state.reason, state.message);
    put_condition(t, "Progressing", !ready && !bad, state.reason, state.message);
    put_condition(t, "Degraded", bad, state.reason, state.message);
}

/* ---- what leads here */

static void template_changed(struct controller *c, const struct record *old,
                             const struct record *now)
{
    struct aim_consumers *of = controller_context(c);
    const struct aim_record *any = (const struct aim_record *)(const void *)(now ? now : old);
    str ns = of->kind == AIM_MODEL ? any->meta.ns : S("");
    if (watch_matters((const struct aim_record *)(const void *)old,
                      (const struct aim_record *)(const void *)now) &&
        cache_get(of->cache, ns, any->model_name))
        controller_add(c, ns, any->model_name);
}

static int start(struct aim_consumers *of, err_t *e)
{
    (void)e;
    controller_watch(of->controller, aim_cache(of->aim, AIM_TEMPLATE), template_changed);
    if (of->kind == AIM_CLUSTER_MODEL)
        controller_watch(of->controller, aim_cache(of->aim, AIM_CLUSTER_TEMPLATE),
                         template_changed);
    return 0;
}

const struct aim_hooks aim_model_hooks = {
    .start = start,
    .reconcile = reconcile,
    .finish = finish,
};
