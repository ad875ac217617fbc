/* Models: see model_controller.h and model_core.h.
 *
 * A model creates one template per deployment that its image recommends; a cluster model creates cluster
 * templates. The templates are owned by the model and deleted with it. Metadata of the image come from the
 * spec, or from an inspection of the registry (model_inspection.c), whose result is kept in the status; this
 * file only connects the two to the core. */
#include "model_controller.h"

#include "inspection_core.h"
#include "model_core.h"
#include "model_inspection.h"
#include "names_core.h"
#include "service_watch.h"

struct model_view {
    const struct json *model; /* with the metadata that count now */
    struct aim_model_facts facts;
};

static const struct resource *template_kind(const struct aim_turn *t)
{
    return &aim_kinds_of(t->aim)
                ->at[t->of->kind == AIM_MODEL ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE];
}

static struct cache *template_cache_of(const struct aim_turn *t)
{
    return aim_cache(t->aim, t->of->kind == AIM_MODEL ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE);
}

/* The hardware of a template is immutable, and its name does not depend on all of it: an edit of the model reaches only
 * templates that do not exist yet. Another value would be refused, with everything else that changed. */
static void keep_hardware(struct arena *a, const struct json *live, struct json *template)
{
    const struct json *hardware = json_at(live, "spec", "hardware", NULL);
    if (hardware && json_at(template, "spec", "hardware", NULL))
        json_set(a, json_get(template, "spec"), S("hardware"), json_copy(a, hardware));
}

static void apply_template(struct aim_turn *t, struct json *template)
{
    struct arena *a = t->r->arena;
    struct json *metadata = json_get(template, "metadata");
    json_set(a, metadata, S("ownerReferences"), aim_owner(t));
    const struct aim_record *record =
        cache_get(template_cache_of(t), t->ns, json_text(json_get(metadata, "name")));
    const struct json *live = record ? aim_record_object(a, template_kind(t), record) : NULL;
    keep_hardware(a, live, template);
    aim_apply(t, template_kind(t), live, template);
}

/* Templates of a custom model; labeled like those that an image recommends. */
static struct json *custom_templates(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    const char *group = aim_kinds_of(t->aim)->group;
    const struct model_view *v = t->view;
    struct json *list = aim_inspection_custom_templates(a, group, v->model);
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *labels = json_at(json_item(list, i), "metadata", "labels", NULL);
        json_set_str(a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
        json_set_str(a, labels, aim_names_label_key(a, group, "auto-generated").p, S("true"));
    }
    return list;
}

static void model_observe(struct aim_turn *t)
{
    struct model_view *v = arena_new(t->r->arena, struct model_view);
    t->view = v;
    v->model = aim_inspection_turn(t, &v->facts);
}

/* Applies one template per recommended deployment, and those of a custom model. */
static void model_reconcile(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    const struct model_view *v = t->view;
    const struct json *list = aim_model_deployments(v->model, &t->settings);
    if (t->deleting || t->config.outcome == RESOLVE_MISSING)
        return;
    for (size_t i = 0; i < json_len(list); i++)
        apply_template(t, aim_model_template(a, aim_kinds_of(t->aim)->group, t->object,
                                             json_item(list, i)));
    const struct json *custom = custom_templates(t);
    for (size_t i = 0; i < json_len(custom); i++)
        apply_template(t, json_item(custom, i));
}

/* Counts the templates of the model, generated ones and those of users separately. */
static void count_templates(struct aim_turn *t, enum aim_kind kind, struct aim_model_facts *f)
{
    const struct aim_record *r;
    auto_buf struct buf mark = { 0 };
    buf_printf(&mark, "\"%s/auto-generated\"", aim_kinds_of(t->aim)->group);
    cache_each_in(r, aim_cache(t->aim, kind), AIM_INDEX_MODEL, t->name) {
        bool made = str_find(r->labels, buf_str(&mark)) != SIZE_MAX;
        if ((t->ns.n && !str_eq(r->meta.ns, t->ns)) || r->deleting)
            continue;
        aim_model_count_template(t->r->arena, made ? &f->made : &f->other, r->meta.name, r->word);
    }
}

/* A model counts the templates of its namespace. A cluster model counts cluster templates, and only if there are none those
 * of namespaces, of which the ready ones decide: a tenant's template must not degrade a model that others use. */
static void count_all_templates(struct aim_turn *t, struct aim_model_facts *f)
{
    if (t->of->kind == AIM_CLUSTER_MODEL)
        count_templates(t, AIM_CLUSTER_TEMPLATE, f);
    if (f->other.ready + f->other.waiting + f->other.bad + f->other.absent)
        return;
    struct aim_model_templates made = f->made;
    f->made = (struct aim_model_templates){ 0 };
    count_templates(t, AIM_TEMPLATE, f);
    if (t->of->kind != AIM_CLUSTER_MODEL)
        return;
    f->made = made; /* of a cluster model these are cluster templates */
    if (f->other.ready)
        f->other = (struct aim_model_templates){ .ready = f->other.ready };
}

static void model_set_status(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    const struct model_view *v = t->view;
    struct aim_model_facts f = v->facts;
    f.object = v->model;
    f.config_missing = t->config.outcome == RESOLVE_MISSING;
    f.config_message = S("The runtime configuration does not exist");
    f.config = &t->settings;
    f.custom = json_len(custom_templates(t));
    count_all_templates(t, &f);
    struct aim_model_state state = aim_model_state(s->a, &f);
    bool ready = !strcmp(state.status, "Ready"),
         bad = !strcmp(state.status, "Degraded") || !strcmp(state.status, "Failed");
    aim_status_text(s, "status", str_c(state.status));
    aim_status_drop_newer(s);
    if (state.metadata)
        json_set(s->a, s->next, S("imageMetadata"), json_copy(s->a, state.metadata));
    else
        json_del(s->next, S("imageMetadata"));
    aim_status_text(s, "sourceType",
                    json_len(json_at(t->object, "spec", "modelSources", NULL)) ? S("Custom")
                                                                               : S("Image"));
    if (aim_status_set(s, "MetadataExtracted", state.extracted, state.extracted_reason,
                       state.extracted_message) &&
        f.inspection == MODEL_INSPECTION_FAILED)
        aim_status_event(s, true, state.extracted_reason, state.extracted_message);
    aim_status_set(s, "TemplatesAutoGenerated", state.generated, state.generated_reason,
                   state.generated_message);
    aim_status_set(&t->status, "Ready", ready, state.reason, state.message);
    aim_status_set(&t->status, "Progressing", !ready && !bad, state.reason,
                   state.progressing_message);
    aim_status_set(&t->status, "Degraded", bad, state.reason, state.degraded_message);
}

/* ---- watches */

/* Enqueues the model of the template: the state of a model depends on its templates. */
static void on_template_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    struct aim_consumers *of = controller_context(c);
    const struct aim_record *any = record_as(struct aim_record, now ? now : old);
    str ns = of->kind == AIM_MODEL ? any->meta.ns : S("");
    if (aim_watch_has_changed(old, now) && cache_get(of->cache, ns, any->model_name))
        controller_add(c, ns, any->model_name);
}

static int model_start(struct aim_consumers *of, err_t *e)
{
    (void)e;
    controller_watch(of->controller, aim_cache(of->aim, AIM_TEMPLATE), on_template_change);
    if (of->kind == AIM_CLUSTER_MODEL)
        controller_watch(of->controller, aim_cache(of->aim, AIM_CLUSTER_TEMPLATE),
                         on_template_change);
    return 0;
}

const struct aim_hooks aim_model_hooks = {
    .start = model_start,
    .observe = model_observe,
    .reconcile = model_reconcile,
    .set_status = model_set_status,
};
