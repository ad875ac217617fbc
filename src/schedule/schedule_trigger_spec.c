/* One trigger of a schedule: when it opens (times of day, or cron lines), on which days, and its settings.
 *
 * Each read_* function reports what is wrong with its fields. Those that return false make the trigger
 * unusable, while the rest of the schedule keeps working: one mistyped time must not leave a workload without
 * any bounds. Every problem names the field, the value and what would be valid, because users see it as a
 * condition.
 *
 * Zones and calendars are found through functions of the caller, since this file is pure. */
#include "schedule_reader_spec.h"

#include "../base/civil.h"
#include "../base/clock.h"
#include "../base/duration.h"
#include "schedule_lex.h"

/* startTime and endTime; false if the trigger cannot be used. 23:59:59 as an end is the end of the day. */
static bool read_times(struct schedule_reader *r, const struct json *object,
                       struct schedule_trigger *t)
{
    static const char *const fields[] = { "startTime", "endTime" };
    int32_t seconds[2] = { 0 };
    bool good = true;
    for (int i = 0; i < 2; i++) {
        str text = schedule_read_text(r, object, fields[i]);
        if (schedule_lex_clock(text, &seconds[i]) == 0)
            continue;
        schedule_add_problem(
            r, SCHEDULE_INVALID_TIME,
            "%s is \"" STR_FMT
            "\", but must be a time of day HH:MM or HH:MM:SS, up to 23:59:59, which as an "
            "end means the end of the day",
            fields[i], STR_ARG(text));
        good = false;
    }
    t->start_s = seconds[0];
    t->end_s = seconds[1] == CIVIL_DAY_S - 1 ? (int32_t)CIVIL_DAY_S : seconds[1];
    if (good && t->start_s == t->end_s) {
        schedule_add_problem(r, SCHEDULE_EMPTY_WINDOW,
                             "startTime and endTime are equal, so it is never active");
        good = false;
    }
    return good;
}

/* A cron line in a field; NULL if it is not set or, with a problem, not valid. */
static const struct schedule_cron *read_cron(struct schedule_reader *r, const struct json *object,
                                             const char *field)
{
    str text = schedule_read_text(r, object, field);
    struct schedule_cron *cron = arena_new(r->a, struct schedule_cron);
    err_t e;
    if (!text.n)
        return NULL;
    int result = schedule_cron_parse(text, cron, &e);
    if (result == 0 && schedule_cron_has_times(cron))
        return cron;
    schedule_add_problem(r, SCHEDULE_INVALID_CRON, "%s: %s", field,
                         result < 0 ? e.text : SCHEDULE_CRON_NEVER);
    return NULL;
}

/* The longest time between two openings on one day: a window that lasts longer never closes on such a day. */
static int32_t longest_gap_s(const struct schedule_cron *cron)
{
    int longest = 0, at = schedule_cron_minute_after(cron, 0);
    for (int next; at >= 0 && (next = schedule_cron_minute_after(cron, at + 1)) >= 0; at = next)
        longest = MAX(longest, next - at);
    return longest * 60;
}

/* duration: "8h", "90m"; from a minute to 31 days. */
static bool read_duration(struct schedule_reader *r, const struct json *object,
                          struct schedule_trigger *t)
{
    static const int64_t minute_s = 60, month_s = 31 * CIVIL_DAY_S;
    str text = schedule_read_text(r, object, "duration");
    int64_t ns = 0;
    err_t e;
    if (!text.n || duration_parse(text, &ns, &e) < 0 || ns < minute_s * NS_PER_S ||
        ns > month_s * NS_PER_S) {
        schedule_add_problem(
            r, SCHEDULE_INVALID_CRON,
            "duration \"" STR_FMT
            "\" is not valid; schedule needs a duration from 1m to 744h, such as 8h or 90m, "
            "or an endSchedule",
            STR_ARG(text));
        return false;
    }
    t->duration_s = (int32_t)(ns / NS_PER_S);
    return true;
}

/* schedule, with duration or endSchedule; false if the trigger cannot be used. */
static bool read_lines(struct schedule_reader *r, const struct json *object,
                       struct schedule_trigger *t)
{
    bool ends = schedule_read_text(r, object, "endSchedule").n;
    bool has_times = json_get(object, "startTime") || json_get(object, "endTime");
    t->cron = read_cron(r, object, "schedule");
    t->cron_end = read_cron(r, object, "endSchedule");
    if (has_times || (ends && json_get(object, "duration"))) {
        schedule_add_problem(r, SCHEDULE_INVALID_CRON, "schedule cannot be combined with %s",
                             has_times ? "startTime and endTime" : "both duration and endSchedule");
        return false;
    }
    if (!t->cron || (ends && !t->cron_end))
        return false;
    t->line_gap_s = longest_gap_s(t->cron);
    return ends || read_duration(r, object, t);
}

/* A bit per weekday, Sunday first. Unknown words are reported and skipped. */
static uint8_t read_weekdays(struct schedule_reader *r, str list)
{
    uint8_t days = 0;
    str word;
    while (schedule_lex_next_word(&list, &word)) {
        int day;
        if (schedule_lex_weekday(word, &day) == 0)
            days = (uint8_t)(days | 1u << day);
        else
            schedule_add_problem(r, SCHEDULE_UNKNOWN_WEEKDAY,
                                 "interval.recurring has \"" STR_FMT
                                 "\", but days must be SUN, M, TU, W, TH, F or SAT",
                                 STR_ARG(word));
    }
    return days;
}

/* An empty text is valid and leaves the bound open. */
static bool read_date(struct schedule_reader *r, str text, const char *field, int32_t *day)
{
    if (!text.n || schedule_lex_date(text, day) == 0)
        return true;
    schedule_add_problem(r, SCHEDULE_INVALID_DATE,
                         "interval.%s is \"" STR_FMT "\", but must be a date YYYY-MM-DD", field,
                         STR_ARG(text));
    return false;
}

static int compare_days(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* A list of dates, ascending. An invalid date is left out; the trigger itself stays in use. */
static const int32_t *read_dates(struct schedule_reader *r, const struct json *interval,
                                 const char *field, size_t *ret_n)
{
    const struct json *list = json_get(interval, field);
    if (!schedule_check_type(r, list, JSON_ARR, field, "a list of dates"))
        return NULL;
    int32_t *days = arena_array(r->a, list->n, sizeof(*days));
    size_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        str text = json_text(json_item(list, i));
        n += read_date(r, text.n ? text : S("(not text)"), field, &days[n]);
    }
    qsort(days, n, sizeof(*days), compare_days);
    *ret_n = n;
    return days;
}

/* The calendar of this name; NULL with a problem. One that exists but cannot be read is not "not found". */
static const struct schedule_calendar *read_calendar(struct schedule_reader *r, const char *field,
                                                     str name)
{
    if (!r->defaults.find_calendar)
        return NULL;
    struct schedule_calendar_found found = r->defaults.find_calendar(r->defaults.calendars, name);
    if (found.calendar)
        return found.calendar;
    if (found.why)
        schedule_add_problem(r, SCHEDULE_INVALID_CALENDAR,
                             "interval.%s: calendar \"" STR_FMT
                             "\" cannot be read and selects no date: %s",
                             field, STR_ARG(name), found.why);
    else if (r->defaults.calendars_incomplete)
        schedule_add_problem(
            r, SCHEDULE_UNSEEN_CALENDAR,
            "interval.%s: calendar \"" STR_FMT
            "\" is not in the file, or ConfigMaps cannot be listed; its dates are not "
            "taken into account",
            field, STR_ARG(name));
    else if (r->defaults.calendars_off)
        schedule_add_problem(r, SCHEDULE_UNKNOWN_CALENDAR,
                             "interval.%s: calendar \"" STR_FMT
                             "\" is not read; run the operator with --smarthpa-calendars",
                             field, STR_ARG(name));
    else
        schedule_add_problem(
            r, SCHEDULE_UNKNOWN_CALENDAR,
            "interval.%s: calendar \"" STR_FMT
            "\" not found; create a ConfigMap of that name with the label " SCHEDULE_CALENDAR_LABEL,
            field, STR_ARG(name));
    return NULL;
}

/* A list of names of calendars. One that is not found selects nothing, which is reported. */
static const struct schedule_calendar *const *read_calendars(struct schedule_reader *r,
                                                             const struct json *interval,
                                                             const char *field, size_t *ret_n)
{
    const struct json *list = json_get(interval, field);
    bool excludes = str_starts(str_c(field), S("exclude")),
         uses_defaults = excludes && !schedule_read_bool(r, interval, "ignoreDefaultCalendars");
    size_t defaults = uses_defaults ? r->defaults.default_calendars_n : 0, n = 0;
    if (!schedule_check_type(r, list, JSON_ARR, field, "a list of names of calendars"))
        list = NULL;
    const struct schedule_calendar **out =
        arena_array(r->a, MAX(json_len(list) + defaults, (size_t)1), sizeof(*out));
    for (size_t i = 0; i < defaults; i++)
        out[n++] = r->defaults.default_calendars[i];
    for (size_t i = 0; i < json_len(list); i++) {
        out[n] = read_calendar(r, field, json_text(json_item(list, i)));
        n += out[n] != NULL;
    }
    *ret_n = n;
    return out;
}

static void read_selected_days(struct schedule_reader *r, const struct json *interval,
                               struct schedule_trigger *t)
{
    t->excluded_days = read_dates(r, interval, "excludeDates", &t->excluded_n);
    t->included_days = read_dates(r, interval, "includeDates", &t->included_n);
    t->excluded_calendars =
        read_calendars(r, interval, "excludeDatesFrom", &t->excluded_calendars_n);
    t->included_calendars =
        read_calendars(r, interval, "includeDatesFrom", &t->included_calendars_n);
}

/* Weekdays and dates. Returns whether the trigger can be used, as far as its days are concerned. */
static enum schedule_use read_interval(struct schedule_reader *r, const struct json *interval,
                                       bool is_line, struct schedule_trigger *t)
{
    str recurring = schedule_read_text(r, interval, "recurring");
    str first = schedule_read_text(r, interval, "startDate"),
        last = schedule_read_text(r, interval, "endDate");
    if (recurring.n)
        t->weekdays = read_weekdays(r, recurring);
    bool only_included =
        !recurring.n && !first.n && !last.n && !is_line &&
        (json_get(interval, "includeDates") || json_get(interval, "includeDatesFrom"));
    if (only_included) {
        t->first_day = INT32_MAX; /* an empty range: open on included dates only */
        t->last_day = INT32_MIN;
        read_selected_days(r, interval, t);
        return SCHEDULE_USED;
    }
    if (recurring.n ? !t->weekdays : !is_line && (!first.n || !last.n)) {
        schedule_add_problem(
            r, SCHEDULE_NO_INTERVAL,
            "interval selects no day; set recurring (such as M,TU,W) or both startDate and "
            "endDate");
        return SCHEDULE_NO_DAYS;
    }
    bool good = read_date(r, first, "startDate", &t->first_day);
    good = read_date(r, last, "endDate", &t->last_day) && good;
    if (good && t->first_day > t->last_day) {
        schedule_add_problem(r, SCHEDULE_INVALID_DATE,
                             "interval.startDate " STR_FMT " is after interval.endDate " STR_FMT,
                             STR_ARG(first), STR_ARG(last));
        good = false;
    }
    read_selected_days(r, interval, t);
    return good ? SCHEDULE_USED : SCHEDULE_INVALID;
}

/* overnightDay, with a warning where leaving it out is probably a mistake. */
static void read_overnight(struct schedule_reader *r, const struct json *interval,
                           struct schedule_trigger *t)
{
    str choice = schedule_read_text(r, interval, "overnightDay");
    t->overnight = r->defaults.overnight;
    if (choice.n)
        t->overnight = (enum schedule_overnight)schedule_read_choice(r, interval, "overnightDay",
                                                                     (const char *const[3]){
                                                                         "Calendar", "Start" });
    bool split = t->end_s < t->start_s && t->weekdays && t->weekdays != 0x7f;
    if (split && !choice.n && t->overnight == SCHEDULE_CALENDAR)
        schedule_add_problem(
            r, SCHEDULE_OVERNIGHT_SPLIT,
            "the window crosses midnight and lists only some weekdays, so it is split into the early "
            "and the late part of each listed day; set interval.overnightDay to Calendar to "
            "confirm this, or to Start to keep each night whole");
}

/* The zone of the trigger wins over that of its interval, where older manifests have it. */
void schedule_read_trigger(struct schedule_reader *r, const struct json *object,
                           struct schedule_trigger *t)
{
    const struct json *interval = json_get(object, "interval");
    if (!schedule_check_type(r, interval, JSON_OBJ, "interval", "an object"))
        interval = NULL;
    t->priority = schedule_read_int(r, object, "priority", 0);
    str zone = schedule_read_text(r, object, "timezone");
    t->zone = schedule_read_zone(r, zone.n ? zone : schedule_read_text(r, interval, "timezone"));
    t->start = schedule_read_config(r, object, "startHPAConfig");
    t->end = schedule_read_config(r, object, "endHPAConfig");
    t->ramp_minutes = schedule_read_in_range(r, object, "rampMinutes",
                                             (struct schedule_range){ .least = 0, .most = 720 });
    bool is_line = schedule_read_text(r, object, "schedule").n ||
                   schedule_read_text(r, object, "endSchedule").n;
    bool times = is_line ? read_lines(r, object, t) : read_times(r, object, t);
    t->use = read_interval(r, interval, is_line, t);
    if (t->cron_end && interval) {
        schedule_add_problem(r, SCHEDULE_INVALID_CRON,
                             "endSchedule cannot be combined with interval");
        times = false;
    }
    if (!times)
        t->use = SCHEDULE_INVALID;
    else if (!is_line)
        read_overnight(r, interval, t);
}
