/* Variants, models and workloads in memory: see saturation_state.h.
 *
 *     by_key  "namespace/name"  ─► struct variant (owned)
 *     models  "namespace/model" ─► struct sat_model (owned) ─► first ─► next ─► ...             variants by name
 *     targets "namespace/kind/workload" ─► first variant ─► next_on_target ─► ...               also of other models
 *
 * A model exists while it has a variant. The key of `targets` belongs to the first variant of its
 * list, so the list is inserted again whenever its first element changes. What a decision knows
 * about a workload is dropped when another workload appears under its name
 * (saturation_bind_workload). */
#include "saturation_state.h"

#include "../base/log.h"

#include <math.h>

/* ---- models */

static struct sat_model *find_or_add_model(struct saturation *s, str ns, str id)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(id));
    struct sat_model *m = map_get(&s->models, buf_str(&key));
    if (m)
        return m;
    m = mem_zero(1, sizeof(*m));
    size_t n = key.n;
    m->key = buf_take(&key);
    m->ns = (str){ m->key, ns.n };
    m->id = (str){ m->key + ns.n + 1, id.n };
    m->feed.ns = m->ns;
    m->feed.model = m->id;
    map_put(&s->models, (str){ m->key, n }, m);
    return m;
}

static void model_free(struct saturation *s, struct sat_model *m)
{
    map_del(&s->models, str_c(m->key));
    collect_stop(&m->feed);
    free(m->slo);
    free(m->key);
    free(m);
}

static void leave_model(struct saturation *s, struct variant *v)
{
    struct sat_model *m = take(v->model);
    if (!m)
        return;
    struct variant **place = &m->first;
    while (*place != v)
        place = &(*place)->next;
    *place = v->next;
    v->next = NULL;
    if (!m->first)
        model_free(s, m);
}

static void join_model(struct saturation *s, struct variant *v)
{
    if (!v->spec.model.n)
        return;
    v->model = find_or_add_model(s, v->ns, v->spec.model);
    struct variant **place = &v->model->first;
    while (*place && str_cmp((*place)->name, v->name) < 0)
        place = &(*place)->next;
    v->next = *place;
    *place = v;
}

/* ---- workloads; variants of several models may target the same one */

static void leave_target(struct saturation *s, struct variant *v)
{
    if (!v->target_key)
        return;
    struct variant *first = map_get(&s->targets, str_c(v->target_key)), **place = &first;
    while (*place != v)
        place = &(*place)->next_on_target;
    *place = v->next_on_target;
    v->next_on_target = NULL;
    map_del(&s->targets, str_c(v->target_key));
    if (first) /* the key belongs to the first variant */
        map_put(&s->targets, str_c(first->target_key), first);
    free(take(v->target_key));
}

static void join_target(struct saturation *s, struct variant *v)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/%s/" STR_FMT, STR_ARG(v->ns),
               saturation_is_statefulset(v) ? "StatefulSet" : "Deployment",
               STR_ARG(v->spec.target_name));
    if (!saturation_can_scale_kind(v) || !v->spec.target_name.n)
        return;
    v->target_key = buf_take(&key);
    struct variant *first = map_get(&s->targets, str_c(v->target_key)), **place = &first;
    while (*place && str_cmp((*place)->name, v->name) < 0)
        place = &(*place)->next_on_target;
    v->next_on_target = *place;
    *place = v;
    map_del(&s->targets, str_c(v->target_key));
    map_put(&s->targets, str_c(first->target_key), first);
}

const struct variant *saturation_find_rival(const struct saturation *s, const struct variant *v)
{
    str why;
    const struct variant *x = v->target_key ? map_get(&s->targets, str_c(v->target_key)) : NULL;
    for (; x && x != v; x = x->next_on_target)
        if (x->model && x->model != v->model && saturation_is_managed(s, x, &why))
            return x;
    return NULL;
}

/* ---- variants */

struct variant *saturation_find(const struct saturation *s, str ns, str name)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name));
    return map_get(&s->by_key, buf_str(&key));
}

static const struct json *parse_json(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static void echo_clear(struct variant_echo *e)
{
    free(take(e->before_rv));
    free(take(e->status));
}

static struct variant *variant_new(struct saturation *s, const struct variant_record *r)
{
    struct variant *v = mem_zero(1, sizeof(*v));
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(r->meta.ns), STR_ARG(r->meta.name));
    size_t n = key.n;
    v->key = buf_take(&key);
    v->ns = (str){ v->key, r->meta.ns.n };
    v->name = (str){ v->key + r->meta.ns.n + 1, r->meta.name.n };
    map_put(&s->by_key, (str){ v->key, n }, v);
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
        v = variant_new(s, r);
        read_desired(v, r);
    }
    arena_done(&v->arena);
    v->arena = (struct arena){ 0 };
    v->spec = saturation_spec_read(&v->arena, parse_json(&v->arena, r->spec));
    v->shown.reason = S(""); /* format the condition again: the spec may have other problems */
    for (size_t i = 0; i < v->spec.problem_n; i++)
        log_warn("VariantAutoscaling has invalid values", KV("namespace", v->ns),
                 KV("name", v->name), KV("problem", v->spec.problems[i]));
    v->accelerator = arena_str(&v->arena, r->accelerator);
    v->instance = arena_str(&v->arena, r->instance);
    v->uid = arena_str(&v->arena, r->meta.uid);
    v->deleting = r->deleting;
    str kind = v->spec.target_kind.n ? v->spec.target_kind : S("Deployment");
    str workload = arena_printf(&v->arena, "Scale target " STR_FMT " " STR_FMT, STR_ARG(kind),
                                STR_ARG(v->spec.target_name));
    v->found = arena_printf(&v->arena, STR_FMT " found", STR_ARG(workload));
    v->missing = arena_printf(&v->arena,
                              saturation_can_scale_kind(v) ? STR_FMT " not found"
                                                           : STR_FMT
                                  " cannot be scaled; use a Deployment or StatefulSet",
                              STR_ARG(workload));
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
    echo_clear(&v->echo);
    scale_history_done(&v->history);
    arena_done(&v->shown.texts);
    arena_done(&v->arena);
    free(v->workload_uid);
    free(v->key);
    free(v);
}

void saturation_remove(struct saturation *s, str ns, str name)
{
    struct variant *v = saturation_find(s, ns, name);
    if (v)
        variant_free(s, v);
}

void saturation_state_done(struct saturation *s)
{
    for (struct map_slot *slot; (slot = map_next(&s->by_key, NULL));)
        variant_free(s, slot->value);
    map_done(&s->by_key);
    map_done(&s->models);
    map_done(&s->targets);
}

/* ---- objects of a variant */

bool saturation_is_statefulset(const struct variant *v)
{
    return str_eqc(v->spec.target_kind, "StatefulSet");
}

bool saturation_can_scale_kind(const struct variant *v)
{
    return !v->spec.target_kind.n || str_eqc(v->spec.target_kind, "Deployment") ||
           saturation_is_statefulset(v);
}

const struct workload_record *saturation_get_workload(const struct saturation *s,
                                                      const struct variant *v)
{
    if (!saturation_can_scale_kind(v))
        return NULL; /* a Deployment of the same name is another object */
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

static bool bounds_workload(const struct bounds_record *r, const struct variant *v)
{
    str kind = r->target_kind.n ? r->target_kind : S("Deployment"); /* KEDA's default */
    return str_eq(r->meta.ns, v->ns) &&
           str_eqc(kind, saturation_is_statefulset(v) ? "StatefulSet" : "Deployment");
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
    if (!bounds_workload(r, v))
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
    if (saturation_is_statefulset(v))
        each_owned_pod(s, &w->meta, fn, context);
    else
        cache_each_in(set, s->sets, 0, w->meta.uid)
            if (str_eq(set->meta.ns, v->ns))
                each_owned_pod(s, &set->meta, fn, context);
}

const struct json *saturation_get_status(struct arena *a, struct variant *v,
                                         const struct variant_record *r)
{
    if (v->echo.before_rv && str_eqc(r->meta.rv, v->echo.before_rv))
        return parse_json(a, str_c(v->echo.status));
    echo_clear(&v->echo);
    return parse_json(a, r->status);
}
