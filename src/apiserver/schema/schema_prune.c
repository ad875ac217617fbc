/* Pruning and defaulting: drops the fields that a schema does not declare and fills in its defaults.
 *
 * Both walk value and schema side by side and change the tree in place. They run on every write of a custom
 * resource and again when a stored one is read, because the schema may have changed since it was stored. So
 * both must be idempotent: a second run on the result changes nothing. */
#include "schema.h"

static void prune_value(const struct schema *s, struct json *value, bool whole,
                        const struct field_path *up, struct schema_unknown *unknown);

/* Fields of every object, whether or not its schema declares them. */
static bool is_object_field(str name)
{
    return str_eqc(name, "apiVersion") || str_eqc(name, "kind") || str_eqc(name, "metadata");
}

/* Drops undeclared members. A whole object (or embedded resource) keeps apiVersion, kind and
 * metadata. */
static void prune_object(const struct schema *s, struct json *value, bool whole,
                         const struct field_path *up, struct schema_unknown *unknown)
{
    whole = whole || s->embedded;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member m = value->members[i];
        struct field_path at = { up, .key = m.key };
        const struct schema_field *f = schema_field(s, m.key);
        if (whole && is_object_field(m.key)) {
            /* kept; metadata is decoded as ObjectMeta by the caller */
        } else if (f) {
            prune_value(&f->schema, m.value, false, &at, unknown);
        } else if (schema_map_element(s)) {
            prune_value(s->element, m.value, false, &at, unknown);
        } else if (!s->preserve_unknown) {
            schema_unknown_add(unknown, &at);
            continue;
        }
        value->members[kept++] = m;
    }
    value->n = kept;
    json_reindex(value);
}

/* Prunes objects and the items of lists; scalars have nothing to prune. */
static void prune_value(const struct schema *s, struct json *value, bool whole,
                        const struct field_path *up, struct schema_unknown *unknown)
{
    if (json_is(value, JSON_OBJ)) {
        prune_object(s, value, whole, up, unknown);
    } else if (json_is(value, JSON_ARR) && (schema_list_element(s) || !s->preserve_unknown)) {
        static const struct schema unknown_items; /* declares no field */
        const struct schema *element = schema_list_element(s) ? s->element : &unknown_items;
        for (uint32_t i = 0; i < value->n; i++) {
            struct field_path at = { up, .index = i, .how = FIELD_INDEX };
            prune_value(element, value->items[i], false, &at, unknown);
        }
    }
}

void schema_prune(const struct schema *s, struct json *value, bool root,
                  struct schema_unknown *unknown)
{
    prune_value(s, value, root, NULL, unknown);
}

/* True if null is a value of this schema and not the absence of one. */
static bool accepts_null(const struct schema *s)
{
    return s->nullable || s->type == SCHEMA_ANY;
}

/* metadata of the object itself is skipped: it is decoded as a built-in type. */
void schema_check_nulls(const struct schema *s, const struct json *value,
                        const struct field_path *at, struct field_errors *errors)
{
    for (uint32_t i = 0; json_is(value, JSON_ARR) && schema_list_element(s) && i < value->n; i++)
        schema_check_nulls(s->element, value->items[i],
                           &(struct field_path){ at, .index = i, .how = FIELD_INDEX }, errors);
    if (!json_is(value, JSON_OBJ))
        return;
    json_each(m, value) {
        const struct schema_field *f = schema_field(s, m->key);
        const struct schema *child = f ? &f->schema : schema_map_element(s);
        struct field_path in = { at, .key = m->key };
        if (!child || (!at && str_eqc(m->key, "metadata")))
            continue;
        if (json_is(m->value, JSON_NULL) && !accepts_null(child) && !child->fallback)
            field_type_invalid(errors, &in, m->value, "must not be null");
        else
            schema_check_nulls(child, m->value, &in, errors);
    }
}

/* Applies defaults below the entries of a map; a null that the element does not accept is
 * dropped. */
static void default_map_entries(const struct schema *s, struct arena *a, struct json *value)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < value->n; i++) {
        struct json_member m = value->members[i];
        bool declared = schema_field(s, m.key);
        if (!declared && json_is(m.value, JSON_NULL) && !accepts_null(s->element))
            continue;
        if (!declared)
            schema_default(s->element, a, m.value);
        value->members[kept++] = m;
    }
    value->n = kept;
    json_reindex(value);
}

/* Sets the default of each absent field, then recurses: a default may need defaults of its own. */
static void default_object(const struct schema *s, struct arena *a, struct json *value)
{
    const struct schema_message *m = s->message;
    for (uint32_t i = 0; m && i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->name.n)
            continue;
        struct json *child = json_get_str(value, f->name);
        bool lost =
            json_is(child, JSON_NULL) && !accepts_null(&f->schema) && f->presence < SCHEMA_ALWAYS;
        if (f->schema.fallback && (!child || lost)) {
            child = json_copy(a, f->schema.fallback);
            json_set(a, value, f->name, child);
        } else if (lost) {
            json_del(value, f->name);
            child = NULL;
        }
        if (child)
            schema_default(&f->schema, a, child);
    }
    if (schema_map_element(s))
        default_map_entries(s, a, value);
}

/* Lists get no defaults of their own, only their items do. */
void schema_default(const struct schema *s, struct arena *a, struct json *value)
{
    if (json_is(value, JSON_OBJ)) {
        default_object(s, a, value);
    } else if (json_is(value, JSON_ARR) && schema_list_element(s)) {
        for (uint32_t i = 0; i < value->n; i++)
            schema_default(s->element, a, value->items[i]);
    }
}
