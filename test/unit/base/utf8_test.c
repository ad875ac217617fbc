#include "tap.h"

#include "base/utf8.h"

static void every_point_comes_back(void)
{
    auto_buf struct buf b = { 0 };
    for (uint32_t point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 97) {
        if (point >= 0xd800 && point <= 0xdfff)
            continue;
        buf_clear(&b);
        utf8_put(&b, point);
        str rest = buf_str(&b);
        if (!OK(utf8_next(&rest) == point && rest.n == 0))
            return;
    }
}

static void broken_bytes_are_replaced_one_by_one(void)
{
    static const char *const bad[] = { "\xff",     "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                       "\xe2\x82", "\x80" };
    for (size_t i = 0; i < countof(bad); i++) {
        str rest = str_c(bad[i]);
        size_t before = rest.n;
        EQ_INT(utf8_next(&rest), 0xfffd);
        EQ_INT(rest.n, before - 1);
    }
}

static void lower_case_is_unicode(void)
{
    EQ_INT(utf8_lower('Q'), 'q');
    EQ_INT(utf8_lower(0xdc), 0xfc);   /* Ü */
    EQ_INT(utf8_lower(0x3a3), 0x3c3); /* Σ */
    EQ_INT(utf8_lower(0x130), 'i');   /* İ */
    EQ_INT(utf8_lower(0x212a), 'k');  /* the Kelvin sign */
    EQ_INT(utf8_lower(0xdf), 0xdf);   /* ß */
}

static void spaces_are_trimmed(void)
{
    EQ_STR(utf8_trim(S("\xc2\xa0 a b\xe2\x80\x83\n")), S("a b"));
    EQ_STR(utf8_trim(S(" \xe3\x80\x80 ")), S(""));
    EQ_STR(utf8_trim(S("")), S(""));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(every_point_comes_back),
                                        TAP(broken_bytes_are_replaced_one_by_one),
                                        TAP(lower_case_is_unicode),
                                        TAP(spaces_are_trimmed),
                                        { 0 } });
}
