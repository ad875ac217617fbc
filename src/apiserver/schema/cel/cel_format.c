/* string.format(): %s %d %f %e %b %x %X %o with an optional precision.
 *
 * The output must equal that of cel-go, which formats through a localization library: %f and %e use the
 * separators of American English (1,234.5), %e prints superscripts (1.500000×10⁰⁰), and infinity is "∞"
 * although string() of the same value prints "+Inf". Lists and maps print as CEL literals, text in them quoted
 * as Go's %q does, maps sorted by the text of their keys, because the order of a map must not decide a
 * validation message.
 *
 * Arguments that do not fit a clause are an error of the run. Where format string and arguments are literals,
 * cel_literal.c has already refused them with the same sentences.
 *
 * The result is limited to CEL_TEXT_MAX bytes: a format string can print one large argument many times, and the
 * cost model charges only for the format string. */
#include "../../../base/utf8.h"
#include "cel_node.h"

#include <math.h>
#include <stdio.h>

struct formatter {
    struct cel_machine *m;
    struct buf out;
    struct cel_value error; /* CEL_ERROR once something failed */
};

/* Sets the error; returns false, so that callers can return its result. Only the outer name of a type is
 * printed. */
static bool fail_format(struct formatter *f, const char *what, struct cel_value v)
{
    str type = cel_type_text(f->m->arena, cel_type_of(f->m->arena, v));
    size_t name = str_find_char(type, '(');
    f->error = cel_fail(f->m->arena, "error during formatting: %s, was given " STR_FMT, what,
                        STR_ARG(name == SIZE_MAX ? type : str_upto(type, name)));
    return false;
}

/* Go's %q, for text inside lists and maps. */
static void put_quoted(struct buf *out, str text)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    buf_putc(out, '"');
    for (str rest = text; rest.n;) {
        str before = rest;
        uint32_t c = utf8_next(&rest);
        const char *found = c && c < 128 ? strchr(from, (int)c) : NULL;
        if (found)
            buf_printf(out, "\\%c", to[found - from]);
        else if (c < 32 || c == 127)
            buf_printf(out, "\\x%02x", c);
        else
            buf_put(out, str_upto(before, before.n - rest.n));
    }
    buf_putc(out, '"');
}

static bool put_string(struct formatter *f, struct cel_value v);

/* One item of a list or map: a literal that CEL could read again. */
static bool put_literal(struct formatter *f, struct cel_value v)
{
    auto_buf struct buf text = { 0 };
    if (v.kind == CEL_DOUBLE && isfinite(v.real)) {
        buf_printf(&f->out, "%.6f", v.real);
        return true;
    }
    if (v.kind == CEL_STRING || v.kind == CEL_BYTES) {
        if (v.kind == CEL_BYTES)
            buf_putc(&f->out, 'b');
        put_quoted(&f->out, cel_text(v));
        return true;
    }
    if (v.kind == CEL_TIMESTAMP || v.kind == CEL_DURATION) {
        cel_put_text(&text, v);
        buf_printf(&f->out, "%s(\"" STR_FMT "\")",
                   v.kind == CEL_TIMESTAMP ? "timestamp" : "duration", STR_ARG(buf_str(&text)));
        return true;
    }
    if (v.kind == CEL_DOUBLE) {
        cel_put_text(&text, v);
        put_quoted(&f->out, buf_str(&text));
        return true;
    }
    return put_string(f, v);
}

static int compare_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Entries sorted by the text of their key. */
static bool put_map(struct formatter *f, struct cel_value v)
{
    str *entries = arena_array(f->m->arena, v.n + 1u, sizeof(*entries));
    for (uint32_t i = 0; i < v.n; i++) {
        struct formatter part = { .m = f->m };
        bool good = put_literal(&part, cel_key_at(f->m, v, i));
        buf_putc(&part.out, ':');
        good = good && put_literal(&part, cel_value_at(f->m, v, i));
        entries[i] = arena_str(f->m->arena, buf_str(&part.out));
        buf_done(&part.out);
        if (!good) {
            f->error = part.error;
            return false;
        }
    }
    qsort(entries, v.n, sizeof(*entries), compare_text);
    buf_putc(&f->out, '{');
    for (uint32_t i = 0; i < v.n; i++) {
        buf_put(&f->out, i ? S(", ") : S(""));
        buf_put(&f->out, entries[i]);
    }
    buf_putc(&f->out, '}');
    return true;
}

/* %s: what string() prints, but also lists, maps and types. */
static bool put_string(struct formatter *f, struct cel_value v)
{
    if (v.kind == CEL_MAP)
        return put_map(f, v);
    if (v.kind == CEL_TYPE) {
        str type = cel_type_text(f->m->arena, v.type);
        size_t name = str_find_char(type, '(');
        buf_put(&f->out, name == SIZE_MAX ? type : str_upto(type, name));
        return true;
    }
    if (v.kind != CEL_LIST) {
        if (v.kind < CEL_QUANTITY && cel_put_text(&f->out, v))
            return true;
        return fail_format(
            f,
            "string clause can only be used on strings, bools, bytes, ints, doubles, "
            "maps, lists, types, durations, and timestamps",
            v);
    }
    buf_putc(&f->out, '[');
    for (uint32_t i = 0; i < v.n; i++) {
        buf_put(&f->out, i ? S(", ") : S(""));
        if (!put_literal(f, cel_item(f->m, v, i)))
            return false;
    }
    buf_putc(&f->out, ']');
    return true;
}

/* ---- numbers */

/* A fixed-point number with commas between thousands. */
static void put_grouped(struct buf *out, double d, int precision)
{
    char text[512];
    if (!isfinite(d)) {
        buf_put(out, isnan(d) ? S("NaN") : d > 0 ? S("∞") : S("-∞"));
        return;
    }
    snprintf(text, sizeof(text), "%.*f", precision, d);
    const char *p = text;
    if (*p == '-')
        buf_putc(out, *p++);
    size_t whole = strcspn(p, ".");
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0)
            buf_putc(out, ',');
        buf_putc(out, p[i]);
    }
    buf_put(out, str_c(p + whole));
}

/* 1.500000×10⁰⁰ */
static void put_scientific(struct buf *out, double d)
{
    static const char *const raised[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
    char text[64];
    if (!isfinite(d)) {
        put_grouped(out, d, 6);
        return;
    }
    snprintf(text, sizeof(text), "%.6e", d);
    char *e = strchr(text, 'e');
    *e++ = '\0';
    buf_put(out, str_c(text));
    buf_put(out, S("×10"));
    if (*e == '-')
        buf_put(out, S("⁻"));
    for (e++; *e; e++)
        buf_put(out, str_c(raised[*e - '0']));
}

/* %f and %e. The names of the three special values are accepted as text, because JSON cannot express them. */
static bool put_real(struct formatter *f, struct cel_value v, char clause, int precision)
{
    str text = v.kind == CEL_STRING ? cel_text(v) : S("");
    if (str_eqc(text, "NaN") || str_eqc(text, "Infinity") || str_eqc(text, "-Infinity"))
        v = cel_of_real(text.p[0] == 'N' ? NAN : text.p[0] == '-' ? -INFINITY : INFINITY);
    if (v.kind != CEL_DOUBLE)
        return fail_format(f,
                           clause == 'f' ? "fixed-point clause can only be used on doubles"
                                         : "scientific clause can only be used on doubles",
                           v);
    if (clause == 'f')
        put_grouped(&f->out, v.real, precision);
    else
        put_scientific(&f->out, v.real);
    return true;
}

/* A number in another base, with a minus sign in front. */
static void put_base(struct buf *out, struct cel_value v, unsigned base, bool upper)
{
    char digits[66];
    size_t at = sizeof(digits);
    bool minus = v.kind == CEL_INT && v.integer < 0;
    uint64_t rest = minus ? 0 - v.natural : v.natural;
    do {
        digits[--at] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
        rest /= base;
    } while (rest);
    buf_put(out, minus ? S("-") : S(""));
    buf_put(out, (str){ digits + at, sizeof(digits) - at });
}

/* %d %b %o %x %X. Hexadecimal also prints text and bytes, byte by byte; binary also prints bools. */
static bool put_integer(struct formatter *f, struct cel_value v, char clause)
{
    bool number = v.kind == CEL_INT || v.kind == CEL_UINT;
    bool text = v.kind == CEL_STRING || v.kind == CEL_BYTES;
    if (clause == 'b' && v.kind == CEL_BOOL) {
        buf_putc(&f->out, v.boolean ? '1' : '0');
        return true;
    }
    if ((clause | 32) == 'x' && text) {
        for (uint32_t i = 0; i < v.n; i++)
            buf_printf(&f->out, clause == 'x' ? "%02x" : "%02X", (unsigned char)v.text[i]);
        return true;
    }
    if (number) {
        put_base(&f->out, v,
                 clause == 'd'   ? 10
                 : clause == 'b' ? 2
                 : clause == 'o' ? 8
                                 : 16,
                 clause == 'X');
        return true;
    }
    return fail_format(f,
                       clause == 'd'   ? "decimal clause can only be used on integers"
                       : clause == 'b' ? "only integers and bools can be formatted as binary"
                       : clause == 'o'
                           ? "octal clause can only be used on integers"
                           : "only integers, byte buffers, and strings can be formatted "
                             "as hex",
                       v);
}

/* Prints one clause that ends in the letter at `*at`. */
static bool put_clause(struct formatter *f, str format, size_t *at, struct cel_value arg)
{
    int precision = 6;
    if (*at < format.n && format.p[*at] == '.') {
        precision = 0;
        for (++*at; *at < format.n && format.p[*at] >= '0' && format.p[*at] <= '9'; ++*at)
            precision = MIN(precision * 10 + (format.p[*at] - '0'), 100);
    }
    char clause = *at < format.n ? format.p[*at] : '\0';
    ++*at;
    if (clause == 's')
        return put_string(f, arg);
    if (clause == 'f' || clause == 'e')
        return put_real(f, arg, clause, precision);
    if (clause && strchr("dbxXo", clause))
        return put_integer(f, arg, clause);
    f->error = cel_fail(f->m->arena,
                        "could not parse formatting clause: unrecognized formatting clause \"%c\"",
                        clause);
    return false;
}

/* Copies text up to the next clause, then prints the next argument. Stops at the first error. */
struct cel_value cel_format_text(struct cel_machine *m, str format, struct cel_value args)
{
    struct formatter f = { .m = m };
    uint32_t used = 0;
    for (size_t i = 0; i < format.n && !cel_is_error(f.error);) {
        char c = format.p[i++];
        if (c != '%' || (i < format.n && format.p[i] == '%')) {
            i += c == '%';
            buf_putc(&f.out, c);
        } else if (used >= args.n) {
            f.error = cel_fail(m->arena, "index %u out of range", used);
        } else if (i >= format.n) {
            f.error = cel_fail(m->arena, "unexpected end of string");
        } else if (put_clause(&f, format, &i, cel_item(m, args, used++)) &&
                   f.out.n > CEL_TEXT_MAX) {
            m->exceeded = true;
            break;
        }
    }
    struct cel_value result = cel_is_error(f.error) ? f.error : cel_kept_text(m->arena, &f.out);
    buf_done(&f.out);
    return result;
}
