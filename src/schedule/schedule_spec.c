/* From a manifest to numbers: see schedule_spec.h.
 *
 * The order of the checks is the order of the rules. A trigger that a later one of the same name replaces,
 * or that is suspended, is not read any further, so that an unfinished trigger can be parked. Then its
 * times, days and dates decide whether it is usable. Its configs are only read here; their effect on an HPA
 * is decided when they are applied, against the live values.
 *
 *     object -> check_type -> read_* -> struct schedule_trigger
 *                   |            |
 *                   +------------+----> add_problem: one sentence, the trigger stays in the list
 *
 * A manifest of the wrong types cannot come from an API server that validates it, but `flyball schedule`
 * reads files, and CRDs of SmartHPA validate less; so every type is checked. Zones are looked up through
 * defaults.find_zone, because loading one reads a file. */
#include "schedule_spec.h"

#include "../base/civil.h"
#include "schedule_lex.h"

#include <stdarg.h>
#include <stdio.h>

struct reader {
    struct arena *a;
    struct schedule_spec *spec;
    struct schedule_defaults defaults;
    size_t problems_cap;
    int trigger; /* index of the one being read; -1: outside the list */
};

static const struct {
    const char *reason;
    bool error;
} problem_kinds[SCHEDULE_PROBLEM_N] = {
    [SCHEDULE_INVALID_TIME] = { "InvalidTime", true },
    [SCHEDULE_INVALID_DATE] = { "InvalidDate", true },
    [SCHEDULE_EMPTY_WINDOW] = { "EmptyWindow", true },
    [SCHEDULE_NO_INTERVAL] = { "NoInterval", true },
    [SCHEDULE_INVALID_TIMEZONE] = { "InvalidTimezone", true },
    [SCHEDULE_UNKNOWN_WEEKDAY] = { "UnknownWeekday", true },
    [SCHEDULE_DUPLICATE_NAME] = { "DuplicateTriggerName", true },
    [SCHEDULE_MIN_ABOVE_MAX] = { "MinAboveMax", true },
    [SCHEDULE_INVALID_REPLICAS] = { "InvalidReplicas", true },
    [SCHEDULE_INVALID_FIELD] = { "InvalidField", true },
    [SCHEDULE_ALIAS_FIELD] = { "AliasField", false },
    [SCHEDULE_OVERNIGHT_SPLIT] = { "OvernightSplit", false },
    [SCHEDULE_PARTIAL_CONFIG] = { "PartialConfig", false },
};

bool schedule_problem_is_error(enum schedule_problem_kind kind)
{
    return problem_kinds[kind].error;
}

const char *schedule_problem_reason(enum schedule_problem_kind kind)
{
    return problem_kinds[kind].reason;
}

/* ---- problems */

/* Appends a problem, prefixed with the trigger that is being read. */
static PRINTF_LIKE(3, 4) void add_problem(struct reader *r, enum schedule_problem_kind kind,
                                          const char *format, ...)
{
    struct schedule_spec *spec = r->spec;
    if (spec->problems_n == r->problems_cap) {
        r->problems_cap = MAX(r->problems_cap * 2, (size_t)4);
        struct schedule_problem *more =
            arena_array(r->a, r->problems_cap, sizeof(struct schedule_problem));
        if (spec->problems_n)
            memcpy(more, spec->problems, spec->problems_n * sizeof(*more));
        spec->problems = more;
    }
    char sentence[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    str text = r->trigger < 0 ? arena_printf(r->a, "spec: %s", sentence)
                              : arena_printf(r->a, "trigger " STR_FMT ": %s",
                                             STR_ARG(spec->triggers[r->trigger].name), sentence);
    spec->problems[spec->problems_n++] = (struct schedule_problem){ kind, r->trigger, text };
}

/* True if the value has this type. Any other type except null is a problem; unset and null are not. */
static bool check_type(struct reader *r, const struct json *value, enum json_type type,
                       const char *field, const char *wanted)
{
    if (!value || value->type == JSON_NULL)
        return false;
    if (value->type == type)
        return true;
    add_problem(r, SCHEDULE_INVALID_FIELD, "%s has type %s; want %s", field, json_type_name(value),
                wanted);
    return false;
}

/* ---- fields */

static str read_text(struct reader *r, const struct json *object, const char *field)
{
    const struct json *value = json_get(object, field);
    return check_type(r, value, JSON_STR, field, "text") ? arena_str(r->a, json_text(value))
                                                         : S("");
}

static bool read_bool(struct reader *r, const struct json *object, const char *field)
{
    const struct json *value = json_get(object, field);
    return check_type(r, value, JSON_BOOL, field, "true or false") && value->boolean;
}

static int64_t read_int(struct reader *r, const struct json *object, const char *field,
                        int64_t otherwise)
{
    const struct json *value = json_get(object, field);
    return check_type(r, value, JSON_INT, field, "an integer") ? value->integer : otherwise;
}

struct range {
    int32_t least, most, otherwise;
};

/* An integer in the range; its default if unset or, with a problem, if outside. */
static int32_t read_in_range(struct reader *r, const struct json *object, const char *field,
                             struct range range)
{
    int64_t value = read_int(r, object, field, range.otherwise);
    if (value >= range.least && value <= range.most)
        return (int32_t)value;
    add_problem(r, SCHEDULE_INVALID_FIELD, "%s is %lld; want %d to %d; using %d", field,
                (long long)value, range.least, range.most, range.otherwise);
    return range.otherwise;
}

/* The index of one of up to three words; the first is the default, also for an unknown word. */
static int read_choice(struct reader *r, const struct json *object, const char *field,
                       const char *const words[3])
{
    str text = read_text(r, object, field);
    if (!text.n)
        return 0;
    for (int i = 0; i < 3 && words[i]; i++)
        if (str_eqc(text, words[i]))
            return i;
    add_problem(r, SCHEDULE_INVALID_FIELD,
                "%s \"" STR_FMT "\" is unknown; want %s, %s%s%s; using %s", field, STR_ARG(text),
                words[0], words[1], words[2] ? " or " : "", words[2] ? words[2] : "", words[0]);
    return 0;
}

static bool fits_replicas(const struct json *value)
{
    return json_is(value, JSON_INT) && value->integer >= INT32_MIN && value->integer <= INT32_MAX;
}

struct schedule_config schedule_config_read(const struct json *config)
{
    const struct json *min = json_get(config, "minReplicas"),
                      *max = json_get(config, "maxReplicas"),
                      *desired = json_get(config, "desiredReplicas");
    return (struct schedule_config){
        .has_min = fits_replicas(min),
        .has_max = fits_replicas(max),
        .has_desired = fits_replicas(desired),
        .min = fits_replicas(min) ? (int32_t)min->integer : 0,
        .max = fits_replicas(max) ? (int32_t)max->integer : 0,
        .desired = fits_replicas(desired) ? (int32_t)desired->integer : 0,
    };
}

void schedule_config_fill(struct schedule_config *config, const struct schedule_config *from)
{
    if (!config->has_min && from->has_min)
        config->has_min = true, config->min = from->min;
    if (!config->has_max && from->has_max)
        config->has_max = true, config->max = from->max;
    if (!config->has_desired && from->has_desired)
        config->has_desired = true, config->desired = from->desired;
}

struct json *schedule_config_json(struct arena *a, const struct schedule_config *c)
{
    struct json *out = json_new_obj(a);
    if (c->has_min)
        json_set_int(a, out, "minReplicas", c->min);
    if (c->has_max)
        json_set_int(a, out, "maxReplicas", c->max);
    if (c->has_desired)
        json_set_int(a, out, "desiredReplicas", c->desired);
    return out;
}

static void check_replicas(struct reader *r, const struct json *config, const char *where,
                           const char *field, int least)
{
    const struct json *value = json_get(config, field);
    if (!value || value->type == JSON_NULL)
        return;
    if (!fits_replicas(value))
        add_problem(r, SCHEDULE_INVALID_REPLICAS, "%s.%s is not a 32-bit integer; it is ignored",
                    where, field);
    else if (value->integer < least)
        add_problem(r, SCHEDULE_INVALID_REPLICAS, "%s.%s is %lld; want at least %d", where, field,
                    (long long)value->integer, least);
}

/* Reads a config and reports values that no HPA accepts. */
static struct schedule_config read_config(struct reader *r, const struct json *object,
                                          const char *field)
{
    const struct json *value = json_get(object, field);
    if (!check_type(r, value, JSON_OBJ, field, "an object with minReplicas and maxReplicas"))
        return (struct schedule_config){ 0 };
    struct schedule_config config = schedule_config_read(value);
    check_replicas(r, value, field, "minReplicas", 0);
    check_replicas(r, value, field, "maxReplicas", 1);
    check_replicas(r, value, field, "desiredReplicas", 0);
    if (config.has_min && config.has_max && config.min > config.max)
        add_problem(r, SCHEDULE_MIN_ABOVE_MAX,
                    "%s has minReplicas %d above maxReplicas %d; it has no effect", field,
                    config.min, config.max);
    return config;
}

/* The object under the CRD's field name, or under the alias that SmartHPA's documentation uses. */
static const struct json *read_aliased(struct reader *r, const struct json *spec, const char *field,
                                       const char *alias)
{
    const struct json *value = json_get(spec, field), *other = json_get(spec, alias);
    if (other)
        add_problem(r, SCHEDULE_ALIAS_FIELD, "%s is an alias of %s%s", alias, field,
                    value ? ", which is set too and takes precedence" : "");
    value = value ? value : other;
    return check_type(r, value, JSON_OBJ, field, "an object") ? value : NULL;
}

/* The zone of this name; UTC if it is empty or, with a problem, unknown. */
static const struct tz *read_zone(struct reader *r, str name)
{
    const struct tz *zone;
    if (!name.n)
        return tz_utc();
    if (str_eqc(name, "Local"))
        add_problem(r, SCHEDULE_INVALID_TIMEZONE,
                    "timezone Local depends on the machine; want an IANA name; using UTC");
    else if (r->defaults.find_zone && r->defaults.find_zone(name, &zone, NULL) == 0)
        return zone;
    else
        add_problem(r, SCHEDULE_INVALID_TIMEZONE,
                    "timezone \"" STR_FMT
                    "\" is unknown; want an IANA name such as Europe/Berlin; using UTC",
                    STR_ARG(name));
    return tz_utc();
}

/* ---- one trigger */

/* startTime and endTime; false if the trigger cannot be used. 23:59:59 as an end is the end of the day. */
static bool read_times(struct reader *r, const struct json *object, struct schedule_trigger *t)
{
    static const char *const fields[] = { "startTime", "endTime" };
    int32_t seconds[2] = { 0 };
    bool good = true;
    for (int i = 0; i < 2; i++) {
        str text = read_text(r, object, fields[i]);
        if (schedule_lex_time(text, &seconds[i]) == 0)
            continue;
        add_problem(r, SCHEDULE_INVALID_TIME,
                    "%s \"" STR_FMT
                    "\" is not a time of day; want HH:MM:SS from 00:00:00 to 23:59:59",
                    fields[i], STR_ARG(text));
        good = false;
    }
    t->start_s = seconds[0];
    t->end_s = seconds[1] == CIVIL_DAY_S - 1 ? (int32_t)CIVIL_DAY_S : seconds[1];
    if (good && t->start_s == t->end_s) {
        add_problem(r, SCHEDULE_EMPTY_WINDOW,
                    "startTime and endTime are equal, so it is never active");
        good = false;
    }
    return good;
}

static uint8_t read_weekdays(struct reader *r, str list)
{
    uint8_t days = 0;
    str word;
    while (schedule_lex_next_word(&list, &word)) {
        int day;
        if (schedule_lex_weekday(word, &day) == 0)
            days = (uint8_t)(days | 1u << day);
        else
            add_problem(r, SCHEDULE_UNKNOWN_WEEKDAY,
                        "interval.recurring has \"" STR_FMT
                        "\", which is not a weekday; want SUN, M, TU, W, TH, F or SAT",
                        STR_ARG(word));
    }
    return days;
}

static bool read_date(struct reader *r, str text, const char *field, int32_t *day)
{
    if (!text.n || schedule_lex_date(text, day) == 0)
        return true;
    add_problem(r, SCHEDULE_INVALID_DATE,
                "interval.%s \"" STR_FMT "\" is not a date; want YYYY-MM-DD", field, STR_ARG(text));
    return false;
}

static int compare_days(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* An invalid date excludes nothing; the trigger itself stays in use. */
static void read_excluded(struct reader *r, const struct json *interval, struct schedule_trigger *t)
{
    const struct json *list = json_get(interval, "excludeDates");
    if (!check_type(r, list, JSON_ARR, "interval.excludeDates", "a list of dates"))
        return;
    int32_t *days = arena_array(r->a, list->n, sizeof(*days));
    for (uint32_t i = 0; i < list->n; i++) {
        str text = json_text(json_item(list, i));
        if (!text.n)
            text = S("(not text)");
        t->excluded_n += read_date(r, text, "excludeDates", &days[t->excluded_n]);
    }
    qsort(days, t->excluded_n, sizeof(*days), compare_days);
    t->excluded_days = days;
}

/* Weekdays and dates. Returns whether the trigger can be used, as far as its days are concerned. */
static enum schedule_use read_interval(struct reader *r, const struct json *interval,
                                       struct schedule_trigger *t)
{
    str recurring = read_text(r, interval, "recurring");
    str first = read_text(r, interval, "startDate"), last = read_text(r, interval, "endDate");
    if (recurring.n)
        t->weekdays = read_weekdays(r, recurring);
    if (recurring.n ? !t->weekdays : !first.n || !last.n) {
        add_problem(r, SCHEDULE_NO_INTERVAL,
                    "interval selects no day; set recurring (such as M,TU,W) or both startDate and "
                    "endDate");
        return SCHEDULE_NO_DAYS;
    }
    bool good = read_date(r, first, "startDate", &t->first_day);
    good = read_date(r, last, "endDate", &t->last_day) && good;
    if (good && t->first_day > t->last_day) {
        add_problem(r, SCHEDULE_INVALID_DATE,
                    "interval.startDate " STR_FMT " is after interval.endDate " STR_FMT,
                    STR_ARG(first), STR_ARG(last));
        good = false;
    }
    read_excluded(r, interval, t);
    return good ? SCHEDULE_USED : SCHEDULE_INVALID;
}

/* overnightDay, with a warning where leaving it out is probably a mistake. */
static void read_overnight(struct reader *r, const struct json *interval,
                           struct schedule_trigger *t)
{
    str choice = read_text(r, interval, "overnightDay");
    t->overnight = r->defaults.overnight;
    if (choice.n)
        t->overnight =
            (enum schedule_overnight)read_choice(r, interval, "overnightDay",
                                                 (const char *const[3]){ "Calendar", "Start" });
    bool split = t->end_s < t->start_s && t->weekdays && t->weekdays != 0x7f;
    if (split && !choice.n && t->overnight == SCHEDULE_CALENDAR)
        add_problem(
            r, SCHEDULE_OVERNIGHT_SPLIT,
            "the window crosses midnight and lists only some weekdays, so it is split into the early "
            "and the late part of each listed day; set interval.overnightDay to Calendar to "
            "confirm this, or to Start to keep each night whole");
}

/* Reads every field, even if an earlier one is invalid: all problems are reported at once. */
static void read_trigger(struct reader *r, const struct json *object, struct schedule_trigger *t)
{
    const struct json *interval = json_get(object, "interval");
    if (!check_type(r, interval, JSON_OBJ, "interval", "an object"))
        interval = NULL;
    t->priority = read_int(r, object, "priority", 0);
    str zone = read_text(r, object, "timezone");
    t->zone = read_zone(r, zone.n ? zone : read_text(r, interval, "timezone"));
    t->start = read_config(r, object, "startHPAConfig");
    t->end = read_config(r, object, "endHPAConfig");
    t->ramp_minutes =
        read_in_range(r, object, "rampMinutes", (struct range){ .least = 0, .most = 720 });
    bool times = read_times(r, object, t);
    t->use = read_interval(r, interval, t);
    if (!times)
        t->use = SCHEDULE_INVALID;
    else
        read_overnight(r, interval, t);
}

/* ---- the list */

/* SmartHPA keeps triggers by name, so the last one of a name wins. */
static bool has_later_duplicate(const struct json *list, size_t at, str name)
{
    for (size_t i = at + 1; i < json_len(list); i++)
        if (str_eq(json_text(json_get(json_item(list, i), "name")), name))
            return true;
    return false;
}

/* Reads every entry, usable or not: indexes must match the manifest. */
static void read_triggers(struct reader *r, const struct json *list)
{
    if (!check_type(r, list, JSON_ARR, "triggers", "a list"))
        return;
    struct schedule_spec *spec = r->spec;
    size_t n = MIN((size_t)list->n, (size_t)SCHEDULE_TRIGGERS_MAX);
    if (n < list->n)
        add_problem(r, SCHEDULE_INVALID_FIELD,
                    "triggers has %u entries; only the first %zu are used", list->n, n);
    spec->triggers = arena_array(r->a, n, sizeof(*spec->triggers));
    for (size_t i = 0; i < n; i++) {
        struct schedule_trigger *t = &spec->triggers[i];
        const struct json *object = json_item(list, i);
        str name = json_text(json_get(object, "name"));
        *t = (struct schedule_trigger){
            .name = name.n ? arena_str(r->a, name) : arena_printf(r->a, "trigger-%zu", i),
            .zone = tz_utc(),
            .first_day = INT32_MIN,
            .last_day = INT32_MAX,
        };
        spec->triggers_n = i + 1;
        r->trigger = (int)i;
        if (!check_type(r, object, JSON_OBJ, "the entry", "an object")) {
            t->use = SCHEDULE_INVALID;
        } else if (name.n && has_later_duplicate(list, i, name)) {
            t->use = SCHEDULE_DROPPED;
            add_problem(r, SCHEDULE_DUPLICATE_NAME,
                        "a later trigger has the same name and replaces it");
        } else if (read_bool(r, object, "suspend")) {
            t->use = SCHEDULE_SUSPENDED;
        } else {
            read_trigger(r, object, t);
        }
    }
    r->trigger = -1;
}

/* Warns if only some configs set a bound: its value then depends on which trigger came before. */
static void check_partial(struct reader *r)
{
    size_t configs = 0, with_min = 0, with_max = 0;
    for (size_t i = 0; i < r->spec->triggers_n; i++) {
        const struct schedule_trigger *t = &r->spec->triggers[i];
        const struct schedule_config *both[] = { &t->start, &t->end };
        for (int k = 0; k < 2; k++) {
            configs += !schedule_config_empty(both[k]);
            with_min += both[k]->has_min;
            with_max += both[k]->has_max;
        }
    }
    if ((with_min && with_min < configs) || (with_max && with_max < configs))
        add_problem(r, SCHEDULE_PARTIAL_CONFIG,
                    "%zu of %zu configs set minReplicas and %zu set maxReplicas; an unset bound "
                    "keeps the value of the trigger before",
                    with_min, configs, with_max);
}

/* ---- the rest of the object */

/* smartRecommendation, or aiScheduler (its other name) if the former is not enabled. */
static void read_advice(struct reader *r, const struct json *spec)
{
    const struct json *own = json_get(spec, "smartRecommendation"),
                      *ai = json_get(spec, "aiScheduler");
    struct schedule_advice *advice = &r->spec->advice;
    bool use_ai = !json_bool(json_get(own, "enabled"), false) && ai;
    const struct json *from = use_ai ? ai : own;
    if (!check_type(r, from, JSON_OBJ, use_ai ? "aiScheduler" : "smartRecommendation", "an object"))
        return;
    advice->enabled = read_bool(r, from, "enabled");
    advice->apply =
        read_choice(r, from, "mode", (const char *const[3]){ "Recommend", "Apply" }) == 1;
    advice->profile =
        (enum schedule_profile)read_choice(r, from, "profile",
                                           (const char *const[3]){ "safe", "balanced", "economy" });
    advice->frequency_minutes = read_in_range(r, from, "frequency", (struct range){ 5, 10080, 60 });
    if (use_ai)
        advice->frequency_minutes =
            60 * read_in_range(r, from, "analysisIntervalHours", (struct range){ 1, 168, 1 });
    advice->lookback_days = read_in_range(r, from, "lookbackDays", (struct range){ 7, 90, 28 });
    advice->lead_minutes = read_in_range(r, from, "leadMinutes", (struct range){ 0, 120, 10 });
    advice->query = read_text(r, from, "query");
    str zone = read_text(r, from, "timezone");
    if (!zone.n && r->spec->triggers_n)
        zone = tz_name(r->spec->triggers[0].zone);
    advice->zone = read_zone(r, zone);
}

/* Triggers come before the recommendation, whose zone defaults to that of the first trigger. */
struct schedule_spec *schedule_spec_read(struct arena *a, const struct json *spec,
                                         struct schedule_defaults defaults)
{
    struct reader r = { a, arena_new(a, struct schedule_spec), defaults, .trigger = -1 };
    struct schedule_spec *out = r.spec;
    const struct json *ref = read_aliased(&r, spec, "HPAObjectRef", "hpaObjectRef");
    out->hpa_namespace = read_text(&r, ref, "namespace");
    out->hpa_name = read_text(&r, ref, "name");
    out->template = read_aliased(&r, spec, "HPASpecTemplate", "hpaSpecTemplate");
    out->template_config = schedule_config_read(json_get(out->template, "spec"));
    out->suspend = read_bool(&r, spec, "suspend");
    out->default_config = read_config(&r, spec, "defaultHPAConfig");
    out->drift =
        (enum schedule_drift)read_choice(&r, spec, "driftPolicy",
                                         (const char *const[3]){ "Enforce", "OnTransition" });
    out->deletion =
        (enum schedule_deletion)read_choice(&r, spec, "deletionPolicy",
                                            (const char *const[3]){ "Retain", "Restore" });
    out->desired =
        (enum schedule_desired)read_choice(&r, spec, "desiredReplicasPolicy",
                                           (const char *const[3]){ "RaiseOnly", "Exact" });
    read_triggers(&r, json_get(spec, "triggers"));
    check_partial(&r);
    read_advice(&r, spec);
    return out;
}
