/* Evaluation of JSONPath: see jsonpath.h. The parser is in jsonpath_parse.c.
 *
 *     .items[*].status.conditions[?(@.type=="Ready")].status
 *
 *     [root] -> [items] -> [item, item, ...] -> [status, ...] -> [list, ...] -> [condition] -> ["True"]
 *
 * A list of values goes through the steps; each step makes the next list. Values are never copied:
 * lists hold pointers into the tree, in the caller's scratch arena, and are limited to
 * JSONPATH_VALUES_MAX.
 *
 * The behavior is that of client-go, including its surprises, because users write these expressions
 * for kubectl: an empty range ends a step for all later values, comparison fails on mixed types,
 * and text is a list of bytes for the wildcard. The list that a failed step leaves behind matters
 * too, because the filter "exists" looks at it: see run_path(). Error texts are quoted: client-go.
 *
 * Paths of plain fields and single indexes, which is what printer columns mostly are, take a short
 * cut without any list: run_plain(). */
#include "jsonpath_op.h"

#include <stdio.h>

struct values {
    const struct json **at;
    size_t n, cap;
};

struct run {
    struct arena *arena;
    unsigned flags;
    err_t *e;
    bool ranged; /* {range} selects nothing by itself: kubectl loops over the list */
};

static int run_path(struct run *r, const struct jsonpath *p, const struct values *in,
                    struct values *out);

static int fail_op(struct run *r, int code, const struct jsonpath_op *op, const char *what)
{
    return err_set(r->e, code, "column %u: %s", op->column, what);
}

static int push_value(struct run *r, struct values *v, const struct json *value)
{
    if (v->n >= JSONPATH_VALUES_MAX)
        return err_set(r->e, EBADMSG, "the path selects more than %d values", JSONPATH_VALUES_MAX);
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 8;
        const struct json **larger = arena_array(r->arena, v->cap, sizeof(*larger));
        if (v->n)
            memcpy(larger, v->at, v->n * sizeof(*larger));
        v->at = larger;
    }
    v->at[v->n++] = value;
    return 0;
}

static const char *go_type(const struct json *v)
{
    static const char *const names[] = {
        "nil", "bool", "int64", "float64", "string", "[]interface {}", "map[string]interface {}"
    };
    return names[v->type];
}

/* ---- fields and indexes */

static int run_field(struct run *r, const struct jsonpath_op *op, const struct values *in,
                     struct values *out)
{
    int result = 0;
    for (size_t i = 0; i < in->n && result == 0; i++) {
        const struct json *found = json_get_str(in->at[i], op->name);
        if (found)
            result = push_value(r, out, found);
    }
    if (result == 0 && in->n && !out->n && !(r->flags & JSONPATH_ALLOW_MISSING))
        return err_set(r->e, ENOENT, "column %u: %.200s is not found", op->column,
                       arena_str(r->arena, op->name).p);
    return result;
}

/* The range of a slice in a list of n elements; returns 1, or 0 if it is empty. */
static int slice_range(struct run *r, const struct jsonpath_op *op, int64_t n, int64_t ret[2])
{
    const struct jsonpath_slice *s = &op->slice;
    int64_t start = s->start < 0 ? s->start + n : s->start;
    int64_t end = s->has_end ? s->end : n;
    if (end < 0 || (end == 0 && s->derived))
        end += n;
    if (start == end)
        return 0;
    if (start < 0 || start >= n || end < 0 || end > n)
        return err_set(r->e, EBADMSG,
                       "column %u: array index out of bounds: index %lld, length %lld", op->column,
                       (long long)(start < 0 || start >= n ? start : end - 1), (long long)n);
    if (start > end)
        return err_set(r->e, EBADMSG,
                       "column %u: starting index %lld is greater than ending index %lld",
                       op->column, (long long)start, (long long)end);
    if (s->has_step && s->step <= 0)
        return fail_op(r, EBADMSG, op, "step must be > 0");
    ret[0] = start;
    ret[1] = end;
    return 1;
}

/* [1:3], [-1], [*]. Null values are skipped; other values that are not lists are an error. */
static int run_slice(struct run *r, const struct jsonpath_op *op, const struct values *in,
                     struct values *out)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct json *v = in->at[i];
        int64_t range[2], step = op->slice.has_step ? op->slice.step : 1;
        if (v->type == JSON_NULL)
            continue;
        if (v->type != JSON_ARR)
            return err_set(r->e, EBADMSG, "column %u: %s is not array or slice", op->column,
                           go_type(v));
        int result = slice_range(r, op, v->n, range);
        if (result <= 0)
            return result; /* an empty range ends the step, also for later values */
        for (int64_t at = range[0]; at < range[1]; at += MIN(step, range[1] - at))
            if ((result = push_value(r, out, v->items[at])) < 0)
                return result;
    }
    return 0;
}

/* ---- children */

/* In Go, text is a list of bytes. */
static int push_children(struct run *r, const struct json *v, struct values *out)
{
    int result = 0;
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n && result == 0; i++)
        result = push_value(r, out, v->items[i]);
    for (uint32_t i = 0; v->type == JSON_OBJ && i < v->n && result == 0; i++)
        result = push_value(r, out, v->members[i].value);
    for (uint32_t i = 0; v->type == JSON_STR && i < v->n && result == 0; i++)
        result = push_value(r, out, json_new_int(r->arena, (unsigned char)v->text[i]));
    return result;
}

static int run_wildcard(struct run *r, const struct values *in, struct values *out)
{
    int result = 0;
    for (size_t i = 0; i < in->n && result == 0; i++)
        result = push_children(r, in->at[i], out);
    return result;
}

/* The value and everything below it that has children, parents first. */
static int descend_into(struct run *r, const struct json *v, struct values *out)
{
    bool holds = (v->type == JSON_ARR || v->type == JSON_OBJ || v->type == JSON_STR) && v->n;
    int result = holds ? push_value(r, out, v) : 0;
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n && result == 0; i++)
        result = descend_into(r, v->items[i], out);
    for (uint32_t i = 0; v->type == JSON_OBJ && i < v->n && result == 0; i++)
        result = descend_into(r, v->members[i].value, out);
    return result;
}

static int run_recursive(struct run *r, const struct values *in, struct values *out)
{
    int result = 0;
    for (size_t i = 0; i < in->n && result == 0; i++)
        result = descend_into(r, in->at[i], out);
    return result;
}

static int run_union(struct run *r, const struct jsonpath_op *op, const struct values *in,
                     struct values *out)
{
    int result = 0;
    for (uint32_t i = 0; i < op->n_branches && result == 0; i++) {
        struct values one = { 0 };
        result = run_path(r, &op->branches[i], in, &one);
        for (size_t k = 0; k < one.n && result == 0; k++)
            result = push_value(r, out, one.at[k]);
    }
    return result;
}

/* ---- filters */

/* -1, 0 or 1; false if the two cannot be compared. Booleans can only be equal or not. */
static bool order_values(const struct json *a, const struct json *b, int *ret)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_INT:
        *ret = a->integer < b->integer ? -1 : a->integer > b->integer;
        return true;
    case JSON_REAL:
        *ret = a->real < b->real ? -1 : a->real > b->real;
        return true;
    case JSON_STR:
        *ret = str_cmp(json_text(a), json_text(b));
        return true;
    case JSON_BOOL:
        *ret = (int)a->boolean - (int)b->boolean;
        return true;
    default:
        return false;
    }
}

/* 1 if the comparison of a filter holds, 0 if not. */
static int compare_values(struct run *r, const struct jsonpath_op *op, const struct json *a,
                          const struct json *b)
{
    int way = 0;
    enum jsonpath_compare compare = op->filter->compare;
    if (compare == PATH_BAD)
        return fail_op(r, EBADMSG, op, "unrecognized filter operator");
    if (!order_values(a, b, &way) ||
        (a->type == JSON_BOOL && compare != PATH_EQ && compare != PATH_NE))
        return fail_op(r, EBADMSG, op, "incompatible types for comparison");
    switch (compare) {
    case PATH_EQ:
        return way == 0;
    case PATH_NE:
        return way != 0;
    case PATH_LT:
        return way < 0;
    case PATH_LE:
        return way <= 0;
    case PATH_GT:
        return way > 0;
    default:
        return way >= 0;
    }
}

/* 1 if the element passes the filter, 0 if not. */
static int filter_element(struct run *r, const struct jsonpath_op *op, const struct json *element)
{
    struct values in = { .at = &element, .n = 1 }, left = { 0 }, right = { 0 };
    const struct jsonpath_filter *f = op->filter;
    int result = run_path(r, &f->left, &in, &left);
    if (f->compare == PATH_EXISTS)
        return left.n > 0;
    if (result < 0 || left.n == 0)
        return result;
    if (left.n > 1)
        return fail_op(r, EBADMSG, op, "can only compare one element at a time");
    result = run_path(r, &f->right, &in, &right);
    if (result < 0 || right.n == 0)
        return result;
    if (right.n > 1)
        return fail_op(r, EBADMSG, op, "can only compare one element at a time");
    return compare_values(r, op, left.at[0], right.at[0]);
}

/* [?(...)]: the elements of every list that pass. */
static int run_filter(struct run *r, const struct jsonpath_op *op, const struct values *in,
                      struct values *out)
{
    int result = 0;
    for (size_t i = 0; i < in->n; i++) {
        const struct json *v = in->at[i];
        if (v->type != JSON_ARR)
            return err_set(r->e, EBADMSG,
                           "column %u: %s is not array or slice and cannot be filtered", op->column,
                           go_type(v));
        for (uint32_t k = 0; k < v->n; k++) {
            result = filter_element(r, op, v->items[k]);
            if (result > 0)
                result = push_value(r, out, v->items[k]);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

/* ---- steps */

static int run_scalar(struct run *r, const struct jsonpath_op *op, const struct values *in,
                      struct values *out)
{
    int result = 0;
    for (size_t i = 0; i < in->n && result == 0; i++)
        result = push_value(r, out, op->literal);
    return result;
}

static int run_word(struct run *r, const struct jsonpath_op *op, const struct values *in,
                    struct values *out)
{
    if (str_eq(op->name, S("range"))) {
        r->ranged = true;
        *out = *in;
        return 0;
    }
    if (str_eq(op->name, S("end")))
        return fail_op(r, EBADMSG, op, "not in range, nothing to end");
    return err_set(r->e, EBADMSG, "column %u: unrecognized identifier %.200s", op->column,
                   arena_str(r->arena, op->name).p);
}

static int run_op(struct run *r, const struct jsonpath_op *op, const struct values *in,
                  struct values *out)
{
    switch (op->kind) {
    case PATH_FIELD:
        return run_field(r, op, in, out);
    case PATH_SLICE:
        return run_slice(r, op, in, out);
    case PATH_WILDCARD:
        return run_wildcard(r, in, out);
    case PATH_RECURSIVE:
        return run_recursive(r, in, out);
    case PATH_UNION:
        return run_union(r, op, in, out);
    case PATH_FILTER:
        return run_filter(r, op, in, out);
    case PATH_TEXT:
        return push_value(r, out, op->literal);
    case PATH_SCALAR:
        return run_scalar(r, op, in, out);
    default:
        return run_word(r, op, in, out);
    }
}

/* If a step fails, the list is the input of that step, except that a missing field leaves an empty
 * one: [?(@.a[5])] passes if `a` exists and the index is out of bounds, as in client-go. */
static int run_path(struct run *r, const struct jsonpath *p, const struct values *in,
                    struct values *out)
{
    *out = *in;
    for (uint32_t i = 0; i < p->n; i++) {
        struct values next = { 0 };
        int result = run_op(r, &p->ops[i], out, &next);
        if (result == 0 || result == -ENOENT)
            *out = next;
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- plain paths: one value at each step */

/* The same results and errors as run_path(), without a list. NULL in `*ret`: no value. */
static int run_plain(const struct jsonpath *p, const struct json *root, const struct json **ret,
                     err_t *e)
{
    const struct json *v = root;
    for (uint32_t i = 0; i < p->n && v; i++) {
        const struct jsonpath_op *op = &p->ops[i];
        if (op->kind == PATH_FIELD) {
            v = json_get_str(v, op->name);
            if (!v && !(p->flags & JSONPATH_ALLOW_MISSING))
                return err_set(e, ENOENT, "column %u: " STR_FMT " is not found", op->column,
                               STR_ARG(str_upto(op->name, 200)));
        } else if (v->type == JSON_NULL) {
            v = NULL;
        } else {
            int64_t range[2];
            struct run r = { .e = e };
            int result = v->type == JSON_ARR ? slice_range(&r, op, v->n, range) : 0;
            if (v->type != JSON_ARR)
                return err_set(e, EBADMSG, "column %u: %s is not array or slice", op->column,
                               go_type(v));
            if (result < 0)
                return result;
            v = result ? v->items[range[0]] : NULL;
        }
    }
    *ret = v;
    return 0;
}

int jsonpath_find(struct arena *scratch, const struct jsonpath *p, const struct json *root,
                  struct jsonpath_values *ret, err_t *e)
{
    struct run r = { .arena = scratch, .flags = p->flags, .e = e };
    struct values in = { .at = &root, .n = 1 }, out;
    int result = run_path(&r, p, &in, &out);
    if (result < 0)
        return result;
    if (out.at == &root) { /* no steps: the list must not point to our parameter */
        out = (struct values){ 0 };
        push_value(&r, &out, root);
    }
    *ret = (struct jsonpath_values){ out.at, r.ranged ? 0 : out.n };
    return 0;
}

int jsonpath_one(struct arena *scratch, const struct jsonpath *p, const struct json *root,
                 const struct json **ret, err_t *e)
{
    const struct json *one = NULL;
    if (p->plain) {
        int result = run_plain(p, root, &one, e);
        if (result < 0)
            return result;
    } else {
        struct jsonpath_values all;
        int result = jsonpath_find(scratch, p, root, &all, e);
        if (result < 0)
            return result;
        if (all.n > 1)
            return err_set(e, E2BIG, "the path selects %zu values, expected one", all.n);
        one = all.n ? all.at[0] : NULL;
    }
    if (!one)
        return err_set(e, ENOENT, "the path selects no value");
    *ret = one;
    return 0;
}

const struct json *jsonpath_first(struct arena *scratch, const struct jsonpath *p,
                                  const struct json *root)
{
    const struct json *one = NULL;
    struct jsonpath_values all;
    if (p->plain)
        return run_plain(p, root, &one, NULL) < 0 ? NULL : one;
    return jsonpath_find(scratch, p, root, &all, NULL) < 0 || !all.n ? NULL : all.at[0];
}

/* ---- printing */

/* The shortest digits, with an exponent below -4 and from 6 on. */
static void put_real(struct buf *out, double v)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision - 1, v);
        if (strtod(digits, NULL) == v)
            break;
    }
    const char *e = strchr(digits, 'e');
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;
    if (v != 0 && (exponent < -4 || exponent >= 6))
        buf_put(out, str_c(digits));
    else
        json_write_real(out, v);
}

void jsonpath_put(struct buf *out, const struct json *v)
{
    switch (v->type) {
    case JSON_NULL:
        buf_put(out, S("<nil>"));
        break;
    case JSON_STR:
        buf_put(out, json_text(v));
        break;
    case JSON_REAL:
        put_real(out, v->real);
        break;
    default:
        json_write_canonical(out, v);
    }
}
