/* Does a value have the shape it should? See typed.h. The first thing that is wrong is told, with
 * its path, in the words that Kubernetes uses where people look for them. */
#include "typed.h"

struct check {
    struct arena scratch;
    struct buf path;
    bool duplicates; /* allowed */
    err_t *e;
};

static int check_value(struct check *c, const struct shape *shape, const struct json *v);

static int wrong(struct check *c, const char *expected, const struct json *v)
{
    static const char *const go_types[] = {
        "nil", "bool", "int64", "float64", "string", "[]interface {}", "map[string]interface {}"
    };
    return err_set(c->e, EBADMSG, "%.300s: expected %s, got %s", buf_str(&c->path).p, expected,
                   go_types[v->type]);
}

static int check_scalar(struct check *c, const struct shape *s, const struct json *v)
{
    bool number = v->type == JSON_INT || v->type == JSON_REAL;
    switch (s->scalar) {
    case SHAPE_NUMBER:
        return number ? 0 : wrong(c, "numeric (int or float)", v);
    case SHAPE_STRING:
        return v->type == JSON_STR ? 0 : wrong(c, "string", v);
    case SHAPE_BOOLEAN:
        return v->type == JSON_BOOL ? 0 : wrong(c, "boolean", v);
    default:
        return v->type == JSON_ARR || v->type == JSON_OBJ ? wrong(c, "any scalar", v) : 0;
    }
}

/* Elements of sets and map lists must be tellable apart. */
static int check_elements(struct check *c, const struct shape *s, const struct json *v)
{
    struct fieldset_element element;
    const char *why;
    for (uint32_t i = 0; i < v->n; i++)
        if (!typed_element(&c->scratch, s, v->items[i], &element, &why))
            return err_set(c->e, EBADMSG, "%.300s: element %u: %s", buf_str(&c->path).p, i, why);
    if (c->duplicates)
        return 0;
    struct typed_index index = typed_index(&c->scratch, s, v);
    for (uint32_t i = 1; i < index.n; i++)
        if (fieldset_element_cmp(&index.entries[i - 1].element, &index.entries[i].element) == 0) {
            auto_buf struct buf twice = { 0 };
            fieldset_put_element(&twice, &index.entries[i].element);
            return err_set(c->e, EBADMSG, "%.300s: duplicate entries for key %.150s",
                           buf_str(&c->path).p, twice.p);
        }
    return 0;
}

static int check_list(struct check *c, const struct shape *s, const struct json *v)
{
    if (v->type != JSON_ARR)
        return wrong(c, "list", v);
    bool granular = s->list != SHAPE_ATOMIC_LIST;
    int result = granular ? check_elements(c, s, v) : 0;
    size_t before = c->path.n;
    for (uint32_t i = 0; i < v->n && result == 0; i++) {
        struct fieldset_element element = { .kind = FIELD_INDEX, .index = i };
        const char *why;
        if (granular)
            typed_element(&c->scratch, s, v->items[i], &element, &why);
        fieldset_put_element(&c->path, &element);
        result = check_value(c, s->element, v->items[i]);
        c->path.n = before;
    }
    return result;
}

static int check_map(struct check *c, const struct shape *s, const struct json *v)
{
    if (v->type != JSON_OBJ)
        return wrong(c, "map", v);
    size_t before = c->path.n;
    int result = 0;
    for (uint32_t i = 0; i < v->n && result == 0; i++) {
        const struct shape *member = shape_member(s, v->members[i].key);
        buf_printf(&c->path, "." STR_FMT, STR_ARG(v->members[i].key));
        result = member ? check_value(c, member, v->members[i].value)
                        : err_set(c->e, EBADMSG, "%.300s: field not declared in schema",
                                  buf_str(&c->path).p);
        c->path.n = before;
    }
    return result;
}

static int check_value(struct check *c, const struct shape *shape, const struct json *v)
{
    if (v->type == JSON_NULL)
        return 0;
    const struct shape *s = shape_for(shape, v);
    if (s->kind == SHAPE_SCALAR)
        return check_scalar(c, s, v);
    return s->kind == SHAPE_LIST ? check_list(c, s, v) : check_map(c, s, v);
}

int typed_check(const struct shape *shape, const struct json *v, bool duplicates, err_t *e)
{
    struct check c = { .duplicates = duplicates, .e = e };
    int result = check_value(&c, shape, v);
    arena_done(&c.scratch);
    buf_done(&c.path);
    return result;
}
