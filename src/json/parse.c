/* Parses JSON text into a tree.
 *
 * yyjson reads and validates the text (RFC 8259, UTF-8). This file converts its document into our
 * tree, enforces the limits on depth, width and size, and finds duplicate keys, which yyjson does
 * not report. A second representation costs a copy, but yyjson's is read-only and ordered as a
 * sequence, and patches need a tree that can be modified.
 *
 * Limits are checked before the tree is built. The path (`spec.ports[0]`) is
 * maintained only if duplicates are reported. Integers that fit in 64 bits stay integers; all other
 * numbers become reals. */
#include "json.h"

#include <yyjson.h>

struct parse {
    struct arena *arena;
    const struct json_limits *limits;
    size_t depth_max;
    struct buf path; /* of the current value, for duplicates */
    err_t *e;
};

static struct json *convert(struct parse *p, yyjson_val *from, size_t depth);

static size_t path_enter(struct parse *p, str key)
{
    size_t before = p->path.n;
    if (before > JSON_PATH_BYTES)
        return before;
    if (before)
        buf_putc(&p->path, '.');
    buf_put(&p->path, str_upto(key, JSON_PATH_BYTES));
    return before;
}

static void path_leave(struct parse *p, size_t before)
{
    p->path.n = before;
}

static struct json *convert_number(struct parse *p, yyjson_val *from)
{
    if (yyjson_is_sint(from))
        return json_new_int(p->arena, yyjson_get_sint(from));
    if (yyjson_is_uint(from) && yyjson_get_uint(from) <= INT64_MAX)
        return json_new_int(p->arena, (int64_t)yyjson_get_uint(from));
    return json_new_real(p->arena, yyjson_get_num(from));
}

/* Whether a container of n entries at this depth is allowed; otherwise sets the error. */
static bool is_within_limits(struct parse *p, size_t n, size_t depth)
{
    if (depth > p->depth_max) {
        err_set(p->e, E2BIG, "JSON is nested more than %zu levels deep", p->depth_max);
        return false;
    }
    if (p->limits->members && n > p->limits->members) {
        err_set(p->e, E2BIG, "JSON has %zu entries in one object or array, at most %zu are allowed",
                n, p->limits->members);
        return false;
    }
    return true;
}

static struct json *convert_array(struct parse *p, yyjson_val *from, size_t depth)
{
    struct json *v = json_new_arr(p->arena);
    v->n = v->cap = (uint32_t)yyjson_arr_size(from);
    v->items = arena_array(p->arena, v->n, sizeof(*v->items));
    size_t i, n, before = p->path.n;
    yyjson_val *item;
    yyjson_arr_foreach(from, i, n, item)
    {
        if (p->limits->duplicate && before <= JSON_PATH_BYTES)
            buf_printf(&p->path, "[%zu]", i);
        if (!(v->items[i] = convert(p, item, depth + 1)))
            return NULL;
        path_leave(p, before);
    }
    return v;
}

/* Duplicate keys: the last value wins and keeps the place of the first, as in Go. */
static struct json *convert_object(struct parse *p, yyjson_val *from, size_t depth)
{
    struct json *v = json_new_obj(p->arena);
    json_reserve(p->arena, v, (uint32_t)yyjson_obj_size(from));
    size_t i, n;
    yyjson_val *name, *value;
    yyjson_obj_foreach(from, i, n, name, value)
    {
        str key = { yyjson_get_str(name), yyjson_get_len(name) };
        size_t before = p->limits->duplicate ? path_enter(p, key) : 0;
        struct json_member *m = json_find(v, key);
        if (m && p->limits->duplicate)
            p->limits->duplicate(p->limits->context, buf_str(&p->path));
        if (!m) {
            json_append(p->arena, v, key, NULL);
            m = &v->members[v->n - 1];
        }
        if (!(m->value = convert(p, value, depth + 1)))
            return NULL;
        path_leave(p, before);
    }
    return v;
}

static struct json *convert(struct parse *p, yyjson_val *from, size_t depth)
{
    switch (yyjson_get_type(from)) {
    case YYJSON_TYPE_BOOL:
        return json_new_bool(p->arena, yyjson_get_bool(from));
    case YYJSON_TYPE_NUM:
        return convert_number(p, from);
    case YYJSON_TYPE_STR:
        return json_new_str(p->arena, (str){ yyjson_get_str(from), yyjson_get_len(from) });
    case YYJSON_TYPE_ARR:
        return is_within_limits(p, yyjson_arr_size(from), depth + 1) ? convert_array(p, from, depth)
                                                                     : NULL;
    case YYJSON_TYPE_OBJ:
        return is_within_limits(p, yyjson_obj_size(from), depth + 1)
                   ? convert_object(p, from, depth)
                   : NULL;
    default:
        return json_new_null(p->arena);
    }
}

/* Line and column of a byte offset, for messages. */
static void locate(str text, size_t at, size_t *ret_line, size_t *ret_column)
{
    *ret_line = *ret_column = 1;
    for (size_t i = 0; i < at && i < text.n; i++) {
        ++*ret_column;
        if (text.p[i] == '\n') {
            ++*ret_line;
            *ret_column = 1;
        }
    }
}

int json_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e)
{
    if (text.n > UINT32_MAX / 2)
        return err_set(e, E2BIG, "JSON of %zu bytes is too large", text.n);
    yyjson_read_err problem;
    /* without the in-situ flag yyjson does not write to the text */
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text.p, text.n, 0, NULL, &problem);
    if (!doc) {
        size_t line, column;
        locate(text, problem.pos, &line, &column);
        return err_set(e, EINVAL, "invalid JSON at line %zu, column %zu: %s", line, column,
                       text.n ? problem.msg : "it is empty");
    }
    size_t values = yyjson_doc_get_val_count(doc);
    if (limits->values && values > limits->values) {
        yyjson_doc_free(doc);
        return err_set(e, E2BIG, "JSON has %zu values, at most %zu are allowed", values,
                       limits->values);
    }
    struct parse p = { .arena = a, .limits = limits, .e = e };
    p.depth_max = limits->depth ? limits->depth : JSON_DEPTH_MAX;
    struct json *tree = convert(&p, yyjson_doc_get_root(doc), 0);
    yyjson_doc_free(doc);
    buf_done(&p.path);
    if (!tree)
        return -E2BIG;
    *ret = tree;
    return 0;
}

void json_hide_nul(char *text, size_t n)
{
    char *end = text + n;
    for (char *p = text; n && (p = memmem(p, (size_t)(end - p), "\\u0000", 6)); p++) {
        const char *first =
            p; /* start of the row of backslashes: an escaped backslash escapes nothing */
        while (first > text && first[-1] == '\\')
            first--;
        if ((p - first) % 2 == 0)
            memcpy(p, "\\ufffd", 6);
    }
}

int json_parse(struct arena *a, str text, struct json **ret, err_t *e)
{
    return json_parse_limited(a, text, &(struct json_limits){ 0 }, ret, e);
}
