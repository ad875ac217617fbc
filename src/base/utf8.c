/* UTF-8: see utf8.h. Lower case comes from the C library's Unicode table, in the locale C.UTF-8,
 * which is built into every glibc since 2.35. The locale of the process is neither used nor
 * changed. */
#include "utf8.h"

#include <locale.h>
#include <wctype.h>

/* The length of a sequence by its first byte; 0: no sequence starts with it. */
static size_t sequence_bytes(unsigned char first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

static bool is_valid(uint32_t point, size_t bytes)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    return point >= least[bytes] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

uint32_t utf8_next(str *rest)
{
    static const uint32_t replacement = 0xfffd;
    const unsigned char *p = (const unsigned char *)rest->p;
    size_t n = sequence_bytes(p[0]);
    uint32_t point = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    bool good = n >= 1 && n <= rest->n;
    for (size_t i = 1; good && i < n; i++) {
        good = (p[i] & 0xc0) == 0x80;
        point = point << 6 | (p[i] & 0x3f);
    }
    good = good && is_valid(point, n);
    *rest = str_from(*rest, good ? n : 1);
    return good ? point : replacement;
}

void utf8_put(struct buf *out, uint32_t point)
{
    if (point < 0x80) {
        buf_putc(out, (char)point);
        return;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    unsigned char bytes[4];
    for (size_t i = n; i-- > 1; point >>= 6)
        bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
    bytes[0] = (unsigned char)(0xf0u << (4 - n) | point);
    buf_put(out, (str){ (const char *)bytes, n });
}

uint32_t utf8_lower(uint32_t point)
{
    static locale_t unicode;
    if (point < 0x80)
        return point >= 'A' && point <= 'Z' ? point + ('a' - 'A') : point;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return unicode ? (uint32_t)towlower_l((wint_t)point, unicode) : point;
}

static bool utf8_is_space(uint32_t point)
{
    return (point >= '\t' && point <= '\r') || point == ' ' || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
           point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

static bool is_visible_ascii(char c) /* neither a space nor a byte of one */
{
    return c > 0x20 && c < 0x7f;
}

str utf8_trim(str text)
{
    if (text.n && is_visible_ascii(text.p[0]) && is_visible_ascii(text.p[text.n - 1]))
        return text; /* the common case, without reading the text in between */
    for (str rest = text; rest.n && utf8_is_space(utf8_next(&rest));)
        text = rest;
    size_t end = 0;
    for (str rest = text; rest.n;)
        if (!utf8_is_space(utf8_next(&rest)))
            end = text.n - rest.n;
    return str_upto(text, end);
}

/* U+FFFD itself takes three bytes; as a single byte it means that utf8_next() found an invalid
 * one. */
bool utf8_valid(str text)
{
    while (text.n) {
        size_t before = text.n;
        if (utf8_next(&text) == 0xfffd && before - text.n == 1)
            return false;
    }
    return true;
}

str utf8_clean(struct arena *a, str text)
{
    if (utf8_valid(text))
        return text;
    auto_buf struct buf out = { 0 };
    while (text.n)
        utf8_put(&out, utf8_next(&text));
    return arena_str(a, buf_str(&out));
}
