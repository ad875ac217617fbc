/* Usage and throttling between two readings: see demand_core.h. Counters come from the kernel,
 * but a test or a broken mount can contain anything, so every difference is checked for
 * overflow. */
#include "demand_core.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Removes and returns the next word of the line; empty at the end. */
static str next_word(str *line)
{
    while (line->n && is_space(line->p[0]))
        *line = str_from(*line, 1);
    size_t n = 0;
    while (n < line->n && !is_space(line->p[n]))
        n++;
    str word = str_upto(*line, n);
    *line = str_from(*line, n);
    return word;
}

struct demand_cpu_stat demand_cpu_stat_parse(str text)
{
    struct demand_cpu_stat stat = { 0 };
    int64_t periods = 0, throttled = 0;
    const struct {
        str name;
        int64_t *value;
        int64_t divisor;
    } fields[] = {
        { S("usage_usec"), &stat.usage_usec, 1 },
        { S("throttled_usec"), &stat.throttled_usec, 1 },
        { S("throttled_time"), &stat.throttled_usec, 1000 }, /* v1: nanoseconds */
        { S("nr_periods"), &periods, 1 },
        { S("nr_throttled"), &throttled, 1 },
    };
    for (str line; str_cut(&text, '\n', &line);) {
        str name = next_word(&line), number = next_word(&line);
        int64_t value;
        if (next_word(&line).n || str_to_i64(number, &value))
            continue;
        for (size_t i = 0; i < countof(fields); i++)
            if (str_eq(name, fields[i].name))
                *fields[i].value = value / fields[i].divisor;
    }
    stat.nr_periods = (uint32_t)periods;
    stat.nr_throttled = (uint32_t)throttled;
    return stat;
}

struct demand_window demand_measure(struct demand_cpu_stat before, struct demand_cpu_stat after,
                                    int64_t elapsed_ns)
{
    static const int64_t least_usec = 1000; /* less is noise, or a counter was reset */
    struct demand_window window = { 0 };
    int64_t used, throttled;
    if (elapsed_ns <= 0 || __builtin_sub_overflow(after.usage_usec, before.usage_usec, &used) ||
        __builtin_sub_overflow(after.throttled_usec, before.throttled_usec, &throttled) ||
        used < least_usec)
        return window;
    double seconds = (double)(elapsed_ns / 1000000000) + (double)(elapsed_ns % 1000000000) / 1e9;
    double milli = (double)used / 1e6 / seconds * 1000;
    window.usage_milli = milli < 9e18 ? (int64_t)milli : INT64_MAX;
    window.demand = MIN(MAX((double)throttled / (double)used / 0.1, 0.0), 1.0);
    int32_t periods = (int32_t)(after.nr_periods - before.nr_periods),
            hits = (int32_t)(after.nr_throttled - before.nr_throttled);
    if (periods > 0)
        window.throttled = MIN(MAX((double)hits / (double)periods, 0.0), 1.0);
    return window;
}
