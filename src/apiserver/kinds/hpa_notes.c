/* See hpa_notes.h. One table says where each flat word lies in version 2; both directions walk it, so that
 * what was written reads back. The order of words is that of the real server: the notes are compared as
 * text. */
#include "hpa_notes.h"

struct word {
    const char *flat; /* "target" in front of a capital is "current" in a status */
    const char *in;   /* object of version 2 it lies in; NULL: the source itself */
    const char *key;
    const char *always; /* written when not there; NULL: left out */
};

#define METRIC_NAME { "metricName", "metric", "name", NULL }
#define VALUE(always) { "targetValue", "target", "value", always }
#define AVERAGE { "targetAverageValue", "target", "averageValue", NULL }
#define UTILIZATION { "targetAverageUtilization", "target", "averageUtilization", NULL }
#define SELECTOR(flat) { flat, "metric", "selector", NULL }

static const struct {
    const char *source;
    struct word words[6];
} sources[] = {
    { "object",
      { { "target", NULL, "describedObject", NULL },
        METRIC_NAME,
        VALUE("0"),
        SELECTOR("selector"),
        { "averageValue", "target", "averageValue", NULL } } },
    { "pods", { METRIC_NAME, AVERAGE, SELECTOR("selector") } },
    { "resource", { { "name", NULL, "name", NULL }, UTILIZATION, AVERAGE } },
    { "containerResource",
      { { "name", NULL, "name", NULL },
        UTILIZATION,
        AVERAGE,
        { "container", NULL, "container", NULL } } },
    { "external", { METRIC_NAME, SELECTOR("metricSelector"), VALUE(NULL), AVERAGE } },
};

static str flat_name(struct arena *a, const struct word *w, enum hpa_note_side side)
{
    str name = str_c(w->flat);
    const str target = S("target");
    bool renamed = side == HPA_STATUS && str_starts(name, target) && name.n > target.n;
    return renamed ? arena_printf(a, "current" STR_FMT, STR_ARG(str_from(name, target.n))) : name;
}

static const char *object_name(const struct word *w, enum hpa_note_side side)
{
    return side == HPA_STATUS && w->in && str_eqc(str_c(w->in), "target") ? "current" : w->in;
}

static struct json *in_order(struct arena *a, const struct json *object, const char *const *keys)
{
    struct json *ordered = json_new_obj(a);
    for (; *keys; keys++)
        if (json_get(object, *keys))
            json_set(a, ordered, str_c(*keys), json_get(object, *keys));
    return ordered;
}

/* ---- metrics */

static struct json *flatten(struct arena *a, const struct word *words, const struct json *source,
                            enum hpa_note_side side)
{
    static const char *const reference[] = { "kind", "name", "apiVersion", NULL };
    struct json *flat = json_new_obj(a);
    for (const struct word *w = words; w->flat; w++) {
        const char *in = object_name(w, side);
        struct json *value = json_get(in ? json_get(source, in) : source, w->key);
        if (str_eqc(str_c(w->key), "describedObject"))
            value = in_order(a, value, reference);
        if (!value && w->always)
            value = json_new_str(a, str_c(w->always));
        if (value)
            json_set(a, flat, flat_name(a, w, side), value);
    }
    return flat;
}

struct json *hpa_note_metrics(struct arena *a, const struct json *metrics, enum hpa_note_side side)
{
    struct json *notes = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(metrics); i++) {
        struct json *note = json_new_obj(a), *type = json_get(metrics->items[i], "type");
        if (type)
            json_set(a, note, S("type"), type);
        for (size_t j = 0; j < countof(sources); j++) {
            const struct json *source = json_get(metrics->items[i], sources[j].source);
            if (source)
                json_set(a, note, str_c(sources[j].source),
                         flatten(a, sources[j].words, source, side));
        }
        json_push(a, notes, note);
    }
    return notes;
}

/* A target says which of its values counts; "0" beside an average is none. */
static void settle_target(struct arena *a, struct json *source)
{
    struct json *target = json_make(a, source, "target", NULL);
    bool average = json_get(target, "averageValue");
    if (average && str_eqc(json_text(json_get(target, "value")), "0"))
        json_del(target, S("value"));
    json_set_str(a, target, "type",
                 json_get(target, "averageUtilization") ? S("Utilization")
                 : average                              ? S("AverageValue")
                                                        : S("Value"));
}

static struct json *unflatten(struct arena *a, const struct word *words, const struct json *flat,
                              enum hpa_note_side side)
{
    struct json *source = json_new_obj(a);
    for (const struct word *w = words; w->flat; w++) {
        const char *in = object_name(w, side);
        struct json *value = json_get_str(flat, flat_name(a, w, side));
        if (value)
            json_set(a, in ? json_make(a, source, in, NULL) : source, str_c(w->key), value);
    }
    if (side == HPA_SPEC)
        settle_target(a, source);
    return source;
}

struct json *hpa_read_metrics(struct arena *a, const struct json *note, enum hpa_note_side side)
{
    struct json *metrics = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(note); i++) {
        struct json *metric = json_new_obj(a), *type = json_get(json_item(note, i), "type");
        if (type)
            json_set(a, metric, S("type"), type);
        for (size_t j = 0; j < countof(sources); j++) {
            const struct json *flat = json_get(json_item(note, i), sources[j].source);
            if (json_is(flat, JSON_OBJ))
                json_set(a, metric, str_c(sources[j].source),
                         unflatten(a, sources[j].words, flat, side));
        }
        json_push(a, metrics, metric);
    }
    return metrics;
}

/* ---- behaviour */

static str with_first(struct arena *a, str name, bool capital)
{
    char *copy = (char *)(uintptr_t)arena_str(a, name).p;
    if (name.n && capital && copy[0] >= 'a' && copy[0] <= 'z')
        copy[0] = (char)(copy[0] - 'a' + 'A');
    else if (name.n && !capital && copy[0] >= 'A' && copy[0] <= 'Z')
        copy[0] = (char)(copy[0] - 'A' + 'a');
    return (str){ copy, name.n };
}

static struct json *with_capitals(struct arena *a, const struct json *object,
                                  const char *const *keys)
{
    struct json *capitals = json_new_obj(a);
    for (; *keys; keys++) {
        struct json *value = json_get(object, *keys);
        json_set(a, capitals, with_first(a, str_c(*keys), true), value ? value : json_new_null(a));
    }
    return capitals;
}

struct json *hpa_note_behavior(struct arena *a, const struct json *behavior)
{
    static const char *const sides[] = { "scaleUp", "scaleDown", NULL };
    static const char *const rules[] = { "stabilizationWindowSeconds", "selectPolicy", "policies",
                                         "tolerance", NULL };
    static const char *const policy[] = { "type", "value", "periodSeconds", NULL };
    struct json *both = json_new_obj(a);
    for (const char *const *side = sides; *side; side++) {
        const struct json *one = json_get(behavior, *side), *list = json_get(one, "policies");
        struct json *copy = one ? json_copy(a, one) : NULL, *policies = json_new_arr(a);
        for (uint32_t i = 0; i < json_len(list); i++)
            json_push(a, policies, with_capitals(a, list->items[i], policy));
        if (copy) {
            json_set(a, copy, S("policies"), policies);
            json_set(a, both, str_c(*side), with_capitals(a, copy, rules));
        }
    }
    return with_capitals(a, both, sides);
}

/* Small letters again, without what is null. */
struct json *hpa_read_behavior(struct arena *a, const struct json *note)
{
    struct json *value;
    if (json_is(note, JSON_OBJ)) {
        value = json_new_obj(a);
        json_each(m, note)
            if (!json_is(m->value, JSON_NULL))
                json_set(a, value, with_first(a, m->key, false), hpa_read_behavior(a, m->value));
        return value;
    }
    if (!json_is(note, JSON_ARR))
        return json_copy(a, note);
    value = json_new_arr(a);
    for (uint32_t i = 0; i < note->n; i++)
        json_push(a, value, hpa_read_behavior(a, note->items[i]));
    return value;
}

struct json *hpa_note_conditions(struct arena *a, const struct json *conditions)
{
    static const char *const keys[] = { "type",   "status",  "lastTransitionTime",
                                        "reason", "message", NULL };
    struct json *notes = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        json_push(a, notes, in_order(a, conditions->items[i], keys));
    return notes;
}
