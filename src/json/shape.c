/* Lookups in shapes. Fields are searched linearly: the largest type served has some forty, and
 * lengths differ before bytes are compared. */
#include "shape.h"

const struct shape shape_any = { .kind = SHAPE_ANY, .element = &shape_any };
const struct shape shape_scalar = { .kind = SHAPE_SCALAR };
const struct shape shape_string = { .kind = SHAPE_SCALAR, .scalar = SHAPE_STRING };
const struct shape shape_number = { .kind = SHAPE_SCALAR, .scalar = SHAPE_NUMBER };
const struct shape shape_boolean = { .kind = SHAPE_SCALAR, .scalar = SHAPE_BOOLEAN };
const struct shape shape_atomic_obj = { .kind = SHAPE_OBJ, .atomic = true, .element = &shape_any };
const struct shape shape_scalar_map = { .kind = SHAPE_OBJ, .element = &shape_scalar };
const struct shape shape_scalar_list = { .kind = SHAPE_LIST, .element = &shape_scalar };
const struct shape shape_scalar_set = { .kind = SHAPE_LIST,
                                        .list = SHAPE_SET_LIST,
                                        .element = &shape_scalar };

static const struct shape any_map = { .kind = SHAPE_OBJ, .element = &shape_any };
static const struct shape any_list = { .kind = SHAPE_LIST, .element = &shape_any };

const struct shape_field *shape_field(const struct shape *s, str name)
{
    for (uint32_t i = 0; s && i < s->n_fields; i++)
        if (str_eq(s->fields[i].name, name))
            return &s->fields[i];
    return NULL;
}

const struct shape *shape_member(const struct shape *s, str name)
{
    const struct shape_field *f = shape_field(s, name);
    return f ? f->shape : s ? s->element : NULL;
}

const struct shape *shape_for(const struct shape *s, const struct json *value)
{
    if (s->kind != SHAPE_ANY)
        return s;
    if (!value || value->type == JSON_NULL || value->type == JSON_OBJ)
        return &any_map;
    return json_is(value, JSON_ARR) ? &any_list : &shape_scalar;
}

unsigned shape_patch_parse(str strategy)
{
    unsigned patch = SHAPE_PATCH_DEFAULT;
    for (str word; str_cut(&strategy, ',', &word);) {
        word = str_trim(word);
        if (str_eq(word, S("merge")))
            patch |= SHAPE_PATCH_MERGE;
        else if (str_eq(word, S("replace")))
            patch |= SHAPE_PATCH_REPLACE;
        else if (str_eq(word, S("retainKeys")))
            patch |= SHAPE_PATCH_RETAIN_KEYS;
    }
    return patch;
}
