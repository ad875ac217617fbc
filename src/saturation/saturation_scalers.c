/* See saturation_scalers.h.
 *
 * An annotated scaler becomes a variant of its name, as if there were a VariantAutoscaling; only its
 * status has no place. Of several objects for one workload one counts (annotation_core.h), so every
 * change is evaluated again for all scalers of that workload:
 *
 *     HPA, ScaledObject ─► annotation_read ─► chosen? ─yes─► saturation_put
 *                                                  └──no──► saturation_remove, if it was one
 *
 * A VariantAutoscaling for the same workload, or of the same name, always wins. */
#include "saturation_scalers.h"

#include "../base/log.h"
#include "objects/annotation_core.h"
#include "saturation_wake.h"

static const struct resource *resource_of(enum annotation_kind kind)
{
    return kind == ANNOTATION_HPA ? &resource_hpas : &saturation_scaled_object_resource;
}

static struct annotation_object read_object(enum annotation_kind kind,
                                            const struct bounds_record *r)
{
    return (struct annotation_object){ .kind = kind,
                                       .ns = r->meta.ns,
                                       .name = r->meta.name,
                                       .managed = r->managed,
                                       .managed_label = r->managed_label,
                                       .model = r->model,
                                       .cost = r->cost,
                                       .child = str_eqc(r->owner_kind, "ScaledObject"),
                                       .deleting = r->deleting,
                                       .target_api = r->target_api,
                                       .target_kind = r->target_kind,
                                       .target = r->target_name };
}

static str kind_or_default(str kind)
{
    return kind.n ? kind : S("Deployment");
}

/* The VariantAutoscaling that has the name or the workload of a scaler; NULL: none. */
static const struct variant *find_described(const struct saturation *s,
                                            const struct annotation_variant *a)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (v->scaler || !str_eq(v->ns, a->ns))
            continue;
        if (str_eq(v->name, a->name) ||
            (str_eq(v->spec.target_name, a->target) &&
             str_eq(kind_or_default(v->spec.target_kind), a->target_kind)))
            return v;
    }
    return NULL;
}

/* ---- one scaler */

static void warn_scaler(struct saturation *s, enum annotation_kind kind,
                        const struct bounds_record *r, const char *reason, str message)
{
    log_warn(reason, KV_C("kind", resource_of(kind)->kind), KV("namespace", r->meta.ns),
             KV("name", r->meta.name), KV("message", message));
    if (manager_leads(s->manager))
        events_emit(manager_events(s->manager), &(struct kube_event){ .resource = resource_of(kind),
                                                                      .ns = r->meta.ns,
                                                                      .name = r->meta.name,
                                                                      .uid = r->meta.uid,
                                                                      .warning = true,
                                                                      .reason = reason,
                                                                      .message = message });
}

static void put_variant(struct saturation *s, const struct bounds_record *r,
                        const struct annotation_variant *a)
{
    auto_arena struct arena scratch = { 0 };
    struct json *spec = json_new_obj(&scratch), *target = json_new_obj(&scratch);
    json_set_str(&scratch, target, "apiVersion", a->target_api);
    json_set_str(&scratch, target, "kind", a->target_kind);
    json_set_str(&scratch, target, "name", a->target);
    json_set_str(&scratch, spec, "modelID", a->model);
    json_set_str(&scratch, spec, "variantCost", arena_printf(&scratch, "%.17g", a->cost));
    json_set(&scratch, spec, S("scaleTargetRef"), target);
    struct variant_record record = { .spec = json_to_str(&scratch, spec),
                                     .status = S(""),
                                     .accelerator =
                                         r->accelerator.n ? r->accelerator : S("unknown"),
                                     .instance = r->instance };
    record.meta.ns = r->meta.ns;
    record.meta.name = r->meta.name;
    record.meta.uid = r->meta.uid;
    struct variant *v = saturation_put(s, &record);
    if (!v)
        return;
    v->scaler = resource_of(a->kind);
    if (v->spec.model.n)
        controller_add(s->engine, v->ns, v->spec.model);
}

static void remove_variant(struct saturation *s, enum annotation_kind kind, str ns, str name)
{
    const struct variant *v = saturation_find(s, ns, name);
    if (v && v->scaler == resource_of(kind)) {
        saturation_remove(s, ns, name);
        saturation_want_forget(s, ns, name);
    }
}

/* ---- all scalers of a workload */

struct candidates {
    struct annotation_variant *at;
    const struct bounds_record **records;
    size_t n, cap;
};

static void add_candidates(struct saturation *s, struct arena *a, enum annotation_kind kind, str ns,
                           str target, struct candidates *to)
{
    struct cache *cache = kind == ANNOTATION_HPA ? s->hpas : s->scaled_objects;
    const struct bounds_record *r;
    if (!cache)
        return;
    cache_each_in(r, cache, 0, target) {
        struct annotation_object o = read_object(kind, r);
        struct annotation_variant v;
        err_t e;
        if (!str_eq(r->meta.ns, ns))
            continue;
        int failed = annotation_read(&o, ANNOTATION_OURS, &v, &e);
        if (failed == -EINVAL)
            warn_scaler(s, kind, r, "InvalidAnnotations", str_c(e.text));
        if (failed) {
            remove_variant(s, kind, ns, r->meta.name);
            continue;
        }
        if (to->n == to->cap) {
            size_t cap = MAX(2 * to->cap, (size_t)4);
            struct annotation_variant *at = arena_array(a, cap, sizeof(*at));
            const struct bounds_record **records = arena_array(a, cap, sizeof(*records));
            if (to->n) {
                memcpy(at, to->at, to->n * sizeof(*at));
                memcpy(records, to->records, to->n * sizeof(*records));
            }
            *to = (struct candidates){ at, records, to->n, cap };
        }
        to->at[to->n] = v;
        to->records[to->n++] = r;
    }
}

static void refresh_target(struct saturation *s, str ns, str target)
{
    auto_arena struct arena a = { 0 };
    struct candidates c = { 0 };
    add_candidates(s, &a, ANNOTATION_HPA, ns, target, &c);
    add_candidates(s, &a, ANNOTATION_SCALEDOBJECT, ns, target, &c);
    annotation_choose(c.at, c.n, ANNOTATION_OURS);
    for (size_t i = 0; i < c.n; i++) {
        const struct annotation_variant *v = &c.at[i];
        const struct variant *described = find_described(s, v);
        str winner = described ? described->name : v->duplicate_of;
        if (!winner.n) {
            put_variant(s, c.records[i], v);
            continue;
        }
        remove_variant(s, v->kind, v->ns, v->name);
        if (!described)
            warn_scaler(s, v->kind, c.records[i], "DuplicateVariant",
                        arena_printf(&a,
                                     STR_FMT " describes the same workload; this one is ignored",
                                     STR_ARG(winner)));
    }
}

static void on_scaler(struct saturation *s, enum annotation_kind kind, const struct record *old,
                      const struct record *now)
{
    const struct bounds_record *before = record_as(struct bounds_record, old),
                               *after = record_as(struct bounds_record, now);
    bool was = old && (before->managed.n || before->managed_label.n);
    bool is = now && (after->managed.n || after->managed_label.n);
    if (!was && !is)
        return; /* of no interest here */
    if (!is || (was && !str_eq(before->target_name, after->target_name)))
        remove_variant(s, kind, old->ns, old->name);
    if (was)
        refresh_target(s, old->ns, before->target_name);
    if (is && !(was && str_eq(before->target_name, after->target_name)))
        refresh_target(s, now->ns, after->target_name);
    if (is)
        saturation_wake_ask(s, now->ns, now->name, after->wake);
}

void saturation_scalers_on_hpa(void *context, const struct record *old, const struct record *now)
{
    on_scaler(context, ANNOTATION_HPA, old, now);
}

void saturation_scalers_on_scaled_object(void *context, const struct record *old,
                                         const struct record *now)
{
    on_scaler(context, ANNOTATION_SCALEDOBJECT, old, now);
}

void saturation_scalers_refresh(struct saturation *s, str ns)
{
    struct cache *const caches[] = { s->hpas, s->scaled_objects };
    for (size_t i = 0; i < countof(caches); i++) {
        const struct bounds_record *r;
        if (!caches[i])
            continue;
        cache_each(r, caches[i])
            if (str_eq(r->meta.ns, ns) && (r->managed.n || r->managed_label.n))
                refresh_target(s, ns, r->target_name);
    }
}
