/* The environment of containers (env, envFrom), and references to the pod's own fields and resources, which
 * variables and downward API volumes share.
 *
 * Both kinds of reference are checked against lists of what the kubelet can resolve; the list of fields
 * differs, because a variable cannot follow a change of labels or annotations and a file can. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* ---- fields of the pod */

/* Splits "metadata.labels['KEY']" into map and key; false if the path has no subscript. */
static bool split_subscript(str path, str *ret_map, str *ret_key)
{
    size_t open = str_find(path, S("['"));
    if (open == SIZE_MAX || !str_ends(path, S("']")) || path.n < open + 4)
        return false;
    *ret_map = str_upto(path, open);
    *ret_key = str_upto(str_from(path, open + 2), path.n - open - 4);
    return true;
}

/* fieldRef: a known field, and one that this kind of reference allows. */
void podspec_check_field_ref(const struct json *ref, const char *const *allowed,
                             const struct field_path *at, struct field_errors *errors)
{
    static const char *const known[] = {
        "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
        "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
        "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
        "status.podIP",         "status.podIPs",   "spec.host",          NULL
    };
    const struct json *value = json_get(ref, "fieldPath");
    str path = json_text(value), map = path, key = S("");
    bool one = split_subscript(path, &map, &key);
    bool of_map = str_eqc(map, known[0]) || str_eqc(map, known[1]);
    if (!path.n)
        field_required(errors, AT(at, "fieldPath"), NULL);
    else if (!str_eqc(json_text(json_get(ref, "apiVersion")), "v1") ||
             !format_is_one_of(map, known) || (one && (!of_map || format_qualified_name(key))))
        field_invalid(errors, AT(at, "fieldPath"), value,
                      "error converting fieldPath: field label not supported");
    else if (!one && !format_is_one_of(path, allowed))
        field_not_supported(errors, AT(at, "fieldPath"), value, allowed);
}

/* The units that a resource can be divided by; empty means one. */
static bool is_valid_divisor(str resource, str divisor)
{
    static const char *const of_cpu[] = { "0", "1", "1m", NULL };
    static const char *const of_bytes[] = { "0",   "1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                            "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL };
    return !divisor.n ||
           format_is_one_of(divisor, str_ends(resource, S(".cpu")) ? of_cpu : of_bytes);
}

/* resourceFieldRef: a standard resource and a unit of it; `ref` may be NULL. */
void podspec_check_resource_ref(const struct json *ref, bool names_container,
                                const struct field_path *at, struct field_errors *errors)
{
    static const char *const known[] = { "limits.cpu",
                                         "limits.ephemeral-storage",
                                         "limits.memory",
                                         "requests.cpu",
                                         "requests.ephemeral-storage",
                                         "requests.memory",
                                         NULL };
    const struct json *resource = json_get(ref, "resource"), *divisor = json_get(ref, "divisor");
    str text = json_text(resource);
    bool fits = format_is_one_of(text, known) || str_starts(text, S("limits.hugepages-")) ||
                str_starts(text, S("requests.hugepages-"));
    if (!ref)
        return;
    if (names_container && !json_text(json_get(ref, "containerName")).n)
        field_required(errors, AT(at, "containerName"), NULL);
    else if (!text.n)
        field_required(errors, AT(at, "resource"), NULL);
    else if (!fits)
        field_not_supported(errors, AT(at, "resource"), resource, known);
    if (fits && !is_valid_divisor(text, json_text(divisor)))
        field_invalid(errors, AT(at, "divisor"), divisor,
                      "only divisor's values that are a unit of the resource are supported");
}

/* ---- variables */

/* configMapKeyRef or secretKeyRef: the name of the object. */
static void check_key_ref(const struct json *from, const char *key, const struct field_path *up,
                          struct field_errors *errors)
{
    const struct json *ref = json_get(from, key);
    struct field_path at = { up, .key = str_c(key) };
    if (!ref)
        return;
    const struct json *name = json_get(ref, "name");
    if (format_dns_subdomain(json_text(name)))
        field_invalid(errors, AT(&at, "name"), name, "%s", format_dns_subdomain(json_text(name)));
}

/* valueFrom must have exactly one source. */
static void check_value_from(const struct json *from, const struct field_path *at,
                             struct field_errors *errors)
{
    static const char *const fields[] = { "metadata.name",  "metadata.namespace",
                                          "metadata.uid",   "spec.nodeName",
                                          "status.hostIP",  "spec.serviceAccountName",
                                          "status.hostIPs", "status.podIP",
                                          "status.podIPs",  NULL };
    if (!json_len(from))
        field_invalid(errors, at, from,
                      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                      "`secretKeyRef` or `fileKeyRef`");
    if (json_len(from) > 1)
        field_invalid(errors, at, from, "may not have more than one field specified at a time");
    if (json_get(from, "fieldRef"))
        podspec_check_field_ref(json_get(from, "fieldRef"), fields, AT(at, "fieldRef"), errors);
    podspec_check_resource_ref(json_get(from, "resourceFieldRef"), false,
                               AT(at, "resourceFieldRef"), errors);
    check_key_ref(from, "configMapKeyRef", at, errors);
    check_key_ref(from, "secretKeyRef", at, errors);
}

/* A variable has a value or a source, not both. */
static void check_env(const struct json *env, const struct field_path *up,
                      struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(env); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *from = json_get(env->items[i], "valueFrom");
        if (from && json_text(json_get(env->items[i], "value")).n)
            field_invalid(errors, AT(&at, "valueFrom"), from,
                          "may not be specified when `value` is not empty");
        else if (from)
            check_value_from(from, AT(&at, "valueFrom"), errors);
    }
}

/* Each entry of envFrom has exactly one source. */
static void check_env_from(const struct json *list, const struct field_path *up,
                           struct field_errors *errors)
{
    static const char *const sources[] = { "configMapRef", "secretRef" };
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        size_t n = 0;
        for (size_t j = 0; j < countof(sources); j++) {
            const struct json *name = json_at(list->items[i], sources[j], "name", NULL);
            struct field_path ref = { &at, .key = str_c(sources[j]) };
            n += json_get(list->items[i], sources[j]) != NULL;
            if (json_get(list->items[i], sources[j]) && !json_text(name).n)
                field_required(errors, AT(&ref, "name"), NULL);
            else if (name && format_dns_subdomain(json_text(name)))
                field_invalid(errors, AT(&ref, "name"), name, "%s",
                              format_dns_subdomain(json_text(name)));
        }
        if (n != 1) /* reported for the list */
            field_invalid(errors, up, json_new_str(errors->arena, S("")),
                          "must specify one of: `configMapRef` or `secretRef`");
    }
}

void podspec_check_env(const struct json *container, const struct field_path *at,
                       struct field_errors *errors)
{
    check_env(json_get(container, "env"), AT(at, "env"), errors);
    check_env_from(json_get(container, "envFrom"), AT(at, "envFrom"), errors);
}
