/* Kinds with few rules of their own: Namespace, Node, ConfigMap, Secret, ServiceAccount,
 * PersistentVolumeClaim, Lease. Each section ends with the hooks of its kind.
 *
 * Two patterns recur. Some fields exist twice for historical reasons (podCIDR and podCIDRs, dataSource and
 * dataSourceRef), and the fill or prepare hook keeps them equal. And some fields can be set once but never
 * changed; where that depends on another field (`immutable` of a ConfigMap), it is checked here. */
#include "../schema/format.h"
#include "kind_hooks.h"
#include "quota.h"

#include "../../base/base64.h"
#include "../../base/quantity.h"

enum { CONFIG_BYTES_MAX = 1024 * 1024 };

/* ---- Namespace */

/* Every namespace has its own name as a label, so that selectors can find it. */
static void fill_namespace(struct arena *a, struct json *object)
{
    str name = json_text(json_at(object, "metadata", "name", NULL));
    if (name.n)
        json_set_str(a, json_make(a, object, "metadata", "labels", NULL),
                     "kubernetes.io/metadata.name", name);
}

/* The finalizer "kubernetes" keeps a namespace until it is empty; only /finalize may remove it. */
static void prepare_namespace(const struct kind_change *c, struct kind_env *env,
                              struct kind_fault *fault UNUSED)
{
    struct json *spec = json_make(env->arena, c->object, "spec", NULL);
    fill_namespace(env->arena, c->object);
    if (c->old && c->sub != KIND_FINALIZE) {
        const struct json *was = json_at(c->old, "spec", "finalizers", NULL);
        json_del(spec, S("finalizers"));
        if (was)
            json_set(env->arena, spec, S("finalizers"), json_copy(env->arena, was));
    } else if (!c->old) {
        struct json *finalizers = json_get(spec, "finalizers");
        if (!json_is(finalizers, JSON_ARR))
            json_set(env->arena, spec, S("finalizers"), finalizers = json_new_arr(env->arena));
        for (uint32_t i = 0; i < finalizers->n; i++)
            if (str_eqc(json_text(finalizers->items[i]), "kubernetes"))
                return;
        json_push(env->arena, finalizers, json_new_str(env->arena, S("kubernetes")));
    }
}

/* Finalizers, and a phase that agrees with deletionTimestamp. */
static void validate_namespace(const struct kind_change *c, struct kind_env *env UNUSED,
                               struct field_errors *errors)
{
    const struct json *phase = json_at(c->object, "status", "phase", NULL);
    bool terminating = json_at(c->object, "metadata", "deletionTimestamp", NULL);
    struct field_path at = { AT(NULL, "status"), .key = S("Phase") };
    const struct json *finalizers = json_at(c->object, "spec", "finalizers", NULL);
    struct field_path held = { AT(NULL, "spec"), .key = S("finalizers") };
    for (uint32_t i = 0; i < json_len(finalizers); i++)
        kind_check_finalizer(finalizers->items[i],
                             c->sub == KIND_FINALIZE ? AT_INDEX(&held, i) : &held, errors);
    if (c->sub == KIND_STATUS && !str_eqc(json_text(phase), terminating ? "Terminating" : "Active"))
        field_invalid(errors, &at, phase,
                      "may only be 'Active' or, if `deletionTimestamp` is set, 'Terminating'");
}

const struct kind_hooks kind_hooks_namespace = {
    .name = format_dns_label,
    .fill = fill_namespace,
    .prepare = prepare_namespace,
    .validate = validate_namespace,
};

/* ---- Node */

/* podCIDR and podCIDRs are kept in sync; allocatable defaults to capacity. */
static void fill_node(struct arena *a, struct json *object)
{
    /* podCIDR and podCIDRs[0] are the same range; the older field wins */
    struct json *spec = json_get(object, "spec"), *range = json_get(spec, "podCIDR");
    struct json *first = json_item(json_get(spec, "podCIDRs"), 0);
    if (json_text(range).n && !json_eq(range, first)) {
        struct json *ranges = json_new_arr(a);
        json_push(a, ranges, range);
        json_set(a, spec, S("podCIDRs"), ranges);
    } else if (first && !json_text(range).n) {
        json_set(a, spec, S("podCIDR"), first);
    }
    struct json *status = json_make(a, object, "status", NULL);
    const struct json *capacity = json_get(status, "capacity");
    if (capacity && !json_get(status, "allocatable"))
        json_set(a, status, S("allocatable"), json_copy(a, capacity));
}

static bool is_same_taint(const struct json *a, const struct json *b)
{
    return json_eq(json_get(a, "key"), json_get(b, "key")) &&
           json_eq(json_get(a, "effect"), json_get(b, "effect"));
}

/* Errors are reported below metadata.taints, as kube-apiserver does. The first duplicate ends the
 * check. */
static void check_taints(const struct json *taints, struct field_errors *errors)
{
    static const char *const effects[] = { "NoExecute", "NoSchedule", "PreferNoSchedule", NULL };
    struct field_path list = { AT(NULL, "metadata"), .key = S("taints") };
    struct seen keys = seen_new(errors->arena, 2);
    for (uint32_t i = 0; i < json_len(taints); i++) {
        struct field_path at = { &list, .index = i, .how = FIELD_INDEX };
        const struct json *effect = json_get(taints->items[i], "effect");
        bool known = false;
        kind_check_qualified(json_get(taints->items[i], "key"), AT(&at, "key"), errors);
        for (size_t j = 0; effects[j]; j++)
            known = known || str_eqc(json_text(effect), effects[j]);
        const struct json *value = json_get(taints->items[i], "value");
        if (format_label_value(json_text(value)))
            field_invalid(errors, AT(&at, "value"), value, "%s",
                          format_label_value(json_text(value)));
        if (!json_text(effect).n)
            field_required(errors, AT(&at, "effect"), NULL);
        else if (!known)
            field_not_supported(errors, AT(&at, "effect"), effect, effects);
        const struct json *parts[] = { json_get(taints->items[i], "key"), effect };
        if (seen_put(&keys, parts, i)) {
            field_duplicate(errors, &at, taints->items[i]);
            return;
        }
    }
}

/* No resource of a node is negative; the path has the name after a dot, unlike other maps. */
static void check_amounts(const struct json *status, const char *key, struct field_errors *errors)
{
    struct field_path at = { AT(NULL, "status"), .key = str_c(key) };
    const struct json *amounts = json_get(status, key);
    json_each(m, amounts)
        if (str_starts(json_text(m->value), S("-")))
            field_invalid(errors, &(struct field_path){ &at, .key = m->key }, m->value,
                          "must be greater than or equal to 0");
}

/* providerID and podCIDRs can be set once. */
static void validate_node(const struct kind_change *c, struct kind_env *env UNUSED,
                          struct field_errors *errors)
{
    struct field_path spec = { NULL, .key = S("spec") };
    const struct json *was = json_at(c->old, "spec", "providerID", NULL);
    if (c->sub != KIND_STATUS && json_text(was).n &&
        !json_eq(was, json_at(c->object, "spec", "providerID", NULL)))
        field_forbidden(errors, AT(&spec, "providerID"), "may not be changed once set");
    for (int i = 0; i < (c->old ? 2 : 1); i++) /* kube-apiserver reports updates twice */
        check_taints(json_at(c->object, "spec", "taints", NULL), errors);
    const struct json *ranges = json_at(c->object, "spec", "podCIDRs", NULL);
    check_amounts(json_get(c->object, "status"), "capacity", errors);
    check_amounts(json_get(c->object, "status"), "allocatable", errors);
    const struct json *had = json_at(c->old, "spec", "podCIDRs", NULL);
    if (c->sub != KIND_STATUS && json_len(had) && !json_eq(had, ranges))
        field_forbidden(errors, AT(&spec, "podCIDRs"), "may not be changed once set");
}

/* A new node is tainted until its kubelet reports that it is ready. */
static void prepare_node(const struct kind_change *c, struct kind_env *env,
                         struct kind_fault *fault UNUSED)
{
    struct arena *a = env->arena;
    if (c->old)
        return;
    struct json *spec = json_make(a, c->object, "spec", NULL), *taints = json_get(spec, "taints");
    struct json *taint = json_new_obj(a);
    json_set_str(a, taint, "key", S("node.kubernetes.io/not-ready"));
    json_set_str(a, taint, "effect", S("NoSchedule"));
    if (!json_is(taints, JSON_ARR))
        json_set(a, spec, S("taints"), taints = json_new_arr(a));
    for (uint32_t i = 0; i < taints->n; i++)
        if (is_same_taint(taints->items[i], taint))
            return;
    json_push(a, taints, taint);
}

const struct kind_hooks kind_hooks_node = {
    .fill = fill_node,
    .prepare = prepare_node,
    .validate = validate_node,
    .status_on_create = true,
    .metadata_twice = true,
};

/* ---- ConfigMap, Secret */

/* Size of the values; the limit of a ConfigMap or Secret is 1 MiB. */
static size_t sum_values(const struct json *map)
{
    size_t bytes = 0;
    json_each(m, map)
        bytes += json_text(m->value).n;
    return bytes;
}

/* Once `immutable` is true, it cannot be unset and the data cannot change. */
static void check_immutable_data(const struct kind_change *c, const char *const *fields,
                                 struct field_errors *errors)
{
    if (!json_bool(json_get(c->old, "immutable"), false))
        return;
    if (!json_bool(json_get(c->object, "immutable"), false))
        field_forbidden(errors, AT(NULL, "immutable"),
                        "field is immutable when `immutable` is set");
    for (; *fields; fields++)
        if (!json_eq(json_get(c->object, *fields), json_get(c->old, *fields)))
            field_forbidden(errors, &(struct field_path){ NULL, .key = str_c(*fields) },
                            "field is immutable when `immutable` is set");
}

/* Keys are unique across data and binaryData, and the total size is limited. */
static void validate_configmap(const struct kind_change *c, struct kind_env *env UNUSED,
                               struct field_errors *errors)
{
    static const char *const fields[] = { "data", "binaryData", NULL };
    const struct json *data = json_get(c->object, "data");
    const struct json *binary = json_get(c->object, "binaryData");
    size_t bytes = sum_values(data) + sum_values(binary) / 4 * 3; /* base64 */
    json_each(m, binary) {
        struct json key = { .type = JSON_STR, .n = (uint32_t)m->key.n, .text = m->key.p };
        if (json_get_str(data, m->key))
            field_invalid(errors, AT_KEY(AT(NULL, "data"), m->key), &key,
                          "duplicate of key present in binaryData");
    }
    if (bytes > CONFIG_BYTES_MAX)
        field_too_long(errors, NULL, CONFIG_BYTES_MAX);
    if (c->old)
        check_immutable_data(c, fields, errors);
}

const struct kind_hooks kind_hooks_configmap = {
    .validate = validate_configmap,
    .metadata_twice = true,
};

/* stringData is write-only: it is merged into data. */
static void fill_secret(struct arena *a, struct json *object)
{
    json_each(m, json_get(object, "stringData")) {
        auto_buf struct buf text = { 0 };
        base64_encode(&text, json_text(m->value));
        json_set(a, json_make(a, object, "data", NULL), m->key, json_new_str(a, buf_str(&text)));
    }
    json_del(object, S("stringData"));
}

/* True if base64 text decodes to a JSON document. */
static bool holds_json(struct arena *a, const struct json *base64)
{
    auto_buf struct buf text = { 0 };
    struct json *value;
    return base64_decode(&text, json_text(base64)) == 0 &&
           json_parse(a, buf_str(&text), &value, NULL) == 0;
}

/* Keys that secrets of a known type must have, and what they must contain. */
static void check_secret_type(const struct json *object, struct field_errors *errors)
{
    static const struct {
        const char *type, *keys[2];
    } types[] = {
        { "kubernetes.io/dockercfg", { ".dockercfg" } },
        { "kubernetes.io/dockerconfigjson", { ".dockerconfigjson" } },
        { "kubernetes.io/ssh-auth", { "ssh-privatekey" } },
        { "kubernetes.io/tls", { "tls.crt", "tls.key" } },
    };
    str type = json_text(json_get(object, "type"));
    const struct json *data = json_get(object, "data");
    struct field_path at = { NULL, .key = S("data") };
    for (size_t i = 0; i < countof(types); i++)
        for (size_t j = 0; j < 2 && types[i].keys[j] && str_eqc(type, types[i].type); j++)
            if (!json_get(data, types[i].keys[j]))
                field_required(errors, AT_KEY(&at, str_c(types[i].keys[j])), NULL);
    static const char account[] = "kubernetes.io/service-account.name";
    if (str_eqc(type, "kubernetes.io/service-account-token") &&
        !json_text(json_at(object, "metadata", "annotations", account, NULL)).n)
        field_required(errors, AT_KEY(AT(AT(NULL, "metadata"), "annotations"), str_c(account)),
                       NULL);
    for (size_t i = 0; i < 2; i++) /* the first two types hold JSON */
        if (str_eqc(type, types[i].type) && json_get(data, types[i].keys[0]) &&
            !holds_json(errors->arena, json_get(data, types[i].keys[0])))
            field_invalid(errors, AT_KEY(&at, str_c(types[i].keys[0])),
                          json_new_str(errors->arena, S("<secret contents redacted>")),
                          "must be valid JSON");
    if (str_eqc(type, "kubernetes.io/basic-auth") && !json_get(data, "username") &&
        !json_get(data, "password")) {
        field_required(errors, AT_KEY(&at, S("username")), NULL);
        field_required(errors, AT_KEY(&at, S("password")), NULL);
    }
}

static void validate_secret(const struct kind_change *c, struct kind_env *env UNUSED,
                            struct field_errors *errors)
{
    static const char *const fields[] = { "data", NULL };
    size_t bytes = sum_values(json_get(c->object, "data")) / 4 * 3;
    if (bytes > CONFIG_BYTES_MAX)
        field_too_long(errors, AT(NULL, "data"), CONFIG_BYTES_MAX);
    check_secret_type(c->object, errors);
    if (c->old)
        check_immutable_data(c, fields, errors);
}

const struct kind_hooks kind_hooks_secret = {
    .fill = fill_secret,
    .validate = validate_secret,
    .metadata_twice = true,
};

const struct kind_hooks kind_hooks_serviceaccount = { .metadata_twice = true };

/* ---- PersistentVolumeClaim */

/* The requested size. */
static const struct json *storage_of(const struct json *claim)
{
    return json_at(claim, "spec", "resources", "requests", "storage", NULL);
}

/* Compares two quantities; a missing one counts as zero. */
static int compare_quantities(const struct json *a, const struct json *b)
{
    struct quantity x, y;
    bool some = quantity_parse(json_text(a), &x, NULL) == 0;
    bool others = quantity_parse(json_text(b), &y, NULL) == 0;
    return some && others ? quantity_cmp(&x, &y)
           : some         ? !quantity_is_zero(&x)
           : others       ? -!quantity_is_zero(&y)
                          : 0;
}

/* Bound to a volume, according to its status. */
static bool is_bound(const struct json *claim)
{
    return str_eqc(json_text(json_at(claim, "status", "phase", NULL)), "Bound");
}

/* A claim may be bound to a volume and get a class while it has none; a bound claim may shrink
 * back to its capacity (it may not grow: see prepare_pvc). Nothing else changes. */
static void check_claim_change(const struct kind_change *c, const struct field_path *spec,
                               struct field_errors *errors)
{
    struct json *new = json_copy(errors->arena, json_get(c->object, "spec"));
    struct json *old = json_copy(errors->arena, json_get(c->old, "spec"));
    if (is_bound(c->old) && storage_of(c->old) && storage_of(c->object)) {
        struct json *requests = json_make(errors->arena, new, "resources", "requests", NULL);
        json_set(errors->arena, requests, S("storage"),
                 json_copy(errors->arena, storage_of(c->old)));
    }
    if (compare_quantities(storage_of(c->object), storage_of(c->old)) < 0 &&
        compare_quantities(storage_of(c->object),
                           json_at(c->old, "status", "capacity", "storage", NULL)) <= 0)
        field_forbidden(errors, AT(AT(AT(spec, "resources"), "requests"), "storage"),
                        "field can not be less than status.capacity");
    if (!json_text(json_get(old, "volumeName")).n)
        json_del(new, S("volumeName"));
    if (!json_get(old, "storageClassName") && !is_bound(c->old))
        json_del(new, S("storageClassName"));
    if (!json_eq(new, old))
        field_forbidden(errors, spec,
                        "spec is immutable after creation except resources.requests and "
                        "volumeAttributesClassName for bound claims");
    kind_check_immutable(json_get(new, "volumeMode"), json_get(old, "volumeMode"),
                         AT(NULL, "volumeMode"), errors);
}

static bool list_has(const struct json *list, str word)
{
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(list->items[i]), word))
            return true;
    return false;
}

static bool is_claim(const struct json *source)
{
    return !json_text(json_get(source, "apiGroup")).n &&
           str_eqc(json_text(json_get(source, "kind")), "PersistentVolumeClaim");
}

/* dataSource and dataSourceRef name the same object; a client may set either. An unsupported
 * dataSource is dropped from a new claim, as older versions did. */
static void sync_data_sources(struct arena *a, struct json *spec, bool created)
{
    struct json *old = json_get(spec, "dataSource"), *new = json_get(spec, "dataSourceRef");
    if (json_text(json_get(new, "namespace")).n) {
        if (created)
            json_del(spec, S("dataSourceRef")); /* another namespace: an alpha feature, disabled */
        return;
    }
    bool snapshot = str_eqc(json_text(json_get(old, "kind")), "VolumeSnapshot") &&
                    str_eqc(json_text(json_get(old, "apiGroup")), "snapshot.storage.k8s.io");
    if (created && old && !new && !is_claim(old) && !snapshot)
        json_del(spec, S("dataSource"));
    else if (old && !new)
        json_set(a, spec, S("dataSourceRef"), json_copy(a, old));
    else if (new && !old)
        json_set(a, spec, S("dataSource"), json_copy(a, new));
}

/* Both sources must be complete and equal. */
static void check_sources(const struct json *claim, const struct field_path *spec,
                          struct field_errors *errors)
{
    static const char *const keys[] = { "dataSource", "dataSourceRef" };
    const struct json *old = json_get(claim, keys[0]), *new = json_get(claim, keys[1]);
    for (size_t i = 0; i < countof(keys); i++) {
        const struct json *source = i ? new : old, *kind = json_get(source, "kind");
        struct field_path at = { spec, .key = str_c(keys[i]) };
        if (source && !json_text(json_get(source, "apiGroup")).n && !is_claim(source))
            field_invalid(errors, &at, kind,
                          "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if (old && new && !json_eq(old, new))
        field_invalid(errors, spec, claim, "dataSource must match dataSourceRef");
}

/* The rules of a claim spec that hold on create and on update. */
void kind_check_claim(const struct json *object, const struct field_path *spec,
                      struct field_errors *errors)
{
    static const char *const modes[] = { "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                         "ReadWriteOncePod", NULL };
    const struct json *wanted = json_get(object, "accessModes");
    check_sources(object, spec, errors);
    if (json_get(object, "selector"))
        kind_check_selector(json_get(object, "selector"), AT(spec, "selector"), errors);
    if (!json_len(wanted))
        field_required(errors, AT(spec, "accessModes"), "at least 1 access mode is required");
    for (uint32_t i = 0; i < json_len(wanted); i++) {
        bool known = false;
        for (size_t j = 0; modes[j]; j++)
            known = known || str_eqc(json_text(wanted->items[i]), modes[j]);
        if (!known)
            field_not_supported(errors, AT(spec, "accessModes"), wanted->items[i], modes);
    }
    if (json_len(wanted) > 1 && list_has(wanted, S("ReadWriteOncePod")))
        field_forbidden(errors, AT(spec, "accessModes"),
                        "may not use ReadWriteOncePod with other access modes");
    const struct json *storage = json_at(object, "resources", "requests", "storage", NULL);
    struct field_path resources = { spec, .key = S("resources") };
    if (!storage)
        field_required(errors, AT_KEY(&resources, S("storage")), NULL);
    else if (str_starts(json_text(storage), S("-")) || str_eqc(json_text(storage), "0"))
        field_invalid(errors, AT_KEY(&resources, S("storage")), storage,
                      "must be greater than zero");
}

static void validate_pvc(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    struct field_path spec = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS)
        return;
    kind_check_claim(json_get(c->object, "spec"), &spec, errors);
    if (c->old)
        check_claim_change(c, &spec, errors);
}

/* Adds the protection finalizer (see controllers/claim.c). No storage class exists here, so no
 * claim can grow. */
static void prepare_pvc(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    struct arena *a = env->arena;
    struct json *metadata = json_make(a, c->object, "metadata", NULL), *list;
    if (c->old && c->sub == KIND_MAIN && is_bound(c->old) &&
        compare_quantities(storage_of(c->object), storage_of(c->old)) > 0)
        kind_fault_set(fault, 403, "Forbidden",
                       arena_printf(a,
                                    "persistentvolumeclaims \"" STR_FMT
                                    "\" is forbidden: only dynamically provisioned pvc can be "
                                    "resized and the storageclass that provisions the pvc must "
                                    "support resize",
                                    STR_ARG(json_text(json_get(metadata, "name")))));
    if (c->sub == KIND_MAIN)
        sync_data_sources(a, json_make(a, c->object, "spec", NULL), !c->old);
    if (c->old)
        return;
    const struct kind *ranges = kinds_find(S(""), S("v1"), S("limitranges"));
    str ns = json_text(json_get(metadata, "namespace"));
    str why = env->list
                  ? kind_limits_refusal(a, env->list(env->context, ranges, ns), c->kind, c->object)
                  : S("");
    if (why.n)
        kind_fault_set(fault, 403, "Forbidden",
                       arena_printf(a,
                                    "persistentvolumeclaims \"" STR_FMT "\" is forbidden: " STR_FMT,
                                    STR_ARG(json_text(json_get(metadata, "name"))), STR_ARG(why)));
    if (!(list = json_get(metadata, "finalizers")))
        json_set(a, metadata, S("finalizers"), list = json_new_arr(a));
    if (!list_has(list, S("kubernetes.io/pvc-protection")))
        json_push(a, list, json_new_str(a, S("kubernetes.io/pvc-protection")));
}

const struct kind_hooks kind_hooks_pvc = {
    .prepare = prepare_pvc,
    .validate = validate_pvc,
    .metadata_twice = true,
};

/* ---- Lease */

/* Fields of coordinated leader election, which is disabled. */
static void fill_lease(struct arena *a UNUSED, struct json *object)
{
    json_del(json_get(object, "spec"), S("strategy"));
    json_del(json_get(object, "spec"), S("preferredHolder"));
}

const struct kind_hooks kind_hooks_lease = { .fill = fill_lease };
