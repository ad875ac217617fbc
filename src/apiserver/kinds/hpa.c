/* HorizontalPodAutoscalers (autoscaling/v2): defaults and validation. hpa_v1.c converts version 1.
 *
 * Defaults that do not depend on other fields are in autoscaling.types. Here are the two that do: an
 * autoscaler without metrics gets 80 % CPU utilization, and a `behavior` gets the policies of the directions
 * that it does not configure. The rules here span fields: a metric's type names exactly one source, the
 * source decides which numbers its target may have, and scaling to zero needs a metric that does not
 * come from the pods. */
#include "../schema/format.h"
#include "kind_hooks.h"

#include "../../base/quantity.h"

enum { DEFAULT_UTILIZATION = 80 };

/* ---- defaults */

/* 80 % average CPU utilization, relative to the requests. */
static struct json *default_metrics(struct arena *a)
{
    struct json *metric = json_new_obj(a), *metrics = json_new_arr(a);
    json_set_str(a, metric, "type", S("Resource"));
    struct json *resource = json_make(a, metric, "resource", NULL);
    json_set_str(a, resource, "name", S("cpu"));
    struct json *target = json_make(a, resource, "target", NULL);
    json_set_str(a, target, "type", S("Utilization"));
    json_set_int(a, target, "averageUtilization", DEFAULT_UTILIZATION);
    json_push(a, metrics, metric);
    return metrics;
}

/* A policy for 15 seconds, the default period. */
static void push_policy(struct arena *a, struct json *policies, const char *type, int64_t value)
{
    struct json *policy = json_new_obj(a);
    json_set_str(a, policy, "type", str_c(type));
    json_set_int(a, policy, "value", value);
    json_set_int(a, policy, "periodSeconds", 15);
    json_push(a, policies, policy);
}

/* Completes the rules of one direction: scaling up by 4 pods or 100 %, down by 100 %, per 15 s. */
static void fill_scaling_rules(struct arena *a, struct json *behavior, bool up)
{
    struct json *rules = json_make(a, behavior, up ? "scaleUp" : "scaleDown", NULL);
    if (up && !json_get(rules, "stabilizationWindowSeconds"))
        json_set_int(a, rules, "stabilizationWindowSeconds", 0);
    if (!json_get(rules, "selectPolicy"))
        json_set_str(a, rules, "selectPolicy", S("Max"));
    if (json_is(json_get(rules, "policies"), JSON_ARR))
        return; /* an empty list is kept, and refused by validation */
    struct json *policies = json_new_arr(a);
    if (up)
        push_policy(a, policies, "Pods", 4);
    push_policy(a, policies, "Percent", 100);
    json_set(a, rules, S("policies"), policies);
}

/* Runs on every decode, so it must not change what it has already set. */
static void fill_hpa(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    if (!json_len(json_get(spec, "metrics")))
        json_set(a, spec, S("metrics"), default_metrics(a));
    struct json *behavior = json_get(spec, "behavior");
    if (json_is(behavior, JSON_OBJ)) {
        fill_scaling_rules(a, behavior, true);
        fill_scaling_rules(a, behavior, false);
    }
}

/* ---- rules */

/* `grouped`: the apiVersion must contain a group, as the scale subresource needs one. */
static void check_reference(const struct json *ref, const struct field_path *at, bool grouped,
                            struct field_errors *errors)
{
    const struct json *version = json_get(ref, "apiVersion");
    str rest = json_text(version), group;
    bool two = str_cut(&rest, '/', &group) && rest.p;
    if (grouped && (!two || str_find_char(rest, '/') != SIZE_MAX))
        field_invalid(errors, AT(at, "apiVersion"), version,
                      "must specify an API group and version");

    static const char *const needed[] = { "kind", "name" };
    for (size_t i = 0; i < countof(needed); i++) {
        const struct json *value = json_get(ref, needed[i]);
        struct field_path field = { at, .key = str_c(needed[i]) };
        if (!json_text(value).n)
            field_required(errors, &field, NULL);
        else if (format_path_segment(json_text(value)))
            field_invalid(errors, &field, value, "%s", format_path_segment(json_text(value)));
    }
}

/* True for a quantity above zero. */
static bool is_positive(const struct json *value)
{
    struct quantity q;
    return quantity_parse(json_text(value), &q, NULL) == 0 && !q.negative && !quantity_is_zero(&q);
}

/* The values of a target, each by itself; check_target_values() decides which may be set. */
static void check_target(const struct json *target, const struct field_path *at,
                         struct field_errors *errors)
{
    static const char *const quantities[] = { "value", "averageValue" };
    const struct json *type = json_get(target, "type");
    str word = json_text(type);
    if (!word.n)
        field_required(errors, AT(at, "type"), NULL);
    if (!str_eqc(word, "Utilization") && !str_eqc(word, "Value") && !str_eqc(word, "AverageValue"))
        field_invalid(errors, AT(at, "type"), type,
                      "must be either Utilization, Value, or AverageValue");
    for (size_t i = 0; i < countof(quantities); i++) {
        const struct json *value = json_get(target, quantities[i]);
        if (value && !is_positive(value))
            field_invalid(errors, &(struct field_path){ at, .key = str_c(quantities[i]) }, value,
                          "must be positive");
    }
    const struct json *utilization = json_get(target, "averageUtilization");
    if (utilization && json_int(utilization, 0) < 1)
        field_invalid(errors, AT(at, "averageUtilization"), utilization, "must be greater than 0");
}

/* Metrics of objects, pods and external systems are named. */
static void check_metric_name(const struct json *source, const struct field_path *at,
                              struct field_errors *errors)
{
    const struct json *name = json_at(source, "metric", "name", NULL);
    struct field_path field = { AT(at, "metric"), .key = S("name") };
    if (!json_text(name).n)
        field_required(errors, &field, NULL);
    else if (format_path_segment(json_text(name)))
        field_invalid(errors, &field, name, "%s", format_path_segment(json_text(name)));
}

/* Which numbers of the target a source of this kind requires and allows. */
static void check_target_values(str kind, const struct json *target, const struct field_path *at,
                                struct field_errors *errors)
{
    bool value = json_get(target, "value"), average = json_get(target, "averageValue");
    bool utilization = json_get(target, "averageUtilization");
    if (str_eqc(kind, "resource") || str_eqc(kind, "containerResource")) {
        if (!utilization && !average)
            field_required(errors, AT(at, "averageUtilization"),
                           "must set either a target raw value or a target utilization");
        if (utilization && average)
            field_forbidden(errors, AT(at, "averageValue"),
                            "may not set both a target raw value and a target utilization");
    } else if (str_eqc(kind, "pods")) {
        if (!average)
            field_required(errors, AT(at, "averageValue"),
                           "must specify a positive target averageValue");
    } else if (!value && !average) {
        field_required(errors, AT(at, "averageValue"),
                       "must set either a target value or averageValue");
    } else if (str_eqc(kind, "external") && value && average) {
        field_forbidden(errors, AT(at, "value"),
                        "may not set both a target value and averageValue");
    }
}

/* The resource must be one that containers have, and the container must be named. */
static void check_container_resource(const struct json *source, const struct field_path *at,
                                     struct field_errors *errors)
{
    const struct json *name = json_get(source, "name"), *container = json_get(source, "container");
    if (json_text(name).n)
        podspec_check_resource_name(json_text(name), AT(at, "name"), errors);
    if (!json_text(container).n)
        field_required(errors, AT(at, "container"), NULL);
    else if (format_dns_label(json_text(container)))
        field_invalid(errors, AT(at, "container"), container, "%s",
                      format_dns_label(json_text(container)));
}

/* Checks one source; resources have a name, all others a metric. */
static void check_source(str kind, const struct json *source, const struct field_path *at,
                         struct field_errors *errors)
{
    if (str_eqc(kind, "object"))
        check_reference(json_get(source, "describedObject"), AT(at, "describedObject"), false,
                        errors);
    if (str_eqc(kind, "resource") || str_eqc(kind, "containerResource")) {
        if (!json_text(json_get(source, "name")).n)
            field_required(errors, AT(at, "name"), NULL);
        if (str_eqc(kind, "containerResource"))
            check_container_resource(source, at, errors);
    } else {
        check_metric_name(source, at, errors);
    }
    check_target(json_get(source, "target"), AT(at, "target"), errors);
    check_target_values(kind, json_get(source, "target"), AT(at, "target"), errors);
}

/* The type names the source that must be set; any other is forbidden. */
static void check_metric(const struct json *metric, const struct field_path *at,
                         struct field_errors *errors)
{
    static const struct {
        const char *type, *key;
    } sources[] = {
        { "Object", "object" },
        { "External", "external" },
        { "Pods", "pods" },
        { "Resource", "resource" },
        { "ContainerResource", "containerResource" },
    };
    static const char *const types[] = { "ContainerResource", "External", "Object", "Pods",
                                         "Resource",          NULL };
    const struct json *type = json_get(metric, "type");
    size_t present = 0, known = 0;
    if (!json_text(type).n)
        field_required(errors, AT(at, "type"), NULL);
    for (size_t i = 0; i < countof(sources); i++) {
        const struct json *source = json_get(metric, sources[i].key);
        struct field_path field = { at, .key = str_c(sources[i].key) };
        bool named = str_eqc(json_text(type), sources[i].type);
        known += named;
        if (source && !present++)
            check_source(field.key, source, &field, errors);
        if (named && !source)
            field_required(errors, &field, "must populate information for the given metric source");
    }
    for (int i = 0; !known && i < 2; i++) /* kube-apiserver reports it twice */
        field_not_supported(errors, AT(at, "type"), type, types);
    for (size_t i = 0; present > 1 && i < countof(sources); i++)
        if (json_get(metric, sources[i].key) && !str_eqc(json_text(type), sources[i].type))
            field_forbidden(errors, &(struct field_path){ at, .key = str_c(sources[i].key) },
                            "must populate the given metric source only");
}

/* Only a metric that does not come from the pods can scale up from zero. */
static void check_scale_to_zero(const struct json *spec, const struct field_path *at,
                                struct field_errors *errors)
{
    const struct json *metrics = json_get(spec, "metrics");
    if (json_int(json_get(spec, "minReplicas"), 1) != 0)
        return;
    for (uint32_t i = 0; i < json_len(metrics); i++) {
        str type = json_text(json_get(metrics->items[i], "type"));
        if (str_eqc(type, "Object") || str_eqc(type, "External"))
            return;
    }
    field_forbidden(
        errors, AT(at, "metrics"),
        "must specify at least one Object or External metric to support scaling to zero "
        "replicas");
}

/* maxReplicas must not be below minReplicas. */
static void check_bounds(const struct json *spec, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *min = json_get(spec, "minReplicas"), *max = json_get(spec, "maxReplicas");
    if (min && json_int(max, 0) < json_int(min, 0))
        field_invalid(errors, AT(at, "maxReplicas"), max,
                      "must be greater than or equal to `minReplicas`");
}

/* The status has field-local rules only. */
static void validate_hpa(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    const struct json *spec = json_get(c->object, "spec"), *metrics = json_get(spec, "metrics");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS)
        return;
    check_bounds(spec, &at, errors);
    check_reference(json_get(spec, "scaleTargetRef"), AT(&at, "scaleTargetRef"), true, errors);
    for (uint32_t i = 0; i < json_len(metrics); i++)
        check_metric(metrics->items[i], AT_INDEX(AT(&at, "metrics"), i), errors);
    check_scale_to_zero(spec, &at, errors);
}

const struct kind_hooks kind_hooks_hpa = { .fill = fill_hpa, .validate = validate_hpa };
