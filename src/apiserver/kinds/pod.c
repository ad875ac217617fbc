/* Pods: what admission adds, what may change once a pod is there, and the rules of resizing. */
#include "kind_hooks.h"

#include "../../base/quantity.h"
#include "../../base/rfc3339.h"

#include <inttypes.h>

static void fill(struct arena *a, struct json *object)
{
    podspec_fill(a, json_get(object, "spec"), true);
    /* one address under two keys; the older one wins */
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

static bool tolerated(const struct json *tolerations, const char *key)
{
    for (uint32_t i = 0; i < json_len(tolerations); i++) {
        const struct json *t = tolerations->items[i];
        str effect = json_text(json_get(t, "effect")), name = json_text(json_get(t, "key"));
        if ((str_eqc(name, key) || !name.n) && (str_eqc(effect, "NoExecute") || !effect.n))
            return true;
    }
    return false;
}

/* A pod stays five minutes on a node that went away, unless it says otherwise. */
static void add_tolerations(struct arena *a, struct json *spec)
{
    static const char *const keys[] = { "node.kubernetes.io/not-ready",
                                        "node.kubernetes.io/unreachable" };
    for (size_t i = 0; i < countof(keys); i++) {
        struct json *tolerations = json_get(spec, "tolerations");
        if (tolerated(tolerations, keys[i]))
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

static void forbid(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault,
                   str why)
{
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    kind_fault_set(fault, 403, "Forbidden",
                   arena_printf(env->arena, "pods \"" STR_FMT "\" is forbidden: " STR_FMT,
                                STR_ARG(name), STR_ARG(why)));
}

static void set_priority(const struct kind_change *c, struct kind_env *env, struct json *spec,
                         struct kind_fault *fault)
{
    str class = json_text(json_get(spec, "priorityClassName"));
    int64_t priority = 0;
    if (str_eqc(class, "system-node-critical"))
        priority = 2000001000;
    else if (str_eqc(class, "system-cluster-critical"))
        priority = 2000000000;
    else if (class.n)
        forbid(c, env, fault,
               arena_printf(env->arena, "there is no priority class " STR_FMT, STR_ARG(class)));
    const struct json *given = json_get(spec, "priority"),
                      *policy = json_get(spec, "preemptionPolicy");
    if (given && json_int(given, 0) != priority)
        forbid(
            c, env, fault,
            arena_printf(env->arena,
                         "the integer value of priority (%lld) must not be provided in pod spec; "
                         "priority admission controller computed %lld from the given "
                         "PriorityClass name",
                         (long long)json_int(given, 0), (long long)priority));
    if (policy && !str_eqc(json_text(policy), "PreemptLowerPriority"))
        forbid(c, env, fault,
               S("the string value of PreemptionPolicy must be that of the PriorityClass"));
    json_set_int(env->arena, spec, "priority", priority);
    if (!policy)
        json_set_str(env->arena, spec, "preemptionPolicy", S("PreemptLowerPriority"));
}

/* No class of runtimes is known here, and only such a class says what it takes itself. */
static void refuse_runtime(const struct kind_change *c, struct kind_env *env,
                           const struct json *spec, struct kind_fault *fault)
{
    str class = json_text(json_get(spec, "runtimeClassName"));
    if (class.n)
        forbid(c, env, fault,
               arena_printf(env->arena, "pod rejected: RuntimeClass \"" STR_FMT "\" not found",
                            STR_ARG(class)));
    else if (json_len(json_get(spec, "overhead")))
        forbid(c, env, fault, S("pod rejected: overhead comes from a RuntimeClass"));
}

static void set_service_account(const struct kind_change *c, struct kind_env *env,
                                struct json *spec, struct kind_fault *fault)
{
    str name = json_text(json_get(spec, "serviceAccountName"));
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
        forbid(c, env, fault,
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

static void prepare_create(const struct kind_change *c, struct kind_env *env,
                           struct kind_fault *fault)
{
    struct arena *a = env->arena;
    struct json *spec = json_make(a, c->object, "spec", NULL);
    set_service_account(c, env, spec, fault);
    set_priority(c, env, spec, fault);
    refuse_runtime(c, env, spec, fault);
    add_tolerations(a, spec);
    struct json *status = json_make(a, c->object, "status", NULL);
    json_set_str(a, status, "phase", S("Pending"));
    json_set_str(a, status, "qosClass", str_c(podspec_qos(spec)));
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

/* ---- resize */

/* Takes resources and resizePolicy of the new containers into the old ones. False when containers
 * were added, removed or renamed: then validation sees the new ones and says so. */
static bool keep_all_but_resources(struct arena *a, struct json *spec, const struct json *old,
                                   const char *key)
{
    static const char *const resized[] = { "resources", "resizePolicy" };
    const struct json *new = json_get(spec, key);
    struct json *merged = json_copy(a, json_get(old, key));
    if (json_len(new) != json_len(merged))
        return false;
    for (uint32_t i = 0; i < json_len(merged); i++) {
        if (!json_eq(json_get(new->items[i], "name"), json_get(merged->items[i], "name")))
            return false;
        for (size_t j = 0; j < countof(resized); j++) {
            struct json *value = json_get(new->items[i], resized[j]);
            if (value)
                json_set(a, merged->items[i], str_c(resized[j]), value);
            else
                json_del(merged->items[i], str_c(resized[j]));
        }
    }
    if (merged)
        json_set(a, spec, str_c(key), merged);
    return true;
}

static int64_t milli_of(const struct json *list, const char *name)
{
    int64_t milli = 0;
    const struct json *value = json_get(list, name);
    if (value && quantity_parse_milli(json_text(value), &milli, NULL) < 0)
        milli = INT64_MAX / 1024;
    return milli;
}

/* A resize that its node could never satisfy is refused at once. */
static void check_node(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    str name = json_text(json_at(c->old, "spec", "nodeName", NULL));
    if (!name.n || !env->lookup)
        return;
    const struct json *node =
        env->lookup(env->context, kinds_find(S(""), S("v1"), S("nodes")), S(""), name);
    if (!node) {
        forbid(c, env, fault,
               arena_printf(env->arena, "node \"" STR_FMT "\" not found", STR_ARG(name)));
        return;
    }
    static const char *const names[] = { "cpu", "memory" };
    const struct json *containers = json_at(c->object, "spec", "containers", NULL);
    const struct json *allocatable = json_at(node, "status", "allocatable", NULL);
    for (size_t i = 0; i < countof(names); i++) {
        int64_t sum = 0;
        for (uint32_t j = 0; j < json_len(containers) && j < 1024; j++)
            sum += milli_of(json_at(containers->items[j], "resources", "requests", NULL), names[i]);
        int64_t there = milli_of(allocatable, names[i]);
        if (!json_get(allocatable, names[i]) || sum <= there)
            continue;
        forbid(c, env, fault,
               arena_printf(env->arena,
                            "node didn't have enough allocatable resources: %s, requested: %" PRId64
                            ", allocatable: %" PRId64,
                            names[i], i ? sum / 1000 : sum, i ? there / 1000 : there));
        fault->cause = "NodeCapacity";
        return;
    }
}

/* Once more, after what was put back or added here. */
static void count_generation(const struct kind_change *c, struct arena *a)
{
    int64_t was = json_int(json_at(c->old, "metadata", "generation", NULL), 0);
    bool changed = !json_eq(json_get(c->object, "spec"), json_get(c->old, "spec"));
    json_set_int(a, json_make(a, c->object, "metadata", NULL), "generation", was + changed);
}

static void prepare_resize(const struct kind_change *c, struct kind_env *env,
                           struct kind_fault *fault)
{
    static const char *const fixed[] = { "labels", "annotations", "finalizers", "ownerReferences",
                                         "deletionTimestamp" };
    struct arena *a = env->arena;
    const struct json *old = json_get(c->old, "spec");
    struct json *spec = json_get(c->object, "spec");
    if (keep_all_but_resources(a, spec, old, "containers") &&
        keep_all_but_resources(a, spec, old, "initContainers")) {
        struct json *merged = json_copy(a, old);
        for (const char *const *key =
                 (const char *const[]){ "containers", "initContainers", "resources", NULL };
             *key; key++)
            if (json_get(spec, *key))
                json_set(a, merged, str_c(*key), json_get(spec, *key));
        json_set(a, c->object, S("spec"), merged);
    }
    struct json *metadata = json_make(a, c->object, "metadata", NULL);
    for (size_t i = 0; i < countof(fixed); i++) {
        const struct json *was = json_at(c->old, "metadata", fixed[i], NULL);
        if (was)
            json_set(a, metadata, str_c(fixed[i]), json_copy(a, was));
        else
            json_del(metadata, str_c(fixed[i]));
    }
    count_generation(c, a);
    check_node(c, env, fault);
}

/* What admission gave a new pod stays when an update does not name it. */
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
    count_generation(c, a);
}

static void prepare(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    if (!c->old) {
        prepare_create(c, env, fault);
    } else if (c->sub == KIND_MAIN) {
        prepare_update(c, env->arena);
    } else if (c->sub == KIND_RESIZE) {
        prepare_resize(c, env, fault);
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

/* ---- what may change */

static const struct json *without_seconds(struct arena *a, const struct json *toleration)
{
    struct json *copy = json_copy(a, toleration);
    json_del(copy, S("tolerationSeconds"));
    return copy;
}

static void check_tolerations_kept(const struct json *new, const struct json *old,
                                   const struct field_path *at, struct field_errors *errors)
{
    struct seen kept = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(new); i++)
        seen_value(&kept, without_seconds(errors->arena, new->items[i]), i);
    for (uint32_t i = 0; i < json_len(old); i++) {
        if (!seen_lookup(&kept, without_seconds(errors->arena, old->items[i]))) {
            field_forbidden(errors, at, "only the seconds of a toleration may change");
            return;
        }
    }
}

static void check_deadline(const struct json *new, const struct json *old,
                           const struct field_path *at, struct field_errors *errors)
{
    if (json_int(new, 0) < 0)
        field_invalid(errors, at, new, "must not be negative");
    else if (old && !new)
        field_invalid(errors, at, new, "cannot be taken back");
    else if (old && json_int(new, 0) > json_int(old, 0))
        field_invalid(errors, at, new, "cannot be extended");
}

/* The new spec with everything that may change set back to what it was. */
static struct json *without_allowed(struct arena *a, const struct json *new, const struct json *old)
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

static bool same_length(const struct json *new, const struct json *old, const char *key)
{
    return json_len(json_get(new, key)) == json_len(json_get(old, key));
}

/* Gates only open; as long as one is shut, the choice of nodes may become narrower. */
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

/* Told again of an update. */
static void check_images(const struct json *containers, const struct field_path *at,
                         struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(containers); i++)
        if (!json_text(json_get(containers->items[i], "image")).n)
            field_required(errors, AT(AT_INDEX(at, i), "image"), NULL);
}

static void check_update(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const struct json *new = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    struct field_path spec = { NULL, .key = S("spec") };
    for (size_t i = 0; i < countof(lists); i++) {
        if (same_length(new, old, lists[i]))
            continue;
        field_forbidden(errors, &(struct field_path){ &spec, .key = str_c(lists[i]) },
                        "containers of a pod cannot be added or removed");
        return;
    }
    check_deadline(json_get(new, "activeDeadlineSeconds"), json_get(old, "activeDeadlineSeconds"),
                   AT(&spec, "activeDeadlineSeconds"), errors);
    check_tolerations_kept(json_get(new, "tolerations"), json_get(old, "tolerations"),
                           AT(&spec, "tolerations"), errors);
    check_gates_kept(new, old, &spec, errors);
    check_images(json_get(new, "containers"), AT(&spec, "containers"), errors);
    if (!json_eq(without_allowed(errors->arena, new, old), old))
        field_forbidden(errors, &spec,
                        "of a pod's spec only images, activeDeadlineSeconds, new tolerations and "
                        "scheduling gates may change");
}

/* ---- rules of resizing */

static bool was_removed(const struct json *new, const struct json *old)
{
    json_each(m, old)
        if (!json_get_str(new, m->key))
            return true;
    return false;
}

static void check_removed(const struct json *new, const struct json *old,
                          const struct field_path *at, struct field_errors *errors)
{
    if (was_removed(json_get(new, "requests"), json_get(old, "requests")))
        field_forbidden(errors, AT(at, "requests"), "requests cannot be removed");
    if (was_removed(json_get(new, "limits"), json_get(old, "limits")))
        field_forbidden(errors, AT(at, "limits"), "limits cannot be removed");
}

/* The container with cpu, memory and policy as they were: what still differs may not. */
static bool only_cpu_and_memory(struct arena *a, const struct json *new, const struct json *old)
{
    static const char *const lists[] = { "requests", "limits" };
    static const char *const names[] = { "cpu", "memory" };
    struct json *left = json_copy(a, new), *right = json_copy(a, old);
    for (int side = 0; side < 2; side++) {
        struct json *container = side ? right : left;
        json_del(container, S("resizePolicy"));
        for (size_t i = 0; i < countof(lists); i++) {
            struct json *list = json_at(container, "resources", lists[i], NULL);
            for (size_t j = 0; j < countof(names); j++)
                json_del(list, str_c(names[j]));
            if (list && !json_len(list))
                json_del(json_get(container, "resources"), str_c(lists[i]));
        }
    }
    return json_eq(left, right);
}

static bool check_same_containers(const struct kind_change *c, const char *key,
                                  const struct field_path *spec, struct field_errors *errors)
{
    const struct json *new = json_at(c->object, "spec", key, NULL);
    const struct json *old = json_at(c->old, "spec", key, NULL);
    struct field_path list = { spec, .key = str_c(key) };
    if (json_len(new) != json_len(old)) {
        field_forbidden(errors, &list, "a resize cannot add or remove containers");
        return false;
    }
    bool same = true;
    for (uint32_t i = 0; i < json_len(old); i++) {
        if (json_eq(json_get(new->items[i], "name"), json_get(old->items[i], "name")))
            continue;
        field_forbidden(errors, AT(AT_INDEX(&list, i), "name"),
                        "a resize cannot rename or reorder containers");
        same = false;
    }
    return same;
}

static void check_resized_list(const struct kind_change *c, const char *key,
                               const struct field_path *spec, struct field_errors *errors)
{
    const struct json *new = json_at(c->object, "spec", key, NULL);
    const struct json *old = json_at(c->old, "spec", key, NULL);
    struct field_path list = { spec, .key = str_c(key) };
    for (uint32_t i = 0; i < json_len(old); i++) {
        check_removed(json_get(new->items[i], "resources"), json_get(old->items[i], "resources"),
                      AT(AT_INDEX(&list, i), "resources"), errors);
        if (!only_cpu_and_memory(errors->arena, new->items[i], old->items[i]))
            field_forbidden(errors, str_eqc(list.key, "containers") ? spec : AT_INDEX(&list, i),
                            "a resize changes cpu and memory only");
    }
}

/* A node that reports what its containers have can also change it. */
static bool node_resizes(const struct json *pod)
{
    const struct json *statuses = json_at(pod, "status", "containerStatuses", NULL);
    for (uint32_t i = 0; i < json_len(statuses); i++)
        if (json_at(statuses->items[i], "state", "running", NULL))
            return json_get(statuses->items[i], "resources") != NULL;
    return true;
}

static void check_resize(const struct kind_change *c, struct field_errors *errors)
{
    struct field_path spec = { NULL, .key = S("spec") };
    const struct json *annotations = json_at(c->old, "metadata", "annotations", NULL);
    if (json_get(annotations, "kubernetes.io/config.mirror")) {
        field_forbidden(errors, NULL, "static pods cannot be resized");
        return;
    }
    if (str_eqc(json_text(json_at(c->old, "spec", "os", "name", NULL)), "windows")) {
        field_forbidden(errors, NULL, "windows pods cannot be resized");
        return;
    }
    const char *class = podspec_qos(json_get(c->object, "spec"));
    const char *was = podspec_qos(json_get(c->old, "spec"));
    struct json shown = { .type = JSON_STR, .n = (uint32_t)strlen(was), .text = was };
    if (strcmp(class, was) != 0)
        field_invalid(errors, &spec, &shown, "a resize cannot make the pod %s", class);
    if (!node_resizes(c->old))
        field_forbidden(errors, &spec, "the pod's node does not support resizing");
    bool same = check_same_containers(c, "containers", &spec, errors);
    if (!check_same_containers(c, "initContainers", &spec, errors) || !same)
        return;
    check_resized_list(c, "containers", &spec, errors);
    check_resized_list(c, "initContainers", &spec, errors);
}

/* A token is somebody's. */
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

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
                     struct field_errors *errors)
{
    struct field_path spec = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS) {
        pod_check_status(c, errors);
        return;
    }
    podspec_check(json_get(c->object, "spec"), &spec, (struct podspec_rules){ 0 }, errors);
    check_tokens(json_get(c->object, "spec"), &spec, errors);
    if (c->sub == KIND_RESIZE)
        check_resize(c, errors);
    else if (c->old)
        check_update(c, errors);
    else if (json_len(json_at(c->object, "spec", "ephemeralContainers", NULL)))
        field_forbidden(errors, AT(&spec, "ephemeralContainers"), "cannot be set on create");
    if (!c->old && json_len(json_at(c->object, "spec", "schedulingGates", NULL)) &&
        json_text(json_at(c->object, "spec", "nodeName", NULL)).n)
        field_forbidden(errors, AT(&spec, "nodeName"),
                        "cannot be set until all schedulingGates have been cleared");
}

const struct kind_hooks hooks_pod = {
    .fill = fill,
    .prepare = prepare,
    .validate = validate,
    .metadata_twice = true,
};
