/* Encodes the parts of a version 2 autoscaler that version 1 has no fields for, as annotations in the form of
 * the old beta versions.
 *
 * Metrics are flat there: { "resource": { "name": "cpu", "targetAverageUtilization": 50 } }. One table maps
 * each flat name to its place in version 2; both directions walk the same table, so what was encoded
 * decodes to the same. In a status the prefix is "current" instead of "target". The behavior has Go field
 * names, with capital letters. The order of members is that of kube-apiserver, because clients compare
 * annotations as text. */
#include "hpa_annotations.h"

struct field_map {
    const char *flat; /* name in the annotation; a prefix "target" is "current" in a status */
    const char *in;   /* object in version 2 that contains it; NULL: the source itself */
    const char *key;
    const char *always; /* value to write if unset; NULL: omitted */
};

#define METRIC_NAME { "metricName", "metric", "name", NULL }
#define VALUE(always) { "targetValue", "target", "value", always }
#define AVERAGE { "targetAverageValue", "target", "averageValue", NULL }
#define UTILIZATION { "targetAverageUtilization", "target", "averageUtilization", NULL }
#define SELECTOR(flat) { flat, "metric", "selector", NULL }

static const struct {
    const char *source;
    struct field_map fields[6];
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

/* "targetValue" of a spec is "currentValue" of a status. */
static str flat_name(struct arena *a, const struct field_map *w, enum kind_hpa_part part)
{
    str name = str_c(w->flat);
    const str target = S("target");
    bool renamed = part == KIND_HPA_STATUS && str_starts(name, target) && name.n > target.n;
    return renamed ? arena_printf(a, "current" STR_FMT, STR_ARG(str_from(name, target.n))) : name;
}

static const char *object_name(const struct field_map *w, enum kind_hpa_part part)
{
    return part == KIND_HPA_STATUS && w->in && str_eqc(str_c(w->in), "target") ? "current" : w->in;
}

/* Copies the members named by `keys`, in their order; the rest is dropped. */
static struct json *copy_in_order(struct arena *a, const struct json *object,
                                  const char *const *keys)
{
    struct json *ordered = json_new_obj(a);
    for (; *keys; keys++)
        if (json_get(object, *keys))
            json_set(a, ordered, str_c(*keys), json_get(object, *keys));
    return ordered;
}

/* ---- metrics */

/* One metric source in flat form. */
static struct json *flatten_source(struct arena *a, const struct field_map *fields,
                                   const struct json *source, enum kind_hpa_part part)
{
    static const char *const reference[] = { "kind", "name", "apiVersion", NULL };
    struct json *flat = json_new_obj(a);
    for (const struct field_map *w = fields; w->flat; w++) {
        const char *in = object_name(w, part);
        struct json *value = json_get(in ? json_get(source, in) : source, w->key);
        if (str_eqc(str_c(w->key), "describedObject"))
            value = copy_in_order(a, value, reference);
        if (!value && w->always)
            value = json_new_str(a, str_c(w->always));
        if (value)
            json_set(a, flat, flat_name(a, w, part), value);
    }
    return flat;
}

/* The metrics in flat form; unknown sources are dropped. */
struct json *kind_hpa_encode_metrics(struct arena *a, const struct json *metrics,
                                     enum kind_hpa_part part)
{
    struct json *metrics_v1 = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(metrics); i++) {
        struct json *encoded = json_new_obj(a), *type = json_get(metrics->items[i], "type");
        if (type)
            json_set(a, encoded, S("type"), type);
        for (size_t j = 0; j < countof(sources); j++) {
            const struct json *source = json_get(metrics->items[i], sources[j].source);
            if (source)
                json_set(a, encoded, str_c(sources[j].source),
                         flatten_source(a, sources[j].fields, source, part));
        }
        json_push(a, metrics_v1, encoded);
    }
    return metrics_v1;
}

/* Derives the target type, which the flat form does not have. A value of "0" next to an average
 * is ignored. */
static void set_target_type(struct arena *a, struct json *source)
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

/* The reverse of flatten_source(). */
static struct json *unflatten_source(struct arena *a, const struct field_map *fields,
                                     const struct json *flat, enum kind_hpa_part part)
{
    struct json *source = json_new_obj(a);
    for (const struct field_map *w = fields; w->flat; w++) {
        const char *in = object_name(w, part);
        struct json *value = json_get_str(flat, flat_name(a, w, part));
        if (value)
            json_set(a, in ? json_make(a, source, in, NULL) : source, str_c(w->key), value);
    }
    if (part == KIND_HPA_SPEC)
        set_target_type(a, source);
    return source;
}

/* The reverse of kind_hpa_encode_metrics(). */
struct json *kind_hpa_decode_metrics(struct arena *a, const struct json *encoded,
                                     enum kind_hpa_part part)
{
    struct json *metrics = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(encoded); i++) {
        struct json *metric = json_new_obj(a), *type = json_get(json_item(encoded, i), "type");
        if (type)
            json_set(a, metric, S("type"), type);
        for (size_t j = 0; j < countof(sources); j++) {
            const struct json *flat = json_get(json_item(encoded, i), sources[j].source);
            if (json_is(flat, JSON_OBJ))
                json_set(a, metric, str_c(sources[j].source),
                         unflatten_source(a, sources[j].fields, flat, part));
        }
        json_push(a, metrics, metric);
    }
    return metrics;
}

/* ---- behavior */

static str change_first_letter(struct arena *a, str name, bool capital)
{
    char *copy = (char *)(uintptr_t)arena_str(a, name).p;
    if (name.n && capital && copy[0] >= 'a' && copy[0] <= 'z')
        copy[0] = (char)(copy[0] - 'a' + 'A');
    else if (name.n && !capital && copy[0] >= 'A' && copy[0] <= 'Z')
        copy[0] = (char)(copy[0] - 'A' + 'a');
    return (str){ copy, name.n };
}

static struct json *copy_capitalized(struct arena *a, const struct json *object,
                                     const char *const *keys)
{
    struct json *capitals = json_new_obj(a);
    for (; *keys; keys++) {
        struct json *value = json_get(object, *keys);
        json_set(a, capitals, change_first_letter(a, str_c(*keys), true),
                 value ? value : json_new_null(a));
    }
    return capitals;
}

/* scaleUp and scaleDown with capitalized names; unset members are null. */
struct json *kind_hpa_encode_behavior(struct arena *a, const struct json *behavior)
{
    static const char *const directions[] = { "scaleUp", "scaleDown", NULL };
    static const char *const rules[] = { "stabilizationWindowSeconds", "selectPolicy", "policies",
                                         "tolerance", NULL };
    static const char *const policy[] = { "type", "value", "periodSeconds", NULL };
    struct json *both = json_new_obj(a);
    for (const char *const *direction = directions; *direction; direction++) {
        const struct json *one = json_get(behavior, *direction), *list = json_get(one, "policies");
        struct json *copy = one ? json_copy(a, one) : NULL, *policies = json_new_arr(a);
        for (uint32_t i = 0; i < json_len(list); i++)
            json_push(a, policies, copy_capitalized(a, list->items[i], policy));
        if (copy) {
            json_set(a, copy, S("policies"), policies);
            json_set(a, both, str_c(*direction), copy_capitalized(a, copy, rules));
        }
    }
    return copy_capitalized(a, both, directions);
}

/* Restores lower-case names and drops nulls. */
struct json *kind_hpa_decode_behavior(struct arena *a, const struct json *encoded)
{
    struct json *value;
    if (json_is(encoded, JSON_OBJ)) {
        value = json_new_obj(a);
        json_each(m, encoded)
            if (!json_is(m->value, JSON_NULL))
                json_set(a, value, change_first_letter(a, m->key, false),
                         kind_hpa_decode_behavior(a, m->value));
        return value;
    }
    if (!json_is(encoded, JSON_ARR))
        return json_copy(a, encoded);
    value = json_new_arr(a);
    for (uint32_t i = 0; i < encoded->n; i++)
        json_push(a, value, kind_hpa_decode_behavior(a, encoded->items[i]));
    return value;
}

struct json *kind_hpa_encode_conditions(struct arena *a, const struct json *conditions)
{
    static const char *const keys[] = { "type",   "status",  "lastTransitionTime",
                                        "reason", "message", NULL };
    struct json *ordered = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        json_push(a, ordered, copy_in_order(a, conditions->items[i], keys));
    return ordered;
}
