/* Well-formed sequences after table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing
 * above U+10FFFF. */
#include "text.h"

#include "../base/buf.h"

/* Bytes of the character at the start of s, 0 when there is none. */
static size_t character(str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
               : p[0] >= 0xe0 && p[0] <= 0xef ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;
    if (!n || s.n < n)
        return 0;
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

str text_clean(struct arena *a, str text)
{
    size_t good = 0;
    for (size_t n; good < text.n && (n = character(str_from(text, good))) > 0; good += n)
        ;
    if (good == text.n)
        return text;
    auto_buf struct buf out = { 0 };
    buf_put(&out, str_upto(text, good));
    for (str rest = str_from(text, good); rest.n;) {
        size_t n = character(rest);
        buf_put(&out, n ? str_upto(rest, n) : S("\xef\xbf\xbd"));
        rest = str_from(rest, n ? n : 1);
    }
    return arena_str(a, buf_str(&out));
}
