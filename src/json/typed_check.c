/* Checks whether a value has the right shape: see typed.h. Reports the first problem with its path,
 * in the words of Kubernetes (quoted: structured-merge-diff), because people search for them. */
#include "typed.h"

/* The path of the current value as a chain on the stack, written out only for an error. */
struct place {
    const struct place *up;
    struct fieldset_element element;
};

struct check {
    struct arena scratch;
    bool duplicates; /* allowed */
    err_t *e;
};

static int check_value(struct check *c, const struct shape *shape, const struct json *v,
                       const struct place *at);

static void put_place(struct buf *out, const struct place *at)
{
    if (!at)
        return;
    put_place(out, at->up);
    fieldset_put_element(out, &at->element);
}

static int typed_fail(struct check *c, const struct place *at, const char *what, const char *detail)
{
    auto_buf struct buf path = { 0 };
    put_place(&path, at);
    return err_set(c->e, EBADMSG, "%.300s: %s%.150s", buf_str(&path).p, what, detail);
}

static int fail_type(struct check *c, const char *expected, const struct json *v,
                     const struct place *at)
{
    static const char *const go_types[] = {
        "nil", "bool", "int64", "float64", "string", "[]interface {}", "map[string]interface {}"
    };
    return typed_fail(c, at, expected, go_types[v->type]);
}

static int check_scalar(struct check *c, const struct shape *s, const struct json *v,
                        const struct place *at)
{
    bool number = v->type == JSON_INT || v->type == JSON_REAL;
    switch (s->scalar) {
    case SHAPE_NUMBER:
        return number ? 0 : fail_type(c, "expected numeric (int or float), got ", v, at);
    case SHAPE_STRING:
        return v->type == JSON_STR ? 0 : fail_type(c, "expected string, got ", v, at);
    case SHAPE_BOOLEAN:
        return v->type == JSON_BOOL ? 0 : fail_type(c, "expected boolean, got ", v, at);
    default:
        return v->type == JSON_ARR || v->type == JSON_OBJ
                   ? fail_type(c, "expected any scalar, got ", v, at)
                   : 0;
    }
}

/* Elements of sets and map lists must have an identity, and a unique one unless duplicates are
 * allowed. */
static int check_elements(struct check *c, const struct shape *s, const struct json *v,
                          const struct place *at)
{
    struct fieldset_element element;
    const char *why;
    for (uint32_t i = 0; i < v->n; i++)
        if (!typed_element(&c->scratch, s, v->items[i], &element, &why))
            return typed_fail(c, at, arena_printf(&c->scratch, "element %u: ", i).p, why);
    if (c->duplicates)
        return 0;
    struct typed_index index = typed_index(&c->scratch, s, v);
    for (uint32_t i = 1; i < index.n; i++)
        if (fieldset_element_cmp(&index.entries[i - 1].element, &index.entries[i].element) == 0) {
            auto_buf struct buf twice = { 0 };
            fieldset_put_element(&twice, &index.entries[i].element);
            return typed_fail(c, at, "duplicate entries for key ", twice.p);
        }
    return 0;
}

static int check_list(struct check *c, const struct shape *s, const struct json *v,
                      const struct place *at)
{
    if (v->type != JSON_ARR)
        return fail_type(c, "expected list, got ", v, at);
    bool granular = s->list != SHAPE_ATOMIC_LIST;
    int result = granular ? check_elements(c, s, v, at) : 0;
    for (uint32_t i = 0; i < v->n && result == 0; i++) {
        struct place below = { at, { .kind = FIELD_INDEX, .index = i } };
        const char *why;
        if (granular)
            typed_element(&c->scratch, s, v->items[i], &below.element, &why);
        result = check_value(c, s->element, v->items[i], &below);
    }
    return result;
}

static int check_map(struct check *c, const struct shape *s, const struct json *v,
                     const struct place *at)
{
    if (v->type != JSON_OBJ)
        return fail_type(c, "expected map, got ", v, at);
    int result = 0;
    for (uint32_t i = 0; i < v->n && result == 0; i++) {
        struct place below = { at, fieldset_name(v->members[i].key) };
        const struct shape *member = shape_member(s, v->members[i].key);
        result = member ? check_value(c, member, v->members[i].value, &below)
                        : typed_fail(c, &below, "field not declared in schema", "");
    }
    return result;
}

static int check_value(struct check *c, const struct shape *shape, const struct json *v,
                       const struct place *at)
{
    if (v->type == JSON_NULL)
        return 0;
    const struct shape *s = shape_for(shape, v);
    if (s->kind == SHAPE_SCALAR)
        return check_scalar(c, s, v, at);
    return s->kind == SHAPE_LIST ? check_list(c, s, v, at) : check_map(c, s, v, at);
}

int typed_check(const struct shape *shape, const struct json *v, bool duplicates, err_t *e)
{
    struct check c = { .duplicates = duplicates, .e = e };
    int result = check_value(&c, shape, v, NULL);
    arena_done(&c.scratch);
    return result;
}
