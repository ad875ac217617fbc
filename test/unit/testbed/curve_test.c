#include "tap.h"

#include "testbed/curve.h"

#include "base/clock.h"

static double value_of(const char *text, double at_s)
{
    struct curve c = { 0 };
    err_t e;
    double value = -1;
    if (OK_CALL(curve_parse(str_c(text), &c, &e), &e))
        value = curve_at(&c, (int64_t)(at_s * 1e9));
    curve_done(&c);
    return value;
}

static void lines_between_points(void)
{
    EQ_REAL(value_of("300m", 1e6), 0.3);
    EQ_REAL(value_of("0s=1 10s=3", 5), 2);
    EQ_REAL(value_of("0s=1 10s=3", 10), 1); /* over again */
    EQ_REAL(value_of("0s=1 10s=3", 15), 2);
    EQ_REAL(value_of("0s=1  10s=3 20s=3", 14), 3);
    EQ_REAL(value_of("5s=1 10s=3", 2), 1);  /* before the first point its value holds */
    EQ_REAL(value_of("0s=1 10s=3", -5), 2); /* a clock that was set back */
}

static void nonsense_is_refused(void)
{
    const struct {
        const char *text, *says;
    } t[] = {
        { "", "must be a value" }, { "x", "\"x\"" },       { "0s=1 0s=2", "not later" },
        { "10=1", "10=1" },        { "0s=-1", "below 0" }, { "0s=1 5s=", "5s=" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct curve c;
        err_t e = { 0 };
        OK(curve_parse(str_c(t[i].text), &c, &e) < 0);
        if (!OK(strstr(e.text, t[i].says)))
            printf("# %s\n", e.text);
    }
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(lines_between_points), TAP(nonsense_is_refused), { 0 } });
}
