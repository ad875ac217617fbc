/* Builds the status and the patch: see status_core.h.
 *
 *     sat_view (from the engine) ─► copy of the old status ─► set allocations and conditions ─► merge_diff ─► patch
 *
 * The invariant: applying the same view twice gives no second patch. Messages contain measured
 * numbers that differ in every cycle; is_same_sentence() therefore compares two messages word by
 * word and lets measured numbers (with a decimal point, or in seconds) differ by a tenth, while
 * counts must be equal. The names of conditions and fields are WVA's. */
#include "status_core.h"

#include "../../base/rfc3339.h"
#include "../../json/merge.h"

#include <math.h>

enum { MAX_BATCH = 256 }; /* WVA's constant */

const char *const sat_condition_names[SAT_CONDITION_N] = {
    [SAT_TARGET_RESOLVED] = "TargetResolved",
    [SAT_METRICS_AVAILABLE] = "MetricsAvailable",
    [SAT_OPTIMIZATION_READY] = "OptimizationReady",
    [SAT_ACTIVE] = "Active",
    [SAT_RESOURCE_CONSTRAINED] = "ResourceConstrained",
};

/* ---- what counts as a change */

static bool is_near(double x, double y)
{
    return x == y || fabs(x - y) <= 0.1 * fmax(fabs(x), fabs(y)) || (isnan(x) && isnan(y));
}

static bool is_number_part(char c)
{
    return (c >= '0' && c <= '9') || c == '.';
}

/* Removes the number at the start of `*rest`. Measured: it has a decimal point or is in seconds. */
static double cut_number(str *rest, bool *ret_measured)
{
    size_t n = 0;
    double value = NAN;
    while (n < rest->n && is_number_part(rest->p[n]))
        n++;
    while (n > 1 && rest->p[n - 1] == '.') /* the period of the sentence */
        n--;
    str digits = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    *ret_measured = str_find_char(digits, '.') != SIZE_MAX || str_starts(*rest, S("s ")) ||
                    str_starts(*rest, S(" s"));
    str_to_f64(digits, &value);
    return value;
}

/* Whether two messages mean the same. Words and counts (replicas, bounds) must be equal, or the
 * condition would describe an old spec; measured numbers may differ by a tenth, or a status would
 * be written in every cycle. */
static bool is_same_sentence(str a, str b)
{
    if (str_eq(a, b))
        return true;
    while (a.n && b.n) {
        if (is_number_part(a.p[0]) && is_number_part(b.p[0])) {
            bool measured_a, measured_b;
            double x = cut_number(&a, &measured_a), y = cut_number(&b, &measured_b);
            bool measured = measured_a && measured_b;
            if (measured ? !is_near(x, y) && fabs(x - y) > 0.05 : x != y && !(isnan(x) && isnan(y)))
                return false;
        } else if (a.p[0] != b.p[0]) {
            return false;
        } else {
            a = str_from(a, 1);
            b = str_from(b, 1);
        }
    }
    return !a.n && !b.n;
}

static bool is_same_load(const struct sat_load_view *x, const struct sat_load_view *y)
{
    return is_near(x->arrival_per_min, y->arrival_per_min) &&
           is_near(x->input_tokens, y->input_tokens) &&
           is_near(x->output_tokens, y->output_tokens) && is_near(x->itl_ms, y->itl_ms) &&
           is_near(x->ttft_ms, y->ttft_ms);
}

static bool is_same_condition(const struct sat_condition *x, const struct sat_condition *y)
{
    return x->known == y->known &&
           (!x->known || (x->holds == y->holds && !strcmp(x->reason, y->reason) &&
                          is_same_sentence(x->message, y->message)));
}

bool sat_view_is_same(const struct sat_view *x, const struct sat_view *y)
{
    for (int i = 0; i < SAT_CONDITION_N; i++)
        if (!is_same_condition(&x->conditions[i], &y->conditions[i]))
            return false;
    return str_eq(x->accelerator, y->accelerator) && x->has_current == y->has_current &&
           x->gone == y->gone && x->current == y->current && x->wanted == y->wanted &&
           x->cost == y->cost && is_same_load(&x->load, &y->load) &&
           x->has_desired == y->has_desired && x->desired == y->desired && x->applied == y->applied;
}

/* ---- allocations */

static void set_number(struct arena *a, struct json *obj, const char *field, double value)
{
    json_set_str(a, obj, field, arena_printf(a, "%.2f", isfinite(value) ? fmax(0, value) : 0));
}

static double number_in(const struct json *obj, const char *field)
{
    double value = NAN;
    str_to_f64(json_text(json_get(obj, field)), &value);
    return value;
}

static bool is_near_in(const struct json *x, const struct json *y, const char *field)
{
    return is_near(number_in(x, field), number_in(y, field));
}

static bool is_same_alloc(const struct json *x, const struct json *y)
{
    const struct json *from = json_get(x, "load"), *to = json_get(y, "load");
    return json_eq(json_get(x, "accelerator"), json_get(y, "accelerator")) &&
           json_eq(json_get(x, "numReplicas"), json_get(y, "numReplicas")) &&
           json_eq(json_get(x, "variantCost"), json_get(y, "variantCost")) &&
           is_near_in(x, y, "itlAverage") && is_near_in(x, y, "ttftAverage") &&
           is_near_in(from, to, "arrivalRate") && is_near_in(from, to, "avgInputTokens") &&
           is_near_in(from, to, "avgOutputTokens");
}

static void set_current(struct arena *a, struct json *status, const struct sat_view *v)
{
    struct json *alloc = json_new_obj(a), *load = json_new_obj(a);
    json_set_str(a, alloc, "accelerator", v->accelerator);
    json_set_int(a, alloc, "numReplicas", v->current);
    json_set_int(a, alloc, "maxBatch", MAX_BATCH);
    set_number(a, alloc, "variantCost", v->wanted * v->cost);
    set_number(a, alloc, "itlAverage", v->load.itl_ms);
    set_number(a, alloc, "ttftAverage", v->load.ttft_ms);
    set_number(a, load, "arrivalRate", v->load.arrival_per_min);
    set_number(a, load, "avgInputTokens", v->load.input_tokens);
    set_number(a, load, "avgOutputTokens", v->load.output_tokens);
    json_set(a, alloc, S("load"), load);
    if (!is_same_alloc(json_get(status, "currentAlloc"), alloc))
        json_set(a, status, S("currentAlloc"), alloc);
}

/* Returns whether the decision differs from the one in the status. */
static bool set_desired(struct arena *a, struct json *status, const struct sat_view *v,
                        int64_t now_s)
{
    const struct json *old = json_get(status, "desiredOptimizedAlloc");
    if (json_int(json_get(old, "numReplicas"), -1) == v->desired &&
        str_eq(json_text(json_get(old, "accelerator")), v->accelerator))
        return false;
    char text[RFC3339_TEXT_MAX];
    struct json *alloc = json_new_obj(a);
    json_set_str(a, alloc, "accelerator", v->accelerator);
    json_set_str(a, alloc, "lastRunTime", rfc3339_text(now_s, text));
    json_set_int(a, alloc, "numReplicas", v->desired);
    json_set(a, status, S("desiredOptimizedAlloc"), alloc);
    return true;
}

/* ---- conditions */

const struct json *sat_status_condition(const struct json *status, enum sat_condition_type type)
{
    const struct json *list = json_get(status, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), sat_condition_names[type]))
            return json_item(list, i);
    return NULL;
}

struct writing {
    struct arena *a;
    struct json *status;
    int64_t generation, now_s;
    bool changed; /* the decision changed: write the new message in any case */
};

/* A condition that keeps its transition time while its status is the same, and its message while it
 * means the same. */
static struct json *make_condition(const struct writing *w, enum sat_condition_type type,
                                   const struct sat_condition *c)
{
    const struct json *old = sat_status_condition(w->status, type);
    struct json *out = json_new_obj(w->a);
    str word = c->holds ? S("True") : S("False"), message = c->message;
    char text[RFC3339_TEXT_MAX];
    str since = rfc3339_text(w->now_s, text);
    str old_since = json_text(json_get(old, "lastTransitionTime"));
    str old_message = json_text(json_get(old, "message"));
    if (old_since.n && str_eq(json_text(json_get(old, "status")), word))
        since = old_since;
    bool same_spec = json_int(json_get(old, "observedGeneration"), 0) == w->generation;
    if (!w->changed && same_spec && str_eqc(json_text(json_get(old, "reason")), c->reason) &&
        is_same_sentence(old_message, message))
        message = old_message;
    json_set_str(w->a, out, "type", str_c(sat_condition_names[type]));
    json_set_str(w->a, out, "status", word);
    json_set_int(w->a, out, "observedGeneration", w->generation);
    json_set_str(w->a, out, "lastTransitionTime", since);
    json_set_str(w->a, out, "reason", str_c(c->reason));
    json_set_str(w->a, out, "message", message);
    return out;
}

static void set_condition(const struct writing *w, enum sat_condition_type type,
                          const struct sat_condition *c)
{
    struct json *made = make_condition(w, type, c), *list = json_get(w->status, "conditions");
    if (!json_is(list, JSON_ARR)) {
        list = json_new_arr(w->a);
        json_set(w->a, w->status, S("conditions"), list);
    }
    for (uint32_t i = 0; i < list->n; i++)
        if (str_eqc(json_text(json_get(list->items[i], "type")), sat_condition_names[type])) {
            list->items[i] = made;
            return;
        }
    json_push(w->a, list, made);
}

struct json *sat_status_patch(struct arena *a, const struct json *old, const struct sat_view *view,
                              int64_t generation, int64_t now_s)
{
    if (!json_is(old,
                 JSON_OBJ)) /* a CRD without a schema stores any value; the patch replaces it */
        old = json_new_obj(a);
    struct json *status = json_copy(a, old);
    struct writing w = { .a = a, .status = status, .generation = generation, .now_s = now_s };
    bool shown = view->accelerator.n >= 2; /* the schema requires two characters */
    if (view->gone)
        json_del(status, S("currentAlloc"));
    else if (shown && view->has_current)
        set_current(a, status, view);
    if (shown && view->has_desired) {
        w.changed = set_desired(a, status, view, now_s);
        json_set_bool(a, json_make(a, status, "actuation", NULL), "applied", view->applied);
    }
    for (int i = 0; i < SAT_CONDITION_N; i++)
        if (view->conditions[i].known)
            set_condition(&w, (enum sat_condition_type)i, &view->conditions[i]);
    return merge_diff(a, old, status);
}
