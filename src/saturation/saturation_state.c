/* See saturation_state.h. */
#include "saturation_state.h"

#include "../base/log.h"

#include <math.h>

/* ---- models */

static struct sat_model *model_of(struct saturation *s, str ns, str id)
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
    v->model = model_of(s, v->ns, v->spec.model);
    struct variant **place = &v->model->first;
    while (*place && str_cmp((*place)->name, v->name) < 0)
        place = &(*place)->next;
    v->next = *place;
    *place = v;
}

/* ---- workloads, which variants of several models may name */

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
    if (first) /* the key is the first one's */
        map_put(&s->targets, str_c(first->target_key), first);
    free(take(v->target_key));
}

static void join_target(struct saturation *s, struct variant *v)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/%s/" STR_FMT, STR_ARG(v->ns),
               saturation_is_statefulset(v) ? "StatefulSet" : "Deployment",
               STR_ARG(v->spec.target_name));
    if (!saturation_knows_kind(v) || !v->spec.target_name.n)
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

const struct variant *saturation_rival(const struct saturation *s, const struct variant *v)
{
    str why;
    const struct variant *x = v->target_key ? map_get(&s->targets, str_c(v->target_key)) : NULL;
    for (; x && x != v; x = x->next_on_target)
        if (x->model && x->model != v->model && saturation_manages(s, x, &why))
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

static const struct json *parse(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static void echo_clear(struct variant_echo *e)
{
    free(take(e->before_rv));
    free(take(e->status));
}

static struct variant *make(struct saturation *s, const struct variant_record *r)
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

/* What the last leader decided, for who takes over. */
static void read_desired(struct variant *v, const struct variant_record *r)
{
    auto_arena struct arena scratch = { 0 };
    const struct json *status = parse(&scratch, r->status);
    const struct json *alloc = json_get(status, "desiredOptimizedAlloc");
    int64_t desired = json_int(json_get(alloc, "numReplicas"), 0);
    v->desired = (int)MAX((int64_t)0, MIN(desired, (int64_t)SAT_REPLICAS_MAX));
}

struct variant *saturation_put(struct saturation *s, const struct variant_record *r)
{
    struct variant *v = saturation_find(s, r->meta.ns, r->meta.name);
    if (v && !str_eq(v->uid, r->meta.uid)) {
        saturation_drop(s, r->meta.ns, r->meta.name); /* another one of the same name */
        v = NULL;
    }
    if (!v) {
        v = make(s, r);
        read_desired(v, r);
    }
    arena_done(&v->arena);
    v->arena = (struct arena){ 0 };
    v->spec = variant_spec_read(&v->arena, parse(&v->arena, r->spec));
    v->shown.reason = S(""); /* the condition may have to say something else of this spec */
    for (size_t i = 0; i < v->spec.problem_n; i++)
        log_warn("a VariantAutoscaling has values that cannot be used", KV("namespace", v->ns),
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
                              saturation_knows_kind(v) ? STR_FMT " not found"
                                                       : STR_FMT
                                  " cannot be scaled: want a Deployment or StatefulSet",
                              STR_ARG(workload));
    leave_target(s, v);
    join_target(s, v);
    if (!v->model || !str_eq(v->model->id, v->spec.model)) {
        leave_model(s, v);
        join_model(s, v);
    }
    return v;
}

void saturation_meet(struct variant *v, const struct workload_record *w)
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
    arena_done(&v->shown.words);
    arena_done(&v->arena);
    free(v->workload_uid);
    free(v->key);
    free(v);
}

void saturation_drop(struct saturation *s, str ns, str name)
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

/* ---- what belongs to a variant */

bool saturation_is_statefulset(const struct variant *v)
{
    return str_eqc(v->spec.target_kind, "StatefulSet");
}

bool saturation_knows_kind(const struct variant *v)
{
    return !v->spec.target_kind.n || str_eqc(v->spec.target_kind, "Deployment") ||
           saturation_is_statefulset(v);
}

const struct workload_record *saturation_workload(const struct saturation *s,
                                                  const struct variant *v)
{
    if (!saturation_knows_kind(v))
        return NULL; /* a Deployment of the same name is another thing */
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

bool saturation_manages(const struct saturation *s, const struct variant *v, str *ret_why)
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

static bool has_workload(const struct bounds_record *r, const struct variant *v)
{
    str kind = r->target_kind.n ? r->target_kind : S("Deployment"); /* KEDA's default */
    return str_eq(r->meta.ns, v->ns) &&
           str_eqc(kind, saturation_is_statefulset(v) ? "StatefulSet" : "Deployment");
}

/* Who takes even a doubling for noise wants to be left alone: nobody is made to grow further for that. */
static double tolerance_of(int64_t milli)
{
    return milli < 1000 ? (double)MAX(milli, (int64_t)0) / 1000 : 0;
}

static void narrow(struct variant_bounds *b, const struct bounds_record *r, const struct variant *v)
{
    if (!has_workload(r, v))
        return;
    b->hpa = true;
    b->tolerance_up = fmax(b->tolerance_up, tolerance_of(r->up_milli));
    b->tolerance_down = fmax(b->tolerance_down, tolerance_of(r->down_milli));
    b->keeps_min |= r->min > 0 && !r->idles;
    if (r->max > 0 && (b->max == 0 || r->max < b->max))
        b->max = (int)MIN(r->max, (int64_t)SAT_REPLICAS_MAX);
    b->min = MAX(b->min, (int)MAX((int64_t)0, MIN(r->min, (int64_t)SAT_REPLICAS_MAX)));
}

/* The HPA that KEDA makes of a ScaledObject says no more than it, and cannot say zero. */
struct variant_bounds saturation_bounds(const struct saturation *s, const struct variant *v)
{
    struct variant_bounds b = { v->spec.min, v->spec.max, .keeps_min = v->spec.has_min };
    const struct bounds_record *r;
    if (s->scaled_objects)
        cache_each_in(r, s->scaled_objects, 0, v->spec.target_name)
            narrow(&b, r, v);
    if (!b.hpa)
        cache_each_in(r, s->hpas, 0, v->spec.target_name)
            narrow(&b, r, v);
    if (b.max && b.min > b.max)
        b.min = b.max;
    return b;
}

/* Owners are of the same namespace. An object of another one that claims this owner is somebody's who wants to be
 * counted here: its metrics would decide about this variant. */
static void each_owned(const struct saturation *s, const struct record *owner,
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
    const struct workload_record *w = saturation_workload(s, v);
    const struct set_record *set;
    if (!w)
        return;
    if (saturation_is_statefulset(v))
        each_owned(s, &w->meta, fn, context);
    else
        cache_each_in(set, s->sets, 0, w->meta.uid)
            if (str_eq(set->meta.ns, v->ns))
                each_owned(s, &set->meta, fn, context);
}

const struct json *saturation_status(struct arena *a, struct variant *v,
                                     const struct variant_record *r)
{
    if (v->echo.before_rv && str_eqc(r->meta.rv, v->echo.before_rv))
        return parse(a, str_c(v->echo.status));
    echo_clear(&v->echo);
    return parse(a, r->status);
}
