#include "tap.h"

#include "base/quantity.h"

static struct quantity quantity(const char *text)
{
    struct quantity q = { 0 };
    err_t e;
    OK_CALL(quantity_parse(str_c(text), &q, &e), &e);
    return q;
}

static void stores_what_the_server_stores(void)
{
    static const struct {
        const char *text, *want;
    } t[] = {
        { "1000m", "1" },
        { "0.5", "500m" },
        { "1.5Gi", "1536Mi" },
        { "1e3", "1e3" },
        { "100e1", "1e3" },
        { "0.464E-2", "4640e-6" },
        { "1024Mi", "1Gi" },
        { "1025Mi", "1025Mi" },
        { "0.174Gi", "186831077376m" },
        { "100Ki", "100Ki" },
        { "0.5Ki", "512" },
        { "+5", "+5" },
        { "007", "007" },
        { "-0", "0" },
        { "m", "0" },
        { ".", "0" },
        { "0.9n", "1n" },
        { "-0.1n", "-1n" },
        { "1e-12", "1e-9" },
        { "8Ei", "9223372036854775807" },
        { "-9Ei", "-9223372036854775807" },
        { "18446744073709551616", "18446744073709551616" },
        { "1234567890.1234567890", "1234567890123456789n" },
        { "1000E", "1e21" },
        { "10000000000000000000000k", "10e24" },
        { "0.1Ki", "102400m" },
        { "0.0001Ki", "102400u" },
        { "12345678901234567890123456789012345678901234567890",
          "12345678901234567890123456789012345678901234567890" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        char out[QUANTITY_TEXT_MAX];
        str got = S("");
        err_t e;
        OK_CALL(quantity_canonical(str_c(t[i].text), out, &got, &e), &e);
        EQ_STR(got, str_c(t[i].want));
        struct quantity before = quantity(t[i].text), after = quantity(t[i].want);
        if (!OK(quantity_cmp(&before, &after) == 0))
            printf("# %s\n", t[i].text);
    }
}

static void refuses_the_rest(void)
{
    static const char *const t[] = {
        "",
        "abc",
        " 1",
        "1 ",
        "1_000",
        "1e",
        "1ki",
        "1-",
        "5e2m",
        "1.2.3",
        "Pi",
        "1KI",
        "0x1",
        "1e2e",
        "--1",
        "1e1.5",
        "e-10",
        "1Ki3",
        "1e99999999999",
        "1e9999999999999999999999",
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct quantity q;
        err_t e = { 0 };
        if (!EQ_INT(quantity_parse(str_c(t[i]), &q, &e), -EINVAL))
            printf("# %s\n", t[i]);
        OK(strstr(e.text, "quantity \""));
    }
    char longer[QUANTITY_BYTES_MAX + 1];
    memset(longer, '1', sizeof(longer));
    struct quantity q;
    OK(quantity_parse((str){ longer, sizeof(longer) }, &q, NULL) == -EINVAL);
    OK(quantity_parse((str){ longer, QUANTITY_DIGITS_MAX + 1 }, &q, NULL) == -EINVAL);
    OK(quantity_parse((str){ longer, QUANTITY_DIGITS_MAX }, &q, NULL) == 0);
    memset(longer + 1, '0', sizeof(longer) - 1);
    OK(quantity_parse((str){ longer, QUANTITY_BYTES_MAX }, &q, NULL) == 0);
    memcpy(longer + QUANTITY_BYTES_MAX - 2, "Ei", 2);
    OK(quantity_parse((str){ longer, QUANTITY_BYTES_MAX }, &q, NULL) == 0);
    OK(quantity_parse((str){ "1\0", 2 }, &q, NULL) == -EINVAL);
}

static void gives_numbers(void)
{
    static const struct {
        const char *text;
        int result;
        int64_t milli, value;
    } t[] = {
        { "100m", 0, 100, 1 },
        { "1.5", 0, 1500, 2 },
        { "-1.5", 0, -1500, -2 },
        { "1n", 0, 1, 1 },
        { "-1n", 0, -1, -1 },
        { "128Mi", 0, 134217728000, 134217728 },
        { "9223372036854775807m", 0, INT64_MAX, 9223372036854776 },
        { "-9223372036854775808m", 0, INT64_MIN, -9223372036854776 },
        { "9223372036854775808m", -ERANGE, 0, 9223372036854776 },
        { "1e-1000000", 0, 1, 1 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        int64_t milli = 0, value = 0;
        err_t e;
        EQ_INT(quantity_parse_milli(str_c(t[i].text), &milli, &e), t[i].result);
        EQ_INT(milli, t[i].milli);
        OK_CALL(quantity_parse_value(str_c(t[i].text), &value, &e), &e);
        EQ_INT(value, t[i].value);
    }
    int64_t n = 3;
    err_t e;
    EQ_INT(quantity_parse_value(S("1e1000000000"), &n, &e), -ERANGE);
    EQ_INT(quantity_parse_value(S("x"), &n, &e), -EINVAL);
    EQ_INT(n, 3);
}

static void compares(void)
{
    static const char *const ascending[] = {
        "-1e1000000",
        "-8Ei",
        "-1Ki",
        "-1k",
        "-1",
        "-1m",
        "0",
        "1n",
        "999u",
        "1m",
        "0.999",
        "1",
        "1001m",
        "999",
        "1k",
        "1Ki",
        "1M",
        "1Mi",
        "9223372036854775807",
        "9223372036854775808",
        "1e1000000",
    };
    for (size_t i = 0; i < countof(ascending); i++)
        for (size_t j = 0; j < countof(ascending); j++) {
            struct quantity a = quantity(ascending[i]), b = quantity(ascending[j]);
            int want = (i > j) - (i < j);
            if (!EQ_INT(quantity_cmp(&a, &b), want))
                printf("# %s %s\n", ascending[i], ascending[j]);
        }
}

static void adds(void)
{
    static const struct {
        const char *a, *b, *sum, *difference;
    } t[] = {
        { "1", "500m", "1500m", "500m" },
        { "1Gi", "512Mi", "1536Mi", "512Mi" },
        { "0", "1Gi", "1Gi", "-1Gi" },
        { "1Gi", "0", "1Gi", "1Gi" },
        { "100m", "1Ki", "1024100m", "-1023900m" },
        { "1e3", "1", "1001", "999" },
        { "-5", "5", "0", "-10" },
        { "9223372036854775807", "1", "9223372036854775808", "9223372036854775806" },
        { "1E", "1n", "1000000000000000000000000001n", "999999999999999999999999999n" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        char out[QUANTITY_TEXT_MAX];
        struct quantity a = quantity(t[i].a), b = quantity(t[i].b);
        EQ_INT(quantity_add(&a, &b), 0);
        EQ_STR(quantity_text(&a, out), str_c(t[i].sum));
        a = quantity(t[i].a);
        EQ_INT(quantity_sub(&a, &b), 0);
        EQ_STR(quantity_text(&a, out), str_c(t[i].difference));
    }
    struct quantity a = quantity("1e500"), b = quantity("1");
    EQ_INT(quantity_add(&a, &b), -ERANGE);
    struct quantity same = quantity("1e500");
    OK(quantity_cmp(&a, &same) == 0);
    b = quantity("0");
    EQ_INT(quantity_add(&a, &b), 0);
    OK(quantity_cmp(&a, &same) == 0);
}

static void answers_as_go_where_asked(void)
{
    static const struct {
        const char *text;
        int64_t milli, value;
    } t[] = {
        { "9223372036854775807", -1000, INT64_MAX },
        { "12345678901234567890m", -6101065172474983726, 12345678901234568 },
        { "1E", 0, 1000000000000000000 },
        { "1e30", 0, 0 },
        { "-0.1Gi", -107374182400, -107374181 },
        { "8Ei", -1000, INT64_MAX },
        { "105007088070004500", -5673376372252809696, 105007088070004500 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct quantity q = quantity(t[i].text);
        EQ_INT(quantity_go_scaled(&q, -3), t[i].milli);
        EQ_INT(quantity_go_scaled(&q, 0), t[i].value);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(stores_what_the_server_stores),
                                        TAP(refuses_the_rest),
                                        TAP(gives_numbers),
                                        TAP(compares),
                                        TAP(adds),
                                        TAP(answers_as_go_where_asked),
                                        { 0 } });
}
