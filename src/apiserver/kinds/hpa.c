/* Autoscalers (autoscaling/v2): the metric that is assumed, the behaviour that is filled in, and what
 * is refused. How version 1 maps onto this is in hpa_v1.c. */
#include "../schema/formats.h"
#include "kind_hooks.h"

#include "../../base/quantity.h"

enum { STABILIZATION_MAX_S = 3600, PERIOD_MAX_S = 1800, UTILIZATION_ASSUMED = 80 };

/* ---- defaults */

static struct json *assumed_metrics(struct arena *a)
{
    struct json *metric = json_new_obj(a), *metrics = json_new_arr(a);
    json_set_str(a, metric, "type", S("Resource"));
    struct json *resource = json_make(a, metric, "resource", NULL);
    json_set_str(a, resource, "name", S("cpu"));
    struct json *target = json_make(a, resource, "target", NULL);
    json_set_str(a, target, "type", S("Utilization"));
    json_set_int(a, target, "averageUtilization", UTILIZATION_ASSUMED);
    json_push(a, metrics, metric);
    return metrics;
}

static void push_policy(struct arena *a, struct json *policies, const char *type, int64_t value)
{
    struct json *policy = json_new_obj(a);
    json_set_str(a, policy, "type", str_c(type));
    json_set_int(a, policy, "value", value);
    json_set_int(a, policy, "periodSeconds", 15);
    json_push(a, policies, policy);
}

static void fill_rules(struct arena *a, struct json *behavior, bool up)
{
    struct json *rules = json_make(a, behavior, up ? "scaleUp" : "scaleDown", NULL);
    if (up && !json_get(rules, "stabilizationWindowSeconds"))
        json_set_int(a, rules, "stabilizationWindowSeconds", 0);
    if (!json_get(rules, "selectPolicy"))
        json_set_str(a, rules, "selectPolicy", S("Max"));
    if (json_is(json_get(rules, "policies"), JSON_ARR))
        return; /* an empty list is refused later */
    struct json *policies = json_new_arr(a);
    if (up)
        push_policy(a, policies, "Pods", 4);
    push_policy(a, policies, "Percent", 100);
    json_set(a, rules, S("policies"), policies);
}

static void fill(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    if (!json_len(json_get(spec, "metrics")))
        json_set(a, spec, S("metrics"), assumed_metrics(a));
    struct json *behavior = json_get(spec, "behavior");
    if (json_is(behavior, JSON_OBJ)) {
        fill_rules(a, behavior, true);
        fill_rules(a, behavior, false);
    }
}

/* ---- rules */

static void check_reference(const struct json *ref, const struct field_path *at, bool grouped,
                            struct field_errors *errors)
{
    const struct json *version = json_get(ref, "apiVersion");
    str rest = json_text(version), group;
    bool two = str_cut(&rest, '/', &group) && rest.p;
    if (grouped && (!two || str_find_char(rest, '/') != SIZE_MAX))
        field_invalid(errors, AT(at, "apiVersion"), version, "must be an API group and a version");

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

static bool positive(const struct json *value)
{
    struct quantity q;
    return quantity_parse(json_text(value), &q, NULL) == 0 && !q.negative && !quantity_is_zero(&q);
}

static void check_target(const struct json *target, const struct field_path *at,
                         struct field_errors *errors)
{
    static const char *const quantities[] = { "value", "averageValue" };
    const struct json *type = json_get(target, "type");
    str word = json_text(type);
    if (!word.n)
        field_required(errors, AT(at, "type"), NULL);
    if (!str_eqc(word, "Utilization") && !str_eqc(word, "Value") && !str_eqc(word, "AverageValue"))
        field_invalid(errors, AT(at, "type"), type, "must be Utilization, Value or AverageValue");
    for (size_t i = 0; i < countof(quantities); i++) {
        const struct json *value = json_get(target, quantities[i]);
        if (value && !positive(value))
            field_invalid(errors, &(struct field_path){ at, .key = str_c(quantities[i]) }, value,
                          "must be positive");
    }
    const struct json *utilization = json_get(target, "averageUtilization");
    if (utilization && json_int(utilization, 0) < 1)
        field_invalid(errors, AT(at, "averageUtilization"), utilization, "must be greater than 0");
}

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

/* Which of the target's numbers a source of that kind takes. */
static void check_choice(str kind, const struct json *target, const struct field_path *at,
                         struct field_errors *errors)
{
    bool value = json_get(target, "value"), average = json_get(target, "averageValue");
    bool utilization = json_get(target, "averageUtilization");
    if (str_eqc(kind, "resource") || str_eqc(kind, "containerResource")) {
        if (!utilization && !average)
            field_required(errors, AT(at, "averageUtilization"),
                           "a raw value or a utilization must be set");
        if (utilization && average)
            field_forbidden(errors, AT(at, "averageValue"),
                            "a raw value and a utilization exclude each other");
    } else if (str_eqc(kind, "pods")) {
        if (!average)
            field_required(errors, AT(at, "averageValue"), "must be positive");
    } else if (!value && !average) {
        field_required(errors, AT(at, "averageValue"), "a value or an average must be set");
    } else if (str_eqc(kind, "external") && value && average) {
        field_forbidden(errors, AT(at, "value"), "a value and an average exclude each other");
    }
}

/* A resource of a container is one that containers have. */
static void check_container(const struct json *source, const struct field_path *at,
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
            check_container(source, at, errors);
    } else {
        check_metric_name(source, at, errors);
    }
    check_target(json_get(source, "target"), AT(at, "target"), errors);
    check_choice(kind, json_get(source, "target"), AT(at, "target"), errors);
}

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
            field_required(errors, &field, "the source that the type names");
    }
    for (int i = 0; !known && i < 2; i++) /* told twice */
        field_not_supported(errors, AT(at, "type"), type, types);
    for (size_t i = 0; present > 1 && i < countof(sources); i++)
        if (json_get(metric, sources[i].key) && !str_eqc(json_text(type), sources[i].type))
            field_forbidden(errors, &(struct field_path){ at, .key = str_c(sources[i].key) },
                            "a metric has one source");
}

static void check_policy(const struct json *policy, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *value = json_get(policy, "value"),
                      *period = json_get(policy, "periodSeconds");
    if (json_int(value, 0) <= 0)
        field_invalid(errors, AT(at, "value"), value, "must be greater than zero");
    if (json_int(period, 0) <= 0)
        field_invalid(errors, AT(at, "periodSeconds"), period, "must be greater than zero");
    if (json_int(period, 0) > PERIOD_MAX_S)
        field_invalid(errors, AT(at, "periodSeconds"), period, "must be at most %d", PERIOD_MAX_S);
}

static void check_rules(const struct json *rules, const struct field_path *at,
                        struct field_errors *errors)
{
    if (!json_is(rules, JSON_OBJ))
        return;
    const struct json *window = json_get(rules, "stabilizationWindowSeconds");
    const struct json *policies = json_get(rules, "policies");
    const struct json *tolerance = json_get(rules, "tolerance");
    if (json_int(window, 0) < 0 || json_int(window, 0) > STABILIZATION_MAX_S)
        field_invalid(errors, AT(at, "stabilizationWindowSeconds"), window,
                      "must be between 0 and %d", STABILIZATION_MAX_S);
    if (!json_len(policies))
        field_required(errors, AT(at, "policies"), "at least one");
    for (uint32_t i = 0; i < json_len(policies); i++)
        check_policy(policies->items[i], AT_INDEX(AT(at, "policies"), i), errors);
    if (str_starts(json_text(tolerance), S("-")))
        field_invalid(errors, AT(at, "tolerance"), tolerance, "must not be negative");
}

/* Only a metric that does not come from the pods can bring them back from zero. */
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
    field_forbidden(errors, AT(at, "metrics"),
                    "scaling to zero takes an Object or External metric");
}

static void check_bounds(const struct json *spec, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *min = json_get(spec, "minReplicas"), *max = json_get(spec, "maxReplicas");
    if (json_int(min, 0) < 0)
        field_invalid(errors, AT(at, "minReplicas"), min, "must be greater than or equal to 0");
    if (!json_int(max, 0))
        field_required(errors, AT(at, "maxReplicas"), NULL);
    else if (json_int(max, 0) < 0)
        field_invalid(errors, AT(at, "maxReplicas"), max, "must be greater than or equal to 1");
    if (min && json_int(max, 0) < json_int(min, 0))
        field_invalid(errors, AT(at, "maxReplicas"), max,
                      "must be greater than or equal to minReplicas");
}

static void check_counts(const struct json *status, struct field_errors *errors)
{
    static const char *const counts[] = { "currentReplicas", "desiredReplicas" };
    struct field_path at = { NULL, .key = S("status") };
    for (size_t i = 0; i < countof(counts); i++)
        if (json_int(json_get(status, counts[i]), 0) < 0)
            field_invalid(errors, &(struct field_path){ &at, .key = str_c(counts[i]) },
                          json_get(status, counts[i]), "must be greater than or equal to 0");
}

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
                     struct field_errors *errors)
{
    const struct json *spec = json_get(c->object, "spec"), *metrics = json_get(spec, "metrics");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS) {
        check_counts(json_get(c->object, "status"), errors);
        return;
    }
    check_bounds(spec, &at, errors);
    check_reference(json_get(spec, "scaleTargetRef"), AT(&at, "scaleTargetRef"), true, errors);
    for (uint32_t i = 0; i < json_len(metrics); i++)
        check_metric(metrics->items[i], AT_INDEX(AT(&at, "metrics"), i), errors);
    check_scale_to_zero(spec, &at, errors);
    const struct json *behavior = json_get(spec, "behavior");
    struct field_path in = { &at, .key = S("behavior") };
    check_rules(json_get(behavior, "scaleUp"), AT(&in, "scaleUp"), errors);
    check_rules(json_get(behavior, "scaleDown"), AT(&in, "scaleDown"), errors);
}

const struct kind_hooks hooks_hpa = { .fill = fill, .validate = validate };
