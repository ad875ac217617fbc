/* Request bodies: JSON, YAML or protobuf, decoded into a tree of the kind that the path names.
 *
 * A body passes three gates, each with its own answer:
 *
 *     parse_body       media type unknown: 415; syntax error: 400
 *     check_type       kind or apiVersion is not that of the path: 400, or 422 for the kind of a custom resource
 *     kind_decode      a field has the wrong type: 400
 *
 * Fields that the type does not have are dropped. Depending on fieldValidation the client gets a warning per
 * field, a 400 (or 422 for a patch), or nothing. Limits on members and managers bound the work that a small
 * body can cause. The texts are kube-apiserver's. */
#include "call.h"

#include "../../json/yaml.h"
#include "../kinds/protobuf.h"

enum {
    MEMBERS_MAX = 16384,     /* of one object or array */
    MANAGERS_MAX = 1024,     /* entries of managedFields, the limit of json/apply.h */
    FIELD_WARNINGS_MAX = 50, /* unknown or duplicate fields that are reported */
};

/* Called by the parser for each key that occurs twice in an object. */
static void note_duplicate(void *context, str path)
{
    struct schema_unknown *duplicates = context;
    if (!schema_unknown_has_room(duplicates))
        return;
    duplicates->bytes += path.n;
    if (duplicates->n == duplicates->cap) {
        duplicates->cap = MAX(duplicates->cap * 2, (size_t)8);
        str *more = arena_array(duplicates->arena, duplicates->cap, sizeof(*more));
        if (duplicates->n)
            memcpy(more, duplicates->paths, duplicates->n * sizeof(*more));
        duplicates->paths = more;
    }
    duplicates->paths[duplicates->n++] = arena_str(duplicates->arena, path);
}

static void refuse_media_type(struct call *c)
{
    call_status(c,
                &(struct status){ .code = 415,
                                  .reason = "UnsupportedMediaType",
                                  .message = S("the body of the request was in an unknown format - "
                                               "accepted media types include: application/json, "
                                               "application/yaml, "
                                               "application/vnd.kubernetes.protobuf") });
}

/* Parses the body by its media type. -ENOTSUP: not a type for this kind; custom resources have no protobuf
 * form. */
static int parse_body(struct call *c, struct schema_unknown *duplicates, struct json **ret,
                      err_t *e)
{
    struct json_limits limits = { .members = MEMBERS_MAX };
    str type = call_content_type(c), body = c->request->body;
    if (duplicates) {
        limits.duplicate = note_duplicate;
        limits.context = duplicates;
    }
    if (str_eq(type, S("application/vnd.kubernetes.protobuf")))
        return c->kind && c->kind->custom ? -ENOTSUP : protobuf_decode(c->arena, body, ret, e);
    if (str_eq(type, S("application/yaml")))
        return yaml_parse_limited(c->arena, body, &limits, ret, e);
    if (type.n && !str_eq(type, S("application/json")))
        return -ENOTSUP;
    return json_parse_limited(c->arena, body, &limits, ret, e);
}

struct json *call_body_tree(struct call *c)
{
    struct json *tree = NULL;
    err_t e = { 0 };
    int result = parse_body(c, NULL, &tree, &e);
    if (result == -ENOTSUP)
        refuse_media_type(c);
    else if (result < 0)
        call_bad_request(c, "couldn't get version/kind; json parse error: %s", e.text);
    return result < 0 ? NULL : tree;
}

/* kube-apiserver reports a wrong kind of a custom resource as invalid fields. */
void call_wrong_kind(struct call *c, const struct kind *k, const struct json *tree)
{
    struct field_errors errors = { .arena = c->arena };
    const struct json *kind = json_get(tree, "kind"), *version = json_get(tree, "apiVersion");
    str wanted = kind_api_version(c->arena, k), group = json_text(version);
    if (!str_eq(json_text(version), wanted))
        field_invalid(&errors, &(struct field_path){ .key = S("apiVersion") }, version,
                      "must be " STR_FMT, STR_ARG(wanted));
    if (!str_eq(json_text(kind), k->kind))
        field_invalid(&errors, &(struct field_path){ .key = S("kind") }, kind, "must be " STR_FMT,
                      STR_ARG(k->kind));
    size_t slash = str_find_char(group, '/');
    call_invalid(c, json_text(kind), slash == SIZE_MAX ? S("") : str_upto(group, slash),
                 json_text(json_at(tree, "metadata", "name", NULL)), &errors);
}

/* kind and apiVersion must be those of the path; built-in kinds may leave them out. False: answered. */
static bool check_type(struct call *c, const struct kind *k, struct json *tree)
{
    if (!k->custom && json_is(tree, JSON_NULL))
        *tree = *json_new_obj(c->arena);
    str kind = json_text(json_get(tree, "kind")), version = json_text(json_get(tree, "apiVersion"));
    str wanted = kind_api_version(c->arena, k);
    static const char *const names[] = { "kind", "apiVersion" };
    for (size_t i = 0; i < countof(names); i++) {
        const struct json *name = json_get(tree, names[i]);
        if (!name || json_is(name, JSON_STR) || json_is(name, JSON_NULL))
            continue;
        call_bad_request(c,
                         "the object provided is unrecognized (must be of type " STR_FMT
                         "): %s is not a string but %s",
                         STR_ARG(k->kind), names[i], json_type_name(name));
        return false;
    }
    if (!json_is(tree, JSON_OBJ)) {
        call_bad_request(c,
                         "the object provided is unrecognized (must be of type " STR_FMT
                         "): it is not an object but %s",
                         STR_ARG(k->kind), json_type_name(tree));
        return false;
    }
    if (k->custom && !kind.n) {
        call_bad_request(c,
                         "the object provided is unrecognized (must be of type " STR_FMT
                         "): Object 'Kind' is missing",
                         STR_ARG(k->kind));
        return false;
    }
    if ((version.n || k->custom) && !str_eq(version, wanted)) {
        call_bad_request(c,
                         "the API version in the data (" STR_FMT
                         ") does not match the expected API version (" STR_FMT ")",
                         STR_ARG(version), STR_ARG(wanted));
        return false;
    }
    if (kind.n && !str_eq(kind, k->kind)) {
        if (!k->custom) {
            call_bad_request(c,
                             STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT,
                             STR_ARG(kind), STR_ARG(k->version), STR_ARG(k->kind));
            return false;
        }
        call_wrong_kind(c, k, tree);
        return false;
    }
    json_set_str(c->arena, tree, "kind", k->kind);
    json_set_str(c->arena, tree, "apiVersion", wanted);
    return true;
}

static str describe_field(struct arena *a, const char *what, str path)
{
    return arena_printf(a, "%s field \"" STR_FMT "\"", what, STR_ARG(path));
}

/* 400 with all fields in one message; for a patch, 422 with the message as the value's fault. */
static void refuse_strict(struct call *c, const struct kind *k, str list, bool patched)
{
    str message = arena_printf(c->arena, "strict decoding error: " STR_FMT, STR_ARG(list));
    if (!patched) {
        call_bad_request(c,
                         STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT
                                 ": " STR_FMT,
                         STR_ARG(k->kind), STR_ARG(k->version), STR_ARG(k->kind), STR_ARG(message));
        return;
    }
    struct field_errors errors = { .arena = c->arena };
    field_invalid(&errors, &(struct field_path){ .key = S("patch") }, json_new_str(c->arena, S("")),
                  STR_FMT, STR_ARG(message));
    call_invalid(c, S(""), S(""), S(""), &errors);
}

bool call_validate_fields(struct call *c, const struct kind *k, const struct write_options *o,
                          const struct schema_unknown *unknown,
                          const struct schema_unknown *duplicates, bool patched)
{
    size_t n = unknown->n + (duplicates ? duplicates->n : 0);
    if (!n || (!o->strict && !o->warn))
        return true;
    auto_buf struct buf list = { 0 };
    for (size_t i = 0; i < MIN(n, (size_t)FIELD_WARNINGS_MAX); i++) {
        bool dup = duplicates && i < duplicates->n;
        str path =
            dup ? duplicates->paths[i] : unknown->paths[i - (duplicates ? duplicates->n : 0)];
        str text = describe_field(c->arena, dup ? "duplicate" : "unknown", path);
        if (o->warn)
            call_warn(c, text);
        buf_put(&list, i ? S(", ") : S(""));
        buf_put(&list, text);
    }
    if (!o->strict)
        return true;
    refuse_strict(c, k, arena_str(c->arena, buf_str(&list)), patched);
    return false;
}

struct json *call_body_object(struct call *c, const struct kind *k, const struct write_options *o)
{
    struct schema_unknown unknown = { .arena = c->arena }, duplicates = { .arena = c->arena };
    struct json *tree = NULL;
    err_t e = { 0 };
    int result = parse_body(c, &duplicates, &tree, &e);
    if (result == -ENOTSUP) {
        refuse_media_type(c);
        return NULL;
    }
    if (result < 0) {
        call_bad_request(c,
                         "the object provided is unrecognized (must be of type " STR_FMT
                         "): couldn't get version/kind; json parse error: %s",
                         STR_ARG(k->kind), e.text);
        return NULL;
    }
    if (!check_type(c, k, tree))
        return NULL;
    size_t managers = json_len(json_at(tree, "metadata", "managedFields", NULL));
    if (managers > MANAGERS_MAX) {
        call_bad_request(c, "metadata.managedFields has %zu entries; at most %d are allowed",
                         managers, MANAGERS_MAX);
        return NULL;
    }
    if (kind_decode(k, c->arena, tree, &unknown, &e) < 0) {
        call_bad_request(c,
                         STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT
                                 ": %s",
                         STR_ARG(k->kind), STR_ARG(k->version), STR_ARG(k->kind), e.text);
        return NULL;
    }
    return call_validate_fields(c, k, o, &unknown, &duplicates, false) ? tree : NULL;
}
