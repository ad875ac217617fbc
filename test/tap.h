/* Tests speak TAP. A test program is functions and one table:
 *
 *     static void adds(void) { OK(1 + 1 == 2); EQ_INT(add(1, 2), 3); }
 *     int main(void) { return tap_run((struct tap_case[]){ TAP(adds), { 0 } }); }
 *
 * A case is one TAP line; it fails when any check in it failed, and each failed check prints where and
 * what. SKIP("why") leaves a case that cannot run here. */
#ifndef FLYBALL_TAP_H
#define FLYBALL_TAP_H

#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct tap_case {
    const char *name;
    void (*run)(void);
};

#define TAP(function) { #function, function }

/* Weak: one of each per program, although a test may have several files. */
__attribute__((weak)) int tap_failures;
__attribute__((weak)) const char *tap_skip_reason;

static UNUSED PRINTF_LIKE(3, 4) bool tap_note(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("# %s:%d: ", file, line);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    tap_failures++;
    return false;
}

#define OK(condition) tap_ok(__FILE__, __LINE__, #condition, (condition))
static UNUSED bool tap_ok(const char *file, int line, const char *what, bool holds)
{
    return holds || tap_note(file, line, "false: %s", what);
}

#define EQ_INT(got, want) tap_eq_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
static UNUSED bool tap_eq_int(const char *file, int line, const char *what, long long got,
                              long long want)
{
    return got == want || tap_note(file, line, "%s is %lld, want %lld", what, got, want);
}

#define EQ_REAL(got, want) tap_eq_real(__FILE__, __LINE__, #got, (got), (want))
static UNUSED bool tap_eq_real(const char *file, int line, const char *what, double got,
                               double want)
{
    bool same = (isnan(got) && isnan(want)) || fabs(got - want) <= 1e-9 * fmax(1, fabs(want));
    return same || tap_note(file, line, "%s is %.17g, want %.17g", what, got, want);
}

#define EQ_STR(got, want) tap_eq_str(__FILE__, __LINE__, #got, (got), (want))
static UNUSED bool tap_eq_str(const char *file, int line, const char *what, str got, str want)
{
    return str_eq(got, want) || tap_note(file, line, "%s is \"" STR_FMT "\", want \"" STR_FMT "\"",
                                         what, STR_ARG(got), STR_ARG(want));
}

/* The call returned 0; otherwise its error is shown. */
#define OK_CALL(call, e) tap_ok_call(__FILE__, __LINE__, #call, (call), (e))
static UNUSED bool tap_ok_call(const char *file, int line, const char *what, int result,
                               const err_t *e)
{
    return result == 0 || tap_note(file, line, "%s failed: %s", what, e->text);
}

#define SKIP(why)                                                                                  \
    do {                                                                                           \
        tap_skip_reason = (why);                                                                   \
        return;                                                                                    \
    } while (0)

static UNUSED int tap_run(const struct tap_case *cases)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int failed = 0, number = 0, count = 0;
    while (cases[count].run)
        count++;
    printf("1..%d\n", count);
    for (; number < count; number++) {
        tap_failures = 0;
        tap_skip_reason = NULL;
        cases[number].run();
        failed += tap_failures > 0;
        printf("%s %d - %s%s%s\n", tap_failures ? "not ok" : "ok", number + 1, cases[number].name,
               tap_skip_reason ? " # SKIP " : "", tap_skip_reason ? tap_skip_reason : "");
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
