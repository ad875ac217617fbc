/* Reading fields of a manifest and collecting problems; see schedule_reader_spec.h.
 *
 * Every function returns a usable value: a field that is unset, of the wrong type or out of range has its
 * default, and the problem is recorded with the trigger that it belongs to. So a schedule is always read to its
 * end, and all of its problems are reported at once.
 *
 * An error makes what it concerns ineffective; a warning only points out what is probably a mistake
 * (problem_kinds). Problems grow in the arena by doubling: their number is not known in advance, and the arena
 * frees all copies together. */
#include "schedule_reader_spec.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *reason;
    bool error;
} problem_kinds[SCHEDULE_PROBLEM_N] = {
    [SCHEDULE_INVALID_TIME] = { "InvalidTime", true },
    [SCHEDULE_INVALID_CRON] = { "InvalidCron", true },
    [SCHEDULE_INVALID_DATE] = { "InvalidDate", true },
    [SCHEDULE_EMPTY_WINDOW] = { "EmptyWindow", true },
    [SCHEDULE_NO_INTERVAL] = { "NoInterval", true },
    [SCHEDULE_INVALID_TIMEZONE] = { "InvalidTimezone", true },
    [SCHEDULE_UNKNOWN_WEEKDAY] = { "UnknownWeekday", true },
    [SCHEDULE_DUPLICATE_NAME] = { "DuplicateTriggerName", true },
    [SCHEDULE_MIN_ABOVE_MAX] = { "MinAboveMax", true },
    [SCHEDULE_INVALID_REPLICAS] = { "InvalidReplicas", true },
    [SCHEDULE_INVALID_FIELD] = { "InvalidField", true },
    [SCHEDULE_UNKNOWN_CALENDAR] = { "UnknownCalendar", true },
    [SCHEDULE_INVALID_CALENDAR] = { "InvalidCalendar", true },
    [SCHEDULE_ALIAS_FIELD] = { "AliasField", false },
    [SCHEDULE_OVERNIGHT_SPLIT] = { "OvernightSplit", false },
    [SCHEDULE_PARTIAL_CONFIG] = { "PartialConfig", false },
    [SCHEDULE_UNUSED_FIELD] = { "UnusedField", false },
    [SCHEDULE_UNSEEN_CALENDAR] = { "UnseenCalendar", false },
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
void schedule_add_problem(struct schedule_reader *r, enum schedule_problem_kind kind,
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
bool schedule_check_type(struct schedule_reader *r, const struct json *value, enum json_type type,
                         const char *field, const char *wanted)
{
    if (!value || value->type == JSON_NULL)
        return false;
    if (value->type == type)
        return true;
    schedule_add_problem(r, SCHEDULE_INVALID_FIELD, "%s has type %s, but must be %s", field,
                         json_type_name(value), wanted);
    return false;
}

/* ---- fields */

str schedule_read_text(struct schedule_reader *r, const struct json *object, const char *field)
{
    const struct json *value = json_get(object, field);
    return schedule_check_type(r, value, JSON_STR, field, "text")
               ? arena_str(r->a, json_text(value))
               : S("");
}

bool schedule_read_bool(struct schedule_reader *r, const struct json *object, const char *field)
{
    const struct json *value = json_get(object, field);
    return schedule_check_type(r, value, JSON_BOOL, field, "true or false") && value->boolean;
}

int64_t schedule_read_int(struct schedule_reader *r, const struct json *object, const char *field,
                          int64_t otherwise)
{
    const struct json *value = json_get(object, field);
    return schedule_check_type(r, value, JSON_INT, field, "an integer") ? value->integer
                                                                        : otherwise;
}

/* An integer in the range; its default if unset or, with a problem, if outside. */
int32_t schedule_read_in_range(struct schedule_reader *r, const struct json *object,
                               const char *field, struct schedule_range range)
{
    int64_t value = schedule_read_int(r, object, field, range.otherwise);
    if (value >= range.least && value <= range.most)
        return (int32_t)value;
    schedule_add_problem(r, SCHEDULE_INVALID_FIELD, "%s is %lld, but must be %d to %d; using %d",
                         field, (long long)value, range.least, range.most, range.otherwise);
    return range.otherwise;
}

/* The index of one of up to three words; the first is the default, also for an unknown word. */
int schedule_read_choice(struct schedule_reader *r, const struct json *object, const char *field,
                         const char *const words[3])
{
    str text = schedule_read_text(r, object, field);
    if (!text.n)
        return 0;
    for (int i = 0; i < 3 && words[i]; i++)
        if (str_eqc(text, words[i]))
            return i;
    schedule_add_problem(r, SCHEDULE_INVALID_FIELD,
                         "%s is \"" STR_FMT "\", but must be %s%s%s%s%s; using %s", field,
                         STR_ARG(text), words[0], words[2] ? ", " : " or ", words[1],
                         words[2] ? " or " : "", words[2] ? words[2] : "", words[0]);
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

/* Sets what is unset from a less specific configuration. */
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

static void check_replicas(struct schedule_reader *r, const struct json *config, const char *where,
                           const char *field, int least)
{
    const struct json *value = json_get(config, field);
    if (!value || value->type == JSON_NULL)
        return;
    if (!fits_replicas(value))
        schedule_add_problem(r, SCHEDULE_INVALID_REPLICAS,
                             "%s.%s is not a 32-bit integer; it is ignored", where, field);
    else if (value->integer < least)
        schedule_add_problem(r, SCHEDULE_INVALID_REPLICAS, "%s.%s is %lld, but must be at least %d",
                             where, field, (long long)value->integer, least);
}

/* Reads a config and reports values that no HPA accepts. */
struct schedule_config schedule_read_config(struct schedule_reader *r, const struct json *object,
                                            const char *field)
{
    const struct json *value = json_get(object, field);
    if (!schedule_check_type(r, value, JSON_OBJ, field,
                             "an object with minReplicas and maxReplicas"))
        return (struct schedule_config){ 0 };
    struct schedule_config config = schedule_config_read(value);
    check_replicas(r, value, field, "minReplicas", 0);
    check_replicas(r, value, field, "maxReplicas", 1);
    check_replicas(r, value, field, "desiredReplicas", 0);
    if (config.has_min && config.has_max && config.min > config.max)
        schedule_add_problem(r, SCHEDULE_MIN_ABOVE_MAX,
                             "%s has minReplicas %d above maxReplicas %d; it has no effect", field,
                             config.min, config.max);
    return config;
}

/* The zone of this name; UTC if it is empty or, with a problem, unknown. */
const struct tz *schedule_read_zone(struct schedule_reader *r, str name)
{
    const struct tz *zone;
    if (!name.n)
        return tz_utc();
    if (str_eqc(name, "Local"))
        schedule_add_problem(
            r, SCHEDULE_INVALID_TIMEZONE,
            "timezone is Local, which depends on the machine, but must be an IANA name; using UTC");
    else if (r->defaults.find_zone && r->defaults.find_zone(name, &zone, NULL) == 0)
        return zone;
    else
        schedule_add_problem(r, SCHEDULE_INVALID_TIMEZONE,
                             "timezone is \"" STR_FMT
                             "\", but must be an IANA name such as Europe/Berlin; using UTC",
                             STR_ARG(name));
    return tz_utc();
}
