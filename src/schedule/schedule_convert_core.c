/* Conversion of other tools' schedules: see schedule_convert_core.h.
 *
 * KEDA takes the largest of all triggers, so a converted trigger has its replicas as its priority. Its floor becomes
 * minReplicas; outside all windows the floor is that of the ScaledObject.
 *
 *     start 0 8 * * 1-5   end 0 18 * * 1-5   ->   08:00 to 18:00 on M,TU,W,TH,F    if KEDA agrees
 *     start 0 8 * * 1-5   end 0 18 * * *     ->   schedule, endSchedule            open on weekends, as in KEDA
 *
 * Agreement is not argued but tested: both forms are compared at every time of either line, and one second before, for
 * three years. KEDA's library skips times that daylight saving skips, and loses days in some zones; a trigger that is
 * affected keeps its lines. */
#include "schedule_convert_core.h"

#include "../base/civil.h"
#include "schedule_lex.h"
#include "schedule_recommend_core.h"
#include "schedule_windows_core.h"

enum { YEARS_COMPARED = 3, DAY_MINUTES = 1440, NOTES_MAX = 100, JOBS_MAX = 100 };

struct converter {
    struct arena *a;
    const struct json *object;
    const struct schedule_convert_options *options;
    struct schedule_conversion out;
    struct json *triggers;
};

static void add_note(struct converter *c, str note)
{
    if (!c->out.notes)
        c->out.notes = arena_array(c->a, NOTES_MAX, sizeof(*c->out.notes));
    if (c->out.notes_n < NOTES_MAX)
        c->out.notes[c->out.notes_n++] = note;
}

/* A part of the original that has no counterpart in the manifest. */
static void skip_part(struct converter *c, str note)
{
    c->out.skipped++;
    add_note(c, note);
}

/* An empty manifest with the name, the namespace and the target of the result. */
static void begin_manifest(struct converter *c, str api_version, str kind, str name)
{
    struct arena *a = c->a;
    struct json *m = json_new_obj(a);
    json_set_str(a, m, "apiVersion", S("autoscaling.sarabala.io/v1alpha1"));
    json_set_str(a, m, "kind", S("SmartHorizontalPodAutoscaler"));
    struct json *metadata = json_make(a, m, "metadata", NULL);
    json_set_str(a, metadata, "name", json_text(json_at(c->object, "metadata", "name", NULL)));
    str ns = json_text(json_at(c->object, "metadata", "namespace", NULL));
    if (ns.n)
        json_set_str(a, metadata, "namespace", ns);
    struct json *spec = json_make(a, m, "spec", NULL),
                *ref = json_make(a, spec, "HPAObjectRef", NULL);
    if (!str_eqc(kind, "HorizontalPodAutoscaler")) {
        json_set_str(a, ref, "apiVersion", api_version);
        json_set_str(a, ref, "kind", kind);
    }
    json_set_str(a, ref, "name", name);
    c->triggers = json_new_arr(a);
    json_set(a, spec, S("triggers"), c->triggers);
    c->out.manifest = m;
}

static struct json *add_trigger(struct converter *c, str name, int64_t priority, str zone)
{
    struct json *t = json_new_obj(c->a);
    json_set_str(c->a, t, "name", name);
    if (priority)
        json_set_int(c->a, t, "priority", priority);
    if (zone.n)
        json_set_str(c->a, t, "timezone", zone);
    json_push(c->a, c->triggers, t);
    return t;
}

static void set_config(struct converter *c, struct json *trigger, const char *field, int64_t min,
                       int64_t max)
{
    struct json *config = json_make(c->a, trigger, field, NULL);
    json_set_int(c->a, config, "minReplicas", min);
    if (max)
        json_set_int(c->a, config, "maxReplicas", max);
}

/* Exactly this many replicas, for tools that know sizes and no bounds. */
static void set_size(struct converter *c, struct json *trigger, const char *field, int64_t size)
{
    set_config(c, trigger, field, size, MAX(size, INT64_C(1)));
    if (!size)
        json_set_int(c->a, json_get(trigger, field), "desiredReplicas", 0);
}

static void set_window(struct arena *a, struct json *trigger, uint8_t days, int from, int to)
{
    struct json *interval = json_make(a, trigger, "interval", NULL);
    json_set_str(a, interval, "recurring", schedule_weekdays_text(a, days));
    if (to < from)
        json_set_str(a, interval, "overnightDay", S("Start"));
    json_set_str(a, trigger, "startTime", arena_printf(a, "%02d:%02d", from / 60, from % 60));
    json_set_str(a, trigger, "endTime",
                 to == DAY_MINUTES ? S("23:59:59")
                                   : arena_printf(a, "%02d:%02d", to / 60, to % 60));
}

/* ---- two cron lines */

/* The only time of a line on the days that it selects, in minutes; -1: it has several, or selects days of a month. */
static int only_minute(const struct schedule_cron *line)
{
    int first = schedule_cron_minute_after(line, 0),
        last = schedule_cron_minute_before(line, DAY_MINUTES - 1);
    bool by_weekday = line->months == 0x1ffe && line->days == 0xfffffffe;
    return by_weekday && first == last ? first : -1;
}

static uint8_t next_weekdays(uint64_t days)
{
    return (uint8_t)((days << 1 | days >> 6) & 0x7f);
}

/* Are the window and the lines open at the same instants, from now on for some years? */
static bool is_open_alike(const struct schedule_trigger *window, const struct schedule_cron *start,
                          const struct schedule_cron *end, int64_t now)
{
    int64_t at = now, until = now + YEARS_COMPARED * 366 * CIVIL_DAY_S;
    while (at < until) {
        for (int back = 0; back < 2; back++) {
            struct schedule_view v = schedule_view(window, at - back);
            struct schedule_span span;
            if (schedule_window_near(&v, &span) !=
                schedule_cron_at(start, end, window->zone, at - back).active)
                return false;
        }
        struct schedule_cron_now next = schedule_cron_at(start, end, window->zone, at);
        struct schedule_view v = schedule_view(window, at);
        int64_t boundary = INT64_MAX;
        schedule_next_boundary(&v, &boundary);
        at = MIN(MIN(next.next_start, next.next_end), boundary);
    }
    return true;
}

/* The lines as times of day; false if no window means the same. */
static bool find_window(const struct schedule_cron *start, const struct schedule_cron *end,
                        const struct tz *zone, int64_t now, struct schedule_trigger *ret)
{
    int from = only_minute(start), to = only_minute(end);
    if (from < 0 || to < 0 || from == to)
        return false;
    uint64_t closing = to < from ? next_weekdays(start->weekdays) : start->weekdays;
    if (closing != end->weekdays)
        return false;
    *ret = (struct schedule_trigger){ .zone = zone,
                                      .start_s = from * 60,
                                      .end_s = to * 60,
                                      .overnight = SCHEDULE_START,
                                      .weekdays = (uint8_t)start->weekdays,
                                      .first_day = INT32_MIN,
                                      .last_day = INT32_MAX };
    return is_open_alike(ret, start, end, now);
}

static void set_lines(struct converter *c, struct json *trigger, str start, str end,
                      const struct tz *zone)
{
    struct schedule_cron lines[2];
    struct schedule_trigger window;
    struct arena *a = c->a;
    if (!c->options->keep_lines && schedule_cron_parse(start, &lines[0], NULL) == 0 &&
        schedule_cron_parse(end, &lines[1], NULL) == 0 &&
        find_window(&lines[0], &lines[1], zone, c->options->now, &window)) {
        set_window(a, trigger, window.weekdays, window.start_s / 60, window.end_s / 60);
        return;
    }
    json_set_str(a, trigger, "schedule", start);
    json_set_str(a, trigger, "endSchedule", end);
}

/* ---- KEDA */

/* KEDA writes numbers as text. */
static int64_t read_number(const struct json *v, int64_t otherwise)
{
    int64_t number;
    if (json_is(v, JSON_INT))
        return v->integer;
    return json_is(v, JSON_STR) && str_to_i64(json_text(v), &number) == 0 ? number : otherwise;
}

static bool has_other_trigger(const struct json *triggers)
{
    for (size_t i = 0; i < json_len(triggers); i++)
        if (!str_eqc(json_text(json_get(json_item(triggers, i), "type")), "cron"))
            return true;
    return false;
}

/* One cron trigger; a line that KEDA would refuse becomes a note. */
static void convert_cron_trigger(struct converter *c, const struct json *spec, size_t at,
                                 bool is_only_cron)
{
    const struct json *trigger = json_item(json_get(spec, "triggers"), at),
                      *m = json_get(trigger, "metadata");
    str start = json_text(json_get(m, "start")), end = json_text(json_get(m, "end")),
        zone_name = json_text(json_get(m, "timezone")), name = json_text(json_get(trigger, "name"));
    int64_t wanted = read_number(json_get(m, "desiredReplicas"), -1),
            least = read_number(json_get(spec, "minReplicaCount"), 0),
            most = read_number(json_get(spec, "maxReplicaCount"), 100);
    const struct tz *zone;
    struct schedule_cron line;
    err_t e;
    if (schedule_cron_parse(start, &line, &e) < 0 || schedule_cron_parse(end, &line, &e) < 0 ||
        c->options->find_zone(zone_name, &zone, &e) < 0) {
        skip_part(c, arena_printf(c->a, "trigger %zu is not converted: %s", at, e.text));
        return;
    }
    if (schedule_cron_parse(start, &line, NULL) == 0 && !schedule_cron_has_times(&line)) {
        skip_part(c, arena_printf(c->a, "trigger %zu is not converted: start: %s", at,
                                  SCHEDULE_CRON_NEVER));
        return;
    }
    if (wanted < 1) {
        skip_part(c, arena_printf(c->a,
                                  "trigger %zu is not converted: desiredReplicas is missing or 0",
                                  at));
        return;
    }
    name = name.n ? name : arena_printf(c->a, "cron-%zu", at);
    wanted = MIN(wanted, most);
    struct json *out = add_trigger(c, name, wanted, zone_name);
    set_lines(c, out, start, end, zone);
    if (is_only_cron) { /* nothing else scales the workload, also not down */
        set_size(c, out, "startHPAConfig", MAX(wanted, least));
        set_size(c, out, "endHPAConfig", read_number(json_get(spec, "idleReplicaCount"), least));
        return;
    }
    set_config(c, out, "startHPAConfig", MAX(wanted, least), most);
    set_config(c, out, "endHPAConfig", least, most);
}

/* What to do with the original. No note advises to delete it: deleting a ScaledObject deletes its HPA at once,
 * and a pause can be undone. */
static void advise_scaled_object(struct converter *c, bool is_only_cron)
{
    if (c->out.skipped)
        add_note(
            c, S("this conversion is incomplete; keep the ScaledObject as it is until all its cron "
                 "triggers are converted"));
    else if (is_only_cron)
        add_note(
            c,
            S("the ScaledObject has only cron triggers, so the schedule scales the workload directly; "
              "pause the ScaledObject (annotation autoscaling.keda.sh/paused: \"true\") when this is "
              "applied, because two controllers would change the same replicas"));
    else
        add_note(c,
                 S("remove the cron triggers from the ScaledObject when this is applied; its other "
                   "triggers stay"));
}

static void convert_scaled_object(struct converter *c)
{
    const struct json *spec = json_get(c->object, "spec"), *list = json_get(spec, "triggers"),
                      *ref = json_get(spec, "scaleTargetRef");
    str kind = json_text(json_get(ref, "kind")), api = json_text(json_get(ref, "apiVersion"));
    bool is_only_cron = !has_other_trigger(list);
    if (is_only_cron)
        begin_manifest(c, api.n ? api : S("apps/v1"), kind.n ? kind : S("Deployment"),
                       json_text(json_get(ref, "name")));
    else
        begin_manifest(c, S("keda.sh/v1alpha1"), S("ScaledObject"),
                       json_text(json_at(c->object, "metadata", "name", NULL)));
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), "cron"))
            convert_cron_trigger(c, spec, i, is_only_cron);
    advise_scaled_object(c, is_only_cron);
}

/* ---- kubernetes-cronhpa */

struct job {
    str name, line;
    struct schedule_cron cron;
    int minute;
    int64_t size;
};

/* "0 30 8 * * 1-5": seconds come first; only 0 can be kept. */
static bool read_job(struct converter *c, const struct json *from, struct job *ret)
{
    str text = str_trim(json_text(json_get(from, "schedule"))), seconds, rest = text;
    err_t e = { 0 };
    *ret = (struct job){ .name = json_text(json_get(from, "name")),
                         .size = json_int(json_get(from, "targetSize"), -1) };
    bool good = str_cut(&rest, ' ', &seconds) && str_eqc(seconds, "0") && ret->size >= 0 &&
                schedule_cron_parse(str_trim(rest), &ret->cron, &e) == 0;
    ret->line = str_trim(rest);
    ret->minute = good ? only_minute(&ret->cron) : -1;
    if (!good || json_bool(json_get(from, "runOnce"), false))
        skip_part(c, arena_printf(c->a, "job " STR_FMT " is not converted: %s", STR_ARG(ret->name),
                                  good ? "it runs once"
                                       : "its schedule must have six fields and second 0"));
    return good && !json_bool(json_get(from, "runOnce"), false);
}

static int by_minute(const void *x, const void *y)
{
    return ((const struct job *)x)->minute - ((const struct job *)y)->minute;
}

static void add_job(struct converter *c, const struct job *job, const struct job *next, bool last)
{
    struct json *t = add_trigger(c, job->name, 0, S(""));
    int to = last ? next->minute : next->minute ? next->minute : DAY_MINUTES;
    set_window(c->a, t, (uint8_t)job->cron.weekdays, job->minute, to);
    set_size(c, t, "startHPAConfig", job->size);
    if (last) /* on days without jobs, the last size stays */
        set_size(c, t, "endHPAConfig", job->size);
}

/* A job sets a size that stays until the next job: on equal days these are windows from one job to the next. */
static void convert_cronhpa(struct converter *c)
{
    const struct json *spec = json_get(c->object, "spec"), *ref = json_get(spec, "scaleTargetRef"),
                      *list = json_get(spec, "jobs");
    struct job *jobs = arena_array(c->a, JOBS_MAX, sizeof(*jobs));
    size_t n = 0;
    begin_manifest(c, json_text(json_get(ref, "apiVersion")), json_text(json_get(ref, "kind")),
                   json_text(json_get(ref, "name")));
    for (size_t i = 0; i < json_len(list) && n < JOBS_MAX; i++)
        n += read_job(c, json_item(list, i), &jobs[n]);
    bool same_days = n > 1;
    for (size_t i = 0; i < n; i++)
        same_days &= jobs[i].minute >= 0 && jobs[i].cron.weekdays == jobs[0].cron.weekdays;
    if (!same_days) {
        skip_part(
            c,
            S("the jobs are not converted: write them as windows; only two or more jobs with one "
              "time of day each, on the same weekdays, have a clear meaning as windows"));
        return;
    }
    qsort(jobs, n, sizeof(*jobs), by_minute);
    for (size_t i = 0; i < n; i++)
        add_job(c, &jobs[i], &jobs[(i + 1) % n], i + 1 == n);
    if (json_len(json_get(spec, "excludeDates")))
        skip_part(
            c,
            S("excludeDates are cron lines here; list the dates in interval.excludeDates, or refer "
              "to a calendar"));
    add_note(
        c, S("kubernetes-cronhpa uses the time zone of its pod; set timezone if that is not UTC"));
}

/* ---- kube-downscaler */

static bool read_weekday_range(str text, uint8_t *ret)
{
    size_t dash = str_find_char(text, '-');
    int from, to;
    if (schedule_lex_weekday(str_upto(text, dash), &from) < 0)
        return false;
    if (dash == SIZE_MAX)
        to = from;
    else if (schedule_lex_weekday(str_from(text, dash + 1), &to) < 0)
        return false;
    *ret = 0;
    for (int day = from;; day = (day + 1) % 7) {
        *ret = (uint8_t)(*ret | 1u << day);
        if (day == to)
            return true;
    }
}

static bool read_time_range(str text, int *from, int *to)
{
    size_t dash = str_find_char(text, '-');
    int32_t seconds;
    if (dash == SIZE_MAX || schedule_lex_clock(str_upto(text, dash), &seconds) < 0)
        return false;
    *from = seconds / 60;
    str end = str_from(text, dash + 1);
    if (str_eqc(end, "24:00")) {
        *to = DAY_MINUTES;
        return true;
    }
    if (schedule_lex_clock(end, &seconds) < 0)
        return false;
    *to = seconds / 60;
    return true;
}

struct sizes {
    int64_t inside, outside;
};

/* "Mon-Fri 08:00-18:00 Europe/Berlin, Sat 10:00-14:00 Europe/Berlin" */
static void convert_times(struct converter *c, const char *what, str list, struct sizes sizes,
                          int64_t priority)
{
    str one;
    for (int i = 0; str_cut(&list, ',', &one); i++) {
        str rest = str_trim(one), days_text = S(""), hours = S("");
        uint8_t days;
        int from, to;
        bool parts = str_cut(&rest, ' ', &days_text) && str_cut(&rest, ' ', &hours) && rest.n;
        if (!parts || !read_weekday_range(days_text, &days) ||
            !read_time_range(hours, &from, &to) || from >= to) {
            skip_part(c, arena_printf(
                             c->a,
                             "%s \"" STR_FMT
                             "\" is not converted; use weekdays, times of one day and a time zone, "
                             "such as Mon-Fri 08:00-18:00 Europe/Berlin",
                             what, STR_ARG(str_trim(one))));
            continue;
        }
        struct json *t =
            add_trigger(c, arena_printf(c->a, "%s-%d", what, i), priority, str_trim(rest));
        set_window(c->a, t, days, from, to);
        set_size(c, t, "startHPAConfig", sizes.inside);
        set_size(c, t, "endHPAConfig", sizes.outside);
    }
}

static void convert_downscaler(struct converter *c, str uptime, str downtime)
{
    const struct json *notes = json_at(c->object, "metadata", "annotations", NULL);
    int64_t up = json_int(json_at(c->object, "spec", "replicas", NULL), 1);
    up = json_int(json_at(c->object, "spec", "minReplicas", NULL), up);
    int64_t down = read_number(json_get(notes, "downscaler/downtime-replicas"), 0);
    begin_manifest(c, json_text(json_get(c->object, "apiVersion")),
                   json_text(json_get(c->object, "kind")),
                   json_text(json_at(c->object, "metadata", "name", NULL)));
    if (uptime.n)
        convert_times(c, "uptime", uptime, (struct sizes){ up, down }, 0);
    if (downtime.n)
        convert_times(c, "downtime", downtime, (struct sizes){ down, up }, 10);
    add_note(c, S("remove the downscaler annotations when this is applied"));
}

/* ---- all */

struct schedule_conversion schedule_convert(struct arena *a, const struct json *object,
                                            const struct schedule_convert_options *options)
{
    struct converter c = { .a = a, .object = object, .options = options };
    str kind = json_text(json_get(object, "kind"));
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    str uptime = json_text(json_get(annotations, "downscaler/uptime")),
        downtime = json_text(json_get(annotations, "downscaler/downtime"));
    if (str_eqc(kind, "ScaledObject"))
        convert_scaled_object(&c);
    else if (str_eqc(kind, "CronHorizontalPodAutoscaler"))
        convert_cronhpa(&c);
    else if (uptime.n || downtime.n)
        convert_downscaler(&c, uptime, downtime);
    if (c.out.manifest && !json_len(c.triggers)) /* a manifest without triggers would do nothing */
        c.out.manifest = NULL;
    return c.out;
}
