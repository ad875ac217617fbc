/* The checks of golden.h. */
#include "golden.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const char *shown(struct golden *g, const struct json *v)
{
    return v ? json_to_str(g->arena, v).p : "nothing";
}

bool golden_ok(struct golden *g, bool condition, const char *format, ...)
{
    g->checks++;
    if (condition)
        return true;
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_printf(&g->problems, "%s%s", g->problems.n ? "; " : "", text);
    return false;
}

bool golden_eq_int(struct golden *g, const char *what, int64_t got, const struct json *want)
{
    bool same = json_is(want, JSON_INT) ? want->integer == got
                                        : json_is(want, JSON_REAL) && want->real == (double)got;
    return golden_ok(g, same, "%s: want %s, got %lld", what, shown(g, want), (long long)got);
}

bool golden_eq_bool(struct golden *g, const char *what, bool got, const struct json *want)
{
    return golden_ok(g, json_is(want, JSON_BOOL) && want->boolean == got, "%s: want %s, got %s",
                     what, shown(g, want), got ? "true" : "false");
}

bool golden_eq_str(struct golden *g, const char *what, str got, const struct json *want)
{
    return golden_ok(g, json_is(want, JSON_STR) && str_eq(json_text(want), got),
                     "%s: want %s, got \"" STR_FMT "\"", what, shown(g, want), STR_ARG(got));
}

bool golden_eq_json(struct golden *g, const char *what, const struct json *got,
                    const struct json *want)
{
    return golden_ok(g, json_eq(got, want), "%s: want %s, got %s", what, shown(g, want),
                     shown(g, got));
}

bool golden_check_error(struct golden *g, bool bad, const struct json *want)
{
    bool refused = json_get(want, "error") != NULL;
    golden_ok(g, bad == refused, "error: want %s, got %s", refused ? "one" : "none",
              bad ? "one" : "none");
    return !bad && !refused;
}

double golden_real(const struct json *v, double otherwise)
{
    str text = json_text(v);
    if (str_eq(text, S("+Inf")))
        return INFINITY;
    if (str_eq(text, S("-Inf")))
        return -INFINITY;
    return str_eq(text, S("NaN")) ? NAN : json_real(v, otherwise);
}

bool golden_eq_real(struct golden *g, const char *what, double got, const struct json *want,
                    struct tolerance t)
{
    double value = golden_real(want, 0);
    bool is_number = json_is(want, JSON_STR) ? !isfinite(value)
                                             : json_is(want, JSON_REAL) || json_is(want, JSON_INT);
    bool same = value == got || (isnan(value) && isnan(got)) ||
                fabs(value - got) <= fmax(t.absolute, t.relative * fabs(value));
    return golden_ok(g, is_number && same, "%s: want %s, got %.17g", what, shown(g, want), got);
}
