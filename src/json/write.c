/* Writes a tree as JSON text: compact, indented or canonical. Escapes only what RFC 8259 requires.
 *
 * The output must be equal to that of Go's encoder wherever clients compare it: the same digits for
 * numbers, the same choice between decimal and exponent (json_write_real). Text is written in runs
 * of bytes that need no escape, found eight at a time, because nearly all text is such a run.
 * Invalid UTF-8 becomes U+FFFD, so that everything written can be parsed again.
 *
 * The canonical form sorts keys by bytes; it is the input of hash.h, so it must never change. */
#include "json.h"

#include "../base/utf8.h"

#include <math.h>
#include <stdio.h>

enum style { COMPACT, PRETTY, CANONICAL };

static void put_escape(struct buf *out, unsigned char c)
{
    static const char short_form[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                       ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };
    if (c < sizeof(short_form) && short_form[c])
        buf_printf(out, "\\%c", short_form[c]);
    else
        buf_printf(out, "\\u%04x", c);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* True if none of eight bytes is a control character, quote, backslash or non-ASCII. What is
 * subtracted from a byte spills into the next only where that byte is not plain itself. */
static bool are_plain(const char *p)
{
    const uint64_t each = UINT64_MAX / 255;
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    uint64_t quote = x ^ (each * '"'), slash = x ^ (each * '\\');
    uint64_t marks = x | (x - each * 0x20) | ((quote - each) & ~quote) | ((slash - each) & ~slash);
    return !(marks & (each * 0x80));
}

static size_t plain_length(str text)
{
    size_t n = 0;
    while (text.n - n >= 8 && are_plain(text.p + n))
        n += 8;
    if (n && text.n - n < 8 && are_plain(text.p + text.n - 8))
        return text.n; /* the last eight bytes, some of which were checked before */
    while (n < text.n && is_plain((unsigned char)text.p[n]))
        n++;
    return n;
}

static void put_plain(struct buf *out, str text)
{
    char *end = buf_reserve(out, text.n + 2);
    end[0] = '"';
    if (text.n)
        memcpy(end + 1, text.p, text.n);
    end[text.n + 1] = '"';
    end[text.n + 2] = '\0';
    out->n += text.n + 2;
}

/* Bytes that are not UTF-8 (for example of a path in an error message) become U+FFFD, so that what
 * is written can always be parsed again. */
void json_write_text(struct buf *out, str text)
{
    static const str replacement = STR_INIT("\xef\xbf\xbd");
    size_t whole = plain_length(text), plain = 0;
    if (whole == text.n) {
        put_plain(out, text);
        return;
    }
    buf_reserve(out, text.n + 2);
    buf_putc(out, '"');
    for (size_t i = whole, n; i < text.n; i += n) {
        unsigned char c = (unsigned char)text.p[i];
        str rest = str_from(text, i);
        bool broken = c >= 0x80 && utf8_next(&rest) == 0xfffd && text.n - i - rest.n == 1;
        n = c >= 0x80 ? text.n - i - rest.n : 1;
        if (!broken && c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_put(out, (str){ text.p + plain, i - plain });
        if (broken)
            buf_put(out, replacement);
        else
            put_escape(out, c);
        plain = i + 1;
    }
    buf_put(out, str_from(text, plain));
    buf_putc(out, '"');
}

/* Without an exponent between 1e-6 and 1e21, like Go: documents that pass through both programs
 * must not differ. */
void json_write_real(struct buf *out, double value)
{
    if (!isfinite(value)) {
        buf_put(out, S("null"));
        return;
    }
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision - 1, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    char *e = strchr(digits, 'e');
    assert(e); /* %e always prints an exponent for a finite number */
    int exponent = (int)strtol(e + 1, NULL, 10);
    int shown = (int)(e - digits) - (digits[0] == '-') - (strchr(digits, '.') != NULL);
    *e = '\0';
    if (value != 0 && (exponent < -6 || exponent >= 21)) {
        buf_printf(out, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < shown) {
        buf_printf(out, "%.*f", shown - 1 - exponent, value);
    } else { /* the shortest digits, then zeros: printf would print more digits */
        for (const char *c = digits; *c; c++)
            if (*c != '.')
                buf_putc(out, *c);
        buf_printf(out, "%0*d", exponent + 1 - shown, 0);
    }
}

static int by_key(const void *a, const void *b)
{
    return str_cmp((*(const struct json_member *const *)a)->key,
                   (*(const struct json_member *const *)b)->key);
}

static void break_line(struct buf *out, enum style style, int depth)
{
    if (style == PRETTY)
        buf_printf(out, "\n%*s", depth * 2, "");
}

static void write_value(struct buf *out, const struct json *v, enum style style, int depth);

static void write_member(struct buf *out, const struct json_member *m, enum style style, int depth)
{
    break_line(out, style, depth);
    json_write_text(out, m->key);
    buf_putc(out, ':');
    if (style == PRETTY)
        buf_putc(out, ' ');
    write_value(out, m->value, style, depth);
}

static void write_sorted(struct buf *out, const struct json *v)
{
    const struct json_member **order = mem_zero(v->n, sizeof(struct json_member *));
    for (uint32_t i = 0; i < v->n; i++)
        order[i] = &v->members[i];
    qsort(order, v->n, sizeof(struct json_member *), by_key);
    for (uint32_t i = 0; i < v->n; i++) {
        if (i)
            buf_putc(out, ',');
        write_member(out, order[i], CANONICAL, 0);
    }
    free(order);
}

static void write_object(struct buf *out, const struct json *v, enum style style, int depth)
{
    buf_putc(out, '{');
    if (style == CANONICAL) {
        write_sorted(out, v);
    } else {
        for (uint32_t i = 0; i < v->n; i++) {
            if (i)
                buf_putc(out, ',');
            write_member(out, &v->members[i], style, depth + 1);
        }
        if (v->n)
            break_line(out, style, depth);
    }
    buf_putc(out, '}');
}

static void write_array(struct buf *out, const struct json *v, enum style style, int depth)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < v->n; i++) {
        if (i)
            buf_putc(out, ',');
        break_line(out, style, depth + 1);
        write_value(out, v->items[i], style, depth + 1);
    }
    if (v->n)
        break_line(out, style, depth);
    buf_putc(out, ']');
}

static void write_value(struct buf *out, const struct json *v, enum style style, int depth)
{
    switch (v ? v->type : JSON_NULL) {
    case JSON_NULL:
        buf_put(out, S("null"));
        break;
    case JSON_BOOL:
        buf_put(out, v->boolean ? S("true") : S("false"));
        break;
    case JSON_INT:
        buf_put(out, str_of_i64(v->integer, (char[STR_I64_ROOM]){ 0 }));
        break;
    case JSON_REAL:
        json_write_real(out, v->real);
        break;
    case JSON_STR:
        json_write_text(out, (str){ v->text, v->n });
        break;
    case JSON_ARR:
        write_array(out, v, style, depth);
        break;
    case JSON_OBJ:
        write_object(out, v, style, depth);
        break;
    }
}

void json_write(struct buf *out, const struct json *v)
{
    write_value(out, v, COMPACT, 0);
}

/* Stops once there are enough bytes: errors quote only the start of a value, which may be large. */
static void write_start(struct buf *out, const struct json *v, size_t end)
{
    if (!json_is(v, JSON_ARR) && !json_is(v, JSON_OBJ)) {
        struct json cut = v ? *v : (struct json){ .type = JSON_NULL };
        if (cut.type == JSON_STR)
            cut.n =
                (uint32_t)MIN((size_t)cut.n, end + 8); /* no byte shrinks; no character is cut */
        write_value(out, &cut, COMPACT, 0);
        return;
    }
    buf_putc(out, v->type == JSON_ARR ? '[' : '{');
    for (uint32_t i = 0; i < v->n && out->n < end; i++) {
        if (i)
            buf_putc(out, ',');
        if (v->type == JSON_OBJ) {
            json_write_text(out, str_upto(v->members[i].key, end + 8));
            buf_putc(out, ':');
        }
        write_start(out, v->type == JSON_ARR ? v->items[i] : v->members[i].value, end);
    }
    buf_putc(out, v->type == JSON_ARR ? ']' : '}');
}

void json_write_start(struct buf *out, const struct json *v, size_t most)
{
    size_t start = out->n;
    write_start(out, v, start + most);
    if (out->n > start + most)
        out->n = start + most;
}

void json_write_pretty(struct buf *out, const struct json *v)
{
    write_value(out, v, PRETTY, 0);
}

void json_write_canonical(struct buf *out, const struct json *v)
{
    write_value(out, v, CANONICAL, 0);
}

str json_to_str(struct arena *a, const struct json *v)
{
    auto_buf struct buf out = { 0 };
    json_write(&out, v);
    return arena_str(a, buf_str(&out));
}
