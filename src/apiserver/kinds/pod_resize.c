/* The resize subresource of pods: changes cpu and memory of containers while the pod runs.
 *
 * Preparation takes the new resources into a copy of the old spec, so whatever else the client sent is
 * ignored, and refuses a resize that the node could never satisfy. Validation then makes sure that the
 * containers are the same, that no request or limit disappeared, that only cpu and memory changed, and that the
 * QoS class stays: the kubelet derived the cgroup of the pod from it. */
#include "kind_hooks.h"

#include "../../base/quantity.h"

#include <inttypes.h>

/* ---- preparation */

/* Takes resources and resizePolicy of the new containers into a copy of the old ones. Returns
 * false if containers were added, removed or renamed; validation then sees the new list and
 * reports it. */
static bool merge_resources(struct arena *a, struct json *spec, const struct json *old,
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

/* Refuses a resize that the node could never satisfy. */
static void check_node_capacity(const struct kind_change *c, struct kind_env *env,
                                struct kind_fault *fault)
{
    str name = json_text(json_at(c->old, "spec", "nodeName", NULL));
    if (!name.n || !env->lookup)
        return;
    const struct json *node =
        env->lookup(env->context, kinds_find(S(""), S("v1"), S("nodes")), S(""), name);
    if (!node) {
        kind_pod_refuse(c, env, fault,
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
        kind_pod_refuse(
            c, env, fault,
            arena_printf(env->arena,
                         "node didn't have enough allocatable resources: %s, requested: %" PRId64
                         ", allocatable: %" PRId64,
                         names[i], i ? sum / 1000 : sum, i ? there / 1000 : there));
        fault->cause = "NodeCapacity";
        return;
    }
}

/* A resize changes resources only: the rest of the spec and the metadata are restored. */
void kind_pod_prepare_resize(const struct kind_change *c, struct kind_env *env,
                             struct kind_fault *fault)
{
    static const char *const fixed[] = { "labels", "annotations", "finalizers", "ownerReferences",
                                         "deletionTimestamp" };
    struct arena *a = env->arena;
    const struct json *old = json_get(c->old, "spec");
    struct json *spec = json_get(c->object, "spec");
    if (merge_resources(a, spec, old, "containers") &&
        merge_resources(a, spec, old, "initContainers")) {
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
    kind_pod_set_generation(c, a);
    check_node_capacity(c, env, fault);
}

/* ---- validation */

static bool has_removed_key(const struct json *new, const struct json *old)
{
    json_each(m, old)
        if (!json_get_str(new, m->key))
            return true;
    return false;
}

static void check_removed(const struct json *new, const struct json *old,
                          const struct field_path *at, struct field_errors *errors)
{
    if (has_removed_key(json_get(new, "requests"), json_get(old, "requests")))
        field_forbidden(errors, AT(at, "requests"), "resource requests cannot be removed");
    if (has_removed_key(json_get(new, "limits"), json_get(old, "limits")))
        field_forbidden(errors, AT(at, "limits"), "resource limits cannot be removed");
}

/* Compares two containers without their cpu, memory and resizePolicy. */
static bool differs_in_cpu_and_memory_only(struct arena *a, const struct json *new,
                                           const struct json *old)
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

/* Names and order of containers must not change. Returns false if they did. */
static bool check_same_containers(const struct kind_change *c, const char *key,
                                  const struct field_path *spec, struct field_errors *errors)
{
    const struct json *new = json_at(c->object, "spec", key, NULL);
    const struct json *old = json_at(c->old, "spec", key, NULL);
    struct field_path list = { spec, .key = str_c(key) };
    if (json_len(new) != json_len(old)) {
        field_forbidden(errors, &list, "containers may not be added or removed on resize");
        return false;
    }
    bool same = true;
    for (uint32_t i = 0; i < json_len(old); i++) {
        if (json_eq(json_get(new->items[i], "name"), json_get(old->items[i], "name")))
            continue;
        field_forbidden(errors, AT(AT_INDEX(&list, i), "name"),
                        "containers may not be renamed or reordered on resize");
        same = false;
    }
    return same;
}

/* Requests and limits may change but not disappear, and nothing else may change. */
static void check_resized_list(const struct kind_change *c, const char *key,
                               const struct field_path *spec, struct field_errors *errors)
{
    const struct json *new = json_at(c->object, "spec", key, NULL);
    const struct json *old = json_at(c->old, "spec", key, NULL);
    struct field_path list = { spec, .key = str_c(key) };
    for (uint32_t i = 0; i < json_len(old); i++) {
        check_removed(json_get(new->items[i], "resources"), json_get(old->items[i], "resources"),
                      AT(AT_INDEX(&list, i), "resources"), errors);
        if (!differs_in_cpu_and_memory_only(errors->arena, new->items[i], old->items[i]))
            field_forbidden(errors, str_eqc(list.key, "containers") ? spec : AT_INDEX(&list, i),
                            "only cpu and memory resources are mutable");
    }
}

/* A node that reports the resources of running containers can also change them. */
static bool node_supports_resize(const struct json *pod)
{
    const struct json *statuses = json_at(pod, "status", "containerStatuses", NULL);
    for (uint32_t i = 0; i < json_len(statuses); i++)
        if (json_at(statuses->items[i], "state", "running", NULL))
            return json_get(statuses->items[i], "resources") != NULL;
    return true;
}

/* Static and Windows pods cannot be resized; the QoS class must stay. */
void kind_pod_check_resize(const struct kind_change *c, struct field_errors *errors)
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
    const char *class = podspec_qos_class(json_get(c->object, "spec"));
    const char *was = podspec_qos_class(json_get(c->old, "spec"));
    struct json shown = { .type = JSON_STR, .n = (uint32_t)strlen(was), .text = was };
    if (strcmp(class, was) != 0)
        field_invalid(errors, &spec, &shown,
                      "Pod QOS Class may not change as a result of resizing (would become %s)",
                      class);
    if (!node_supports_resize(c->old))
        field_forbidden(errors, &spec, "Pod running on node without support for resize");
    bool same = check_same_containers(c, "containers", &spec, errors);
    if (!check_same_containers(c, "initContainers", &spec, errors) || !same)
        return;
    check_resized_list(c, "containers", &spec, errors);
    check_resized_list(c, "initContainers", &spec, errors);
}
