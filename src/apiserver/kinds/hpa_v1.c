/* autoscaling/v1 as a view of version 2, which is what is stored. Version 1 knows one metric, the
 * average CPU utilization; the other metrics, the behaviour and the conditions travel in annotations,
 * so that nothing is lost when an old client writes back what it read. */
#include "hpa_notes.h"
#include "kind_hooks.h"

#define ANNOTATION(name) "autoscaling.alpha.kubernetes.io/" name

static bool is_cpu_utilization(const struct json *metric)
{
    return str_eqc(json_text(json_get(metric, "type")), "Resource") &&
           str_eqc(json_text(json_at(metric, "resource", "name", NULL)), "cpu") &&
           json_at(metric, "resource", "target", "averageUtilization", NULL);
}

static void annotate(struct arena *a, struct json *object, const char *name,
                     const struct json *value)
{
    if (value && (json_len(value) || json_is(value, JSON_OBJ)))
        json_set_str(a, json_make(a, object, "metadata", "annotations", NULL), name,
                     json_to_str(a, value));
}

/* Takes an annotation out and reads it; NULL when it is not there or does not read. */
static struct json *unannotate(struct arena *a, struct json *object, const char *name)
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

static void from_storage(struct arena *a, struct json *object)
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
    annotate(a, object, ANNOTATION("metrics"), hpa_note_metrics(a, others, HPA_SPEC));
    annotate(a, object, ANNOTATION("behavior"), behavior ? hpa_note_behavior(a, behavior) : NULL);
    annotate(a, object, ANNOTATION("conditions"),
             hpa_note_conditions(a, json_get(status, "conditions")));
    annotate(a, object, ANNOTATION("current-metrics"), hpa_note_metrics(a, current, HPA_STATUS));
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

static struct json *cpu_metric(struct arena *a, struct json *percentage)
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

static void to_storage(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL), *metrics = json_new_arr(a);
    struct json *percentage = json_get(spec, "targetCPUUtilizationPercentage");
    if (percentage)
        json_push(a, metrics, cpu_metric(a, percentage));
    const struct json *others =
        hpa_read_metrics(a, unannotate(a, object, ANNOTATION("metrics")), HPA_SPEC);
    for (uint32_t i = 0; i < json_len(others); i++)
        json_push(a, metrics, json_item(others, i));
    json_del(spec, S("targetCPUUtilizationPercentage"));
    if (json_len(metrics))
        json_set(a, spec, S("metrics"), metrics);
    struct json *behavior = unannotate(a, object, ANNOTATION("behavior"));
    if (behavior)
        json_set(a, spec, S("behavior"), hpa_read_behavior(a, behavior));
    struct json *status = json_make(a, object, "status", NULL);
    struct json *conditions = unannotate(a, object, ANNOTATION("conditions"));
    if (conditions)
        json_set(a, status, S("conditions"), conditions);
    struct json *current = unannotate(a, object, ANNOTATION("current-metrics"));
    if (current)
        json_set(a, status, S("currentMetrics"), hpa_read_metrics(a, current, HPA_STATUS));
    json_del(status, S("currentCPUUtilizationPercentage"));
    hooks_hpa.fill(a, object);
}

/* Without a metric the version that is stored assumes one; this one shows it. */
static void fill(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    const struct json *others =
        json_at(object, "metadata", "annotations", ANNOTATION("metrics"), NULL);
    if (!others && !json_get(spec, "targetCPUUtilizationPercentage"))
        json_set_int(a, spec, "targetCPUUtilizationPercentage", 80);
}

/* Validation looks at what will be stored, so that both versions refuse the same. */
static void validate(const struct kind_change *c, struct kind_env *env, struct field_errors *errors)
{
    struct kind_change stored = *c;
    stored.object = json_copy(env->arena, c->object);
    to_storage(env->arena, stored.object);
    hooks_hpa.validate(&stored, env, errors);
}

const struct kind_hooks hooks_hpa_v1 = {
    .fill = fill,
    .validate = validate,
    .to_storage = to_storage,
    .from_storage = from_storage,
};
