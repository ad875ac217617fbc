#include "tap.h"

#include "base/natural.h"
#include "base/random.h"

static str text(const struct natural *x)
{
    static char out[NATURAL_DIGITS + 1];
    return (str){ out, natural_text(x, out) };
}

static struct natural number(const char *digits)
{
    struct natural x = { 0 };
    OK(natural_from_digits(str_c(digits), &x));
    return x;
}

static void reads_and_prints(void)
{
    static const char *const t[] = { "0",
                                     "7",
                                     "999999999",
                                     "1000000000",
                                     "1000000001",
                                     "123456789012345678901234567890",
                                     "18446744073709551616" };
    for (size_t i = 0; i < countof(t); i++) {
        struct natural x = number(t[i]);
        EQ_STR(text(&x), str_c(t[i]));
        EQ_INT(natural_digits(&x), strcmp(t[i], "0") ? strlen(t[i]) : 0);
    }
    struct natural x = number("000000000000000000000000000000042"), y = natural_of(42);
    OK(natural_cmp(&x, &y) == 0);
    x = natural_of(UINT64_MAX);
    EQ_STR(text(&x), S("18446744073709551615"));
}

static void calculates(void)
{
    struct natural x = number("999999999999999999"), one = natural_of(1);
    OK(natural_add(&x, &one));
    EQ_STR(text(&x), S("1000000000000000000"));
    natural_sub(&x, &one);
    EQ_STR(text(&x), S("999999999999999999"));
    OK(natural_mul(&x, 1024));
    EQ_STR(text(&x), S("1023999999999999998976"));
    EQ_INT(natural_div(&x, 1000), 976);
    EQ_STR(text(&x), S("1023999999999999998"));
    OK(natural_mul_power10(&x, 20));
    EQ_STR(text(&x), S("102399999999999999800000000000000000000"));
    OK(natural_mul(&x, 0));
    EQ_INT(x.n, 0);
    OK(natural_mul_power10(&x, 1000000));
    EQ_INT(natural_div(&x, 7), 0);
    x = number("18446744073709551617");
    uint64_t fits = 5;
    EQ_INT(natural_low(&x), 1);
    OK(!natural_to_u64(&x, &fits) && fits == 5);
    x = number("18446744073709551615");
    OK(natural_to_u64(&x, &fits) && fits == UINT64_MAX);
}

static void refuses_what_does_not_fit(void)
{
    char digits[NATURAL_DIGITS + 2];
    memset(digits, '9', sizeof(digits));
    struct natural x, full;
    OK(!natural_from_digits((str){ digits, NATURAL_DIGITS + 1 }, &x));
    OK(natural_from_digits((str){ digits, NATURAL_DIGITS }, &full));
    x = full;
    OK(!natural_mul(&x, 2));
    x = full;
    OK(!natural_mul_power10(&x, 1));
    x = natural_of(1);
    OK(!natural_mul_power10(&x, NATURAL_DIGITS));
    x = natural_of(1);
    OK(natural_mul_power10(&x, NATURAL_DIGITS - 1));
    x = full;
    struct natural one = natural_of(1);
    OK(!natural_add(&x, &one));
}

/* Compared with the 128-bit integers of the compiler. */
static void agrees_with_the_machine(void)
{
    struct random r;
    random_init(&r, 3, 3);
    int wrong = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t a = ((uint64_t)random_u32(&r) << 32 | random_u32(&r)) >> random_below(&r, 60);
        uint64_t b = ((uint64_t)random_u32(&r) << 32 | random_u32(&r)) >> random_below(&r, 60);
        uint32_t f = random_u32(&r) | 1;
        struct natural x = natural_of(a), y = natural_of(b);
        wrong += natural_cmp(&x, &y) != (a > b) - (a < b);
        wrong += !natural_mul(&x, f) || natural_low(&x) != a * f;
        wrong += natural_div(&x, f) != 0 || natural_low(&x) != a;
        wrong += !natural_add(&x, &y) || natural_low(&x) != a + b;
        natural_sub(&x, &y);
        wrong += natural_low(&x) != a || natural_div(&x, f) != a % f || natural_low(&x) != a / f;
    }
    EQ_INT(wrong, 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(reads_and_prints),
                                        TAP(calculates),
                                        TAP(refuses_what_does_not_fit),
                                        TAP(agrees_with_the_machine),
                                        { 0 } });
}
