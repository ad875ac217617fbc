/* Deployments, ReplicaSets, StatefulSets and DaemonSets: kinds that create pods from a template and find them
 * by a selector. Jobs are in job.c.
 *
 *                 selector      template       rollout                            after creation
 *   Deployment    immutable     mutable        Recreate or RollingUpdate          any change
 *   ReplicaSet    immutable     mutable        none                               any change
 *   StatefulSet   immutable     mutable        OnDelete or RollingUpdate          a few fields only
 *   DaemonSet     immutable     mutable        OnDelete or RollingUpdate          any change
 *
 * All four share check_workload() and check_status(). Bounds and immutable fields are declared in
 * types/apps.types. */
#include "../schema/format.h"
#include "kind_hooks.h"

static struct json *template_spec(struct json *object)
{
    return json_at(object, "spec", "template", "spec", NULL);
}

static void fill_template(struct arena *a, struct json *object)
{
    podspec_fill(a, template_spec(object), false);
}

/* ---- rules that all four share */

/* The pods of a StatefulSet see its claims as volumes, so mounts may refer to them. Returns a
 * copy of the spec that has them. */
static const struct json *add_claim_volumes(struct arena *a, const struct json *pod,
                                            const struct json *claims)
{
    if (!json_len(claims) || !json_is(pod, JSON_OBJ))
        return pod;
    struct json *spec = json_copy(a, pod), *volumes = json_new_arr(a);
    const struct json *own = json_get(pod, "volumes");
    struct seen claimed = seen_new(a, 1);
    for (uint32_t i = 0; i < json_len(claims); i++) {
        struct json *volume = json_new_obj(a);
        str name = json_text(json_at(claims->items[i], "metadata", "name", NULL));
        json_set_str(a, volume, "name", name);
        json_set_str(a, json_make(a, volume, "persistentVolumeClaim", NULL), "claimName", name);
        if (!seen_value(&claimed, json_get(volume, "name"), i))
            json_push(a, volumes, volume);
    }
    for (uint32_t i = 0; i < json_len(own); i++) /* a claim replaces a volume of the same name */
        if (!seen_lookup(&claimed, json_get(own->items[i], "name")))
            json_push(a, volumes, own->items[i]);
    json_set(a, spec, S("volumes"), volumes);
    return spec;
}

/* Metadata and spec of the pod template. */
static void check_template(const struct json *spec, const struct field_path *at,
                           struct podspec_rules rules, struct field_errors *errors)
{
    const struct json *template = json_get(spec, "template");
    struct field_path in = { at, .key = S("template") };
    const struct json *metadata = json_get(template, "metadata");
    kind_check_labels(json_get(metadata, "labels"), AT(&in, "labels"), errors);
    kind_check_annotations(json_get(metadata, "annotations"), AT(&in, "annotations"), errors);
    podspec_check(add_claim_volumes(errors->arena, json_get(template, "spec"),
                                    json_get(spec, "volumeClaimTemplates")),
                  AT(&in, "spec"), rules, errors);
    if (json_at(template, "spec", "activeDeadlineSeconds", NULL))
        field_forbidden(errors, AT(AT(&in, "spec"), "activeDeadlineSeconds"),
                        "activeDeadlineSeconds in ReplicaSet is not Supported");
}

/* The selector must exist, not be empty, and match the labels of the template. */
static void check_own_selector(const struct kind_change *c, const struct json *spec,
                               const struct field_path *at, struct field_errors *errors)
{
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_at(spec, "template", "metadata", "labels", NULL);
    if (!json_is(selector, JSON_OBJ)) {
        if (c->kind->hooks != &kind_hooks_daemonset)
            field_required(errors, AT(at, "selector"), NULL);
    } else {
        kind_check_selector(selector, AT(at, "selector"), errors);
        if (kind_selector_is_empty(selector))
            field_invalid(errors, AT(at, "selector"), selector,
                          "empty selector is invalid for deployment");
    }
    struct field_path in = { at, .key = S("template") };
    if (!kind_selector_is_valid(selector)) {
        if (c->kind->hooks != &kind_hooks_daemonset)
            field_invalid(errors, AT(at, "selector"), selector, "invalid label selector");
    } else if (!kind_selector_is_empty(selector) ? !kind_selector_matches(selector, labels)
                                                 : !json_is(selector, JSON_OBJ))
        field_invalid(errors, AT(AT(&in, "metadata"), "labels"),
                      labels ? labels : json_new_obj(errors->arena),
                      "`selector` does not match template `labels`");
}

/* The template is checked only if the selector is valid, as kube-apiserver does. */
static void check_workload(const struct kind_change *c, struct field_errors *errors)
{
    const struct json *spec = json_get(c->object, "spec");
    struct field_path at = { NULL, .key = S("spec") };
    check_own_selector(c, spec, &at, errors);
    if (c->kind->hooks == &kind_hooks_daemonset ||
        kind_selector_is_valid(json_get(spec, "selector")))
        check_template(spec, &at,
                       (struct podspec_rules){ .restart_policy = "Always", .template = true },
                       errors);
}

/* No part of the replicas is larger than the whole. */
static void check_status(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const parts[] = { "fullyLabeledReplicas", "updatedReplicas", "readyReplicas",
                                         "availableReplicas", "currentReplicas" };
    const struct json *status = json_get(c->object, "status");
    struct field_path at = { NULL, .key = S("status") };
    if (c->kind->hooks == &kind_hooks_daemonset)
        return;
    bool replicaset = c->kind->hooks == &kind_hooks_replicaset;
    for (size_t i = 0; i < countof(parts); i++) {
        if (replicaset ? i == 1 : i == 0)
            continue; /* a field that this kind does not have */
        if (i == 4 && c->kind->hooks != &kind_hooks_statefulset)
            continue;
        struct json part = { .type = JSON_INT, .integer = json_int(json_get(status, parts[i]), 0) };
        if (part.integer > json_int(json_get(status, "replicas"), 0))
            field_invalid(errors, &(struct field_path){ &at, .key = str_c(parts[i]) }, &part,
                          "cannot be greater than status.replicas");
    }
    const struct json *available = json_get(status, "availableReplicas");
    if (json_int(available, 0) > json_int(json_get(status, "readyReplicas"), 0))
        field_invalid(errors, AT(&at, "availableReplicas"), available,
                      "cannot be greater than readyReplicas");
}

static void validate_workload(const struct kind_change *c, struct kind_env *env UNUSED,
                              struct field_errors *errors)
{
    if (c->sub == KIND_STATUS)
        check_status(c, errors);
    else
        check_workload(c, errors);
}

/* ---- Deployment */

/* A rolling update replaces a quarter of the pods at a time. */
static void fill_deployment(struct arena *a, struct json *object)
{
    fill_template(a, object);
    struct json *strategy = json_make(a, object, "spec", "strategy", NULL);
    if (!str_eqc(json_text(json_get(strategy, "type")), "RollingUpdate"))
        return;
    struct json *rolling = json_make(a, strategy, "rollingUpdate", NULL);
    if (!json_get(rolling, "maxUnavailable"))
        json_set_str(a, rolling, "maxUnavailable", S("25%"));
    if (!json_get(rolling, "maxSurge"))
        json_set_str(a, rolling, "maxSurge", S("25%"));
}

/* ---- counts and percentages */

/* A number, or a percentage as text ("25%"); -1 if it is neither. */
static int64_t parse_count_or_percent(const struct json *value, bool *ret_percent)
{
    *ret_percent = json_is(value, JSON_STR);
    if (json_is(value, JSON_INT))
        return value->integer;
    str text = json_text(value);
    int64_t percent = -1;
    if (!str_ends(text, S("%")) || str_to_i64(str_upto(text, text.n - 1), &percent) < 0)
        return -1;
    return percent;
}

/* Reports a number below zero or a percentage above `percent_max`. */
void kind_check_count_or_percent(const struct json *value, const struct field_path *at,
                                 int64_t percent_max, struct field_errors *errors)
{
    bool percent = false;
    if (!value)
        return;
    int64_t n = parse_count_or_percent(value, &percent);
    if (n < 0)
        field_invalid(
            errors, at, value,
            percent ? "a valid percent string must be a numeric string followed by an ending '%%' "
                      "(e.g. '1%%',  or '93%%', regex used for validation is '[0-9]+%%')"
                    : "must be greater than or equal to 0");
    else if (percent && n > percent_max)
        field_invalid(errors, at, value, "must not be greater than 100%%");
}

/* A type that is unknown is reported for the strategy, not for the type. */
static void check_deployment_strategy(const struct json *spec, const struct field_path *up,
                                      struct field_errors *errors)
{
    struct field_path at = { up, .key = S("strategy") };
    static const char *const types[] = { "Recreate", "RollingUpdate", NULL };
    const struct json *strategy = json_get(spec, "strategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    str type = json_text(json_get(strategy, "type"));
    struct field_path in = { &at, .key = S("rollingUpdate") };
    if (!str_eqc(type, "Recreate") && !str_eqc(type, "RollingUpdate")) {
        field_not_supported(errors, &at, strategy, types);
        return;
    }
    if (str_eqc(type, "Recreate")) {
        if (rolling)
            field_forbidden(errors, &in, "may not be specified when strategy `type` is 'Recreate'");
        return;
    }
    const struct json *unavailable = json_get(rolling, "maxUnavailable");
    const struct json *surge = json_get(rolling, "maxSurge");
    kind_check_count_or_percent(unavailable, AT(&in, "maxUnavailable"), 100, errors);
    kind_check_count_or_percent(surge, AT(&in, "maxSurge"), INT32_MAX, errors);
    bool percent = false;
    if (unavailable && surge && parse_count_or_percent(unavailable, &percent) == 0 &&
        parse_count_or_percent(surge, &percent) == 0)
        field_invalid(errors, AT(&in, "maxUnavailable"), unavailable,
                      "may not be 0 when `maxSurge` is 0");
}

/* The shared rules, the strategy and the progress deadline. */
static void validate_deployment(const struct kind_change *c, struct kind_env *env UNUSED,
                                struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    if (c->sub == KIND_STATUS) {
        check_status(c, errors);
        return;
    }
    check_workload(c, errors);
    check_deployment_strategy(spec, &at, errors);
    const struct json *deadline = json_get(spec, "progressDeadlineSeconds");
    if (deadline && json_int(deadline, 0) <= json_int(json_get(spec, "minReadySeconds"), 0))
        field_invalid(errors, AT(&at, "progressDeadlineSeconds"), deadline,
                      "must be greater than minReadySeconds");
}

/* Annotations control the rollout of a deployment, so they count as a new generation too. */
static void prepare_deployment(const struct kind_change *c, struct kind_env *env,
                               struct kind_fault *fault UNUSED)
{
    if (!c->old)
        return;
    struct json *metadata = json_make(env->arena, c->object, "metadata", NULL);
    const struct json *old = json_get(c->old, "metadata");
    if (c->sub == KIND_STATUS) {
        const struct json *labels = json_get(old, "labels");
        json_del(metadata, S("labels"));
        if (labels)
            json_set(env->arena, metadata, S("labels"), json_copy(env->arena, labels));
        return;
    }
    int64_t generation = json_int(json_get(old, "generation"), 0);
    bool spec_counted = json_int(json_get(metadata, "generation"), 0) > generation;
    if (!spec_counted && !json_eq(json_get(metadata, "annotations"), json_get(old, "annotations")))
        json_set_int(env->arena, metadata, "generation", generation + 1);
}

const struct kind_hooks kind_hooks_deployment = {
    .fill = fill_deployment,
    .prepare = prepare_deployment,
    .validate = validate_deployment,
};

const struct kind_hooks kind_hooks_replicaset = { .fill = fill_template,
                                                  .validate = validate_workload };

/* ---- StatefulSet */

/* Defaults of the strategy, and the type of the claims. */
static void fill_statefulset(struct arena *a, struct json *object)
{
    fill_template(a, object);
    struct json *spec = json_make(a, object, "spec", NULL);
    struct json *strategy = json_make(a, spec, "updateStrategy", NULL);
    if (!json_text(json_get(strategy, "type")).n) {
        json_set_str(a, strategy, "type", S("RollingUpdate"));
        json_make(a, strategy, "rollingUpdate", NULL);
    }
    struct json *rolling = json_get(strategy, "rollingUpdate");
    if (json_is(rolling, JSON_OBJ) && !json_get(rolling, "partition") &&
        str_eqc(json_text(json_get(strategy, "type")), "RollingUpdate"))
        json_set_int(a, rolling, "partition", 0);
    const struct json *claims = json_get(spec, "volumeClaimTemplates");
    for (uint32_t i = 0; i < json_len(claims); i++) { /* embedded objects */
        json_set_str(a, claims->items[i], "apiVersion", S("v1"));
        json_set_str(a, claims->items[i], "kind", S("PersistentVolumeClaim"));
    }
}

/* rollingUpdate belongs to the type RollingUpdate. */
static void check_statefulset_strategy(const struct json *strategy, const struct field_path *at,
                                       struct field_errors *errors)
{
    str type = json_text(json_get(strategy, "type"));
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    const struct json *partition = json_get(rolling, "partition");
    struct field_path in = { at, .key = S("rollingUpdate") };
    if (!str_eqc(type, "RollingUpdate") && !str_eqc(type, "OnDelete"))
        field_invalid(errors, at, strategy, "must be 'RollingUpdate' or 'OnDelete'");
    else if (str_eqc(type, "OnDelete") && rolling)
        field_invalid(errors, &in, rolling, "only allowed for updateStrategy 'RollingUpdate'");
    else if (json_int(partition, 0) < 0)
        field_invalid(errors, AT(&in, "partition"), partition,
                      "must be greater than or equal to 0");
}

/* Only the fields in `mutable` may change after creation. */
static void validate_statefulset(const struct kind_change *c, struct kind_env *env UNUSED,
                                 struct field_errors *errors)
{
    static const char *const mutable[] = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "persistentVolumeClaimRetentionPolicy",
        "revisionHistoryLimit",
    };
    const struct json *spec = json_get(c->object, "spec");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS) {
        check_status(c, errors);
        return;
    }
    check_workload(c, errors);
    const struct json *policy = json_get(spec, "podManagementPolicy");
    if (!str_eqc(json_text(policy), "OrderedReady") && !str_eqc(json_text(policy), "Parallel"))
        field_invalid(errors, AT(&at, "podManagementPolicy"), policy,
                      "must be 'OrderedReady' or 'Parallel'");
    check_statefulset_strategy(json_get(spec, "updateStrategy"), AT(&at, "updateStrategy"), errors);
    const struct json *claims = json_get(spec, "volumeClaimTemplates");
    for (uint32_t i = 0; !c->old && i < json_len(claims); i++)
        kind_check_claim(json_get(claims->items[i], "spec"),
                         AT(AT_INDEX(AT(&at, "volumeClaimTemplates"), i), "spec"), errors);
    if (!c->old)
        return;
    struct json *new = json_copy(errors->arena, json_get(c->object, "spec"));
    struct json *old = json_copy(errors->arena, json_get(c->old, "spec"));
    for (size_t i = 0; i < countof(mutable); i++) {
        json_del(new, str_c(mutable[i]));
        json_del(old, str_c(mutable[i]));
    }
    if (!json_eq(new, old))
        field_forbidden(errors, AT(NULL, "spec"),
                        "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                        "'template', 'updateStrategy', 'revisionHistoryLimit', "
                        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                        "forbidden");
}

const struct kind_hooks kind_hooks_statefulset = {
    .name = format_dns_label,
    .fill = fill_statefulset,
    .validate = validate_statefulset,
};

/* ---- DaemonSet */

static const char template_generation[] = "deprecated.daemonset.template.generation";

/* Defaults of the rollout. */
static void fill_daemonset(struct arena *a, struct json *object)
{
    fill_template(a, object);
    struct json *annotations = json_make(a, object, "metadata", "annotations", NULL);
    if (!json_get(annotations, template_generation))
        json_set_str(a, annotations, template_generation, S("0"));
    struct json *strategy = json_make(a, object, "spec", "updateStrategy", NULL);
    if (!str_eqc(json_text(json_get(strategy, "type")), "RollingUpdate"))
        return;
    struct json *rolling = json_make(a, strategy, "rollingUpdate", NULL);
    if (!json_get(rolling, "maxUnavailable"))
        json_set_int(a, rolling, "maxUnavailable", 1);
    if (!json_get(rolling, "maxSurge"))
        json_set_int(a, rolling, "maxSurge", 0);
}

/* Counts changes of the template in an annotation: apps/v1 has no field for it. */
static void prepare_daemonset(const struct kind_change *c, struct kind_env *env,
                              struct kind_fault *fault UNUSED)
{
    int64_t generation = 1;
    if (c->old) {
        str was = json_text(json_at(c->old, "metadata", "annotations", template_generation, NULL));
        if (str_to_i64(was, &generation) < 0)
            generation = 1;
        if (!json_eq(json_at(c->object, "spec", "template", NULL),
                     json_at(c->old, "spec", "template", NULL)))
            generation++;
    }
    json_set_str(env->arena, json_make(env->arena, c->object, "metadata", "annotations", NULL),
                 template_generation, arena_printf(env->arena, "%lld", (long long)generation));
}

/* Exactly one of maxUnavailable and maxSurge must be nonzero. */
static void check_daemonset_rollout(const struct json *rolling, const struct field_path *at,
                                    struct field_errors *errors)
{
    const struct json *unavailable = json_get(rolling, "maxUnavailable");
    const struct json *surge = json_get(rolling, "maxSurge");
    bool percent = false;
    int64_t out = parse_count_or_percent(unavailable, &percent),
            over = parse_count_or_percent(surge, &percent);
    bool some_out = out > 0 || (out < 0 && json_is(unavailable, JSON_INT));
    bool some_over = over > 0 || (over < 0 && json_is(surge, JSON_INT));
    kind_check_count_or_percent(unavailable, AT(at, "maxUnavailable"), 100, errors);
    kind_check_count_or_percent(surge, AT(at, "maxSurge"), 100, errors);
    if (some_out && some_over)
        field_invalid(errors, AT(at, "maxSurge"), surge,
                      "may not be set when maxUnavailable is non-zero");
    if (!some_out && !some_over)
        field_required(errors, AT(at, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

/* An unknown strategy type is reported for the strategy, not for the type. */
static void validate_daemonset(const struct kind_change *c, struct kind_env *env,
                               struct field_errors *errors)
{
    static const char *const types[] = { "OnDelete", "RollingUpdate", NULL };
    const struct json *strategy = json_at(c->object, "spec", "updateStrategy", NULL);
    str type = json_text(json_get(strategy, "type"));
    struct field_path at = { AT(NULL, "spec"), .key = S("updateStrategy") };
    validate_workload(c, env, errors);
    if (c->sub == KIND_STATUS)
        return;
    if (str_eqc(type, "RollingUpdate"))
        check_daemonset_rollout(json_get(strategy, "rollingUpdate"), AT(&at, "rollingUpdate"),
                                errors);
    else if (!str_eqc(type, "OnDelete"))
        field_not_supported(errors, &at, strategy, types);
}

const struct kind_hooks kind_hooks_daemonset = {
    .fill = fill_daemonset,
    .prepare = prepare_daemonset,
    .validate = validate_daemonset,
};
