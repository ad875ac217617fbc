/* Pods: what admission adds to a new one, and what may change later.
 *
 *   create    service account, priority, tolerations, QoS class; refused if the class or account is unknown
 *   update    images, activeDeadlineSeconds, more tolerations, fewer scheduling gates; nothing else
 *   resize    see pod_resize.c
 *   status    see pod_status.c
 *
 * The rules of the spec itself are in podspec_check.c and its neighbors, shared with pod templates. To decide
 * whether an update changes only what it may, the new spec is copied, the mutable fields are set back to their
 * old values, and the rest must be equal: restore_mutable_fields(). */
#include "../schema/format.h"
#include "kind_hooks.h"
#include "quota.h"

#include "../../base/rfc3339.h"

/* podIP and podIPs[0] are kept equal, besides the defaults of the spec. */
static void fill_pod(struct arena *a, struct json *object)
{
    podspec_fill(a, json_get(object, "spec"), true);
    /* podIP and podIPs[0] are the same address; the older field wins */
    struct json *status = json_get(object, "status"), *ip = json_get(status, "podIP");
    struct json *first = json_get(json_item(json_get(status, "podIPs"), 0), "ip");
    if (json_text(ip).n && !json_eq(ip, first)) {
        struct json *all = json_new_arr(a), *one = json_new_obj(a);
        json_set(a, one, S("ip"), ip);
        json_push(a, all, one);
        json_set(a, status, S("podIPs"), all);
    } else if (first && !json_text(ip).n) {
        json_set(a, status, S("podIP"), first);
    }
}

/* ---- create */

/* True if a toleration covers this taint with the effect NoExecute. */
static bool is_tolerated(const struct json *tolerations, const char *key)
{
    for (uint32_t i = 0; i < json_len(tolerations); i++) {
        const struct json *t = tolerations->items[i];
        str effect = json_text(json_get(t, "effect")), name = json_text(json_get(t, "key"));
        if ((str_eqc(name, key) || !name.n) && (str_eqc(effect, "NoExecute") || !effect.n))
            return true;
    }
    return false;
}

/* By default a pod stays on an unreachable node for five minutes. */
static void add_tolerations(struct arena *a, struct json *spec)
{
    static const char *const keys[] = { "node.kubernetes.io/not-ready",
                                        "node.kubernetes.io/unreachable" };
    for (size_t i = 0; i < countof(keys); i++) {
        struct json *tolerations = json_get(spec, "tolerations");
        if (is_tolerated(tolerations, keys[i]))
            continue;
        if (!json_is(tolerations, JSON_ARR))
            json_set(a, spec, S("tolerations"), tolerations = json_new_arr(a));
        struct json *t = json_new_obj(a);
        json_set_str(a, t, "key", str_c(keys[i]));
        json_set_str(a, t, "operator", S("Exists"));
        json_set_str(a, t, "effect", S("NoExecute"));
        json_set_int(a, t, "tolerationSeconds", 300);
        json_push(a, tolerations, t);
    }
}

void kind_pod_refuse(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault,
                     str why)
{
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    kind_fault_set(fault, 403, "Forbidden",
                   arena_printf(env->arena, "pods \"" STR_FMT "\" is forbidden: " STR_FMT,
                                STR_ARG(name), STR_ARG(why)));
}

/* The class that a pod names, or the default one. NULL: there is none. */
static const struct json *find_priority_class(struct kind_env *env, str name)
{
    const struct kind *k = kinds_find(S("scheduling.k8s.io"), S("v1"), S("priorityclasses"));
    if (name.n)
        return env->lookup ? env->lookup(env->context, k, S(""), name) : NULL;
    const struct json *all = env->list ? env->list(env->context, k, S("")) : NULL;
    for (uint32_t i = 0; i < json_len(all); i++) {
        const struct json *is = json_get(all->items[i], "globalDefault");
        if (json_is(is, JSON_BOOL) && is->boolean)
            return all->items[i];
    }
    return NULL;
}

/* The priority and the preemption policy follow from the class. */
static void set_priority(const struct kind_change *c, struct kind_env *env, struct json *spec,
                         struct kind_fault *fault)
{
    str name = json_text(json_get(spec, "priorityClassName"));
    const struct json *class = find_priority_class(env, name);
    int64_t priority = json_int(json_get(class, "value"), 0);
    if (name.n && !class)
        kind_pod_refuse(c, env, fault,
                        arena_printf(env->arena, "no PriorityClass with name " STR_FMT " was found",
                                     STR_ARG(name)));
    const struct json *given = json_get(spec, "priority"),
                      *policy = json_get(spec, "preemptionPolicy");
    str wanted = json_text(json_get(class, "preemptionPolicy"));
    if (!wanted.n)
        wanted = S("PreemptLowerPriority");
    if (given && json_int(given, 0) != priority)
        kind_pod_refuse(
            c, env, fault,
            arena_printf(env->arena,
                         "the integer value of priority (%lld) must not be provided in pod spec; "
                         "priority admission controller computed %lld from the given "
                         "PriorityClass name",
                         (long long)json_int(given, 0), (long long)priority));
    if (policy && !str_eq(json_text(policy), wanted))
        kind_pod_refuse(
            c, env, fault,
            S("the string value of PreemptionPolicy must not differ from that of the PriorityClass"));
    json_set_int(env->arena, spec, "priority", priority);
    if (class && !name.n)
        json_set_str(env->arena, spec, "priorityClassName",
                     json_text(json_at(class, "metadata", "name", NULL)));
    if (!policy)
        json_set_str(env->arena, spec, "preemptionPolicy", wanted);
}

/* The class must exist. It sets the overhead of the pod and narrows the nodes it runs on. */
static void use_runtime_class(const struct kind_change *c, struct kind_env *env, struct json *spec,
                              struct kind_fault *fault)
{
    str name = json_text(json_get(spec, "runtimeClassName"));
    const struct kind *k = kinds_find(S("node.k8s.io"), S("v1"), S("runtimeclasses"));
    const struct json *class =
        name.n && env->lookup ? env->lookup(env->context, k, S(""), name) : NULL;
    const struct json *overhead = json_at(class, "overhead", "podFixed", NULL);
    const struct json *given = json_get(spec, "overhead");
    struct arena *a = env->arena;
    if (name.n && !class)
        kind_pod_refuse(c, env, fault,
                        arena_printf(a, "pod rejected: RuntimeClass \"" STR_FMT "\" not found",
                                     STR_ARG(name)));
    else if (json_len(given) && !json_len(overhead))
        kind_pod_refuse(
            c, env, fault,
            S("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"));
    else if (json_len(given) && !json_eq(given, overhead))
        kind_pod_refuse(c, env, fault,
                        S("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined "
                          "Overhead"));
    else if (json_len(overhead))
        json_set(a, spec, S("overhead"), json_copy(a, overhead));
    json_each(m, json_at(class, "scheduling", "nodeSelector", NULL)) {
        struct json *selector = json_make(a, spec, "nodeSelector", NULL);
        const struct json *was = json_get_str(selector, m->key);
        if (was && !json_eq(was, m->value))
            kind_pod_refuse(c, env, fault,
                            arena_printf(a,
                                         "pod rejected: conflict: runtimeClass.scheduling."
                                         "nodeSelector[" STR_FMT "] differs from that of the pod",
                                         STR_ARG(m->key)));
        json_set(a, selector, m->key, json_copy(a, m->value));
    }
    const struct json *more = json_at(class, "scheduling", "tolerations", NULL);
    for (uint32_t i = 0; i < json_len(more); i++) {
        struct json *list = json_get(spec, "tolerations");
        if (!list)
            json_set(a, spec, S("tolerations"), list = json_new_arr(a));
        json_push(a, list, json_copy(a, more->items[i]));
    }
}

/* Defaults and bounds of the namespace. */
static void use_limit_ranges(const struct kind_change *c, struct kind_env *env,
                             struct kind_fault *fault)
{
    const struct kind *k = kinds_find(S(""), S("v1"), S("limitranges"));
    str ns = json_text(json_at(c->object, "metadata", "namespace", NULL));
    const struct json *ranges = env->list ? env->list(env->context, k, ns) : NULL;
    if (!json_len(ranges))
        return;
    kind_limits_fill(env->arena, ranges, c->object);
    str why = kind_limits_refusal(env->arena, ranges, c->kind, c->object);
    if (why.n)
        kind_pod_refuse(c, env, fault, why);
}

/* Defaults to "default"; the account must exist, and lends its pull secrets. */
static void set_service_account(const struct kind_change *c, struct kind_env *env,
                                struct json *spec, struct kind_fault *fault)
{
    str name = json_text(json_get(spec, "serviceAccountName"));
    if (env->no_accounts)
        return;
    if (!name.n)
        name = S("default");
    json_set_str(env->arena, spec, "serviceAccountName", name);
    json_set_str(env->arena, spec, "serviceAccount", name);
    if (!env->lookup)
        return;
    str ns = json_text(json_at(c->object, "metadata", "namespace", NULL));
    const struct json *account =
        env->lookup(env->context, kinds_find(S(""), S("v1"), S("serviceaccounts")), ns, name);
    if (!account) {
        kind_pod_refuse(c, env, fault,
                        arena_printf(env->arena,
                                     "error looking up service account " STR_FMT "/" STR_FMT
                                     ": serviceaccount \"" STR_FMT "\" not found",
                                     STR_ARG(ns), STR_ARG(name), STR_ARG(name)));
        return;
    }
    const struct json *secrets = json_get(account, "imagePullSecrets");
    if (json_len(secrets) && !json_len(json_get(spec, "imagePullSecrets")))
        json_set(env->arena, spec, S("imagePullSecrets"), json_copy(env->arena, secrets));
}

/* What the admission plug-ins of kube-apiserver set on a new pod. */
static void prepare_create(const struct kind_change *c, struct kind_env *env,
                           struct kind_fault *fault)
{
    struct arena *a = env->arena;
    struct json *spec = json_make(a, c->object, "spec", NULL);
    use_limit_ranges(c, env, fault);
    set_service_account(c, env, spec, fault);
    set_priority(c, env, spec, fault);
    use_runtime_class(c, env, spec, fault);
    add_tolerations(a, spec);
    struct json *status = json_make(a, c->object, "status", NULL);
    json_set_str(a, status, "phase", S("Pending"));
    json_set_str(a, status, "qosClass", str_c(podspec_qos_class(spec)));
    if (!json_len(json_get(spec, "schedulingGates")))
        return;
    char time[RFC3339_TEXT_MAX];
    struct json *gated = json_new_obj(a), *conditions = json_new_arr(a);
    json_set_str(a, gated, "type", S("PodScheduled"));
    json_set_str(a, gated, "status", S("False"));
    json_set(a, gated, S("lastProbeTime"), json_new_null(a));
    json_set_str(a, gated, "lastTransitionTime", rfc3339_text(env->now_ns / 1000000000, time));
    json_set_str(a, gated, "reason", S("SchedulingGated"));
    json_set_str(a, gated, "message", S("Scheduling is blocked due to non-empty scheduling gates"));
    json_push(a, conditions, gated);
    json_set(a, status, S("conditions"), conditions);
}

/* ---- update */

/* Again, because admission may have restored or added fields after kind_prepare() counted. */
void kind_pod_set_generation(const struct kind_change *c, struct arena *a)
{
    int64_t was = json_int(json_at(c->old, "metadata", "generation", NULL), 0);
    bool changed = !json_eq(json_get(c->object, "spec"), json_get(c->old, "spec"));
    json_set_int(a, json_make(a, c->object, "metadata", NULL), "generation", was + changed);
}

/* An update that omits what admission set on create keeps it. */
static void prepare_update(const struct kind_change *c, struct arena *a)
{
    static const char *const given[] = { "priority", "preemptionPolicy" };
    struct json *spec = json_make(a, c->object, "spec", NULL);
    for (size_t i = 0; i < countof(given); i++) {
        const struct json *was = json_at(c->old, "spec", given[i], NULL);
        if (was && !json_get(spec, given[i]))
            json_set(a, spec, str_c(given[i]), json_copy(a, was));
    }
    add_tolerations(a, spec);
    kind_pod_set_generation(c, a);
}

/* Nothing changes but the ephemeral containers. */
static void prepare_ephemeral(const struct kind_change *c, struct arena *a)
{
    struct json *given = json_at(c->object, "spec", "ephemeralContainers", NULL);
    struct json *spec = json_copy(a, json_get(c->old, "spec"));
    json_del(spec, S("ephemeralContainers"));
    if (json_len(given))
        json_set(a, spec, S("ephemeralContainers"), given);
    json_set(a, c->object, S("spec"), spec);
    kind_pod_set_generation(c, a);
}

/* Dispatches by subresource. */
static void prepare_pod(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    if (!c->old) {
        prepare_create(c, env, fault);
    } else if (c->sub == KIND_MAIN) {
        prepare_update(c, env->arena);
    } else if (c->sub == KIND_RESIZE) {
        kind_pod_prepare_resize(c, env, fault);
    } else if (c->sub == KIND_EPHEMERAL) {
        prepare_ephemeral(c, env->arena);
    } else if (c->sub == KIND_STATUS) {
        struct json *status = json_make(env->arena, c->object, "status", NULL);
        const struct json *qos = json_at(c->old, "status", "qosClass", NULL);
        if (!json_get(status, "qosClass") && qos)
            json_set(env->arena, status, S("qosClass"), json_copy(env->arena, qos));
        const struct json *owners = json_at(c->old, "metadata", "ownerReferences", NULL);
        struct json *metadata = json_make(env->arena, c->object, "metadata", NULL);
        json_del(metadata, S("ownerReferences"));
        if (owners)
            json_set(env->arena, metadata, S("ownerReferences"), json_copy(env->arena, owners));
    }
}

/* ---- validation of updates */

static const struct json *without_seconds(struct arena *a, const struct json *toleration)
{
    struct json *copy = json_copy(a, toleration);
    json_del(copy, S("tolerationSeconds"));
    return copy;
}

/* Existing tolerations stay, apart from their seconds; new ones may be added. */
static void check_tolerations_kept(const struct json *new, const struct json *old,
                                   const struct field_path *at, struct field_errors *errors)
{
    struct seen kept = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(new); i++)
        seen_value(&kept, without_seconds(errors->arena, new->items[i]), i);
    for (uint32_t i = 0; i < json_len(old); i++) {
        if (!seen_lookup(&kept, without_seconds(errors->arena, old->items[i]))) {
            field_forbidden(errors, at,
                            "existing toleration can not be modified except its tolerationSeconds");
            return;
        }
    }
}

/* activeDeadlineSeconds may be set or shortened. */
static void check_deadline(const struct json *new, const struct json *old,
                           const struct field_path *at, struct field_errors *errors)
{
    if (json_int(new, 0) < 0)
        field_invalid(errors, at, new, "must be greater than or equal to 0");
    else if (old && !new)
        field_invalid(errors, at, new, "must not update from a positive integer to nil value");
    else if (old && json_int(new, 0) > json_int(old, 0))
        field_invalid(errors, at, new, "must be less than or equal to previous value");
}

/* The new spec with every mutable field set back to its old value: what still differs may not
 * change. */
static struct json *restore_mutable_fields(struct arena *a, const struct json *new,
                                           const struct json *old)
{
    static const char *const lists[] = { "containers", "initContainers" };
    static const char *const allowed[] = { "activeDeadlineSeconds", "tolerations",
                                           "schedulingGates", "nodeSelector" };
    struct json *spec = json_copy(a, new);
    for (size_t i = 0; i < countof(lists); i++) {
        struct json *list = json_get(spec, lists[i]);
        for (uint32_t j = 0; j < json_len(list); j++) {
            struct json *image = json_get(json_item(json_get(old, lists[i]), j), "image");
            if (image && json_is(list->items[j], JSON_OBJ))
                json_set(a, list->items[j], S("image"), json_copy(a, image));
        }
    }
    for (size_t i = 0; i < countof(allowed); i++) {
        const struct json *was = json_get(old, allowed[i]);
        if (str_eqc(str_c(allowed[i]), "nodeSelector") &&
            !json_len(json_get(old, "schedulingGates")))
            continue;
        if (was)
            json_set(a, spec, str_c(allowed[i]), json_copy(a, was));
        else
            json_del(spec, str_c(allowed[i]));
    }
    return spec;
}

static bool has_same_length(const struct json *new, const struct json *old, const char *key)
{
    return json_len(json_get(new, key)) == json_len(json_get(old, key));
}

/* Scheduling gates may only be removed; while one exists, the node selector may become narrower. */
static void check_gates_kept(const struct json *new, const struct json *old,
                             const struct field_path *at, struct field_errors *errors)
{
    const struct json *gates = json_get(new, "schedulingGates"),
                      *had = json_get(old, "schedulingGates");
    struct seen known = seen_list(errors->arena, had, NULL);
    for (uint32_t i = 0; i < json_len(gates); i++) {
        if (!seen_lookup(&known, gates->items[i]))
            field_forbidden(errors, AT(AT_INDEX(AT(at, "schedulingGates"), i), "name"),
                            "only deletion is allowed");
    }
    const struct json *nodes = json_get(new, "nodeSelector");
    bool narrower = true;
    json_each(m, json_get(old, "nodeSelector")) {
        const struct json *now = json_get_str(nodes, m->key);
        narrower = narrower && now && json_eq(now, m->value);
    }
    if (json_len(had) && !narrower)
        field_invalid(errors, AT(at, "nodeSelector"), nodes, "only additions are allowed");
}

/* kube-apiserver reports missing images again on update. */
static void check_images_required(const struct json *containers, const struct field_path *at,
                                  struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(containers); i++)
        if (!json_text(json_get(containers->items[i], "image")).n)
            field_required(errors, AT(AT_INDEX(at, i), "image"), NULL);
}

/* Reports everything that an update may not change. */
static void check_update(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const struct json *new = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    struct field_path spec = { NULL, .key = S("spec") };
    for (size_t i = 0; i < countof(lists); i++) {
        if (has_same_length(new, old, lists[i]))
            continue;
        field_forbidden(errors, &(struct field_path){ &spec, .key = str_c(lists[i]) },
                        "pod updates may not add or remove containers");
        return;
    }
    check_deadline(json_get(new, "activeDeadlineSeconds"), json_get(old, "activeDeadlineSeconds"),
                   AT(&spec, "activeDeadlineSeconds"), errors);
    check_tolerations_kept(json_get(new, "tolerations"), json_get(old, "tolerations"),
                           AT(&spec, "tolerations"), errors);
    check_gates_kept(new, old, &spec, errors);
    check_images_required(json_get(new, "containers"), AT(&spec, "containers"), errors);
    if (!json_eq(restore_mutable_fields(errors->arena, new, old), old))
        field_forbidden(errors, &spec,
                        "pod updates may not change fields other than `spec.containers[*].image`, "
                        "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, "
                        "`spec.tolerations` (only additions to existing tolerations), "
                        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                        "previously negative)");
}

/* Token volumes need a serviceAccountName. */
static void check_tokens(const struct json *spec, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *volumes = json_get(spec, "volumes");
    if (json_text(json_get(spec, "serviceAccountName")).n)
        return;
    for (uint32_t i = 0; i < json_len(volumes); i++) {
        const struct json *sources = json_at(volumes->items[i], "projected", "sources", NULL);
        struct field_path volume = { AT(at, "volumes"), .index = i, .how = FIELD_INDEX };
        struct field_path list = { AT(&volume, "projected"), .key = S("sources") };
        for (uint32_t j = 0; j < json_len(sources); j++)
            if (json_get(sources->items[j], "serviceAccountToken"))
                field_forbidden(errors, AT(AT_INDEX(&list, j), "serviceAccountToken"),
                                "must not be specified when serviceAccountName is not set");
    }
}

/* Ephemeral containers are added, never changed or removed, and have names of their own. */
static void check_ephemeral(const struct kind_change *c, const struct field_path *up,
                            struct field_errors *errors)
{
    static const char *const lists[] = { "containers", "initContainers" };
    struct field_path at = { up, .key = S("ephemeralContainers") };
    const struct json *now = json_at(c->object, "spec", "ephemeralContainers", NULL);
    const struct json *was = json_at(c->old, "spec", "ephemeralContainers", NULL);
    struct seen names = seen_new(errors->arena, 1);
    for (size_t i = 0; i < countof(lists); i++) {
        const struct json *list = json_at(c->object, "spec", lists[i], NULL);
        for (uint32_t n = 0; n < json_len(list); n++)
            seen_value(&names, json_get(list->items[n], "name"), n);
    }
    for (uint32_t i = 0; i < json_len(now); i++) {
        const struct json *name = json_get(now->items[i], "name");
        if (!json_text(name).n)
            field_required(errors, AT(AT_INDEX(&at, i), "name"), "");
        else if (format_dns_label(json_text(name)))
            field_invalid(errors, AT(AT_INDEX(&at, i), "name"), name, "%s",
                          format_dns_label(json_text(name)));
        else if (seen_value(&names, name, i))
            field_duplicate(errors, AT(AT_INDEX(&at, i), "name"), name);
        if (!json_text(json_get(now->items[i], "image")).n)
            field_required(errors, AT(AT_INDEX(&at, i), "image"), "");
    }
    for (uint32_t i = 0; i < json_len(was); i++) {
        const struct json *name = json_get(was->items[i], "name"), *kept = NULL;
        for (uint32_t n = 0; n < json_len(now) && !kept; n++)
            if (json_eq(json_get(now->items[n], "name"), name))
                kept = now->items[n];
        if (!kept)
            field_forbidden(errors, &at,
                            "existing ephemeral containers \"" STR_FMT "\" may not be removed",
                            STR_ARG(json_text(name)));
        else if (!json_eq(kept, was->items[i]))
            field_forbidden(errors, &at,
                            "existing ephemeral containers \"" STR_FMT "\" may not be changed",
                            STR_ARG(json_text(name)));
    }
}

/* The rules of the spec, then those of the operation. */
static void validate_pod(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    struct field_path spec = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS) {
        kind_check_pod_status(c, errors);
        return;
    }
    podspec_check(json_get(c->object, "spec"), &spec, (struct podspec_rules){ 0 }, errors);
    check_tokens(json_get(c->object, "spec"), &spec, errors);
    if (c->sub == KIND_EPHEMERAL)
        check_ephemeral(c, &spec, errors);
    else if (c->sub == KIND_RESIZE)
        kind_pod_check_resize(c, errors);
    else if (c->old)
        check_update(c, errors);
    else if (json_len(json_at(c->object, "spec", "ephemeralContainers", NULL)))
        field_forbidden(errors, AT(&spec, "ephemeralContainers"), "cannot be set on create");
    if (!c->old && json_len(json_at(c->object, "spec", "schedulingGates", NULL)) &&
        json_text(json_at(c->object, "spec", "nodeName", NULL)).n)
        field_forbidden(errors, AT(&spec, "nodeName"),
                        "cannot be set until all schedulingGates have been cleared");
}

const struct kind_hooks kind_hooks_pod = {
    .fill = fill_pod,
    .prepare = prepare_pod,
    .validate = validate_pod,
    .metadata_twice = true,
};
