#include "tap.h"

#include "base/duration.h"

static void reads_what_go_reads(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } t[] = {
        { "0", 0 },
        { "+0", 0 },
        { "-0", 0 },
        { "1h30m", 5400 * INT64_C(1000000000) },
        { "1.5h", 5400 * INT64_C(1000000000) },
        { "5.s", 5000000000 },
        { ".5s", 500000000 },
        { "10\xc2\xb5s", 10000 },
        { "10\xce\xbcs", 10000 },
        { "10us", 10000 },
        { "1s1s", 2000000000 },
        { "-1m", -60 * INT64_C(1000000000) },
        { "0.3333333333333333333h", 1200000000000 },
        { "0.100000000000000000000h", 360000000000 },
        { "0.830103483285477580700h", 2988372539827 },
        { "9223372036854775807ns", INT64_MAX },
        { "-9223372036854775808ns", INT64_MIN },
        { "9223372036s854ms775us807ns", INT64_MAX },
        { "1.9999999999ns", 1 },
        { "0.9223372036854775809s", 922337203 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t got = -1;
        err_t e;
        OK_CALL(duration_parse(str_c(t[i].text), &got, &e), &e);
        if (!EQ_INT(got, t[i].want))
            printf("# %s\n", t[i].text);
    }
}

static void refuses_the_rest(void)
{
    static const struct {
        const char *text;
        int want;
    } t[] = {
        { "", -EINVAL },
        { "3", -EINVAL },
        { "-", -EINVAL },
        { "s", -EINVAL },
        { ".", -EINVAL },
        { "-.", -EINVAL },
        { ".s", -EINVAL },
        { "+.s", -EINVAL },
        { "1d", -EINVAL },
        { "1S", -EINVAL },
        { "1 s", -EINVAL },
        { "1s ", -EINVAL },
        { "1e3s", -EINVAL },
        { "--1s", -EINVAL },
        { "1m-30s", -EINVAL },
        { "00", -EINVAL },
        { "1s0", -EINVAL },
        { "1\xc2s", -EINVAL },
        { "2562048h", -ERANGE },
        { "9223372036854775808ns", -ERANGE },
        { "-9223372036854775809ns", -ERANGE },
        { "9223372036854775.808us", -ERANGE },
        { "99999999999999999999s", -ERANGE },
        { "2562047h2562047h", -ERANGE },
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t got = 77;
        err_t e = { 0 };
        if (!EQ_INT(duration_parse(str_c(t[i].text), &got, &e), t[i].want))
            printf("# %s\n", t[i].text);
        EQ_INT(got, 77);
        OK(strstr(e.text, "duration \""));
    }
    int64_t got;
    OK(duration_parse((str){ "1s\0", 3 }, &got, NULL) == -EINVAL);
}

static void prints_as_go(void)
{
    static const struct {
        int64_t ns;
        const char *want;
        const char *prom;
    } t[] = {
        { 0, "0s", "1s" },
        { 1, "1ns", "1s" },
        { 1100, "1.1\xc2\xb5s", "1s" },
        { 2200000, "2.2ms", "1s" },
        { 3300000000, "3.3s", "3s" },
        { 90000000000, "1m30s", "90s" },
        { 300000000001, "5m0.000000001s", "300s" },
        { 600000000000, "10m0s", "10m" },
        { 5400000000000, "1h30m0s", "90m" },
        { 172800000000000, "48h0m0s", "2d" },
        { -1000, "-1\xc2\xb5s", "1s" },
        { INT64_MAX, "2562047h47m16.854775807s", "9223372036s" },
        { INT64_MIN, "-2562047h47m16.854775808s", "1s" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        char text[DURATION_TEXT_MAX];
        EQ_STR(duration_text(t[i].ns, text), str_c(t[i].want));
        int64_t back = 1;
        OK(duration_parse(duration_text(t[i].ns, text), &back, NULL) == 0);
        EQ_INT(back, t[i].ns);
        EQ_STR(duration_prom_text(t[i].ns, text), str_c(t[i].prom));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(reads_what_go_reads), TAP(refuses_the_rest), TAP(prints_as_go), { 0 } });
}
