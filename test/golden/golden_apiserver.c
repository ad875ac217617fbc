/* What the embedded API server must refuse as a real one does: mbcas-resize-validation. */
#include "golden.h"

#include "apiserver/kinds/kind_hooks.h"

static struct json *pod_of(struct golden *g, const struct json *in, const char *side)
{
    struct arena *a = g->arena;
    struct json *pod = json_new_obj(a), *containers = json_new_arr(a);
    json_set_str(a, json_make(a, pod, "metadata", NULL), "name", S("p"));
    if (json_bool(json_get(in, "mirror_pod"), false))
        json_set_str(a, json_make(a, pod, "metadata", "annotations", NULL),
                     "kubernetes.io/config.mirror", S("x"));
    const struct json *list = json_get(in, side);
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct json *container = json_new_obj(a);
        json_set(a, container, S("name"), json_get(list->items[i], "name"));
        json_set_str(a, container, "image", S("i"));
        struct json *resources = json_make(a, container, "resources", NULL);
        for (const char *const *key = (const char *const[]){ "requests", "limits", NULL }; *key;
             key++)
            if (json_len(json_get(list->items[i], *key)))
                json_set(a, resources, str_c(*key), json_get(list->items[i], *key));
        json_push(a, containers, container);
    }
    json_set(a, json_make(a, pod, "spec", NULL), S("containers"), containers);
    if (json_bool(json_get(in, "running"), false)) {
        struct json *status = json_new_obj(a), *statuses = json_new_arr(a);
        json_make(a, status, "state", "running", NULL);
        if (json_bool(json_get(in, "status_has_resources"), false))
            json_make(a, status, "resources", NULL);
        json_push(a, statuses, status);
        json_set(a, json_make(a, pod, "status", NULL), S("containerStatuses"), statuses);
    }
    return pod;
}

/* "path: Reason" of both sides, so that only our words may differ. */
static str wanted_fault(struct arena *a, str error)
{
    str path = str_upto(error, str_find(error, S(": "))), rest = str_from(error, path.n + 2);
    const char *reason = str_starts(rest, S("Forbidden"))  ? "FieldValueForbidden"
                         : str_starts(rest, S("Required")) ? "FieldValueRequired"
                                                           : "FieldValueInvalid";
    if (str_starts(error, S("<nil>")))
        path = S("");
    return arena_printf(a, STR_FMT " %s", STR_ARG(path), reason);
}

static void run_resize(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *errors = json_get(want, "errors");
    struct json *old = pod_of(g, in, "old"), *object = pod_of(g, in, "new");
    struct kind_change change = { kinds_find(S(""), S("v1"), S("pods")), KIND_RESIZE, object, old };
    struct kind_env env = { .arena = g->arena };
    struct kind_fault fault;
    kind_validate(&change, &env, &fault);
    golden_eq_bool(g, "valid", fault.code == 0, json_get(want, "valid"));
    golden_eq_str(g, "qos_old", str_c(podspec_qos_class(json_get(old, "spec"))),
                  json_get(want, "qos_old"));
    golden_eq_str(g, "qos_new", str_c(podspec_qos_class(json_get(object, "spec"))),
                  json_get(want, "qos_new"));
    golden_ok(g, fault.errors.n == json_len(errors), "%zu errors, want %zu", fault.errors.n,
              json_len(errors));
    for (uint32_t i = 0; i < json_len(errors); i++) {
        str wanted = wanted_fault(g->arena, json_text(errors->items[i]));
        bool found = false;
        for (size_t j = 0; j < fault.errors.n; j++)
            found = found ||
                    str_eq(wanted,
                           arena_printf(g->arena, STR_FMT " %s", STR_ARG(fault.errors.at[j].path),
                                        field_reason_word(fault.errors.at[j].reason)));
        golden_ok(g, found, "missing: " STR_FMT, STR_ARG(json_text(errors->items[i])));
    }
}

const struct golden_family golden_apiserver[] = {
    { "mbcas-resize-validation", run_resize },
    { 0 },
};
