/* Jobs: a selector that the server makes, and a template that runs to its end. */
#include "kind_hooks.h"

static void fill(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    podspec_fill(a, json_at(spec, "template", "spec", NULL), false);
    struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    struct json *metadata = json_make(a, object, "metadata", NULL);
    if (json_len(labels) && !json_len(json_get(metadata, "labels")))
        json_set(a, metadata, S("labels"), labels); /* the same: what one gets, both have */
    /* a work queue has neither number of completions; "one" is what most mean */
    if (!json_get(spec, "completions") && json_int(json_get(spec, "parallelism"), 1) == 1)
        json_set_int(a, spec, "completions", 1);
    if (!json_get(spec, "podReplacementPolicy"))
        json_set_str(a, spec, "podReplacementPolicy",
                     json_get(spec, "podFailurePolicy") ? S("Failed") : S("TerminatingOrFailed"));
}

static void label(struct arena *a, struct json *labels, const char *key, str value)
{
    if (!json_get(labels, key))
        json_set_str(a, labels, key, value);
}

/* Pods of a job carry its uid, and that is how it finds them. */
static void prepare(const struct kind_change *c, struct kind_env *env,
                    struct kind_fault *fault UNUSED)
{
    struct arena *a = env->arena;
    if (c->old || json_bool(json_at(c->object, "spec", "manualSelector", NULL), false))
        return;
    str uid = json_text(json_at(c->object, "metadata", "uid", NULL));
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    struct json *labels = json_make(a, c->object, "spec", "template", "metadata", "labels", NULL);
    label(a, labels, "batch.kubernetes.io/job-name", name);
    label(a, labels, "batch.kubernetes.io/controller-uid", uid);
    label(a, labels, "job-name", name);
    label(a, labels, "controller-uid", uid);
    struct json *match = json_make(a, c->object, "spec", "selector", "matchLabels", NULL);
    label(a, match, "batch.kubernetes.io/controller-uid", uid);
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    struct json *own = json_get(metadata, "labels");
    if (!json_len(own) || own == labels)
        json_set(a, metadata, S("labels"), json_copy(a, labels));
}

static void check_counts(const struct json *spec, const struct field_path *at,
                         struct field_errors *errors)
{
    static const char *const counts[] = { "parallelism", "completions", "activeDeadlineSeconds",
                                          "backoffLimit", "ttlSecondsAfterFinished" };
    for (size_t i = 0; i < countof(counts); i++) {
        const struct json *value = json_get(spec, counts[i]);
        if (json_int(value, 0) < 0)
            field_invalid(errors, &(struct field_path){ at, .key = str_c(counts[i]) }, value,
                          "must be greater than or equal to 0");
    }
}

static void check_selector(const struct json *spec, const struct field_path *at,
                           struct field_errors *errors)
{
    bool manual = json_bool(json_get(spec, "manualSelector"), false);
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    struct field_path template = { at, .key = S("template") };
    if (!json_is(selector, JSON_OBJ)) {
        field_required(errors, AT(at, "selector"), NULL);
        return;
    }
    kind_check_selector(selector, AT(at, "selector"), errors);
    if (!manual && json_len(json_get(selector, "matchLabels")) != 1)
        field_invalid(errors, AT(at, "selector"), selector, "is made by the server");
    if (!kind_selector_matches(selector, labels))
        field_invalid(errors, AT(AT(&template, "metadata"), "labels"), labels,
                      "the selector does not match them");
}

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
                     struct field_errors *errors)
{
    static const char *const fixed[] = { "completions", "selector", "template", "completionMode" };
    static const char *const policies[] = { "Never", "OnFailure", NULL };
    const struct json *spec = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    struct field_path at = { NULL, .key = S("spec") };
    struct field_path in = { AT(&at, "template"), .key = S("spec") };
    if (c->sub == KIND_STATUS)
        return;
    check_counts(spec, &at, errors);
    check_selector(spec, &at, errors);
    static const char *const modes[] = { "NonIndexed", "Indexed", NULL };
    const struct json *mode = json_get(spec, "completionMode");
    if (mode && !json_text(mode).n)
        field_not_supported(errors, AT(&at, "completionMode"), mode, modes);
    bool by_index = str_eqc(json_text(json_get(spec, "completionMode")), "Indexed");
    if (by_index && !json_get(spec, "completions"))
        field_required(errors, AT(&at, "completions"), "when completion mode is Indexed");
    static const char *const indexed[] = { "backoffLimitPerIndex", "successPolicy" };
    for (size_t i = 0; i < countof(indexed); i++)
        if (json_get(spec, indexed[i]) && !by_index)
            field_invalid(errors, &(struct field_path){ &at, .key = str_c(indexed[i]) },
                          json_get(spec, indexed[i]), "requires indexed completion mode");
    const struct json *template = json_at(spec, "template", "spec", NULL);
    podspec_check(template, &in, (struct podspec_rules){ .template = true }, errors);
    const struct json *policy = json_get(template, "restartPolicy");
    if (str_eqc(json_text(policy), "Always"))
        field_required(errors, AT(&in, "restartPolicy"), "valid values are OnFailure and Never");
    else if (!str_eqc(json_text(policy), "Never") && !str_eqc(json_text(policy), "OnFailure"))
        field_not_supported(errors, AT(&in, "restartPolicy"), policy, policies);
    for (size_t i = 0; c->old && i < countof(fixed); i++)
        kind_check_immutable(json_get(spec, fixed[i]), json_get(old, fixed[i]),
                             &(struct field_path){ &at, .key = str_c(fixed[i]) }, errors);
}

const struct kind_hooks hooks_job = { .fill = fill, .prepare = prepare, .validate = validate };
