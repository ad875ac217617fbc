/* Path templates: see path_core.h.
 *
 *     text --aim_path_compile--> parts: literal | label or annotation key | JSONPath
 *     parts + object --put_part--> text --(rfc1123: squeeze)--> aim_path_normalize --> /a/b%20c
 *
 * A placeholder is a pair of braces without braces inside; any other brace is an error, because a literal brace in
 * a path is probably a mistake. The most common placeholder, a label or annotation by its key, needs no JSONPath: the
 * key is used verbatim, including dots and slashes.
 *
 * Values come from users, so the result is always encoded: a value cannot add a query, a fragment or a "..", and the
 * path is limited to PATH_BYTES_MAX. On failure `out` is unchanged and `problem` holds one sentence. */
#include "path_core.h"

#include "../base/utf8.h"
#include "names_core.h"

#include <stdarg.h>
#include <stdio.h>

PRINTF_LIKE(3, 4)
static int set_problem(struct aim_path_problem *problem, enum aim_path_fault fault,
                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problem->fault = fault;
    vsnprintf(problem->text, sizeof(problem->text), format, args);
    va_end(args);
    return -EINVAL;
}

const char *aim_path_fault_name(enum aim_path_fault fault)
{
    static const char *const names[PATH_FAULT_N] = {
        [PATH_FINE] = "fine",       [PATH_MISSING] = "missing",         [PATH_INVALID] = "invalid",
        [PATH_MULTIPLE] = "multi",  [PATH_NOT_SCALAR] = "not_scalar",   [PATH_EMPTY] = "empty",
        [PATH_TOO_LONG] = "length", [PATH_DOT_SEGMENT] = "dot_segment",
    };
    return names[fault];
}

/* ---- compilation */

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

/* Recognizes .metadata.labels['key'] and .metadata.annotations["key"]. */
static bool take_map_key(str expression, struct aim_path_part *part)
{
    static const struct {
        str prefix;
        bool labels;
    } maps[] = { { { ".metadata.labels[", 17 }, true },
                 { { ".metadata.annotations[", 22 }, false } };
    for (size_t i = 0; i < countof(maps); i++) {
        str rest = str_from(expression, maps[i].prefix.n);
        if (!str_starts(expression, maps[i].prefix) || rest.n < 4 || !is_quote(rest.p[0]) ||
            !is_quote(rest.p[rest.n - 2]) || rest.p[rest.n - 1] != ']')
            continue;
        str key = { rest.p + 1, rest.n - 3 };
        for (size_t k = 0; k < key.n; k++)
            if (is_quote(key.p[k]))
                return false;
        part->map_key = key;
        part->of_labels = maps[i].labels;
        return true;
    }
    return false;
}

/* Parses one placeholder; `column` is where `inside` starts in the template. */
static int compile_expression(struct arena *a, str inside, size_t column,
                              struct aim_path_part *part, struct aim_path_problem *problem)
{
    part->expression = utf8_trim(inside);
    part->column = column + (size_t)(part->expression.p - inside.p);
    if (!part->expression.n)
        return set_problem(problem, PATH_INVALID, "column %zu: the placeholder is empty", column);
    if (take_map_key(part->expression, part))
        return 0;
    err_t e;
    struct jsonpath_source source = { .text = part->expression,
                                      .column = part->column,
                                      .flags = JSONPATH_LITERAL_KEYS };
    if (jsonpath_parse(a, source, &part->path, &e) < 0)
        return set_problem(problem, PATH_INVALID, "%s", e.text);
    return 0;
}

/* Alternates between literals and placeholders; `at` is always outside of braces. */
int aim_path_compile(struct arena *a, str text, struct aim_path_template *ret,
                     struct aim_path_problem *problem)
{
    size_t braces = 0, n = 0;
    unsigned placeholders = 0;
    if (!text.n)
        text = S("/{.metadata.namespace}/{.metadata.uid}");
    for (size_t i = 0; i < text.n; i++)
        braces += text.p[i] == '{';
    struct aim_path_part *parts = arena_array(a, 2 * braces + 1, sizeof(*parts));
    for (size_t at = 0; at < text.n;) {
        str rest = str_from(text, at);
        size_t open = MIN(str_find_char(rest, '{'), rest.n),
               close = MIN(str_find_char(rest, '}'), rest.n);
        if (close < open)
            return set_problem(problem, PATH_INVALID,
                               "column %zu: closing brace without an opening brace",
                               at + close + 1);
        if (open)
            parts[n++].literal = str_upto(rest, open);
        if (open == rest.n)
            break;
        str inside = { rest.p + open + 1, close > open ? close - open - 1 : 0 };
        if (close == rest.n || str_find_char(inside, '{') != SIZE_MAX)
            return set_problem(problem, PATH_INVALID, "column %zu: opening brace is not closed",
                               at + open + 1);
        parts[n].number = ++placeholders;
        int failed = compile_expression(a, inside, at + open + 2, &parts[n++], problem);
        if (failed)
            return failed;
        at += close + 1;
    }
    *ret = (struct aim_path_template){ parts, n };
    return 0;
}

/* ---- rendering */

/* Null, objects and lists have no form in a path, so they are errors instead of "null" or "{}". */
static int put_value(struct buf *out, const struct aim_path_part *part, const struct json *v,
                     struct aim_path_problem *problem)
{
    if (!v || v->type == JSON_NULL || v->type == JSON_ARR || v->type == JSON_OBJ)
        return set_problem(problem, PATH_NOT_SCALAR,
                           "placeholder %u, column %zu: {" STR_FMT
                           "} is %s %s, but must be a string, number or boolean",
                           part->number, part->column, STR_ARG(part->expression),
                           json_is(v, JSON_ARR) || json_is(v, JSON_OBJ) ? "an" : "a",
                           json_type_name(v));
    jsonpath_put(out, v);
    return 0;
}

/* Lists the existing keys, because the usual cause is a typing mistake. */
static int fail_map_key(const struct aim_path_part *part, const struct json *map,
                        struct aim_path_problem *problem)
{
    auto_buf struct buf keys = { 0 };
    json_each(m, map)
        buf_printf(&keys, "%s" STR_FMT, keys.n ? ", " : "", STR_ARG(m->key));
    return set_problem(problem, PATH_MISSING,
                       "placeholder %u, column %zu: %s \"" STR_FMT
                       "\" is not found; the object has: " STR_FMT,
                       part->number, part->column, part->of_labels ? "label" : "annotation",
                       STR_ARG(part->map_key),
                       STR_ARG(keys.n ? str_upto(buf_str(&keys), 200) : S("none")));
}

static int put_map_value(struct buf *out, const struct aim_path_part *part,
                         const struct json *object, struct aim_path_problem *problem)
{
    const struct json *map =
        json_at(object, "metadata", part->of_labels ? "labels" : "annotations", NULL);
    const struct json *v = json_get_str(map, part->map_key);
    return v ? put_value(out, part, v, problem) : fail_map_key(part, map, problem);
}

/* Appends the value of one part, or fails with the placeholder's number. */
static int put_part(struct buf *out, const struct aim_path_part *part, const struct json *object,
                    struct arena *scratch, struct aim_path_problem *problem)
{
    if (!part->expression.n) {
        buf_put(out, part->literal);
        return 0;
    }
    if (part->map_key.n)
        return put_map_value(out, part, object, problem);
    const struct json *v;
    err_t e;
    int r = jsonpath_one(scratch, &part->path, object, &v, &e);
    if (r == 0)
        return put_value(out, part, v, problem);
    return set_problem(problem,
                       r == -ENOENT  ? PATH_MISSING
                       : r == -E2BIG ? PATH_MULTIPLE
                                     : PATH_INVALID,
                       "placeholder %u, {" STR_FMT "}: %s", part->number, STR_ARG(part->expression),
                       e.text);
}

/* RFC 1123 encoding of a value. An annotation may contain several segments; any other value is one segment. */
static void squeeze_value(struct buf *text, size_t before, const struct aim_path_part *part,
                          struct arena *scratch)
{
    if (part->map_key.n && !part->of_labels)
        return;
    str value = aim_names_rfc1123(scratch, str_from(buf_str(text), before));
    text->n = before;
    buf_put(text, value);
}

/* RFC 1123 encoding of every segment; empty ones are dropped. */
static void squeeze_segments(struct buf *text, struct arena *scratch)
{
    auto_buf struct buf squeezed = { 0 };
    str rest = utf8_trim(buf_str(text));
    buf_put(&squeezed, rest.n ? S("/") : S(""));
    for (str segment; rest.n && str_cut(&rest, '/', &segment);) {
        str one = aim_names_rfc1123(scratch, segment);
        buf_printf(&squeezed, STR_FMT "%s", STR_ARG(one), one.n ? "/" : "");
    }
    buf_clear(text);
    buf_put(text, buf_str(&squeezed));
}

/* Renders part by part, reports each value to `trace`, then encodes. */
int aim_path_render_traced(const struct aim_path_template *t, const struct json *object,
                           struct arena *scratch, aim_path_trace_fn *trace, void *context,
                           struct buf *out, struct aim_path_problem *problem)
{
    struct arena_mark mark = arena_mark(scratch);
    auto_buf struct buf text = { 0 };
    int failed = 0;
    for (size_t i = 0; i < t->n && !failed; i++) {
        size_t before = text.n;
        const struct aim_path_part *part = &t->parts[i];
        failed = put_part(&text, part, object, scratch, problem);
        if (trace && !failed && part->expression.n)
            trace(context, part->expression, str_from(buf_str(&text), before));
        if (t->encoding == PATH_RFC1123 && !failed && part->expression.n)
            squeeze_value(&text, before, part, scratch);
    }
    if (t->encoding == PATH_RFC1123 && !failed)
        squeeze_segments(&text, scratch);
    arena_reset(scratch, mark);
    return failed ? failed : aim_path_normalize(buf_str(&text), out, problem);
}

int aim_path_render(const struct aim_path_template *t, const struct json *object,
                    struct arena *scratch, struct buf *out, struct aim_path_problem *problem)
{
    return aim_path_render_traced(t, object, scratch, NULL, NULL, out, problem);
}

/* ---- encoding */

static bool is_unescaped(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-_.~$&+=:@", c));
}

static char *put_escaped(char *at, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    *at++ = '%';
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 15];
    return at;
}

/* A character outside ASCII: every byte is escaped. Its lower-case form may be longer, but never more than four
 * bytes. */
static char *put_foreign(char *at, uint32_t point)
{
    auto_buf struct buf bytes = { 0 };
    utf8_put(&bytes, point);
    for (size_t i = 0; i < bytes.n; i++)
        at = put_escaped(at, (unsigned char)bytes.p[i]);
    return at;
}

/* Appends a segment, lower-cased and percent-encoded: at most 12 bytes per input byte. */
static void put_encoded(struct buf *out, str segment)
{
    char *start = buf_reserve(out, segment.n * 12 + 1), *at = start;
    while (segment.n) {
        unsigned char c = (unsigned char)*segment.p;
        uint32_t point = c;
        if (c < 0x80)
            segment = (str){ segment.p + 1, segment.n - 1 };
        else
            point = utf8_lower(utf8_next(&segment));
        if (point >= 0x80) {
            at = put_foreign(at, point);
            continue;
        }
        c = (unsigned char)(point >= 'A' && point <= 'Z' ? point + 32 : point);
        if (is_unescaped(c))
            *at++ = (char)c;
        else
            at = put_escaped(at, c);
    }
    *at = '\0';
    out->n += (size_t)(at - start);
}

/* Empty segments are dropped, so "//a/" becomes "/a". The length is checked after encoding. */
int aim_path_normalize(str text, struct buf *out, struct aim_path_problem *problem)
{
    size_t start = out->n;
    text = utf8_trim(text);
    if (!text.n)
        return set_problem(problem, PATH_EMPTY, "the template renders to an empty path");
    for (str segment; str_cut(&text, '/', &segment);) {
        if (!segment.n)
            continue;
        if (str_eqc(segment, ".") || str_eqc(segment, "..")) {
            out->n = start;
            return set_problem(problem, PATH_DOT_SEGMENT,
                               "the path has a segment \"" STR_FMT "\", which gateways refuse",
                               STR_ARG(segment));
        }
        buf_putc(out, '/');
        put_encoded(out, segment);
    }
    if (out->n == start)
        buf_putc(out, '/');
    size_t n = out->n - start;
    if (n > PATH_BYTES_MAX) {
        out->n = start;
        return set_problem(problem, PATH_TOO_LONG,
                           "the path has %zu bytes, but at most %d are allowed", n, PATH_BYTES_MAX);
    }
    return 0;
}

int aim_path_encoding_parse(str text, enum aim_path_encoding *ret, err_t *e)
{
    if (!str_eqc(text, "rfc3986") && !str_eqc(text, "rfc1123"))
        return err_set(e, EINVAL,
                       "path encoding is \"" STR_FMT "\", but must be rfc3986 or rfc1123",
                       STR_ARG(text));
    *ret = str_eqc(text, "rfc1123") ? PATH_RFC1123 : PATH_RFC3986;
    return 0;
}
