/* PATCH, in four formats. Three of them compute a new state from the old one, which is then written as by PUT;
 * apply (a configuration that belongs to a manager) computes field ownership itself and may create the object.
 *
 *     JSON patch, merge patch    run_patch -> check_version -> decode_result -> verb_update_object
 *     strategic merge patch      run_patch                  -> decode_result -> verb_update_object
 *     apply                      managed_apply -> check_nulls -> decode_result -> verb_update_object
 *                                                                              or verb_create_object
 *     any of them on a Scale     the same on a Scale made from the object; its replicas go back into a copy
 *
 * kube-apiserver decodes the result of the first two as text and the others by type; check_version and
 * patch_by_type reproduce the differences that clients can see. Patches are computed against store_latest(), so
 * two patches in one batch build on each other and conflict only if they name a resourceVersion. */
#include "../../json/merge.h"
#include "../../json/patch.h"
#include "../../json/strategic.h"
#include "../../json/yaml.h"
#include "convert.h"
#include "managed.h"
#include "read.h"
#include "verbs.h"
#include "write.h"

enum language { PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, PATCH_APPLY, PATCH_UNKNOWN };

/* PATCH_UNKNOWN: not a type for this kind; custom resources have no strategic merge patch. */
static enum language language_of(const struct call *c)
{
    static const struct {
        str type;
        enum language language;
    } t[] = {
        { { "application/json-patch+json", 27 }, PATCH_JSON },
        { { "application/merge-patch+json", 28 }, PATCH_MERGE },
        { { "application/strategic-merge-patch+json", 38 }, PATCH_STRATEGIC },
        { { "application/apply-patch+yaml", 28 }, PATCH_APPLY },
    };
    str type = call_content_type(c);
    for (size_t i = 0; i < countof(t); i++)
        if (str_eq(type, t[i].type))
            return t[i].language == PATCH_STRATEGIC && c->kind->custom ? PATCH_UNKNOWN
                                                                       : t[i].language;
    return PATCH_UNKNOWN;
}

/* quoted: kube-apiserver */
static void refuse_media_type(struct call *c)
{
    call_status(c, &(struct status){ .code = 415,
                                     .reason = "UnsupportedMediaType",
                                     .message = c->kind->custom
                                                    ? S("the body of the request was in an unknown "
                                                        "format - accepted media types include: "
                                                        "application/json-patch+json, "
                                                        "application/merge-patch+json, "
                                                        "application/apply-patch+yaml")
                                                    : S("the body of the request was in an unknown "
                                                        "format - accepted media types include: "
                                                        "application/json-patch+json, "
                                                        "application/merge-patch+json, "
                                                        "application/strategic-merge-patch+json, "
                                                        "application/apply-patch+yaml") });
}

/* fieldManager is required for apply, force is only allowed for apply. False: answered. */
static bool check_options(struct call *c, const struct write_options *o, enum language language)
{
    struct field_errors errors = { .arena = c->arena };
    if (language == PATCH_APPLY && !o->manager_given)
        field_required(&errors, &(struct field_path){ .key = S("fieldManager") },
                       "is required for apply patch");
    if (language != PATCH_APPLY && call_query(c, "force").p)
        field_forbidden(&errors, &(struct field_path){ .key = S("force") },
                        "may not be specified for non-apply patch");
    if (errors.n)
        call_invalid(c, S("PatchOptions"), S("meta.k8s.io"), S(""), &errors);
    return errors.n == 0;
}

struct duplicate {
    struct arena *arena;
    str key; /* the last that occurred twice; "": none */
};

/* Notes the last key that occurs twice in an applied configuration. */
static void note_duplicate(void *context, str path)
{
    struct duplicate *d = context;
    str part;
    while (str_cut(&path, '.', &part))
        d->key = part;
    d->key = arena_str(d->arena, d->key); /* the parser owns the path */
}

/* Parses the patch by its format. NULL: answered. */
static struct json *read_patch(struct call *c, const struct write_options *o,
                               enum language language)
{
    struct duplicate duplicate = { c->arena, S("") };
    struct json_limits limits = { .members = PATCH_OPERATIONS_MAX + 1, .context = &duplicate };
    if (language == PATCH_APPLY && (o->strict || o->warn))
        limits.duplicate = note_duplicate;
    struct json *patch = NULL;
    err_t e = { 0 };
    int result = language == PATCH_APPLY
                     ? yaml_parse_limited(c->arena, c->request->body, &limits, &patch, &e)
                     : json_parse_limited(c->arena, c->request->body, &limits, &patch, &e);
    if (result == 0 &&
        json_is(patch, JSON_NULL)) /* an empty patch in the two formats that are decoded by type */
        patch = language == PATCH_STRATEGIC ? json_new_obj(c->arena)
                : language == PATCH_JSON    ? json_new_arr(c->arena)
                                            : patch;
    if (result < 0)
        call_bad_request(c, "error decoding patch: %s", e.text);
    else if (language != PATCH_JSON && !json_is(patch, JSON_OBJ))
        call_bad_request(c, "error decoding patch: it must be an object, not %s",
                         json_type_name(patch));
    else if (duplicate.key.n && o->strict)
        call_bad_request(c,
                         "error strict decoding YAML: error converting YAML to JSON: yaml: "
                         "unmarshal errors: key \"" STR_FMT "\" already set in map",
                         STR_ARG(duplicate.key));
    else {
        if (duplicate.key.n)
            call_warn(c, arena_printf(c->arena, "key \"" STR_FMT "\" already set in map",
                                      STR_ARG(duplicate.key)));
        return patch;
    }
    return NULL;
}

/* The patch is valid but cannot be applied to this object. The errno of the patch decides the code. */
static void refuse_patch(struct call *c, int result, const err_t *e)
{
    struct status s = { .code = 422, .reason = "Invalid", .empty_details = true };
    s.message = arena_str(c->arena, str_c(e->text));
    if (result == -EINVAL) {
        s = (struct status){ .code = 400, .reason = "BadRequest", .message = s.message };
    } else if (result == -E2BIG) {
        s.code = 413;
        s.reason = "RequestEntityTooLarge";
    } else if (result == -EBADMSG) {
        s = (struct status){ .code = 500, .message = s.message };
    }
    call_status(c, &s);
}

/* The result of the patch is not an object of the kind. */
static void refuse_result(struct call *c, struct json *tree, const char *why)
{
    struct field_errors errors = { .arena = c->arena };
    field_invalid(&errors, &(struct field_path){ .key = S("patch") },
                  json_new_str(c->arena, str_upto(json_to_str(c->arena, tree), 1000)), "%s", why);
    call_invalid(c, S(""), S(""), S(""), &errors);
}

/* quoted: kube-apiserver */
static void refuse_unnamed(struct call *c)
{
    call_bad_request(c,
                     "the name of the object (" STR_FMT
                     " based on URL) was undeterminable: name must be provided",
                     STR_ARG(c->name));
}

/* The results of JSON and merge patches are decoded as text, where a missing kind is taken from the path
 * but a missing apiVersion is not. False: answered. */
static bool check_version(struct call *c, const struct write_options *o, struct json *tree)
{
    const struct json *version = json_get(tree, "apiVersion");
    if (c->kind->custom || !json_is(tree, JSON_OBJ) || (version && !json_is(version, JSON_STR)) ||
        json_text(version).n)
        return true;
    if (o->strict)
        refuse_result(c, tree, "apiVersion cannot be removed");
    else
        refuse_unnamed(c);
    return false;
}

/* The result of a strategic merge patch is never decoded as text: it has the type of the path whatever its
 * kind is, and integers are put into their fields whether they fit or not. */
static int patch_by_type(struct call *c, const struct kind *k, struct json **tree,
                         const struct json *patch, err_t *e)
{
    int code = strategic_patch(c->arena, schema_shape(k->schema), tree, patch, e);
    if (code < 0)
        return code;
    if (json_is(json_get(*tree, "kind"), JSON_STR))
        json_set_str(c->arena, *tree, "kind", k->kind);
    if (json_is(json_get(*tree, "apiVersion"), JSON_STR))
        json_set_str(c->arena, *tree, "apiVersion", kind_api_version(c->arena, k));
    schema_wrap_integers(k->schema, *tree);
    return 0;
}

/* The new state; the old tree is not changed. NULL: answered. */
static struct json *run_patch(struct call *c, enum language language, const struct kind *k,
                              struct json *old, const struct json *patch)
{
    struct json *result = old;
    err_t e = { 0 };
    int code = 0;
    if (language == PATCH_JSON)
        code = patch_apply(c->arena, old, patch, &result, &e);
    else if (language == PATCH_STRATEGIC)
        code = patch_by_type(c, k, &result, patch, &e);
    else
        result = merge_patch(c->arena, old, patch);
    if (code == 0)
        return result;
    refuse_patch(c, code, &e);
    return NULL;
}

/* The result of a patch must decode as the kind of the path. False: answered. */
static bool decode_result(struct call *c, const struct write_options *o, const struct kind *k,
                          struct json *tree)
{
    struct schema_unknown unknown = { .arena = c->arena };
    err_t e = { 0 };
    if (!k->custom && json_is(tree, JSON_OBJ)) { /* defaults: those of the path */
        if (!json_get(tree, "kind") || str_eq(json_text(json_get(tree, "kind")), S("")))
            json_set_str(c->arena, tree, "kind", k->kind);
        if (!json_get(tree, "apiVersion"))
            json_set_str(c->arena, tree, "apiVersion", kind_api_version(c->arena, k));
    }
    str kind = json_text(json_get(tree, "kind")), version = json_text(json_get(tree, "apiVersion"));
    bool same = str_eq(kind, k->kind) && str_eq(version, kind_api_version(c->arena, k));
    if (!json_is(tree, JSON_OBJ) || (!same && (!k->custom || !kind.n)) ||
        (json_get(tree, "apiVersion") && !json_is(json_get(tree, "apiVersion"), JSON_STR))) {
        refuse_result(c, tree, "kind and apiVersion cannot be changed");
        return false;
    }
    if (!same) {
        if (version.n)
            call_wrong_kind(c, k, tree);
        else
            call_status(c, &(struct status){ .code = 500,
                                             .reason = "InternalError",
                                             .message = S("Internal error occurred: the patch "
                                                          "takes the apiVersion away") });
        return false;
    }
    if (kind_decode(k, c->arena, tree, &unknown, &e) < 0) {
        refuse_result(c, tree, e.text);
        return false;
    }
    return call_validate_fields(c, k, o, &unknown, NULL, true);
}

/* Patches a Scale made from the object and writes its replicas into a copy of the object. */
static void patch_scale(struct call *c, const struct write_options *o, enum language language,
                        const struct object *old, const struct json *patch)
{
    struct json *tree = read_tree(c->arena, c->kind, old), *object = json_copy(c->arena, tree);
    struct kind_fault fault = { .errors.arena = c->arena };
    struct json *scale = kind_scale_of(c->kind, c->arena, tree, NULL);
    if (scale && (scale = run_patch(c, language, kind_scale_kind(), scale, patch))) {
        if (!decode_result(c, o, kind_scale_kind(), scale) || !write_check_scale(c, scale))
            return;
        kind_scale_apply(c->kind, c->arena, scale, object, &fault);
    } else if (!fault.code && !fault.errors.n) {
        return; /* answered */
    }
    if (fault.code || fault.errors.n) {
        call_fault(c, c->kind, c->name, &fault);
        return;
    }
    json_set(c->arena, json_make(c->arena, object, "metadata", NULL), S("resourceVersion"),
             json_new_str(c->arena,
                          json_text(json_at(scale, "metadata", "resourceVersion", NULL))));
    verb_update_object(c, &(struct object_update){ o, old, tree, object, .patched = true });
}

/* An applied configuration must have the kind and apiVersion of the path and, to create an object, a name.
 * False: answered. */
static bool check_config(struct call *c, const struct kind *k, const struct object *old,
                         const struct json *config)
{
    str kind = json_text(json_get(config, "kind")), wanted = kind_api_version(c->arena, k);
    str version = json_text(json_get(config, "apiVersion"));
    const struct json *given = json_at(config, "metadata", "name", NULL);
    if (!str_eq(kind, k->kind) || !str_eq(version, wanted))
        call_bad_request(c,
                         "the configuration has apiVersion \"" STR_FMT "\", kind \"" STR_FMT
                         "\"; expected apiVersion " STR_FMT ", kind " STR_FMT,
                         STR_ARG(version), STR_ARG(kind), STR_ARG(wanted), STR_ARG(k->kind));
    else if (!old && (!given || (given->type == JSON_STR &&
                                 !json_text(given).n))) /* managed_apply() refuses other types */
        refuse_unnamed(c);
    else
        return true;
    return false;
}

/* An applied configuration is not decoded as text, so a null is not the same as absent. A status that this write cannot
 * change is not looked at: clients of typed languages send "status": {"parents": null}. False: answered. */
static bool check_nulls(struct call *c, struct json *object)
{
    struct field_errors errors = { .arena = c->arena };
    if (c->kind->custom && c->sub == KIND_MAIN && c->kind->subresources & 1u << KIND_STATUS)
        json_del(object, S("status")); /* the stored one is restored later */
    if (c->kind->custom)
        schema_check_nulls(c->kind->schema, object, NULL, &errors);
    if (errors.n)
        call_invalid(c, c->kind->kind, c->kind->group, c->name, &errors);
    return errors.n == 0;
}

/* Server-side apply to the object or its status. The name and namespace are checked after ownership. */
static void apply_config(struct call *c, const struct write_options *o, const struct object *old,
                         struct json *config)
{
    if (!check_config(c, c->kind, old, config))
        return;
    struct json *metadata = json_make(c->arena, config, "metadata", NULL);
    str version = json_text(json_get(metadata, "resourceVersion"));
    if (!old && c->sub != KIND_MAIN) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    if (!old && json_text(json_get(metadata, "uid")).n) {
        call_conflict(
            c, c->kind, c->name,
            S("uid mismatch: the provided object specified a uid, and no existing object was "
              "found"));
        return;
    }
    struct json *tree = old ? read_tree(c->arena, c->kind, old) : NULL;
    struct json *object = managed_apply(c, o, tree, config);
    struct write_options told = *o;
    if (c->kind->custom) /* kube-apiserver does not report fields that it prunes here */
        told.warn = told.strict = false;
    if (!object || !write_check_place(c, config) || !check_nulls(c, object) ||
        !decode_result(c, &told, c->kind, object))
        return;
    if (!old) {
        json_del(json_make(c->arena, object, "metadata", NULL), S("resourceVersion"));
        c->managed_by_apply = true;
        verb_create_object(c, o, object);
        return;
    }
    if (version.n)
        json_set_str(c->arena, json_make(c->arena, object, "metadata", NULL), "resourceVersion",
                     version);
    verb_update_object(c, &(struct object_update){ o, old, tree, object, .patched = true,
                                                   .applied = true });
}

/* Applying a Scale makes the manager own the replicas of the object, so the configuration is translated
 * into one of the object's kind. */
static void apply_scale(struct call *c, const struct write_options *o, const struct object *old,
                        struct json *scale)
{
    struct arena *a = c->arena;
    struct kind_fault fault = { .errors.arena = a };
    if (!check_config(c, kind_scale_kind(), old, scale) || !write_check_scale(c, scale))
        return;
    struct json *tree = read_tree(a, c->kind, old), *config = json_new_obj(a);
    json_set_str(a, config, "apiVersion", kind_api_version(a, c->kind));
    json_set_str(a, config, "kind", c->kind->kind);
    json_set_str(a, json_make(a, config, "metadata", NULL), "name", c->name);
    const struct json *replicas = json_at(scale, "spec", "replicas", NULL);
    if (replicas && !json_is(replicas, JSON_INT) && !json_is(replicas, JSON_NULL)) {
        call_status(c, &(struct status){ .code = 500,
                                         .message = arena_printf(a,
                                                                 ".spec.replicas: expected an "
                                                                 "integer, got %s",
                                                                 json_type_name(replicas)) });
        return;
    }
    if (replicas)
        kind_scale_apply(c->kind, a, scale, config, &fault);
    if (fault.code || fault.errors.n) {
        call_fault(c, c->kind, c->name, &fault);
        return;
    }
    struct json *object = managed_apply(c, o, tree, config);
    if (object && replicas && c->kind->custom) { /* fails in kube-apiserver too */
        call_status(c, &(struct status){ .code = 500,
                                         .message = S("the scale of a custom resource cannot be "
                                                      "applied: patch or replace it") });
        return;
    }
    if (object && write_check_place(c, scale) && decode_result(c, o, c->kind, object))
        verb_update_object(c, &(struct object_update){ o, old, tree, object, .patched = true,
                                                       .applied = true });
}

void verb_patch(struct call *c)
{
    struct write_options o;
    enum language language = language_of(c);
    if (language == PATCH_UNKNOWN) {
        refuse_media_type(c);
        return;
    }
    if (!call_negotiate(c))
        return;
    if (!call_write_options(c, "PatchOptions", &o) || !check_options(c, &o, language))
        return;
    struct json *patch = read_patch(c, &o, language);
    if (!patch)
        return;
    const struct object *old =
        store_latest(c->server->store, catalog_key(c->arena, c->kind, c->ns, c->name));
    if (!convert_one(c, old))
        return;
    if (language == PATCH_APPLY && c->sub != KIND_SCALE) {
        apply_config(c, &o, old, patch);
        return;
    }
    if (!old) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    if (c->sub == KIND_SCALE) {
        if (language == PATCH_APPLY)
            apply_scale(c, &o, old, patch);
        else
            patch_scale(c, &o, language, old, patch);
        return;
    }
    struct json *tree = read_tree(c->arena, c->kind, old);
    struct json *object = run_patch(c, language, c->kind, tree, patch);
    if (object && language != PATCH_STRATEGIC && !check_version(c, &o, object))
        return;
    if (object && decode_result(c, &o, c->kind, object))
        verb_update_object(c, &(struct object_update){ &o, old, tree, object, .patched = true });
}
