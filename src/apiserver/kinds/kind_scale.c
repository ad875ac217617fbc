/* The scale subresource: the replicas of a workload as an autoscaling/v1 Scale. A custom resource declares the
 * paths of the numbers in its definition; such a path is dotted names only, which crd_check.c ensures. */
#include "../schema/types.h"
#include "kind_hooks.h"
#include "table_columns.h"

/* NULL if the path leads nowhere. */
static struct json *get_at_path(const struct json *object, str path)
{
    str rest = str_starts(path, S(".")) ? str_from(path, 1) : path, key;
    struct json *value = (struct json *)object;
    while (value && rest.n && str_cut(&rest, '.', &key))
        value = json_get_str(value, key);
    return rest.n ? NULL : value;
}

/* Creates the objects on the way. */
static void set_at_path(struct arena *a, struct json *object, str path, struct json *value)
{
    str rest = str_starts(path, S(".")) ? str_from(path, 1) : path, key;
    while (str_cut(&rest, '.', &key)) {
        if (!rest.n) {
            json_set(a, object, key, value);
            return;
        }
        struct json *child = json_get_str(object, key);
        if (!json_is(child, JSON_OBJ))
            json_set(a, object, key, child = json_new_obj(a));
        object = child;
    }
}

/* A selector object as text; a custom resource stores the text itself. */
static str get_selector_text(const struct kind *k, struct arena *a, const struct json *object)
{
    const struct json *selector = get_at_path(object, k->scale_selector_path);
    if (str_eqc(k->kind, "ReplicationController")) { /* a plain map of labels */
        struct json *labels = json_new_obj(a);
        json_set(a, labels, S("matchLabels"), json_copy(a, selector));
        return kind_selector_text(a, labels);
    }
    return json_is(selector, JSON_OBJ) ? kind_selector_text(a, selector) : json_text(selector);
}

/* Builds the Scale: identity from metadata, replicas and selector from the paths. */
struct json *kind_scale_of(const struct kind *k, struct arena *a, const struct json *object,
                           struct kind_fault *ret_fault)
{
    static const char *const copied[] = { "name", "namespace", "uid", "resourceVersion",
                                          "creationTimestamp" };
    const struct json *replicas = get_at_path(object, k->scale_spec_path);
    if (ret_fault)
        *ret_fault = (struct kind_fault){ .errors.arena = a };
    if (ret_fault && k->custom && !json_is(replicas, JSON_INT)) {
        kind_fault_set(ret_fault, 500, "InternalError",
                       arena_printf(a,
                                    "the spec replicas field \"" STR_FMT
                                    "\" does not exist or is not an integer",
                                    STR_ARG(k->scale_spec_path)));
        return NULL;
    }
    struct json *scale = json_new_obj(a);
    json_set_str(a, scale, "kind", S("Scale"));
    json_set_str(a, scale, "apiVersion", S("autoscaling/v1"));
    struct json *metadata = json_make(a, scale, "metadata", NULL);
    for (size_t i = 0; i < countof(copied); i++) {
        const struct json *value = json_at(object, "metadata", copied[i], NULL);
        if (value)
            json_set(a, metadata, str_c(copied[i]), json_copy(a, value));
    }
    struct json *spec = json_make(a, scale, "spec", NULL);
    struct json *status = json_make(a, scale, "status", NULL);
    if (json_int(replicas, 0)) /* a Scale omits zero */
        json_set_int(a, spec, "replicas", json_int(replicas, 0));
    json_set_int(a, status, "replicas", json_int(get_at_path(object, k->scale_status_path), 0));
    str selector = get_selector_text(k, a, object);
    if (selector.n)
        json_set_str(a, status, "selector", selector);
    return scale;
}

/* Writes spec.replicas of the Scale into the object; a negative number is refused in the name of
 * the Scale. */
void kind_scale_apply(const struct kind *k, struct arena *a, const struct json *scale,
                      struct json *object, struct kind_fault *ret_fault)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *replicas = json_at(scale, "spec", "replicas", NULL);
    *ret_fault = (struct kind_fault){ .errors.arena = a };
    set_at_path(a, object, k->scale_spec_path, json_new_int(a, json_int(replicas, 0)));
    if (json_int(replicas, 0) >= 0)
        return;
    if (!k->custom) {
        field_invalid(&ret_fault->errors, AT(&at, "replicas"), replicas,
                      "must be greater than or equal to 0");
        kind_fault_set(ret_fault, 422, "Invalid", field_summary(a, &ret_fault->errors));
        ret_fault->about = kind_scale_kind();
    }
}

/* Scale is not served by itself; it exists as a body of /scale only. */
const struct kind *kind_scale_kind(void)
{
    static struct kind scale;
    if (!scale.schema)
        scale = (struct kind){
            .group = S("autoscaling"),
            .version = S("v1"),
            .kind = S("Scale"),
            .list_kind = S("ScaleList"),
            .namespaced = true,
            .schema = types_schema("autoscaling.v1.Scale"),
            .storage = &scale,
            .columns = table_columns_scale.at,
            .n_columns = table_columns_scale.n,
            .cells = table_columns_scale.cells,
        };
    return &scale;
}
