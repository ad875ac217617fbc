/* The clock of the data directory. Objects have times of the simulated clock, so it should not go back from one run to the
 * next: windows, leases and events would lie in the future. The last time is kept in a file, and `up` warns. */
#include "up.h"

#include "../base/file.h"
#include "../base/rfc3339.h"

#include <stdio.h>

#define CLOCK_FILE "clock"
static const int64_t clock_every_ns = 10 * NS_PER_S; /* real time */

static void clock_path(const struct up *up, char path[static 4200])
{
    snprintf(path, 4200, "%s/" CLOCK_FILE, up->data);
}

/* A failure is ignored: the file serves a warning only. */
static void store_clock(struct up *up)
{
    char path[4200], text[RFC3339_TEXT_MAX];
    clock_path(up, path);
    FILE *file = fopen(path, "we");
    if (!file)
        return;
    str now = rfc3339_text(loop_wall_ns(up->loop) / NS_PER_S, text);
    fprintf(file, STR_FMT "\n", STR_ARG(now));
    fclose(file);
}

static void on_clock_timer(struct timer *timer)
{
    struct up *up = container_of(timer, struct up, clock_timer);
    store_clock(up);
    timer_set(up->loop, timer,
              loop_mono_ns(up->loop) + (int64_t)((double)clock_every_ns * MAX(up->speed, 1)),
              on_clock_timer);
}

int64_t up_clock_stored(const struct up *up)
{
    char path[4200];
    auto_buf struct buf stored = { 0 };
    int64_t was;
    clock_path(up, path);
    return file_read(path, RFC3339_TEXT_MAX, &stored, NULL) == 0 &&
                   rfc3339_parse(str_trim(buf_str(&stored)), &was, NULL) == 0
               ? was
               : 0;
}

/* Windows, leases and events of an earlier run would lie in the future. */
static void warn_of_earlier_clock(struct up *up)
{
    char now[RFC3339_TEXT_MAX], then[RFC3339_TEXT_MAX];
    int64_t was = up_clock_stored(up);
    if (was > up->started_s)
        fprintf(stderr,
                "flyball up: warning: the clock starts at " STR_FMT
                ", but the data in %s was last used at " STR_FMT
                "; its objects are from the future. Use a later --clock or another --data\n",
                STR_ARG(rfc3339_text(up->started_s, now)), up->data,
                STR_ARG(rfc3339_text(was, then)));
}

void up_clock_start(struct up *up)
{
    warn_of_earlier_clock(up);
    on_clock_timer(&up->clock_timer);
}

void up_clock_stop(struct up *up)
{
    timer_stop(&up->clock_timer);
    if (up->loop)
        store_clock(up);
}
