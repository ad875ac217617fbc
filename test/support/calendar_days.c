/* calendar_days FROM TO: reads calendars from standard input, separated by lines "====", and prints the days of each in
 * [FROM, TO) as one line of numbers (days since 1970-01-01 in UTC), or "error: ..." */
#include "base/buf.h"
#include "schedule/schedule_calendar_core.h"

#include <stdio.h>

static void print_days(str text, int64_t from, int64_t to)
{
    struct schedule_calendar *c;
    err_t e;
    if (schedule_calendar_parse(text, tz_get, &c, &e) < 0) {
        printf("error: %s\n", e.text);
        return;
    }
    for (int64_t day = from; day < to; day++)
        if (schedule_calendar_has_day(c, tz_utc(), day))
            printf("%lld ", (long long)day);
    printf("\n");
    schedule_calendar_free(c);
}

int main(int argc, char **argv)
{
    char line[4096];
    auto_buf struct buf text = { 0 };
    if (argc != 3)
        return 2;
    while (fgets(line, sizeof(line), stdin)) {
        if (!strcmp(line, "====\n")) {
            print_days(buf_str(&text), atoll(argv[1]), atoll(argv[2]));
            text.n = 0;
        } else {
            buf_put(&text, str_c(line));
        }
    }
    return 0;
}
