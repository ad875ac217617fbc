/* The parts of a schema that all its users share: lookup of fields, the list of unknown fields, and shapes
 * (what patches and server-side apply need to know of a type, see json/shape.h). */
#include "schema.h"

const struct schema_field *schema_field(const struct schema *s, str name)
{
    const struct schema_message *m = s->message;
    /* the shape indexes the named fields of the message, in the same order */
    if (m && m->shape && m->shape->by_name && m->shape->n_fields == m->n_fields) {
        const struct shape_field *f = shape_field(m->shape, name);
        return f ? &m->fields[f - m->shape->fields] : NULL;
    }
    for (uint32_t i = 0; m && i < m->n_fields; i++)
        if (m->fields[i].name.n && str_eq(m->fields[i].name, name))
            return &m->fields[i];
    return NULL;
}

bool schema_unknown_has_room(const struct schema_unknown *unknown)
{
    /* without a limit: the longest key times the largest number of fields below it */
    return unknown->bytes <= SCHEMA_UNKNOWN_BYTES;
}

/* Appends a path, unless the list is full. Doubles the array in the arena; the old one is wasted,
 * which is fine for a list that is nearly always empty. */
void schema_unknown_add(struct schema_unknown *unknown, const struct field_path *at)
{
    if (!unknown || !schema_unknown_has_room(unknown))
        return;
    if (unknown->n == unknown->cap) {
        size_t cap = unknown->cap ? unknown->cap * 2 : 4;
        str *grown = arena_array(unknown->arena, cap, sizeof(*grown));
        if (unknown->n)
            memcpy(grown, unknown->paths, unknown->n * sizeof(*grown));
        unknown->paths = grown, unknown->cap = cap;
    }
    str path = field_path_text(unknown->arena, at);
    unknown->bytes += path.n;
    unknown->paths[unknown->n++] = path;
}

/* Shares the shape of the message unless this use of it differs (atomic, map, unknown fields). */
static const struct shape *make_object_shape(struct arena *a, const struct schema *s)
{
    if (s->message && !s->element && !s->preserve_unknown && s->atomic == s->message->atomic)
        return s->message->shape;
    struct shape *shape = arena_new(a, struct shape);
    shape->kind = SHAPE_OBJ;
    if (s->message)
        schema_fill_shape(a, s->message, shape);
    shape->atomic = s->atomic;
    if (s->element)
        shape->element = s->element->shape;
    else if (s->preserve_unknown || !s->message)
        shape->element = &shape_any;
    return shape;
}

/* A list is atomic, a set, or a map of items identified by keys. */
static const struct shape *make_list_shape(struct arena *a, const struct schema *s)
{
    struct shape *shape = arena_new(a, struct shape);
    *shape = (struct shape){ SHAPE_LIST, .list = s->list, .keys = s->list_keys,
                             .n_keys = s->n_list_keys, .element = &shape_any };
    if (s->element)
        shape->element = s->element->shape;
    return shape;
}

/* Scalars share a few static shapes; a quantity accepts numbers and text, so it is a scalar of
 * any type. */
const struct shape *schema_make_shape(struct arena *a, const struct schema *s)
{
    switch (s->type) {
    case SCHEMA_OBJECT:
        return make_object_shape(a, s);
    case SCHEMA_ARRAY:
        return make_list_shape(a, s);
    case SCHEMA_ANY:
        return &shape_any;
    case SCHEMA_STRING:
        return s->format == SCHEMA_QUANTITY ? &shape_scalar : &shape_string;
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
        return &shape_number;
    case SCHEMA_BOOLEAN:
        return &shape_boolean;
    default:
        return &shape_scalar;
    }
}

/* The default that the shape of a field shows. A field that is always written has its zero value
 * as default in the published schema. */
static const struct json *default_for(struct arena *a, const struct schema_field *f)
{
    if (f->schema.fallback || f->presence != SCHEMA_ALWAYS)
        return f->schema.fallback;
    return f->schema.type == SCHEMA_STRING    ? json_new_str(a, S(""))
           : f->schema.type == SCHEMA_INTEGER ? json_new_int(a, 0)
                                              : NULL;
}

/* Fills the shape of an object from the named fields of a message, sorted for lookup. */
void schema_fill_shape(struct arena *a, const struct schema_message *m, struct shape *shape)
{
    struct shape_field *fields = arena_array(a, m->n_fields, sizeof(*fields));
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->name.n)
            continue;
        fields[n++] = (struct shape_field){ .name = f->name,
                                            .shape = f->schema.shape,
                                            .value_if_absent = default_for(a, f),
                                            .patch = f->patch,
                                            .patch_key = f->patch_key,
                                            .always = f->presence == SCHEMA_ALWAYS ||
                                                      f->presence == SCHEMA_ALWAYS_NULL };
    }
    shape->kind = SHAPE_OBJ;
    shape->atomic = m->atomic;
    shape->fields = fields;
    shape->n_fields = n;
    shape_sort_fields(a, shape);
}
