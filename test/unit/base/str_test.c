#include "tap.h"

static void compares(void)
{
    OK(str_eq(S("a"), S("a")) && !str_eq(S("a"), S("b")) && str_eq((str){ 0 }, S("")));
    OK(str_cmp(S("a"), S("ab")) < 0 && str_cmp(S("b"), S("ab")) > 0 &&
       str_cmp(S("x"), S("x")) == 0);
    OK(str_starts(S("kube-system"), S("kube-")) && !str_starts(S("ku"), S("kube")));
    OK(str_ends(S("a.yaml"), S(".yaml")) && !str_ends(S("l"), S("yaml")));
    OK(str_eq_nocase(S("Content-Type"), S("content-TYPE")) && !str_eq_nocase(S("a"), S("b")));
}

static void finds_and_trims(void)
{
    EQ_INT(str_find(S("hello"), S("ll")), 2);
    OK(str_find(S("hello"), S("x")) == SIZE_MAX);
    EQ_INT(str_find_char(S("a,b"), ','), 1);
    EQ_STR(str_trim(S(" \t a b\r\n")), S("a b"));
    EQ_STR(str_trim(S("  ")), S(""));
    EQ_STR(str_from(S("abc"), 9), S(""));
}

static void cuts(void)
{
    str rest = S("a,,b,"), part = { 0 };
    static const char *const want[] = { "a", "", "b", "" };
    for (size_t i = 0; i < countof(want); i++) {
        OK(str_cut(&rest, ',', &part));
        EQ_STR(part, str_c(want[i]));
    }
    OK(!str_cut(&rest, ',', &part));
}

static void reads_integers(void)
{
    static const struct {
        const char *text;
        int result;
        int64_t want;
    } t[] = {
        { "0", 0, 0 },
        { "-12", 0, -12 },
        { "+7", 0, 7 },
        { "", -EINVAL, 0 },
        { "-", -EINVAL, 0 },
        { "1x", -EINVAL, 0 },
        { " 1", -EINVAL, 0 },
        { "9223372036854775807", 0, INT64_MAX },
        { "-9223372036854775808", 0, INT64_MIN },
        { "9223372036854775808", -ERANGE, 0 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t got = 0;
        EQ_INT(str_to_i64(str_c(t[i].text), &got), t[i].result);
        EQ_INT(got, t[i].want);
    }
}

static void prints_integers(void)
{
    char room[STR_I64_ROOM];
    EQ_STR(str_of_i64(0, room), S("0"));
    EQ_STR(str_of_i64(-7, room), S("-7"));
    EQ_STR(str_of_i64(1000, room), S("1000"));
    EQ_STR(str_of_i64(INT64_MAX, room), S("9223372036854775807"));
    EQ_STR(str_of_i64(INT64_MIN, room), S("-9223372036854775808"));
}

static void reads_reals(void)
{
    static const struct {
        const char *text;
        int result;
        double want;
    } t[] = {
        { "0.5", 0, 0.5 },       { "1e3", 0, 1000 },    { "-.25", 0, -0.25 },
        { "", -EINVAL, 0 },      { "nan", -EINVAL, 0 }, { "0x1p3", -EINVAL, 0 },
        { "1e999", -ERANGE, 0 }, { "1 ", -EINVAL, 0 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        double got = 0;
        EQ_INT(str_to_f64(str_c(t[i].text), &got), t[i].result);
        EQ_REAL(got, t[i].want);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(compares),
                                        TAP(finds_and_trims),
                                        TAP(cuts),
                                        TAP(reads_integers),
                                        TAP(prints_integers),
                                        TAP(reads_reals),
                                        { 0 } });
}
