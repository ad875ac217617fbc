/* One line per budget, the same from every benchmark; ./dev bench gathers them into a table at the end. */
#ifndef FLYBALL_BENCH_BUDGET_H
#define FLYBALL_BENCH_BUDGET_H

#include <stdio.h>

static inline void budget(const char *what, double value, double most, const char *unit)
{
    printf("budget: %s: %.4g %s, at most %g: %s\n", what, value, unit, most,
           value <= most ? "kept" : "MISSED");
}

#endif
