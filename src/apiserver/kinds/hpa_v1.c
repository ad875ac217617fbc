/* autoscaling/v1 as a view of version 2, which is the stored one.
 *
 * Version 1 has one metric, the average CPU utilization; other metrics, the behavior and the conditions become
 * annotations (hpa_annotations.c), so nothing is lost when an old client writes back what it read. A version 1
 * object is validated in its stored form, by the rules of version 2. */
#include "hpa_annotations.h"
#include "kind_hooks.h"

#define ANNOTATION(name) "autoscaling.alpha.kubernetes.io/" name

/* The one metric that version 1 has a field for. */
static bool is_cpu_utilization(const struct json *metric)
{
    return str_eqc(json_text(json_get(metric, "type")), "Resource") &&
           str_eqc(json_text(json_at(metric, "resource", "name", NULL)), "cpu") &&
           json_at(metric, "resource", "target", "averageUtilization", NULL);
}

/* Writes a value as JSON text, unless there is nothing to write. */
static void set_annotation(struct arena *a, struct json *object, const char *name,
                           const struct json *value)
{
    if (value && (json_len(value) || json_is(value, JSON_OBJ)))
        json_set_str(a, json_make(a, object, "metadata", "annotations", NULL), name,
                     json_to_str(a, value));
}

/* Removes an annotation and returns its parsed value; NULL if it is missing or malformed. */
static struct json *take_annotation(struct arena *a, struct json *object, const char *name)
{
    struct json *annotations = json_at(object, "metadata", "annotations", NULL), *value = NULL;
    str text = json_text(json_get(annotations, name));
    if (!text.n || json_parse(a, text, &value, NULL) < 0)
        return NULL;
    json_del(annotations, str_c(name));
    if (!json_len(annotations))
        json_del(json_get(object, "metadata"), S("annotations"));
    return value;
}

/* The first CPU utilization becomes a field, the rest becomes annotations. */
static void convert_from_v2(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL), *others = json_new_arr(a);
    const struct json *metrics = json_get(spec, "metrics");
    for (uint32_t i = 0; i < json_len(metrics); i++) {
        struct json *metric = metrics->items[i];
        if (is_cpu_utilization(metric) && !json_get(spec, "targetCPUUtilizationPercentage"))
            json_set(a, spec, S("targetCPUUtilizationPercentage"),
                     json_at(metric, "resource", "target", "averageUtilization", NULL));
        else
            json_push(a, others, metric);
    }
    struct json *status = json_make(a, object, "status", NULL);
    const struct json *behavior = json_get(spec, "behavior");
    const struct json *current = json_get(status, "currentMetrics");
    set_annotation(a, object, ANNOTATION("metrics"),
                   kind_hpa_encode_metrics(a, others, KIND_HPA_SPEC));
    set_annotation(a, object, ANNOTATION("behavior"),
                   behavior ? kind_hpa_encode_behavior(a, behavior) : NULL);
    set_annotation(a, object, ANNOTATION("conditions"),
                   kind_hpa_encode_conditions(a, json_get(status, "conditions")));
    set_annotation(a, object, ANNOTATION("current-metrics"),
                   kind_hpa_encode_metrics(a, current, KIND_HPA_STATUS));
    for (uint32_t i = 0; i < json_len(current); i++) {
        struct json *value =
            json_at(current->items[i], "resource", "current", "averageUtilization", NULL);
        if (value)
            json_set(a, status, S("currentCPUUtilizationPercentage"), value);
    }
    json_del(spec, S("metrics"));
    json_del(spec, S("behavior"));
    json_del(status, S("conditions"));
    json_del(status, S("currentMetrics"));
    if (!json_get(status, "currentReplicas"))
        json_set_int(a, status, "currentReplicas", 0);
}

static struct json *make_cpu_metric(struct arena *a, struct json *percentage)
{
    struct json *metric = json_new_obj(a);
    json_set_str(a, metric, "type", S("Resource"));
    struct json *resource = json_make(a, metric, "resource", NULL);
    json_set_str(a, resource, "name", S("cpu"));
    struct json *target = json_make(a, resource, "target", NULL);
    json_set_str(a, target, "type", S("Utilization"));
    json_set(a, target, S("averageUtilization"), percentage);
    return metric;
}

/* The reverse. Ends with the defaults of version 2, which a version 1 object lacks. */
static void convert_to_v2(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL), *metrics = json_new_arr(a);
    struct json *percentage = json_get(spec, "targetCPUUtilizationPercentage");
    if (percentage)
        json_push(a, metrics, make_cpu_metric(a, percentage));
    const struct json *others =
        kind_hpa_decode_metrics(a, take_annotation(a, object, ANNOTATION("metrics")),
                                KIND_HPA_SPEC);
    for (uint32_t i = 0; i < json_len(others); i++)
        json_push(a, metrics, json_item(others, i));
    json_del(spec, S("targetCPUUtilizationPercentage"));
    if (json_len(metrics))
        json_set(a, spec, S("metrics"), metrics);
    struct json *behavior = take_annotation(a, object, ANNOTATION("behavior"));
    if (behavior)
        json_set(a, spec, S("behavior"), kind_hpa_decode_behavior(a, behavior));
    struct json *status = json_make(a, object, "status", NULL);
    struct json *conditions = take_annotation(a, object, ANNOTATION("conditions"));
    if (conditions)
        json_set(a, status, S("conditions"), conditions);
    struct json *current = take_annotation(a, object, ANNOTATION("current-metrics"));
    if (current)
        json_set(a, status, S("currentMetrics"),
                 kind_hpa_decode_metrics(a, current, KIND_HPA_STATUS));
    json_del(status, S("currentCPUUtilizationPercentage"));
    kind_hooks_hpa.fill(a, object);
}

/* The stored version has a default metric; this one shows it as a percentage. */
static void fill_hpa_v1(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    const struct json *others =
        json_at(object, "metadata", "annotations", ANNOTATION("metrics"), NULL);
    if (!others && !json_get(spec, "targetCPUUtilizationPercentage"))
        json_set_int(a, spec, "targetCPUUtilizationPercentage", 80);
}

/* Validates the converted object, so that both versions refuse the same. */
static void validate_hpa_v1(const struct kind_change *c, struct kind_env *env,
                            struct field_errors *errors)
{
    struct kind_change stored = *c;
    stored.object = json_copy(env->arena, c->object);
    convert_to_v2(env->arena, stored.object);
    kind_check_schema(c->kind->storage->schema, stored.object, NULL, errors);
    kind_hooks_hpa.validate(&stored, env, errors);
}

const struct kind_hooks kind_hooks_hpa_v1 = {
    .fill = fill_hpa_v1,
    .validate = validate_hpa_v1,
    .to_storage = convert_to_v2,
    .from_storage = convert_from_v2,
};
