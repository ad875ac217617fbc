/* What makes a CustomResourceDefinition invalid: its names, and for each version the columns,
 * subresources, selectable fields and schema.
 *
 * Paths need care. kube-apiserver converts a definition to an internal type before it validates it, and there
 * the parts that all versions have in common are moved up into the spec:
 *
 *   spec.versions[i].schema                      if the versions differ
 *   spec.validation                              if all versions have the same schema
 *   spec.versions[i].additionalPrinterColumns    if the versions differ
 *   spec.additionalPrinterColumns                if all versions have the same columns
 *
 * So an error of a shared part is reported once, below the spec, and locate_part() decides where. Old names
 * survive in these paths too: "JSONPath" in a column, "version" for the first version. */
#include "../schema/cel/cel_rules.h"
#include "../schema/format.h"
#include "kind_hooks.h"

enum { SELECTABLE_MAX = 8 };

/* kind and listKind, compared as DNS labels in lower case. */
static void check_lower_name(const struct json *name, const struct field_path *at,
                             struct field_errors *errors)
{
    auto_buf struct buf lower = { 0 };
    buf_put(&lower, json_text(name));
    for (size_t i = 0; i < lower.n; i++)
        if (lower.p[i] >= 'A' && lower.p[i] <= 'Z')
            lower.p[i] = (char)(lower.p[i] | 32);
    const char *fault = format_dns_label_1035(buf_str(&lower));
    if (json_text(name).n && fault)
        field_invalid(errors, at, name, "%s", fault);
}

/* shortNames and categories. */
static void check_name_list(const struct json *list, const struct field_path *at,
                            struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        const char *fault = format_dns_label_1035(json_text(list->items[i]));
        if (fault)
            field_invalid(errors, AT_INDEX(at, i), list->items[i], "%s", fault);
    }
}

/* plural and singular are DNS labels; kind and listKind are so in lower case. */
static void check_names(const struct json *spec, const struct field_path *up,
                        struct field_errors *errors)
{
    static const char *const needed[] = { "plural", "singular", "kind", "listKind" };
    const struct json *names = json_get(spec, "names");
    struct field_path at = { up, .key = S("names") };
    for (size_t i = 0; i < countof(needed); i++) {
        const struct json *name = json_get(names, needed[i]);
        struct field_path field = { &at, .key = str_c(needed[i]) };
        if (!json_text(name).n)
            field_required(errors, &field, NULL);
        if (i < 2 && json_text(name).n && format_dns_label_1035(json_text(name)))
            field_invalid(errors, &field, name, "%s", format_dns_label_1035(json_text(name)));
        else if (i >= 2)
            check_lower_name(name, &field, errors);
    }
    check_name_list(json_get(names, "shortNames"), AT(&at, "shortNames"), errors);
    check_name_list(json_get(names, "categories"), AT(&at, "categories"), errors);
    const struct json *kind = json_get(names, "kind"), *list = json_get(names, "listKind");
    if (json_text(kind).n && json_eq(kind, list))
        field_invalid(errors, AT(&at, "listKind"), list, "kind and listKind may not be the same");
}

/* A DNS subdomain with at least one dot. */
static void check_group(const struct json *spec, const struct field_path *at,
                        struct field_errors *errors)
{
    const struct json *group = json_get(spec, "group");
    str text = json_text(group);
    if (!text.n)
        field_required(errors, AT(at, "group"), NULL);
    else if (format_dns_subdomain(text))
        field_invalid(errors, AT(at, "group"), group, "%s", format_dns_subdomain(text));
    else if (str_find_char(text, '.') == SIZE_MAX)
        field_invalid(errors, AT(at, "group"), group, "should be a domain with at least one dot");
}

/* ---- parts of a version */

static void check_json_path(const struct json *path, const struct field_path *at,
                            struct field_errors *errors)
{
    if (!json_text(path).n)
        field_required(errors, at, NULL);
    else if (json_text(path).p[0] != '.')
        field_invalid(errors, at, path, "must be a simple json path starting with .");
}

/* additionalPrinterColumns; the path in errors is "JSONPath", as in the internal type. */
static void check_columns(const struct json *columns, const struct field_path *up,
                          struct field_errors *errors)
{
    static const char *const types[] = { "integer", "number", "string", "boolean", "date" };
    static const char *const formats[] = { "int32", "int64", "float",     "double",
                                           "byte",  "date",  "date-time", "password" };
    for (uint32_t i = 0; i < json_len(columns); i++) {
        const struct json *column = columns->items[i], *type = json_get(column, "type");
        const struct json *format = json_get(column, "format");
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        bool known_type = false, known_format = !json_text(format).n;
        if (!json_text(json_get(column, "name")).n)
            field_required(errors, AT(&at, "name"), NULL);
        for (size_t j = 0; j < countof(types); j++)
            known_type = known_type || str_eqc(json_text(type), types[j]);
        for (size_t j = 0; j < countof(formats); j++)
            known_format = known_format || str_eqc(json_text(format), formats[j]);
        if (!json_text(type).n)
            field_required(errors, AT(&at, "type"), NULL);
        else if (!known_type)
            field_invalid(errors, AT(&at, "type"), type,
                          "must be one of boolean,date,integer,number,string");
        if (!known_format)
            field_invalid(errors, AT(&at, "format"), format,
                          "must be one of byte,date,date-time,double,float,int32,int64,password");
        check_json_path(json_get(column, "jsonPath"), AT(&at, "JSONPath"), errors);
    }
}

/* A path below `under`; the second error is reported only if the path is well-formed. */
static void check_scale_path(const struct json *scale, const char *key, const char *under,
                             const struct field_path *up, struct field_errors *errors)
{
    const struct json *path = json_get(scale, key);
    struct field_path at = { up, .key = str_c(key) };
    size_t before = errors->n;
    check_json_path(path, &at, errors);
    if (errors->n == before && !str_starts(json_text(path), str_c(under)))
        field_invalid(errors, &at, path, "should be a json path under %s", under);
}

/* The paths of a scale must point into spec and status. */
static void check_subresources(const struct json *subresources, const struct field_path *at,
                               struct field_errors *errors)
{
    const struct json *scale = json_get(subresources, "scale");
    struct field_path in = { at, .key = S("scale") };
    if (!scale)
        return;
    check_scale_path(scale, "specReplicasPath", ".spec.", &in, errors);
    check_scale_path(scale, "statusReplicasPath", ".status.", &in, errors);
    str selector = json_text(json_get(scale, "labelSelectorPath"));
    if (selector.n && !str_starts(selector, S(".spec.")) && !str_starts(selector, S(".status.")))
        field_invalid(errors, AT(&in, "labelSelectorPath"), json_get(scale, "labelSelectorPath"),
                      "should be a json path under either .status or .spec");
}

/* The schema at a path of dotted names; NULL if there is none. */
static const struct json *find_schema(const struct json *openapi, str path)
{
    str rest = str_from(path, 1), key;
    while (openapi && rest.n && str_cut(&rest, '.', &key))
        openapi = json_get_str(json_get(openapi, "properties"), key);
    return openapi;
}

/* selectableFields: at most SELECTABLE_MAX distinct fields of a scalar type. */
static void check_selectable(const struct json *fields, const struct json *openapi,
                             const struct field_path *up, struct field_errors *errors)
{
    struct seen paths = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(fields); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *path = json_get(fields->items[i], "jsonPath");
        str text = json_text(path);
        const struct json *schema = text.n && text.p[0] == '.' ? find_schema(openapi, text) : NULL;
        str type = json_text(json_get(schema, "type"));
        if (!text.n)
            field_required(errors, AT(&at, "jsonPath"), NULL);
        else if (!schema)
            field_invalid(errors, AT(&at, "jsonPath"), path, "field not found in the schema");
        else if (str_starts(text, S(".metadata")))
            field_invalid(errors, AT(&at, "jsonPath"), path,
                          "must not point to fields in metadata");
        else if (!str_eqc(type, "string") && !str_eqc(type, "integer") && !str_eqc(type, "boolean"))
            field_invalid(errors, AT(&at, "jsonPath"), path,
                          "must point to a field of type string, boolean or integer");
        if (text.n && seen_value(&paths, path, i))
            field_duplicate(errors, AT(&at, "jsonPath"), path);
    }
    if (json_len(fields) > SELECTABLE_MAX)
        field_too_many(errors, up, (int64_t)json_len(fields), SELECTABLE_MAX);
}

/* With a status subresource, spec and status are validated separately, so the root schema may not
 * restrict both at once. Only the first violation is reported. */
static void check_root(const struct json *openapi, const struct field_path *at,
                       struct field_errors *errors)
{
    static const char *const allowed[] = {
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "minimum",
        "maxLength",
        "minLength",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    };
    const struct json *type = json_get(openapi, "type");
    if (json_text(type).n && !str_eqc(json_text(type), "object")) {
        field_invalid(
            errors, AT(at, "type"), type,
            "only \"object\" is allowed at the root if the status subresource is enabled");
        return;
    }
    json_each(m, openapi) {
        bool fits =
            json_is(m->value, JSON_NULL) || (json_is(m->value, JSON_BOOL) && !m->value->boolean);
        for (size_t i = 0; i < countof(allowed) && !fits; i++)
            fits = str_eqc(m->key, allowed[i]);
        if (fits)
            continue;
        field_invalid(errors, at, NULL,
                      STR_FMT " is not allowed at the root if the status subresource is enabled",
                      STR_ARG(m->key));
        return;
    }
}

/* CEL rules are checked only if the schema is structural. */
static void check_schema(const struct json *openapi, const struct field_path *at,
                         struct field_errors *errors)
{
    size_t before = errors->n;
    schema_from_openapi(errors->arena, openapi, at, errors);
    if (errors->n == before)
        cel_check_definition(openapi, at, errors);
}

/* ---- versions */

static const struct json *openapi_of(const struct json *version)
{
    const struct json *openapi = json_at(version, "schema", "openAPIV3Schema", NULL);
    return json_is(openapi, JSON_OBJ) ? openapi : NULL;
}

/* True if every version has the same value for `key`. */
static bool versions_share(const struct json *versions, const char *key)
{
    for (uint32_t i = 1; i < json_len(versions); i++)
        if (!json_eq(json_get(versions->items[0], key), json_get(versions->items[i], key)))
            return false;
    return true;
}

struct part_location {           /* where errors of one part of a version are reported */
    bool check;                  /* false: already checked with the first version */
    const struct field_path *up; /* the version, or the spec if all versions share the part */
};

/* Shared parts are checked with the first version only. */
static struct part_location locate_part(bool alike, uint32_t i, const struct field_path *spec,
                                        const struct field_path *own)
{
    return (struct part_location){ i == 0 || !alike, alike ? spec : own };
}

/* No control characters; between 1 and 256 bytes. */
static bool is_printable(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return false;
    return text.n > 0 && text.n <= 256;
}

/* Parts that all versions may share, in the order of check_version(). */
static const char *const shared_parts[] = { "additionalPrinterColumns", "subresources",
                                            "selectableFields", "schema" };

/* Checks one version; parts that all versions share are checked with the first. */
static void check_version(const struct json *versions, uint32_t i, const bool *alike,
                          const struct field_path *spec, struct field_errors *errors)
{
    const struct json *version = versions->items[i], *name = json_get(version, "name");
    struct field_path list = { spec, .key = S("versions") };
    struct field_path own = { &list, .index = i, .how = FIELD_INDEX };
    const char *fault = format_dns_label_1035(json_text(name));
    if (fault)
        field_invalid(errors, AT(&own, "name"), name, "%s", fault);
    if (fault && i == 0 && json_text(name).n)
        field_invalid(errors, AT(spec, "version"), name, "%s", fault);
    const struct json *warning = json_get(version, "deprecationWarning");
    if (warning && !json_bool(json_get(version, "deprecated"), false))
        field_invalid(errors, AT(&own, "deprecationWarning"), warning,
                      "can only be set for deprecated versions");
    else if (warning && !is_printable(json_text(warning)))
        field_invalid(errors, AT(&own, "deprecationWarning"), warning,
                      "must only contain printable UTF-8 characters and be at most 256 bytes");
    if (!openapi_of(version))
        field_required(errors, AT(AT(&own, "schema"), "openAPIV3Schema"), NULL);
    struct part_location p = locate_part(alike[0], i, spec, &own);
    if (p.check)
        check_columns(json_get(version, "additionalPrinterColumns"),
                      AT(p.up, "additionalPrinterColumns"), errors);
    p = locate_part(alike[1], i, spec, &own);
    if (p.check)
        check_subresources(json_get(version, "subresources"), AT(p.up, "subresources"), errors);
    p = locate_part(alike[2], i, spec, &own);
    if (p.check)
        check_selectable(json_get(version, "selectableFields"), openapi_of(version),
                         AT(p.up, "selectableFields"), errors);
    p = locate_part(alike[3], i, spec, &own);
    struct field_path schema = { p.up, .key = p.up == spec ? S("validation") : S("schema") };
    if (p.check && openapi_of(version) && json_at(version, "subresources", "status", NULL))
        check_root(openapi_of(version), AT(&schema, "openAPIV3Schema"), errors);
    if (p.check && openapi_of(version))
        check_schema(openapi_of(version), AT(&schema, "openAPIV3Schema"), errors);
}

/* Checks each version, then that names are unique and one version is stored. */
static void check_versions(const struct json *spec, const struct field_path *spec_at,
                           struct field_errors *errors)
{
    const struct json *versions = json_get(spec, "versions");
    struct field_path list = { spec_at, .key = S("versions") };
    unsigned storage = 0;
    bool duplicated = false;
    struct seen names = seen_new(errors->arena, 1);
    bool alike[countof(shared_parts)];
    for (size_t i = 0; i < countof(shared_parts); i++)
        alike[i] = versions_share(versions, shared_parts[i]);
    for (uint32_t i = 0; i < json_len(versions); i++) {
        const struct json *version = versions->items[i];
        storage += json_bool(json_get(version, "storage"), false);
        duplicated = seen_value(&names, json_get(version, "name"), i) || duplicated;
        check_version(versions, i, alike, spec_at, errors);
    }
    if (duplicated)
        field_invalid(errors, &list, versions, "must contain unique version names");
    if (storage != 1)
        field_invalid(errors, &list, versions,
                      "must have exactly one version marked as storage version");
}

/* A version that objects were stored as must stay until they are migrated. */
static void check_stored_versions(const struct json *crd, struct field_errors *errors)
{
    const struct json *stored = json_at(crd, "status", "storedVersions", NULL);
    const struct json *versions = json_at(crd, "spec", "versions", NULL);
    struct field_path at = { AT(NULL, "status"), .key = S("storedVersions") };
    if (!json_len(stored)) {
        field_invalid(errors, &at, stored, "must have at least one stored version");
        return;
    }
    struct seen names = seen_list(errors->arena, versions, "name");
    struct seen stored_names = seen_list(errors->arena, stored, NULL);
    for (uint32_t i = 0; i < json_len(versions); i++) {
        const struct json *name = json_get(versions->items[i], "name");
        if (json_bool(json_get(versions->items[i], "storage"), false) &&
            !seen_lookup(&stored_names, name))
            field_invalid(errors, &at, stored, "must have the storage version");
    }
    for (uint32_t i = 0; i < json_len(stored); i++) {
        if (!seen_lookup(&names, stored->items[i]))
            field_invalid(errors, AT_INDEX(&at, i), stored->items[i],
                          "must appear in spec.versions");
    }
}

/* ---- the whole definition */

/* Established=True: clients may rely on its names. */
static bool is_established(const struct json *crd)
{
    const struct json *conditions = json_at(crd, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), "Established"))
            return str_eqc(json_text(json_get(conditions->items[i], "status")), "True");
    return false;
}

/* Group and plural never change; scope and kind not after the definition was established. */
static void check_immutable_fields(const struct kind_change *c, const struct field_path *at,
                                   struct field_errors *errors)
{
    const struct json *new = json_get(c->object, "spec"), *old = json_get(c->old, "spec");
    struct field_path names = { at, .key = S("names") };
    if (is_established(c->old)) {
        kind_check_immutable(json_get(new, "scope"), json_get(old, "scope"), AT(at, "scope"),
                             errors);
        kind_check_immutable(json_at(new, "names", "kind", NULL),
                             json_at(old, "names", "kind", NULL), AT(&names, "kind"), errors);
    }
    kind_check_immutable(json_get(new, "group"), json_get(old, "group"), AT(at, "group"), errors);
    kind_check_immutable(json_at(new, "names", "plural", NULL),
                         json_at(old, "names", "plural", NULL), AT(&names, "plural"), errors);
}

/* Groups of Kubernetes itself require an annotation. */
static void check_approval(const struct json *crd, struct field_errors *errors)
{
    static const char key[] = "api-approved.kubernetes.io";
    str group = json_text(json_at(crd, "spec", "group", NULL));
    struct field_path at = { AT(NULL, "metadata"), .key = S("annotations") };
    bool protected = str_ends(group, S(".k8s.io")) || str_ends(group, S(".kubernetes.io")) ||
                     str_eqc(group, "k8s.io") || str_eqc(group, "kubernetes.io");
    if (protected && !json_text(json_at(crd, "metadata", "annotations", key, NULL)).n)
        field_required(
            errors, AT_KEY(&at, str_c(key)),
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", "
            "see https://github.com/kubernetes/enhancements/pull/1111");
}

/* The validate hook of CustomResourceDefinitions. */
void crd_check(const struct kind_change *c, struct kind_env *env UNUSED,
               struct field_errors *errors)
{
    const struct json *spec = json_get(c->object, "spec");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->sub == KIND_STATUS)
        return;
    const struct json *name = json_at(c->object, "metadata", "name", NULL);
    str plural = json_text(json_at(spec, "names", "plural", NULL));
    str wanted = arena_printf(errors->arena, STR_FMT "." STR_FMT, STR_ARG(plural),
                              STR_ARG(json_text(json_get(spec, "group"))));
    if (!c->old && json_text(name).n && !str_eq(json_text(name), wanted))
        field_invalid(errors, AT(AT(NULL, "metadata"), "name"), name,
                      "must be spec.names.plural+\".\"+spec.group");
    check_group(spec, &at, errors);
    check_names(spec, &at, errors);
    if (json_bool(json_get(spec, "preserveUnknownFields"), false))
        field_invalid(errors, AT(&at, "preserveUnknownFields"),
                      json_get(spec, "preserveUnknownFields"),
                      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                      "spec.versions[*].schema instead");
    check_versions(spec, &at, errors);
    crd_check_conversion(json_get(spec, "conversion"), AT(&at, "conversion"), errors);
    check_stored_versions(c->object, errors);
    if (c->old)
        check_immutable_fields(c, &at, errors);
    else
        check_approval(c->object, errors);
}
