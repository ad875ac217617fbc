#include "tap.h"

#include "base/rfc3339.h"

static void reads_instants(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } t[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "2026-01-05T11:15:44Z", 1767611744 },
        { "2026-01-05T13:15:44+02:00", 1767611744 },
        { "2026-01-05T05:45:44-05:30", 1767611744 },
        { "2026-01-05T11:15:44.999Z", 1767611744 },
        { "1969-12-31T23:59:59.5Z", -1 },
        { "2024-02-29T23:59:59Z", 1709251199 },
        { "0001-01-01T00:00:00Z", -62135596800 },
        { "9999-12-31T23:59:59Z", 253402300799 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t got = 1;
        err_t e;
        OK_CALL(rfc3339_parse(str_c(t[i].text), &got, &e), &e);
        EQ_INT(got, t[i].want);
    }
}

static void refuses_the_rest(void)
{
    static const char *const t[] = {
        "",
        "2026-01-05",
        "2026-01-05 11:15:44Z",
        "2026-01-05t11:15:44Z",
        "2026-01-05T11:15:44z",
        "2026-01-05T11:15:44",
        "2026-01-05T11:15Z",
        "2026-1-5T11:15:44Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-05T24:00:00Z",
        "2026-01-05T23:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-01-05T11:15:44.Z",
        "2026-01-05T11:15:44,5Z",
        "2026-01-05T11:15:44+0200",
        "2026-01-05T11:15:44+24:00",
        "2026-01-05T11:15:44+02:60",
        "2026-01-05T11:15:44ZZ",
        "12026-01-05T11:15:44Z",
        "-026-01-05T11:15:44Z",
        " 2026-01-05T11:15:44Z",
        "2026-01-05T11:15:44.5",
        "2026-01-05T1a:15:44Z",
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t got = 77;
        err_t e;
        if (!EQ_INT(rfc3339_parse(str_c(t[i]), &got, &e), -EINVAL))
            printf("# %s\n", t[i]);
        EQ_INT(got, 77);
    }
}

static void reads_fractions(void)
{
    int64_t got = 0;
    err_t e;
    OK_CALL(rfc3339_parse_ns(S("1970-01-01T00:00:01.0000000019Z"), &got, &e), &e);
    EQ_INT(got, 1000000001);
    OK_CALL(rfc3339_parse_ns(S("1969-12-31T23:59:59.5Z"), &got, &e), &e);
    EQ_INT(got, -500000000);
    EQ_INT(rfc3339_parse_ns(S("2300-01-01T00:00:00Z"), &got, &e), -ERANGE);
    EQ_INT(rfc3339_parse_ns(S("0001-01-01T00:00:00Z"), &got, &e), -ERANGE);
    OK_CALL(rfc3339_parse_micro(S("2026-01-05T11:15:44.000250+00:00"), &got, &e), &e);
    EQ_INT(got, 1767611744000250);
    static const char *const bad[] = { "2026-01-05T00:00:00.5Z", "2026-01-05T00:00:00Z",
                                       "2026-01-05T00:00:00.0000001Z" };
    for (size_t i = 0; i < countof(bad); i++)
        EQ_INT(rfc3339_parse_micro(str_c(bad[i]), &got, &e), -EINVAL);
}

static void prints_instants(void)
{
    char text[RFC3339_TEXT_MAX];
    EQ_STR(rfc3339_text(0, text), S("1970-01-01T00:00:00Z"));
    EQ_STR(rfc3339_text(-1, text), S("1969-12-31T23:59:59Z"));
    EQ_STR(rfc3339_text(1767611744, text), S("2026-01-05T11:15:44Z"));
    EQ_STR(rfc3339_text(-62135596800, text), S("0001-01-01T00:00:00Z"));
    EQ_STR(rfc3339_micro_text(1767611744000250, text), S("2026-01-05T11:15:44.000250Z"));
    EQ_STR(rfc3339_micro_text(-1, text), S("1969-12-31T23:59:59.999999Z"));
    OK(rfc3339_text(INT64_MAX, text).n < RFC3339_TEXT_MAX);
    OK(rfc3339_text(INT64_MIN, text).n < RFC3339_TEXT_MAX);
    OK(rfc3339_micro_text(INT64_MIN, text).n < RFC3339_TEXT_MAX);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(reads_instants),
                                        TAP(refuses_the_rest),
                                        TAP(reads_fractions),
                                        TAP(prints_instants),
                                        { 0 } });
}
