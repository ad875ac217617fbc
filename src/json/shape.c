/* Lookups in shapes: see shape.h. Few fields are searched linearly: the largest built-in type has
 * about forty, and lengths differ before bytes are compared. Custom types may have thousands, which
 * are sorted. */
#include "shape.h"

#include <stdlib.h>

enum { FEW_FIELDS = 48 };

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

static int by_field_name(const void *a, const void *b, void *fields)
{
    const struct shape_field *at = fields;
    return str_cmp(at[*(const uint32_t *)a].name, at[*(const uint32_t *)b].name);
}

void shape_sort_fields(struct arena *a, struct shape *s)
{
    s->by_name = NULL;
    if (s->n_fields <= FEW_FIELDS)
        return;
    uint32_t *order = arena_array(a, s->n_fields, sizeof(*order));
    for (uint32_t i = 0; i < s->n_fields; i++)
        order[i] = i;
    qsort_r(order, s->n_fields, sizeof(*order), by_field_name, (void *)(uintptr_t)s->fields);
    s->by_name = order;
}

static const struct shape_field *find_sorted(const struct shape *s, str name)
{
    uint32_t low = 0, high = s->n_fields;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct shape_field *f = &s->fields[s->by_name[middle]];
        int order = str_cmp(f->name, name);
        if (order == 0)
            return f;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct shape_field *shape_field(const struct shape *s, str name)
{
    if (s && s->by_name)
        return find_sorted(s, name);
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
