/* Variants, models and workloads in memory: see saturation_state.h.
 *
 *     by_key  "namespace/name"  ─► struct variant (owned)
 *     models  "namespace/model" ─► struct sat_model (owned) ─► list of variants, by name
 *     targets "namespace/kind/workload" ─► struct sat_workload (owned) ─► list of variants, also of other models
 *
 * A model or a target exists while it has a variant. What a decision knows about a workload is dropped
 * when another workload appears under its name (saturation_bind_workload). */
#include "saturation_capacity.h"
#include "saturation_slo.h"
#include "saturation_targets.h"

#include "../base/log.h"
#include "../kube/object_key.h"

#include <math.h>

enum { PROBLEM_LINES = 10 }; /* of a cycle */

/* ---- models */

/* A model's ID is free text and may contain a zero byte. */
static str model_key(const struct sat_model *m)
{
    return (str){ m->key, m->ns.n + 1 + m->id.n };
}

static struct sat_model *find_or_add_model(struct saturation *s, str ns, str id)
{
    struct sat_model *m = object_key_find(&s->models, ns, id);
    if (m)
        return m;
    m = mem_zero(1, sizeof(*m));
    m->key = object_key_new(ns, id, &m->ns, &m->id);
    m->feed.ns = m->ns;
    m->feed.model = m->id;
    map_put(&s->models, model_key(m), m);
    return m;
}

static void model_free(struct saturation *s, struct sat_model *m)
{
    map_del(&s->models, model_key(m));
    collect_stop(&m->feed);
    saturation_slo_free(m->slo);
    free(m->key);
    free(m);
}

static void leave_model(struct saturation *s, struct variant *v)
{
    struct sat_model *m = take(v->model);
    list_remove(&v->of_model);
    if (m && !m->variants.n)
        model_free(s, m);
}

static void join_model(struct saturation *s, struct variant *v)
{
    if (!v->spec.model.n)
        return;
    v->model = find_or_add_model(s, v->ns, v->spec.model);
    struct list_item *before = NULL;
    list_each(struct variant, other, &v->model->variants, of_model)
        if (!before && str_cmp(other->name, v->name) >= 0)
            before = &other->of_model;
    list_insert(&v->model->variants, &v->of_model, before);
}

/* ---- workloads; variants of several models may target the same one */

static void leave_target(struct saturation *s, struct variant *v)
{
    struct sat_workload *target = take(v->target);
    list_remove(&v->of_target);
    if (!target || target->variants.n)
        return;
    map_del(&s->targets, str_c(target->key));
    saturation_targets_leave(target);
    free(target);
}

static void join_target(struct saturation *s, struct variant *v)
{
    auto_buf struct buf key = { 0 };
    str kind = saturation_kind_name(v),
        api = saturation_is_built_in(v) ? S("") : v->spec.target_api;
    if (!v->spec.target_name.n)
        return;
    buf_printf(&key, STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(v->ns), STR_ARG(api),
               STR_ARG(kind), STR_ARG(v->spec.target_name));
    v->target = map_get(&s->targets, buf_str(&key));
    if (!v->target) {
        v->target = mem_zero(1, sizeof(*v->target) + key.n + 1);
        memcpy(v->target->key, buf_str(&key).p, key.n);
        map_put(&s->targets, str_c(v->target->key), v->target);
    }
    struct list_item *before = NULL;
    list_each(struct variant, other, &v->target->variants, of_target)
        if (!before && str_cmp(other->name, v->name) >= 0)
            before = &other->of_target;
    list_insert(&v->target->variants, &v->of_target, before);
    saturation_targets_join(s, v);
}

const struct variant *saturation_find_rival(const struct saturation *s, const struct variant *v)
{
    str why;
    if (!v->target)
        return NULL;
    list_each(const struct variant, x, &v->target->variants, of_target) {
        if (x->model && x->model != v->model && x->accelerator.n >= SAT_ACCELERATOR_MIN &&
            saturation_is_managed(s, x, &why))
            return x;
    }
    return NULL;
}

/* ---- variants */

struct variant *saturation_find(const struct saturation *s, str ns, str name)
{
    return object_key_find(&s->by_key, ns, name);
}

static const struct json *parse_json(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static struct variant *variant_new(struct saturation *s, const struct variant_record *r)
{
    struct variant *v = mem_zero(1, sizeof(*v));
    v->key = object_key_new(r->meta.ns, r->meta.name, &v->ns, &v->name);
    map_put(&s->by_key, str_c(v->key), v);
    return v;
}

/* Takes over the target of the previous leader from the status. */
static void read_desired(struct variant *v, const struct variant_record *r)
{
    auto_arena struct arena scratch = { 0 };
    const struct json *status = parse_json(&scratch, r->status);
    const struct json *alloc = json_get(status, "desiredOptimizedAlloc");
    int64_t desired = json_int(json_get(alloc, "numReplicas"), 0);
    v->desired = (int)MAX((int64_t)0, MIN(desired, (int64_t)SAT_REPLICAS_MAX));
    v->start.has_slept = sat_status_condition(status, SAT_ACTIVE) != NULL;
    v->was_limited = sat_status_condition(status, SAT_RESOURCE_CONSTRAINED) != NULL;
}

static bool has_too_many(struct saturation *s, const struct variant_record *r)
{
    bool full = s->by_key.n >= SAT_VARIANTS_MAX;
    if (full && !s->ignores_variants)
        log_error("too many VariantAutoscalings; this one and others are ignored",
                  KV("namespace", r->meta.ns), KV("name", r->meta.name),
                  KV_INT("limit", SAT_VARIANTS_MAX));
    s->ignores_variants |= full;
    return full;
}

/* The first of a cycle only: thousands of objects may be wrong in the same way, and each shows it in its status. */
static void log_problems(struct saturation *s, const struct variant *v)
{
    for (size_t i = 0; i < v->spec.problem_n; i++)
        if (s->problems++ < PROBLEM_LINES)
            log_warn("VariantAutoscaling has invalid values", KV("namespace", v->ns),
                     KV("name", v->name), KV("problem", v->spec.problems[i]));
}

void saturation_report_problems(struct saturation *s)
{
    if (s->problems > PROBLEM_LINES)
        log_warn("more VariantAutoscalings have invalid values",
                 KV_INT("count", s->problems - PROBLEM_LINES));
    s->problems = 0;
}

/* The spec is parsed into a new arena; model and workload lists are updated. */
struct variant *saturation_put(struct saturation *s, const struct variant_record *r)
{
    struct variant *v = saturation_find(s, r->meta.ns, r->meta.name);
    if (v && !str_eq(v->uid, r->meta.uid)) {
        saturation_remove(s, r->meta.ns, r->meta.name); /* a new object with the same name */
        v = NULL;
    }
    if (!v) {
        if (has_too_many(s, r))
            return NULL;
        v = variant_new(s, r);
        read_desired(v, r);
    }
    arena_done(&v->arena);
    v->arena = (struct arena){ 0 };
    v->spec = saturation_spec_read(&v->arena, parse_json(&v->arena, r->spec));
    v->shown.reason = S(""); /* format the condition again: the spec may have other problems */
    log_problems(s, v);
    v->accelerator = arena_str(&v->arena, r->accelerator);
    v->instance = arena_str(&v->arena, r->instance);
    v->uid = arena_str(&v->arena, r->meta.uid);
    v->deleting = r->deleting;
    str workload = arena_printf(&v->arena, "Scale target " STR_FMT " " STR_FMT,
                                STR_ARG(saturation_kind_name(v)), STR_ARG(v->spec.target_name));
    v->found = arena_printf(&v->arena, STR_FMT " found", STR_ARG(workload));
    v->missing = arena_printf(&v->arena, STR_FMT " not found", STR_ARG(workload));
    leave_target(s, v);
    join_target(s, v);
    if (!v->model || !str_eq(v->model->id, v->spec.model)) {
        leave_model(s, v);
        join_model(s, v);
    }
    return v;
}

void saturation_bind_workload(struct variant *v, const struct workload_record *w)
{
    if (v->workload_uid && str_eqc(w->meta.uid, v->workload_uid))
        return;
    if (v->workload_uid) {
        v->decided = v->growing = v->warned_rival = false;
        v->desired = v->seen_current = v->seen_ready = 0;
        v->decided_ns = v->steady_ns = v->waiting_ns = v->grown_ns = 0;
        scale_history_done(&v->history);
        v->history = (struct scale_history){ 0 };
        v->start.to = 0;
    }
    free(v->workload_uid);
    v->workload_uid = mem_dup(w->meta.uid.p, w->meta.uid.n);
}

static void variant_free(struct saturation *s, struct variant *v)
{
    saturation_metrics_hide(&s->metrics, &v->series, v->ns, v->name);
    map_del(&s->by_key, str_c(v->key));
    leave_model(s, v);
    leave_target(s, v);
    own_write_done(&v->status);
    scale_history_done(&v->history);
    arena_done(&v->shown.texts);
    arena_done(&v->arena);
    free(v->workload_uid);
    free(v->template_rv);
    free(v->selects);
    free(v->selects_rv);
    free(v->key);
    free(v);
}

void saturation_remove(struct saturation *s, str ns, str name)
{
    struct variant *v = saturation_find(s, ns, name);
    if (!v)
        return;
    saturation_capacity_forget(s, v);
    variant_free(s, v);
    controller_abandon(s->variants, ns, name);
}

struct variant *saturation_take_ignored(struct saturation *s)
{
    const struct variant_record *r;
    if (!s->ignores_variants || s->by_key.n >= SAT_VARIANTS_MAX)
        return NULL;
    cache_each(r, s->variant_records)
        if (!saturation_find(s, r->meta.ns, r->meta.name))
            return saturation_put(s, r);
    s->ignores_variants = false;
    return NULL;
}

void saturation_state_done(struct saturation *s)
{
    for (struct map_slot *slot; (slot = map_next(&s->by_key, NULL));)
        variant_free(s, slot->value);
    map_done(&s->by_key);
    map_done(&s->models);
    map_done(&s->targets);
}

void saturation_emit(const struct saturation *s, const struct variant *v, bool warning,
                     const char *reason, str message)
{
    events_emit(manager_events(s->manager),
                &(struct kube_event){ .resource =
                                          v->scaler ? v->scaler : &saturation_variant_resource,
                                      .ns = v->ns,
                                      .name = v->name,
                                      .uid = v->uid,
                                      .warning = warning,
                                      .reason = reason,
                                      .message = message });
}

/* ---- objects of a variant */

bool saturation_is_statefulset(const struct variant *v)
{
    return str_eqc(v->spec.target_kind, "StatefulSet");
}

bool saturation_is_built_in(const struct variant *v)
{
    return !v->spec.target_kind.n || str_eqc(v->spec.target_kind, "Deployment") ||
           saturation_is_statefulset(v);
}

str saturation_kind_name(const struct variant *v)
{
    return v->spec.target_kind.n ? v->spec.target_kind : S("Deployment");
}

static void count_ready_pod(void *context, const struct replica_record *pod)
{
    int64_t *ready = context;
    *ready += !pod->deleting && str_eqc(pod->ready, "True");
}

/* The scale subresource does not have the ready replicas: they are counted. */
int64_t saturation_count_ready(const struct saturation *s, const struct variant *v,
                               const struct workload_record *w)
{
    int64_t ready = w->ready;
    if (!saturation_is_built_in(v) && !w->group_size)
        saturation_each_pod(s, v, count_ready_pod, &ready);
    return ready;
}

const struct resource *saturation_get_resource(const struct saturation *s, const struct variant *v)
{
    (void)s;
    if (!saturation_is_built_in(v))
        return saturation_targets_resource(v);
    return saturation_is_statefulset(v) ? &resource_statefulsets : &resource_deployments;
}

const struct workload_record *saturation_get_workload(const struct saturation *s,
                                                      const struct variant *v)
{
    if (!saturation_is_built_in(v))
        return saturation_targets_find(v); /* a Deployment of the same name is another object */
    struct cache *cache = saturation_is_statefulset(v) ? s->statefulsets : s->deployments;
    const struct workload_record *w = cache_get(cache, v->ns, v->spec.target_name);
    return w && !w->deleting ? w : NULL;
}

bool saturation_is_excluded(const struct saturation *s, const struct variant *v)
{
    const struct namespace_record *home = cache_get(s->namespaces, S(""), v->ns);
    bool ours = !s->o.instance.n || str_eq(v->instance, s->o.instance);
    return ours && !v->deleting && home && str_eqc(home->exclude, "true");
}

bool saturation_is_managed(const struct saturation *s, const struct variant *v, str *ret_why)
{
    *ret_why = S("");
    if (v->deleting)
        *ret_why = S("it is being deleted");
    else if (s->o.instance.n && !str_eq(v->instance, s->o.instance))
        *ret_why = S("its label " SAT_INSTANCE_LABEL " names another controller");
    else if (saturation_is_excluded(s, v))
        *ret_why = S("its namespace has the annotation " SAT_EXCLUDE_ANNOTATION);
    return !ret_why->n;
}

bool saturation_is_bound(const struct bounds_record *r, const struct variant *v)
{
    str kind = r->target_kind.n ? r->target_kind : S("Deployment"); /* KEDA's default */
    return str_eq(r->meta.ns, v->ns) && str_eq(kind, saturation_kind_name(v));
}

/* A tolerance of 100% or more means that the HPA should be left alone: targets are not enlarged for
 * it. */
static double usable_tolerance(int64_t milli)
{
    return milli < 1000 ? (double)MAX(milli, (int64_t)0) / 1000 : 0;
}

static void narrow_bounds(struct variant_bounds *b, const struct bounds_record *r,
                          const struct variant *v)
{
    if (!saturation_is_bound(r, v))
        return;
    b->hpa = true;
    b->tolerance_up = fmax(b->tolerance_up, usable_tolerance(r->up_milli));
    b->tolerance_down = fmax(b->tolerance_down, usable_tolerance(r->down_milli));
    b->keeps_min |= r->min > 0 && !r->idles;
    if (r->max > 0 && (b->max == 0 || r->max < b->max))
        b->max = (int)MIN(r->max, (int64_t)SAT_REPLICAS_MAX);
    b->min = MAX(b->min, (int)MAX((int64_t)0, MIN(r->min, (int64_t)SAT_REPLICAS_MAX)));
}

/* The HPA that KEDA creates for a ScaledObject adds nothing to it and cannot express zero, so the
 * ScaledObject wins. */
struct variant_bounds saturation_get_bounds(const struct saturation *s, const struct variant *v)
{
    struct variant_bounds b = { v->spec.min, v->spec.max, .keeps_min = v->spec.has_min };
    const struct bounds_record *r;
    if (s->scaled_objects)
        cache_each_in(r, s->scaled_objects, 0, v->spec.target_name)
            narrow_bounds(&b, r, v);
    if (!b.hpa)
        cache_each_in(r, s->hpas, 0, v->spec.target_name)
            narrow_bounds(&b, r, v);
    if (b.max && b.min > b.max)
        b.min = b.max;
    return b;
}

/* Owners are in the same namespace. An object elsewhere that claims this owner is ignored;
 * otherwise a user of another namespace could influence the decision with its metrics. */
static void each_owned_pod(const struct saturation *s, const struct record *owner,
                           saturation_pod_fn *fn, void *context)
{
    const struct replica_record *pod;
    cache_each_in(pod, s->pods, 0, owner->uid)
        if (str_eq(pod->meta.ns, owner->ns))
            fn(context, pod);
}

void saturation_each_pod(const struct saturation *s, const struct variant *v, saturation_pod_fn *fn,
                         void *context)
{
    const struct workload_record *w = saturation_get_workload(s, v);
    const struct set_record *set;
    if (!w)
        return;
    if (!saturation_is_built_in(v))
        saturation_targets_each_pod(s, v, fn, context);
    else if (saturation_is_statefulset(v))
        each_owned_pod(s, &w->meta, fn, context);
    else
        cache_each_in(set, s->sets, 0, w->meta.uid)
            if (str_eq(set->meta.ns, v->ns))
                each_owned_pod(s, &set->meta, fn, context);
}

const struct json *saturation_get_status(struct arena *a, struct variant *v,
                                         const struct variant_record *r)
{
    const struct json *own = own_write_json(&v->status, a, r->meta.rv, 0);
    return own ? own : parse_json(a, r->status);
}
