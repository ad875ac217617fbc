/* Jobs: a selector that the server generates, and a pod template that runs to completion.
 *
 * Counts that must not be negative, enums and required fields are in apps.types. The rules here span
 * fields: completion modes, failure and success policies, and what may change after creation. While a job
 * is suspended its template may still change in a few ways, and an indexed job may be resized if
 * completions and parallelism change together. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* Labels of the template become those of the job; the defaults here depend on other fields. */
static void fill_job(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    podspec_fill(a, json_at(spec, "template", "spec", NULL), false);
    struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    struct json *metadata = json_make(a, object, "metadata", NULL);
    if (json_len(labels) && !json_len(json_get(metadata, "labels")))
        json_set(a, metadata, S("labels"), labels); /* shared: prepare_job() adds to both */
    /* completions unset and parallelism > 1 is a work queue; otherwise the default is one */
    if (!json_get(spec, "completions") && json_int(json_get(spec, "parallelism"), 1) == 1)
        json_set_int(a, spec, "completions", 1);
    if (!json_get(spec, "backoffLimit"))
        json_set_int(a, spec, "backoffLimit",
                     json_get(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
    if (!json_get(spec, "podReplacementPolicy"))
        json_set_str(a, spec, "podReplacementPolicy",
                     json_get(spec, "podFailurePolicy") ? S("Failed") : S("TerminatingOrFailed"));
}

/* Keeps a label that the client set. */
static void add_label(struct arena *a, struct json *labels, const char *key, str value)
{
    if (!json_get(labels, key))
        json_set_str(a, labels, key, value);
}

/* Generates the selector: pods of a job carry its uid as a label. */
static void prepare_job(const struct kind_change *c, struct kind_env *env,
                        struct kind_fault *fault UNUSED)
{
    struct arena *a = env->arena;
    if (c->old || json_bool(json_at(c->object, "spec", "manualSelector", NULL), false))
        return;
    str uid = json_text(json_at(c->object, "metadata", "uid", NULL));
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    struct json *labels = json_make(a, c->object, "spec", "template", "metadata", "labels", NULL);
    add_label(a, labels, "batch.kubernetes.io/job-name", name);
    add_label(a, labels, "batch.kubernetes.io/controller-uid", uid);
    add_label(a, labels, "job-name", name);
    add_label(a, labels, "controller-uid", uid);
    struct json *match = json_make(a, c->object, "spec", "selector", "matchLabels", NULL);
    add_label(a, match, "batch.kubernetes.io/controller-uid", uid);
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    struct json *own = json_get(metadata, "labels");
    if (own == labels || (!json_len(own) && !format_label_value(name)))
        json_set(a, metadata, S("labels"), json_copy(a, labels));
}

/* The selector must exist and match the labels of the template; a selector that matches nothing
 * would never find the pods of the job. */
static void check_selector(const struct json *spec, const struct field_path *at,
                           struct field_errors *errors)
{
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    struct field_path template = { at, .key = S("template") };
    if (!json_is(selector, JSON_OBJ))
        field_required(errors, AT(at, "selector"), NULL);
    else
        kind_check_selector(selector, AT(at, "selector"), errors);
    if (!json_is(selector, JSON_OBJ) || !kind_selector_matches(selector, labels))
        field_invalid(errors, AT(AT(&template, "metadata"), "labels"), labels,
                      "`selector` does not match template `labels`");
}

/* While a job is suspended, the resources of its template may change, and until its first start
 * also the scheduling. */
static void check_suspended_template(const struct kind_change *c, const struct field_path *at,
                                     struct field_errors *errors)
{
    static const char *const lists[] = { "containers", "initContainers" }, *const places[] = {
        "nodeSelector", "tolerations", "schedulingGates"
    };
    struct arena *a = errors->arena;
    struct json *new = json_copy(a, json_at(c->object, "spec", "template", "spec", NULL)),
                *old = json_copy(a, json_at(c->old, "spec", "template", "spec", NULL));
    for (int side = 0; side < 2; side++) {
        struct json *spec = side ? old : new, *affinity = json_get(spec, "affinity");
        for (size_t i = 0; i < countof(lists); i++)
            for (size_t j = 0; j < json_len(json_get(spec, lists[i])); j++)
                json_del(json_item(json_get(spec, lists[i]), j), S("resources"));
        if (json_at(c->old, "status", "startTime", NULL))
            continue;
        for (size_t i = 0; i < countof(places); i++)
            json_del(spec, str_c(places[i]));
        json_del(affinity, S("nodeAffinity"));
        if (affinity && !json_len(affinity))
            json_del(spec, S("affinity"));
    }
    kind_check_immutable(new, old, AT(at, "spec"), errors);
}

/* Fields that only indexed jobs may have, and managedBy. */
static void check_completion_mode(const struct json *spec, const struct field_path *at,
                                  struct field_errors *errors)
{
    static const char *const indexed[] = { "successPolicy", "backoffLimitPerIndex",
                                           "maxFailedIndexes" };
    const struct json *completions = json_get(spec, "completions");
    const struct json *failed = json_get(spec, "maxFailedIndexes");
    str mode = json_text(json_get(spec, "completionMode"));
    bool by_index = str_eqc(mode, "Indexed");
    if (by_index && !completions)
        field_required(errors, AT(at, "completions"), "when completion mode is Indexed");
    if (by_index && failed && json_int(failed, 0) > json_int(completions, 0))
        field_invalid(errors, AT(at, "maxFailedIndexes"), failed,
                      "must be less than or equal to completions");
    if (failed && !json_get(spec, "backoffLimitPerIndex"))
        field_required(errors, AT(at, "backoffLimitPerIndex"),
                       "when maxFailedIndexes is specified");
    for (size_t i = 0; i < (str_eqc(mode, "NonIndexed") ? countof(indexed) : !by_index); i++)
        if (json_get(spec, indexed[i]))
            field_invalid(errors, &(struct field_path){ at, .key = str_c(indexed[i]) },
                          json_get(spec, indexed[i]), "requires indexed completion mode");
    const struct json *name = json_get(spec, "managedBy");
    size_t slash = str_find_char(json_text(name), '/');
    if (name && !json_text(name).n)
        field_required(errors, AT(at, "managedBy"), NULL);
    else if (name && (slash == SIZE_MAX || format_dns_subdomain(str_upto(json_text(name), slash))))
        field_invalid(errors, AT(at, "managedBy"), name,
                      "must be a domain-prefixed path (such as \"acme.io/foo\")");
}

/* Names of containers and init containers. */
static struct seen container_names(struct arena *a, const struct json *pod)
{
    struct seen names = seen_list(a, json_get(pod, "containers"), "name");
    const struct json *more = json_get(pod, "initContainers");
    for (uint32_t i = 0; i < json_len(more); i++)
        seen_value(&names, json_get(more->items[i], "name"), i);
    return names;
}

/* onExitCodes: ordered codes of a container that exists. */
static void check_exit_codes(const struct json *codes, const struct seen *containers,
                             const struct field_path *at, struct field_errors *errors)
{
    const struct json *name = json_get(codes, "containerName"), *values = json_get(codes, "values");
    bool in = str_eqc(json_text(json_get(codes, "operator")), "In");
    struct field_path list = { at, .key = S("values") };
    if (name && !seen_lookup(containers, name))
        field_invalid(errors, AT(at, "containerName"), name,
                      "must be one of the container or initContainer names in the pod template");
    if (!json_len(values))
        field_invalid(errors, &list, values, "at least one value is required");
    bool ordered = true;
    for (uint32_t i = 0; i < json_len(values); i++) {
        int64_t value = json_int(values->items[i], 0);
        if (in && !value)
            field_invalid(errors, AT_INDEX(&list, i), values->items[i],
                          "must not be 0 for the In operator");
        ordered = ordered && (!i || json_int(values->items[i - 1], 0) <= value);
    }
    if (!ordered)
        field_invalid(errors, &list, values, "must be ordered");
}

/* How many indexes a list such as "0-2,7" names; -1 if it is malformed, not ascending or reaches
 * `end`. */
static int64_t count_indexes(str list, int64_t end)
{
    int64_t n = 0, last = -1;
    while (list.n) {
        str range = str_upto(list, str_find_char(list, ','));
        size_t dash = str_find_char(range, '-');
        int64_t from, to;
        if (str_to_i64(str_upto(range, dash), &from) < 0 ||
            str_to_i64(dash < range.n ? str_from(range, dash + 1) : range, &to) < 0 ||
            from <= last || to < from || (dash < range.n && to == from) || to >= end)
            return -1;
        n += to - from + 1;
        last = to;
        list = str_from(list, range.n + (range.n < list.n));
    }
    return n;
}

/* The rules of successPolicy, which refer to completions. */
static void check_success_policy(const struct json *spec, const struct field_path *at,
                                 struct field_errors *errors)
{
    const struct json *rules = json_at(spec, "successPolicy", "rules", NULL);
    int64_t completions = json_int(json_get(spec, "completions"), 0);
    if (json_get(spec, "successPolicy") && !json_len(rules))
        field_required(errors, AT(AT(at, "successPolicy"), "rules"), NULL);
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path rule = { AT(AT(at, "successPolicy"), "rules"), .index = i,
                                   .how = FIELD_INDEX };
        const struct json *list = json_get(rules->items[i], "succeededIndexes");
        const struct json *count = json_get(rules->items[i], "succeededCount");
        int64_t named = list ? count_indexes(json_text(list), completions) : completions;
        struct field_path counted = { &rule, .key = S("succeededCount") };
        if (!list && !count)
            field_required(errors, &rule,
                           "at least one of succeededCount or succeededIndexes must be specified");
        if (named < 0)
            field_invalid(
                errors, AT(&rule, "succeededIndexes"), list,
                "error parsing succeededIndexes: must be ascending indexes or ranges, such as "
                "\"0-2,7\", below completions");
        if (json_int(count, 0) < 0)
            field_invalid(errors, &counted, count, "must be greater than or equal to 0");
        if (json_int(count, 0) > completions)
            field_invalid(errors, &counted, count, "must be less than or equal to completions");
        if (list && json_int(count, 0) > (named < 0 ? 0 : named))
            field_invalid(errors, &counted, count,
                          "must be less than or equal to the number of succeededIndexes");
    }
}

/* The rules of podFailurePolicy, which refer to containers and the restart policy of the
 * template. */
static void check_failure_policy(const struct json *spec, const struct field_path *at,
                                 struct field_errors *errors)
{
    const struct json *pod = json_at(spec, "template", "spec", NULL);
    const struct json *rules = json_at(spec, "podFailurePolicy", "rules", NULL);
    struct field_path in = { AT(at, "podFailurePolicy"), .key = S("rules") };
    const struct json *policy = json_get(pod, "restartPolicy");
    if (json_get(spec, "podFailurePolicy") && str_eqc(json_text(policy), "OnFailure"))
        field_invalid(errors, AT(AT(AT(at, "template"), "spec"), "restartPolicy"), policy,
                      "must be Never when podFailurePolicy is specified");
    const struct json *replace = json_get(spec, "podReplacementPolicy");
    static const char *const failed[] = { "Failed", NULL };
    if (json_get(spec, "podFailurePolicy") && str_starts(json_text(replace), S("Terminating")))
        field_not_supported(errors, AT(at, "podReplacementPolicy"), replace, failed);
    struct seen containers = container_names(errors->arena, pod);
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path rule = { &in, .index = i, .how = FIELD_INDEX };
        const struct json *action = json_get(rules->items[i], "action");
        const struct json *codes = json_get(rules->items[i], "onExitCodes");
        const struct json *conditions = json_get(rules->items[i], "onPodConditions");
        if (str_eqc(json_text(action), "FailIndex") && !json_get(spec, "backoffLimitPerIndex"))
            field_invalid(errors, AT(&rule, "action"), action,
                          "requires the backoffLimitPerIndex to be set");
        if (codes)
            check_exit_codes(codes, &containers, AT(&rule, "onExitCodes"), errors);
        if (!codes == !json_len(conditions))
            field_invalid(errors, &rule, rules->items[i],
                          "specifying one of OnExitCodes and OnPodConditions is required");
    }
}

/* Everything about the spec that does not depend on the old job. */
static void check_spec(const struct json *spec, const struct field_path *at,
                       struct field_errors *errors)
{
    static const char *const policies[] = { "Never", "OnFailure", NULL };
    struct field_path in = { AT(at, "template"), .key = S("spec") };
    check_selector(spec, at, errors);
    check_completion_mode(spec, at, errors);
    check_failure_policy(spec, at, errors);
    if (str_eqc(json_text(json_get(spec, "completionMode")), "Indexed"))
        check_success_policy(spec, at, errors);
    const struct json *template = json_at(spec, "template", "spec", NULL);
    const struct json *metadata = json_at(spec, "template", "metadata", NULL);
    kind_check_labels(json_get(metadata, "labels"), AT(in.up, "labels"), errors);
    kind_check_annotations(json_get(metadata, "annotations"), AT(in.up, "annotations"), errors);
    podspec_check(template, &in, (struct podspec_rules){ .template = true }, errors);
    const struct json *policy = json_get(template, "restartPolicy");
    if (str_eqc(json_text(policy), "Always"))
        field_required(errors, AT(&in, "restartPolicy"), "valid values are OnFailure and Never");
    else if (!str_eqc(json_text(policy), "Never") && !str_eqc(json_text(policy), "OnFailure"))
        field_not_supported(errors, AT(&in, "restartPolicy"), policy, policies);
}

/* What is always immutable is declared in apps.types; here is what depends on the state of the job. */
static void validate_job(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    const struct json *spec = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    const struct json *selector = json_get(spec, "selector");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS) {
        kind_check_job_status(c, errors);
        return;
    }
    for (int i = 0; i < (c->old ? 2 : 1); i++) /* kube-apiserver reports updates twice */
        check_spec(spec, &at, errors);
    if (!json_bool(json_get(spec, "manualSelector"), false) && json_is(selector, JSON_OBJ) &&
        json_len(json_get(selector, "matchLabels")) != 1)
        field_invalid(errors, AT(&at, "selector"), selector, "`selector` not auto-generated");
    bool suspended = json_bool(json_get(old, "suspend"), false);
    if (suspended)
        check_suspended_template(c, AT(&at, "template"), errors);
    bool elastic = str_eqc(json_text(json_get(spec, "completionMode")), "Indexed") &&
                   json_eq(json_get(spec, "completions"), json_get(spec, "parallelism"));
    if (c->old && !suspended)
        kind_check_immutable(json_get(spec, "template"), json_get(old, "template"),
                             AT(&at, "template"), errors);
    if (c->old && !elastic)
        kind_check_immutable(json_get(spec, "completions"), json_get(old, "completions"),
                             AT(&at, "completions"), errors);
}

const struct kind_hooks kind_hooks_job = {
    .fill = fill_job, .prepare = prepare_job, .validate = validate_job, .rules_twice = true
};
