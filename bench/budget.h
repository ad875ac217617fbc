/* One line per budget, the same from every benchmark; ./dev bench gathers them into a table at the end. */
#ifndef FLYBALL_BENCH_BUDGET_H
#define FLYBALL_BENCH_BUDGET_H

#include <stdio.h>
#include <unistd.h>

static inline void budget(const char *what, double value, double most, const char *unit)
{
    printf("budget: %s: %.4g %s, at most %g: %s\n", what, value, unit, most,
           value <= most ? "kept" : "MISSED");
}

/* Memory of this process; 0: unknown. */
static inline long budget_resident_kb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#endif
