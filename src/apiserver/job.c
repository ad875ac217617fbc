/* Jobs: a selector that the server makes, and a template that runs to its end. */
#include "formats.h"
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
    if (!json_get(spec, "backoffLimit"))
        json_set_int(a, spec, "backoffLimit",
                     json_get(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
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
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    struct field_path template = { at, .key = S("template") };
    if (!json_is(selector, JSON_OBJ)) {
        field_required(errors, AT(at, "selector"), NULL);
        return;
    }
    kind_check_selector(selector, AT(at, "selector"), errors);
    if (!kind_selector_matches(selector, labels))
        field_invalid(errors, AT(AT(&template, "metadata"), "labels"), labels,
                      "the selector does not match them");
}

/* What of its pods may still change while a job waits: resources, and until it first ran where they go. */
static void check_waiting_template(const struct kind_change *c, const struct field_path *at,
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

static void check_modes(const struct json *spec, const struct field_path *at,
                        struct field_errors *errors)
{
    static const char *const modes[] = { "NonIndexed", "Indexed", NULL };
    static const char *const indexed[] = { "backoffLimitPerIndex", "successPolicy" };
    const struct json *mode = json_get(spec, "completionMode");
    if (mode && !json_text(mode).n)
        field_not_supported(errors, AT(at, "completionMode"), mode, modes);
    bool by_index = str_eqc(json_text(mode), "Indexed");
    if (by_index && !json_get(spec, "completions"))
        field_required(errors, AT(at, "completions"), "when completion mode is Indexed");
    for (size_t i = 0; i < countof(indexed); i++)
        if (json_get(spec, indexed[i]) && !by_index)
            field_invalid(errors, &(struct field_path){ at, .key = str_c(indexed[i]) },
                          json_get(spec, indexed[i]), "requires indexed completion mode");
    const struct json *name = json_get(spec, "managedBy");
    size_t slash = str_find_char(json_text(name), '/');
    if (name && (slash == SIZE_MAX || format_dns_subdomain(str_upto(json_text(name), slash))))
        field_invalid(errors, AT(at, "managedBy"), name,
                      "must be a domain-prefixed path (such as \"acme.io/foo\")");
}

static void check_spec(const struct json *spec, const struct field_path *at,
                       struct field_errors *errors)
{
    static const char *const policies[] = { "Never", "OnFailure", NULL };
    struct field_path in = { AT(at, "template"), .key = S("spec") };
    check_counts(spec, at, errors);
    check_selector(spec, at, errors);
    check_modes(spec, at, errors);
    const struct json *template = json_at(spec, "template", "spec", NULL);
    podspec_check(template, &in, (struct podspec_rules){ .template = true }, errors);
    const struct json *policy = json_get(template, "restartPolicy");
    if (str_eqc(json_text(policy), "Always"))
        field_required(errors, AT(&in, "restartPolicy"), "valid values are OnFailure and Never");
    else if (!str_eqc(json_text(policy), "Never") && !str_eqc(json_text(policy), "OnFailure"))
        field_not_supported(errors, AT(&in, "restartPolicy"), policy, policies);
}

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
                     struct field_errors *errors)
{
    static const char *const fixed[] = { "completions", "selector", "template", "completionMode" };
    const struct json *spec = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    const struct json *selector = json_get(spec, "selector");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS)
        return;
    for (int i = 0; i < (c->old ? 2 : 1); i++) /* an update is told twice */
        check_spec(spec, &at, errors);
    if (!json_bool(json_get(spec, "manualSelector"), false) && json_is(selector, JSON_OBJ) &&
        json_len(json_get(selector, "matchLabels")) != 1)
        field_invalid(errors, AT(&at, "selector"), selector, "is made by the server");
    bool waits = json_bool(json_get(old, "suspend"), false);
    if (waits)
        check_waiting_template(c, AT(&at, "template"), errors);
    for (size_t i = 0; c->old && i < countof(fixed); i++)
        if (!waits || !str_eqc(str_c(fixed[i]), "template"))
            kind_check_immutable(json_get(spec, fixed[i]), json_get(old, fixed[i]),
                                 &(struct field_path){ &at, .key = str_c(fixed[i]) }, errors);
}

const struct kind_hooks hooks_job = { .fill = fill, .prepare = prepare, .validate = validate };
