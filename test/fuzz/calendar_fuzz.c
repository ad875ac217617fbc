/* Any text is a calendar or an error, and a calendar answers for any day in bounded time; outside of its range it has
 * no day. */
#include "fuzz.h"
#include "schedule/schedule_calendar_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct schedule_calendar *c;
    err_t e;
    if (size > 4096 ||
        schedule_calendar_parse((str){ (const char *)data, size }, tz_get, &c, &e) < 0)
        return 0;
    int64_t first, last;
    schedule_calendar_range(c, &first, &last);
    static const int64_t days[] = { -200000, 0, 20000, 20454, 20819, 50000, 2000000 };
    for (size_t i = 0; i < countof(days); i++)
        if (schedule_calendar_has_day(c, tz_utc(), days[i]) && (days[i] < first || days[i] > last))
            abort();
    if (schedule_calendar_bytes(c) > 4096 * 64)
        abort();
    schedule_calendar_free(c);
    return 0;
}
