/* Builds the OpenAPI v3 documents, one per group and version: paths with the operations that kubectl looks
 * for, and the schemas that they refer to.
 *
 * kubectl reads little of it: from a path, whether PATCH accepts the parameter `fieldValidation`; from a
 * schema, its fields, descriptions and merge strategies. The documents contain that and no more. They are
 * built on request; the index names each with a hash of its text, so clients cache them forever. */
#include "openapi.h"

#include "openapi_schema.h"
#include "types.h"

#include "../../base/sha256.h"

enum { HASH_DIGITS = 32 };

/* ---- names */

/* "api/v1" or "apis/apps/v1", as the index names documents. */
static str document_path(struct arena *a, str group, str version)
{
    return group.n ? arena_printf(a, "apis/" STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version))
                   : arena_printf(a, "api/" STR_FMT, STR_ARG(version));
}

/* The name of a kind's schema. A custom kind has its group reversed: "io.example.v1.Widget". */
static str component_name(struct arena *a, const struct kind *k)
{
    if (!k->custom)
        return types_openapi_name(a, k->schema->message->name);
    str name = S(""), rest = k->group, part;
    while (str_cut(&rest, '.', &part))
        name = name.n ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(part), STR_ARG(name)) : part;
    return arena_printf(a, STR_FMT "." STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(k->version),
                        STR_ARG(k->kind));
}

static struct json *make_gvk(struct arena *a, str group, str version, str kind)
{
    struct json *node = json_new_obj(a);
    json_set_str(a, node, "group", group);
    json_set_str(a, node, "version", version);
    json_set_str(a, node, "kind", kind);
    return node;
}

static bool is_in_version(const struct kind *k, str group, str version)
{
    return str_eq(k->group, group) && str_eq(k->version, version);
}

/* ---- schemas */

/* Adds x-kubernetes-group-version-kind, by which kubectl finds the schema of an object. */
static void mark_gvk(struct arena *a, struct json *schemas, str component, struct json *gvk_node)
{
    struct json *list = json_new_arr(a), *schema = json_get_str(schemas, component);
    json_push(a, list, gvk_node);
    json_set(a, schema, S("x-kubernetes-group-version-kind"), list);
}

static void add_list(struct arena *a, struct json *schemas, const struct kind *k, str component)
{
    struct json *node = json_new_obj(a), *items = json_new_obj(a), *required = json_new_arr(a);
    str name = arena_printf(a, STR_FMT "List", STR_ARG(component));
    openapi_add_type(a, schemas, types_message("meta.v1.ListMeta"));
    json_set_str(a, node, "description",
                 arena_printf(a, "A list of " STR_FMT " objects.", STR_ARG(k->kind)));
    json_set_str(a, node, "type", S("object"));
    for (const char *const *key = (const char *const[]){ "apiVersion", "kind", NULL }; *key; key++)
        json_set_str(a, json_make(a, node, "properties", *key, NULL), "type", S("string"));
    json_set_str(a, items, "type", S("array"));
    json_set(a, items, S("items"), openapi_ref(a, component));
    json_set(a, json_make(a, node, "properties", NULL), S("items"), items);
    json_set(a, json_make(a, node, "properties", NULL), S("metadata"),
             openapi_ref(a, types_openapi_name(a, S("meta.v1.ListMeta"))));
    json_push(a, required, json_new_str(a, S("items")));
    json_set(a, node, S("required"), required);
    json_set(a, schemas, name, node);
    mark_gvk(a, schemas, name, make_gvk(a, k->group, k->version, k->list_kind));
}

/* Adds the schema of a kind, of its list, and of every type that they refer to. */
static void add_schemas(struct arena *a, struct json *schemas, const struct kind *k)
{
    str component = component_name(a, k);
    if (k->custom) {
        openapi_add_type(a, schemas, types_message("meta.v1.ObjectMeta"));
        json_set(a, schemas, component, openapi_of_custom(a, k));
    } else {
        openapi_add_type(a, schemas, k->schema->message);
    }
    mark_gvk(a, schemas, component, make_gvk(a, k->group, k->version, k->kind));
    if (k->verbs & KIND_LIST)
        add_list(a, schemas, k, component);
}

/* ---- paths */

static struct json *make_parameter(struct arena *a, const char *name, const char *in,
                                   const char *description)
{
    struct json *node = json_new_obj(a);
    json_set_str(a, node, "name", str_c(name));
    json_set_str(a, node, "in", str_c(in));
    json_set_str(a, node, "description", str_c(description));
    if (strcmp(in, "path") == 0)
        json_set_bool(a, node, "required", true);
    json_set_str(a, json_make(a, node, "schema", NULL), "type", S("string"));
    return node;
}

static struct json *make_content(struct arena *a, const char *media, struct json *schema)
{
    struct json *content = json_new_obj(a);
    json_set(a, json_make(a, content, media, NULL), S("schema"), schema);
    return content;
}

struct operation {
    const char *method, *action;
    unsigned verb;
    bool writes;
};

static const struct operation collection_operations[] = {
    { "get", "list", KIND_LIST, false },
    { "post", "post", KIND_CREATE, true },
    { "delete", "deletecollection", KIND_DELETECOLLECTION, false },
};

static const struct operation object_operations[] = {
    { "get", "get", KIND_GET, false },
    { "put", "put", KIND_UPDATE, true },
    { "patch", "patch", KIND_PATCH, true },
    { "delete", "delete", KIND_DELETE, false },
};

/* One method of a path, with the parameters that writes accept. */
static struct json *make_operation(struct arena *a, const struct kind *k, const struct operation *o,
                                   str component)
{
    struct json *node = json_new_obj(a);
    if (o->writes) {
        struct json *parameters = json_new_arr(a);
        json_push(a, parameters,
                  make_parameter(a, "dryRun", "query",
                                 "All: run every check, but do not persist the change."));
        json_push(a, parameters,
                  make_parameter(a, "fieldManager", "query",
                                 "Name of the client that makes the change."));
        json_push(
            a, parameters,
            make_parameter(a, "fieldValidation", "query",
                           "How to treat unknown and duplicate fields: Ignore, Warn or Strict."));
        if (o->verb == KIND_PATCH)
            json_push(a, parameters,
                      make_parameter(a, "force", "query",
                                     "Take ownership of fields that other managers own."));
        json_set(a, node, S("parameters"), parameters);
        bool patch = o->verb == KIND_PATCH;
        struct json *anything = json_new_obj(a);
        json_set_str(a, anything, "type", S("object"));
        json_set(a, json_make(a, node, "requestBody", NULL), S("content"),
                 make_content(a, patch ? "application/merge-patch+json" : "*/*",
                              patch ? anything : openapi_ref(a, component)));
    }
    struct json *ok = json_make(a, node, "responses", "200", NULL);
    json_set_str(a, ok, "description", S("OK"));
    json_set(a, ok, S("content"), make_content(a, "application/json", openapi_ref(a, component)));
    json_set_str(a, node, "x-kubernetes-action", str_c(o->action));
    json_set(a, node, S("x-kubernetes-group-version-kind"),
             make_gvk(a, k->group, k->version, k->kind));
    return node;
}

/* Adds the path of the collection or of one object, unless the kind supports no verb there. */
static void add_path(struct arena *a, struct json *paths, const struct kind *k, bool object)
{
    str base = document_path(a, k->group, k->version), component = component_name(a, k);
    str path = arena_printf(a, "/" STR_FMT "%s/" STR_FMT "%s", STR_ARG(base),
                            k->namespaced ? "/namespaces/{namespace}" : "", STR_ARG(k->plural),
                            object ? "/{name}" : "");
    struct json *node = json_new_obj(a), *parameters = json_new_arr(a);
    const struct operation *operations = object ? object_operations : collection_operations;
    size_t n = object ? countof(object_operations) : countof(collection_operations);
    for (size_t i = 0; i < n; i++)
        if (k->verbs & operations[i].verb)
            json_set(a, node, str_c(operations[i].method),
                     make_operation(a, k, &operations[i], component));
    if (!json_len(node))
        return;
    if (object)
        json_push(a, parameters, make_parameter(a, "name", "path", "Name of the object."));
    if (k->namespaced)
        json_push(a, parameters,
                  make_parameter(a, "namespace", "path", "Namespace of the object."));
    json_set(a, node, S("parameters"), parameters);
    json_set(a, paths, path, node);
}

/* ---- documents */

/* Describes every kind of one group and version. */
struct json *openapi_document(struct arena *a, const struct kind *const *kinds, size_t n, str group,
                              str version)
{
    struct json *document = json_new_obj(a);
    json_set_str(a, document, "openapi", S("3.0.0"));
    struct json *info = json_make(a, document, "info", NULL);
    json_set_str(a, info, "title", S("Kubernetes"));
    json_set_str(a, info, "version", S("flyball " FLYBALL_VERSION));
    struct json *paths = json_make(a, document, "paths", NULL);
    struct json *schemas = json_make(a, document, "components", "schemas", NULL);
    for (size_t i = 0; i < n; i++) {
        if (!is_in_version(kinds[i], group, version))
            continue;
        add_path(a, paths, kinds[i], false);
        add_path(a, paths, kinds[i], true);
        add_schemas(a, schemas, kinds[i]);
    }
    return document;
}

str openapi_hash(struct arena *a, str document)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(document, hex);
    return arena_str(a, str_upto(str_c(hex), HASH_DIGITS));
}

static str hash_document(struct arena *a, const struct kind *const *kinds, size_t n,
                         const struct kind *k)
{
    auto_arena struct arena scratch = { 0 };
    auto_buf struct buf text = { 0 };
    json_write(&text, openapi_document(&scratch, kinds, n, k->group, k->version));
    return openapi_hash(a, buf_str(&text));
}

/* Hashes each document once; kinds of the same version share it. */
struct json *openapi_index(struct arena *a, const struct kind *const *kinds, size_t n)
{
    struct json *index = json_new_obj(a), *paths = json_make(a, index, "paths", NULL);
    for (size_t i = 0; i < n; i++) {
        str path = document_path(a, kinds[i]->group, kinds[i]->version);
        if (json_get_str(paths, path))
            continue;
        str hash = hash_document(a, kinds, n, kinds[i]);
        struct json *entry = json_new_obj(a);
        json_set_str(a, entry, "serverRelativeURL",
                     arena_printf(a, "/openapi/v3/" STR_FMT "?hash=" STR_FMT, STR_ARG(path),
                                  STR_ARG(hash)));
        json_set(a, paths, path, entry);
    }
    return index;
}
