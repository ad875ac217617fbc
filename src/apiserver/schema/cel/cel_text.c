/* The library of strings, and regular expressions.
 *
 * Positions count code points, as in CEL, not bytes: functions that take or return a position walk the text
 * from its start (offset_of, cel_count_chars). Text of the object is valid UTF-8, because JSON was checked when
 * it was read.
 *
 * Results that are a part of an argument (substring, split, trim) refer to its bytes; only functions that write
 * new text copy, through a buffer into the arena of the run. Whatever can grow text (replace, join) is limited
 * to CEL_TEXT_MAX bytes and sets `exceeded` beyond it, because a call can be much larger than what the cost
 * model charges for it.
 *
 * Patterns that are literals were compiled once, with the program (cel_literal.c); others are compiled per
 * call. The matcher is linear in text times pattern and counts its steps, so a pattern cannot stall the server. */
#include "../../../base/regex.h"
#include "../../../base/utf8.h"
#include "cel_node.h"

/* ---- positions */

/* The byte offset of a code point; the length of the text if that is beyond its end. */
static size_t offset_of(str text, int64_t position)
{
    size_t at = 0;
    for (; at < text.n && position > 0; position--)
        for (at++; at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80;)
            at++;
    return at;
}

static struct cel_value fail_index(struct cel_machine *m, int64_t index)
{
    return cel_fail(m->arena, "index out of range: %lld", (long long)index);
}

/* The position after the last code point is valid and gives an empty text, as in the original. */
static struct cel_value char_at(struct cel_machine *m, str text, int64_t index)
{
    int64_t n = cel_count_chars(text);
    if (index < 0 || index > n)
        return fail_index(m, index);
    size_t from = offset_of(text, index), to = offset_of(text, index + 1);
    return cel_of_text(str_upto(str_from(text, from), to - from));
}

static struct cel_value substring(struct cel_machine *m, str text, const struct cel_value *a,
                                  uint32_t n)
{
    int64_t size = cel_count_chars(text), start = a[1].integer, end = n > 2 ? a[2].integer : size;
    if (n > 2 && start > end)
        return cel_fail(m->arena, "invalid substring range. start: %lld, end: %lld",
                        (long long)start, (long long)end);
    if (start < 0 || start > size)
        return fail_index(m, start);
    if (end < 0 || end > size)
        return fail_index(m, end);
    size_t from = offset_of(text, start), to = offset_of(text, end);
    return cel_of_text(str_upto(str_from(text, from), to - from));
}

/* The position of the first occurrence from a position on, or -1. An empty text is found at once. */
static struct cel_value index_of(struct cel_machine *m, str text, const struct cel_value *a,
                                 uint32_t n)
{
    str what = cel_text(a[1]);
    int64_t from = n > 2 ? a[2].integer : 0;
    if (!what.n)
        return cel_of_int(from);
    if (from < 0)
        return fail_index(m, from);
    size_t start = offset_of(text, from), at = str_find(str_from(text, start), what);
    if (at == SIZE_MAX)
        return cel_of_int(-1);
    return cel_of_int(cel_count_chars(str_upto(text, start + at)));
}

/* Searches backwards from a position; counted in steps, since each position may compare the whole text. */
static struct cel_value last_index_of(struct cel_machine *m, str text, const struct cel_value *a,
                                      uint32_t n)
{
    str what = cel_text(a[1]);
    int64_t size = cel_count_chars(text), from = n > 2 ? a[2].integer : size - 1;
    if (!what.n)
        return cel_of_int(n > 2 ? from : size);
    if (n > 2 && from < 0)
        return fail_index(m, from);
    if (from >= size || what.n > text.n)
        return cel_of_int(-1);
    size_t at = MIN(offset_of(text, from), text.n - what.n);
    for (;; at--) {
        if (++m->steps > CEL_STEPS_MAX) {
            m->exceeded = true;
            return cel_of_int(-1);
        }
        if (str_starts(str_from(text, at), what))
            return cel_of_int(cel_count_chars(str_upto(text, at)));
        if (!at)
            return cel_of_int(-1);
    }
}

/* ---- changing */

/* ASCII only: lowerAscii() and upperAscii() leave other letters alone. */
static struct cel_value change_case(struct cel_machine *m, str text, char first, char last)
{
    char *copy = (char *)arena_str(m->arena, text).p;
    for (size_t i = 0; i < text.n; i++)
        if (copy[i] >= first && copy[i] <= last)
            copy[i] ^= 32;
    return cel_of_text((str){ copy, text.n });
}

/* Text grows by every replacement; its size is bounded before it is written. */
static struct cel_value replace(struct cel_machine *m, str text, const struct cel_value *a,
                                uint32_t n)
{
    str old = cel_text(a[1]), with = cel_text(a[2]);
    int64_t most = n > 3 && a[3].integer >= 0 ? a[3].integer : INT64_MAX;
    auto_buf struct buf out = { 0 };
    size_t at = 0;
    for (int64_t count = 0; count < most; count++) {
        size_t found = old.n   ? str_find(str_from(text, at), old)
                       : count ? offset_of(str_from(text, at), 1)
                               : 0;
        if (found == SIZE_MAX || (!old.n && count && at >= text.n))
            break;
        buf_put(&out, str_upto(str_from(text, at), found));
        buf_put(&out, with);
        at += found + old.n;
        if (out.n > CEL_TEXT_MAX) {
            m->exceeded = true;
            return cel_of_text(S(""));
        }
    }
    buf_put(&out, str_from(text, at));
    return cel_kept_text(m->arena, &out);
}

/* At most `most` parts, the last of which is the unsplit rest. An empty separator splits after each code point. */
static struct cel_value split(struct cel_machine *m, str text, const struct cel_value *a,
                              uint32_t n)
{
    str by = cel_text(a[1]);
    int64_t most = n > 2 && a[2].integer >= 0 ? a[2].integer : INT64_MAX;
    struct cel_value list = cel_new_list(m->arena, 4);
    if (!most || (!by.n && !text.n))
        return list;
    while ((int64_t)list.n + 1 < most) {
        size_t at = by.n ? str_find(text, by) : offset_of(text, 1);
        if (at == SIZE_MAX || (!by.n && at >= text.n))
            break;
        list = cel_append(m->arena, list, cel_of_text(str_upto(text, at)));
        text = str_from(text, at + by.n);
    }
    return cel_append(m->arena, list, cel_of_text(text));
}

static struct cel_value join(struct cel_machine *m, struct cel_value list, str between)
{
    auto_buf struct buf out = { 0 };
    for (uint32_t i = 0; i < list.n; i++) {
        struct cel_value item = cel_item(m, list, i);
        if (item.kind != CEL_STRING)
            return cel_is_error(item) ? item : cel_fail(m->arena, "join: invalid input");
        if (i)
            buf_put(&out, between);
        buf_put(&out, cel_text(item));
        if (out.n > CEL_TEXT_MAX) {
            m->exceeded = true;
            break;
        }
    }
    return cel_kept_text(m->arena, &out);
}

/* strings.quote(): a literal that CEL could read again. */
static struct cel_value quote(struct cel_machine *m, str text)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    auto_buf struct buf out = { 0 };
    buf_putc(&out, '"');
    for (size_t i = 0; i < text.n; i++) {
        const char *found = text.p[i] ? strchr(from, text.p[i]) : NULL;
        if (found)
            buf_putc(&out, '\\');
        buf_putc(&out, found ? to[found - from] : text.p[i]);
    }
    buf_putc(&out, '"');
    return cel_kept_text(m->arena, &out);
}

/* A key as part of a JSON pointer. */
static struct cel_value escape_key(struct cel_machine *m, str text)
{
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '~' || text.p[i] == '/')
            buf_put(&out, text.p[i] == '~' ? S("~0") : S("~1"));
        else
            buf_putc(&out, text.p[i]);
    return cel_kept_text(m->arena, &out);
}

struct cel_value cel_call_text(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                               const struct cel_value *a, uint32_t n)
{
    (void)node;
    str text = cel_text(a[0]);
    switch (fn) {
    case CEL_F_ADD_TEXT: {
        str sum = arena_join(m->arena, (str[]){ text, cel_text(a[1]) }, 2);
        struct cel_value v = cel_of_text(sum);
        v.kind = a[0].kind;
        return v;
    }
    case CEL_F_CONTAINS:
        return cel_of_bool(str_find(text, cel_text(a[1])) != SIZE_MAX);
    case CEL_F_STARTS:
        return cel_of_bool(str_starts(text, cel_text(a[1])));
    case CEL_F_ENDS:
        return cel_of_bool(str_ends(text, cel_text(a[1])));
    case CEL_F_CHAR_AT:
        return char_at(m, text, a[1].integer);
    case CEL_F_INDEX_OF_TEXT:
        return index_of(m, text, a, n);
    case CEL_F_LAST_INDEX_OF_TEXT:
        return last_index_of(m, text, a, n);
    case CEL_F_LOWER:
        return change_case(m, text, 'A', 'Z');
    case CEL_F_UPPER:
        return change_case(m, text, 'a', 'z');
    case CEL_F_REPLACE:
        return replace(m, text, a, n);
    case CEL_F_SPLIT:
        return split(m, text, a, n);
    case CEL_F_SUBSTRING:
        return substring(m, text, a, n);
    case CEL_F_TRIM:
        return cel_of_text(utf8_trim(text));
    case CEL_F_FORMAT:
        return cel_format_text(m, text, a[1]);
    case CEL_F_QUOTE:
        return quote(m, text);
    case CEL_F_ESCAPE_KEY:
        return escape_key(m, text);
    default:
        return join(m, a[0], n > 1 ? cel_text(a[1]) : S(""));
    }
}

/* ---- regular expressions */

/* The text of all matches, at most `most`. */
static struct cel_value find_all(struct cel_machine *m, const struct regex *regex, str text,
                                 int64_t most)
{
    struct cel_value list = cel_new_list(m->arena, 4);
    size_t at = 0, start, end, last_end = SIZE_MAX;
    while (at <= text.n && (most < 0 || list.n < most) &&
           regex_find_within(regex, text, at, CEL_STEPS_MAX, &m->steps, &start, &end)) {
        if (end > start ||
            start != last_end) /* an empty match right after a match does not count */
            list = cel_append(m->arena, list,
                              cel_of_text(str_upto(str_from(text, start), end - start)));
        last_end = end;
        at = end > start ? end : end + MAX(offset_of(str_from(text, end), 1), (size_t)1);
    }
    return list;
}

struct cel_value cel_call_regex(struct cel_machine *m, const struct cel_node *node, enum cel_fn fn,
                                const struct cel_value *a, uint32_t n)
{
    const struct regex *regex = node->call.regex;
    str text = cel_text(a[0]);
    size_t start, end;
    err_t e;
    if (!regex && regex_compile(m->arena, cel_text(a[1]), &regex, &e) < 0)
        return cel_fail(m->arena, fn == CEL_F_MATCHES ? "%s" : "Illegal regex: %s", e.text);
    struct cel_value result;
    if (fn == CEL_F_MATCHES)
        result = cel_of_bool(regex_matches_within(regex, text, CEL_STEPS_MAX, &m->steps));
    else if (fn == CEL_F_FIND)
        result = regex_find_within(regex, text, 0, CEL_STEPS_MAX, &m->steps, &start, &end)
                     ? cel_of_text(str_upto(str_from(text, start), end - start))
                     : cel_of_text(S(""));
    else
        result = find_all(m, regex, text, n > 2 ? a[2].integer : -1);
    if (m->steps >= CEL_STEPS_MAX)
        m->exceeded = true;
    return result;
}
