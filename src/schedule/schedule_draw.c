/* Printing schedules: see schedule_draw.h.
 *
 * In the terminal a trigger is a letter: upper case while its window is open, lower case after it, while its end
 * config applies or its bounds stay, a dot where no trigger governs. A cell shows what applies for most of its half hour, so a window
 * shorter than a quarter of an hour may not be visible; the SVG draws it to scale.
 *
 * Rows are local days. On a day with 23 or 25 hours a row still has 48 cells: a skipped hour is blank, and a
 * repeated hour belongs to the cell at whose end the clock is set back. */
#include "schedule_draw.h"

#include "../base/civil.h"
#include "schedule_recommend_core.h"

#include <stdio.h>

enum { CELL_S = 1800, CELLS = 48, EXPLAIN_CHANGES = 5, EXPLAIN_DAYS = 14, LETTERS = 26 };

static const char *const weekday_names[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

void schedule_draw_wall(struct buf *out, const struct tz *zone, int64_t at)
{
    int32_t offset = tz_offset_at(zone, at);
    int64_t local = at + offset, day = civil_day_of(local);
    struct civil_date date = civil_from_days(day);
    int second = (int)(local - day * CIVIL_DAY_S), east = offset < 0 ? -offset : offset;
    buf_printf(out, "%s %04lld-%02d-%02d %02d:%02d:%02d %c%02d:%02d",
               weekday_names[civil_weekday(day)], (long long)date.year, date.month, date.day,
               second / 3600, second / 60 % 60, second % 60, offset < 0 ? '-' : '+', east / 3600,
               east / 60 % 60);
}

/* "2 d 3 h 10 min", or seconds below a minute. */
static void draw_length(struct buf *out, int64_t seconds)
{
    if (seconds >= CIVIL_DAY_S)
        buf_printf(out, "%lld d ", (long long)(seconds / CIVIL_DAY_S));
    if (seconds >= 3600)
        buf_printf(out, "%lld h ", (long long)(seconds / 3600 % 24));
    if (seconds >= 60)
        buf_printf(out, "%lld min", (long long)(seconds / 60 % 60));
    else
        buf_printf(out, "%lld s", (long long)seconds);
}

void schedule_draw_problems(struct buf *out, const struct schedule_spec *spec)
{
    for (size_t i = 0; i < spec->problems_n; i++)
        buf_printf(out, "%s: " STR_FMT " (%s)\n",
                   schedule_problem_is_error(spec->problems[i].kind) ? "error" : "warning",
                   STR_ARG(spec->problems[i].text),
                   schedule_problem_reason(spec->problems[i].kind));
}

/* ---- the week in a terminal */

static char letter_of(const struct schedule_period *s)
{
    if (s->trigger < 0)
        return '.';
    if (s->trigger >= LETTERS)
        return s->source == SCHEDULE_FROM_START ? '#' : '-';
    return (char)((s->source == SCHEDULE_FROM_START ? 'A' : 'a') + s->trigger);
}

/* The letter of what applies longest in [from, to), the first of equals; ' ' outside the timeline. `*at` is the
 * first period to look at and moves along with the cells. */
static char cell_letter(const struct schedule_timeline *line, int64_t from, int64_t to, size_t *at)
{
    char letter = ' ';
    int64_t longest = 0;
    while (*at < line->n && line->periods[*at].to <= from)
        (*at)++;
    for (size_t i = *at; i < line->n && line->periods[i].from < to; i++) {
        const struct schedule_period *s = &line->periods[i];
        int64_t share = MIN(s->to, to) - MAX(s->from, from);
        if (share > longest) {
            longest = share;
            letter = letter_of(s);
        }
    }
    return letter;
}

static int64_t wall_to_instant(const struct tz *zone, int64_t wall)
{
    return tz_resolve(zone, wall).first;
}

/* One line per letter that occurs. */
static void draw_legend(struct buf *out, struct arena *a, const struct schedule_timeline *line)
{
    bool nothing = false;
    for (size_t i = 0; i < line->n; i++) {
        const struct schedule_period *s = &line->periods[i];
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = letter_of(&line->periods[k]) == letter_of(s);
        if (seen || (letter_of(s) == '.' && nothing))
            continue;
        if (letter_of(s) == '.') {
            nothing = true;
            buf_printf(out, "  .  no trigger governs; the bounds stay as they are\n");
            continue;
        }
        const struct schedule_trigger *t = &line->spec->triggers[s->trigger];
        buf_printf(out, "  %c  %s" STR_FMT ": " STR_FMT "\n", letter_of(s),
                   s->source == SCHEDULE_FROM_START ? "" : "after ", STR_ARG(t->name),
                   STR_ARG(schedule_period_text(a, s)));
    }
}

/* Cells are taken at local times, so a row shows the wall clock even across a daylight saving change. */
void schedule_draw_text(struct buf *out, const struct schedule_timeline *line,
                        const struct tz *zone)
{
    auto_arena struct arena a = { 0 };
    int64_t day = civil_day_of(line->from + tz_offset_at(zone, line->from));
    int64_t last = civil_day_of(line->to - 1 + tz_offset_at(zone, line->to - 1));
    buf_printf(out, "%-15s0     3     6     9     12    15    18    21    24  " STR_FMT "\n", "",
               STR_ARG(tz_name(zone)));
    for (size_t at = 0; day <= last; day++) {
        struct civil_date date = civil_from_days(day);
        buf_printf(out, "%s %04lld-%02d-%02d ", weekday_names[civil_weekday(day)],
                   (long long)date.year, date.month, date.day);
        for (int cell = 0; cell < CELLS; cell++) {
            int64_t wall = day * CIVIL_DAY_S + cell * CELL_S;
            buf_putc(out, cell_letter(line, wall_to_instant(zone, wall),
                                      wall_to_instant(zone, wall + CELL_S), &at));
        }
        buf_putc(out, '\n');
    }
    buf_putc(out, '\n');
    draw_legend(out, &a, line);
}

/* ---- why */

/* The days of a trigger, with a space before them: " M,TU from 2026-11-01"; nothing for those of a cron line. */
static void draw_days(struct buf *out, struct arena *a, const struct schedule_trigger *t)
{
    if (t->weekdays == 0x7f)
        buf_put(out, S(" daily"));
    else if (t->weekdays)
        buf_printf(out, " " STR_FMT, STR_ARG(schedule_weekdays_text(a, t->weekdays)));
    int32_t ends[] = { t->first_day, t->last_day };
    static const char *const words[] = { "from", "to" };
    for (int i = 0; i < 2; i++) {
        struct civil_date date = civil_from_days(ends[i]);
        if (ends[i] != INT32_MIN && ends[i] != INT32_MAX)
            buf_printf(out, " %s %04lld-%02d-%02d", words[i], (long long)date.year, date.month,
                       date.day);
    }
}

/* "09:00:00-17:00:00 M,TU"; a cron line is described by its fields in the manifest. */
static void draw_hours(struct buf *out, const struct schedule_trigger *t)
{
    if (t->cron_end) {
        buf_put(out, S("cron lines as in KEDA"));
        return;
    }
    if (t->cron) {
        buf_put(out, S("cron line, for "));
        draw_length(out, t->duration_s);
        return;
    }
    buf_printf(out, "%02d:%02d:%02d-%02d:%02d:%02d", t->start_s / 3600, t->start_s / 60 % 60,
               t->start_s % 60, t->end_s / 3600, t->end_s / 60 % 60, t->end_s % 60);
}

/* Why a trigger governs, or why it does not. */
static void draw_reason(struct buf *out, const struct schedule_spec *spec,
                        const struct schedule_effective *e,
                        const struct schedule_trigger_now *states, size_t at)
{
    const struct schedule_trigger *t = &spec->triggers[at];
    const struct schedule_trigger *winner = e->trigger < 0 ? NULL : &spec->triggers[e->trigger];
    switch (states[at].state) {
    case SCHEDULE_STATE_WITHIN:
        assert(states[at].rank == SCHEDULE_GOVERNS || winner); /* it lost to another one */
        if (states[at].rank == SCHEDULE_GOVERNS)
            buf_put(out, S("open, and governs"));
        else if (states[at].rank == SCHEDULE_LOWER_PRIORITY)
            buf_printf(out, "open, but " STR_FMT " has higher priority, %lld over %lld",
                       STR_ARG(winner->name), (long long)winner->priority, (long long)t->priority);
        else if (states[at].rank == SCHEDULE_EARLIER_START)
            buf_printf(out, "open, but " STR_FMT " has the same priority and opened later",
                       STR_ARG(winner->name));
        else
            buf_printf(out,
                       "open, but " STR_FMT
                       " has the same priority and start and is earlier in the list",
                       STR_ARG(winner->name));
        return;
    case SCHEDULE_STATE_BEFORE:
        buf_put(out, S("opens later today"));
        return;
    case SCHEDULE_STATE_AFTER:
        buf_put(out, S("was open today"));
        return;
    case SCHEDULE_STATE_INACTIVE:
        buf_put(out, t->use == SCHEDULE_NO_DAYS ? S("selects no day") : S("not scheduled today"));
        return;
    case SCHEDULE_STATE_INVALID:
        buf_put(out, S("invalid, see the problems"));
        return;
    case SCHEDULE_STATE_SUSPENDED:
        buf_put(out, S("suspended"));
        return;
    case SCHEDULE_STATE_DROPPED:
        buf_put(out, S("replaced by a later trigger of the same name"));
        return;
    case SCHEDULE_STATE_N:
        break;
    }
}

/* One line per trigger: its state, the reason, and when it is active. */
static void draw_triggers(struct buf *out, const struct schedule_spec *spec,
                          const struct schedule_effective *e,
                          const struct schedule_trigger_now *states)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < spec->triggers_n; i++) {
        const struct schedule_trigger *t = &spec->triggers[i];
        buf_printf(out, "  %-20.*s %-9s ", (int)MIN(t->name.n, (size_t)60), t->name.p,
                   schedule_state_name(states[i].state));
        draw_reason(out, spec, e, states, i);
        if (t->use == SCHEDULE_USED) {
            buf_put(out, S(" ("));
            draw_hours(out, t);
            draw_days(out, &a, t);
            buf_printf(out, ", " STR_FMT ")", STR_ARG(tz_name(t->zone)));
        }
        buf_putc(out, '\n');
    }
}

/* The first few transitions after now. */
static void draw_changes(struct buf *out, const struct schedule_timeline *line,
                         const struct tz *zone)
{
    auto_arena struct arena a = { 0 };
    if (line->n < 2)
        buf_printf(out, "\nNo change within %d days.\n", EXPLAIN_DAYS);
    else
        buf_put(out, S("\nNext changes:\n"));
    for (size_t i = 1; i < MIN(line->n, (size_t)EXPLAIN_CHANGES + 1); i++) {
        const struct schedule_period *s = &line->periods[i];
        struct schedule_effective e = { .source = s->source, .trigger = s->trigger };
        buf_put(out, S("  "));
        schedule_draw_wall(out, zone, s->from);
        buf_put(out, S("  in "));
        draw_length(out, s->from - line->from);
        buf_printf(out, "  " STR_FMT ": " STR_FMT "\n",
                   STR_ARG(schedule_source_text(&a, line->spec, &e)),
                   STR_ARG(schedule_period_text(&a, s)));
    }
}

/* Prints times in the zone of the governing trigger, or else of the first one. */
void schedule_explain(struct buf *out, const struct schedule_spec *spec, int64_t created,
                      int64_t now)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger_now *states = arena_array(&a, spec->triggers_n, sizeof(*states));
    struct schedule_effective e = schedule_effective(spec, created, now, states);
    int at = e.trigger < 0 ? 0 : e.trigger;
    const struct tz *zone = spec->triggers_n ? spec->triggers[at].zone : tz_utc();
    struct schedule_timeline line =
        schedule_timeline(&a, spec, created, now, now + EXPLAIN_DAYS * CIVIL_DAY_S);
    str applies = schedule_period_text(&a, &line.periods[0]);
    buf_put(out, S("At "));
    schedule_draw_wall(out, zone, now);
    buf_printf(out, " (" STR_FMT "): ", STR_ARG(tz_name(zone)));
    if (e.trigger < 0) {
        buf_printf(out, "no window is open, and none has ended since creation; " STR_FMT "\n",
                   STR_ARG(applies));
    } else {
        buf_printf(out, STR_FMT ", " STR_FMT "\n", STR_ARG(schedule_source_text(&a, spec, &e)),
                   STR_ARG(applies));
        buf_put(out, e.source == SCHEDULE_FROM_START ? S("  open since ") : S("  ended at "));
        if (e.since == INT64_MIN)
            buf_put(out, S("always"));
        else
            schedule_draw_wall(out, zone, e.since);
        buf_putc(out, '\n');
    }
    buf_putc(out, '\n');
    draw_triggers(out, spec, &e, states);
    draw_changes(out, &line, zone);
}
