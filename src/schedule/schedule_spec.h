/* A SmartHorizontalPodAutoscaler as the core needs it: numbers instead of text, and a list of its problems.
 * Reading never fails. An invalid trigger is marked and the valid ones keep working; every problem is one
 * sentence that names the field, the value and what would be valid.
 *
 * Memory: the spec, its text and its problems live in the arena it was read into. `template` points into
 * the object it was read from. Zones live as long as the process. */
#ifndef FLYBALL_SCHEDULE_SPEC_H
#define FLYBALL_SCHEDULE_SPEC_H

#include "../base/tz.h"
#include "../json/json.h"
#include "schedule_calendar_core.h"
#include "schedule_cron_core.h"

/* An HPAConfig. An unset field keeps the live value. */
struct schedule_config {
    bool has_min, has_max, has_desired;
    int32_t min, max, desired;
};

static inline bool schedule_config_empty(const struct schedule_config *c)
{
    return !c->has_min && !c->has_max && !c->has_desired;
}

enum schedule_use {
    SCHEDULE_USED,
    SCHEDULE_DROPPED,   /* a later trigger has the same name */
    SCHEDULE_SUSPENDED, /* suspend: true */
    SCHEDULE_INVALID,   /* an invalid time or date, or an empty window */
    SCHEDULE_NO_DAYS,   /* neither weekdays nor a date range: never active */
};

/* The day whose filter applies to the hours after midnight of a window such as 22:00 to 06:00. */
enum schedule_overnight { SCHEDULE_CALENDAR, SCHEDULE_START };

struct schedule_trigger {
    str name; /* never empty: "trigger-<index>" if the manifest has none */
    enum schedule_use use;
    enum schedule_overnight overnight;
    int64_t priority;
    const struct tz *zone;
    int32_t start_s, end_s; /* seconds of the local day; end_s 86400 is the end of the day */
    const struct schedule_cron *cron;     /* schedule; NULL: start_s and end_s apply */
    const struct schedule_cron *cron_end; /* endSchedule; NULL: duration_s applies */
    int32_t duration_s;                   /* of a window that `cron` opens, on the wall clock */
    int32_t line_gap_s; /* longest pause between two times of `cron` on one day; 0: one time */
    uint8_t weekdays;   /* bit 0 is Sunday; 0: all weekdays */
    int32_t first_day, last_day;  /* days since 1970-01-01, inclusive; INT32_MIN/MAX: unlimited */
    const int32_t *excluded_days; /* ascending */
    size_t excluded_n;
    const int32_t *included_days; /* ascending; open on these days too, whatever their weekday */
    size_t included_n;
    const struct schedule_calendar *const *excluded_calendars, *const *included_calendars;
    size_t excluded_calendars_n, included_calendars_n;
    int32_t ramp_minutes;
    struct schedule_config start, end; /* applies inside the window; applies after it */
};

enum schedule_drift { SCHEDULE_ENFORCE, SCHEDULE_ON_TRANSITION };
enum schedule_deletion { SCHEDULE_RETAIN, SCHEDULE_RESTORE };
enum schedule_desired { SCHEDULE_RAISE_ONLY, SCHEDULE_EXACT };
enum schedule_profile { SCHEDULE_SAFE, SCHEDULE_BALANCED, SCHEDULE_ECONOMY };

/* smartRecommendation (or aiScheduler). */
struct schedule_advice {
    bool enabled, apply;  /* apply: mode Apply */
    bool forecast;        /* mode Forecast */
    bool allow_lower_max; /* applied windows may lower maxReplicas */
    enum schedule_profile profile;
    int32_t frequency_minutes, lookback_days, lead_minutes;
    str query; /* PromQL; "": the built-in queries */
    const struct tz *zone;
    str zone_name;
};

enum schedule_problem_kind {
    /* errors: SpecValid is False */
    SCHEDULE_INVALID_TIME,
    SCHEDULE_INVALID_CRON,
    SCHEDULE_INVALID_DATE,
    SCHEDULE_EMPTY_WINDOW,
    SCHEDULE_NO_INTERVAL,
    SCHEDULE_INVALID_TIMEZONE,
    SCHEDULE_UNKNOWN_WEEKDAY,
    SCHEDULE_DUPLICATE_NAME,
    SCHEDULE_MIN_ABOVE_MAX,
    SCHEDULE_INVALID_REPLICAS,
    SCHEDULE_INVALID_FIELD,
    SCHEDULE_UNKNOWN_CALENDAR,
    SCHEDULE_INVALID_CALENDAR,
    /* warnings */
    SCHEDULE_ALIAS_FIELD,
    SCHEDULE_OVERNIGHT_SPLIT,
    SCHEDULE_PARTIAL_CONFIG,
    SCHEDULE_UNUSED_FIELD,
    SCHEDULE_UNSEEN_CALENDAR,
    SCHEDULE_PROBLEM_N
};

struct schedule_problem {
    enum schedule_problem_kind kind;
    int trigger; /* index in the list, -1: the object */
    str text;
};

struct schedule_spec {
    str hpa_namespace, hpa_name;   /* HPAObjectRef; "": unset */
    str hpa_api_version, hpa_kind; /* of HPAObjectRef; "": a HorizontalPodAutoscaler */
    const struct json *template;   /* HPASpecTemplate; NULL: unset */
    bool suspend;
    int32_t spread_s; /* boundaries of schedules are spread over this time */
    int32_t
        shift_s; /* how much later than written the boundaries of this one are, below spread_s */
    enum schedule_drift drift;
    enum schedule_deletion deletion;
    enum schedule_desired desired;
    struct schedule_config default_config;  /* defaultHPAConfig */
    struct schedule_config template_config; /* the bounds of the template */
    struct schedule_advice advice;
    struct schedule_trigger *triggers;
    size_t triggers_n;
    struct schedule_problem *problems;
    size_t problems_n;
};

/* Finds a time zone by its IANA name: tz_get() outside tests. It is passed in because loading a zone
 * reads files, and parsing is pure. */
typedef int schedule_zone_fn(str name, const struct tz **ret, err_t *e);

/* Finds a calendar by name. It must outlive the spec. */
struct schedule_calendar_found {
    const struct schedule_calendar
        *calendar;   /* NULL: there is none, or none that could be read yet */
    const char *why; /* why it cannot be read; NULL: it does not exist */
};
typedef struct schedule_calendar_found schedule_find_calendar_fn(void *context, str name);

struct schedule_defaults {
    enum schedule_overnight overnight;        /* --smarthpa-overnight-day */
    schedule_zone_fn *find_zone;              /* NULL: no zone but UTC is known */
    schedule_find_calendar_fn *find_calendar; /* NULL: no calendar is known */
    bool calendars_off;                       /* the operator does not read calendars */
    void *calendars;                          /* context of find_calendar */
    bool calendars_incomplete; /* the cluster may have others: a missing one is only a warning */
    const struct schedule_calendar *const *default_calendars; /* excluded from every trigger */
    size_t default_calendars_n;
};

#define SCHEDULE_ADVICE_PREFIX "ai-" /* of the names of triggers that were learned */
#define SCHEDULE_CALENDAR_LABEL "flyball.io/calendar"

enum { SCHEDULE_TRIGGERS_MAX = 1000 }; /* per object; the rest is ignored and reported */

/* Reads the `.spec` of an object (NULL reads as an empty one). */
struct schedule_spec *schedule_spec_read(struct arena *a, const struct json *spec,
                                         struct schedule_defaults defaults);

/* Derives shift_s from the name of the object, so that it is the same in every process. */
void schedule_spec_set_name(struct schedule_spec *spec, str ns, str name);

struct schedule_config schedule_config_read(const struct json *config);
/* Copies the fields that are unset in `config` from another config. */
void schedule_config_fill(struct schedule_config *config, const struct schedule_config *from);
struct json *schedule_config_json(struct arena *a, const struct schedule_config *c);

bool schedule_problem_is_error(enum schedule_problem_kind kind);
const char *schedule_problem_reason(enum schedule_problem_kind kind); /* "InvalidTime", ... */

#endif
