/* What is wrong with a manifest, in which words, and that the good triggers stay. */
#include "schedule/schedule_spec.h"
#include "tap.h"
#include "json/yaml.h"

#define TRIGGER(fields) "{name: w, startTime: '09:00:00', endTime: '17:00:00', " fields "}"
#define DAYS "interval: {recurring: 'M,TU'}"

static struct schedule_spec *read_yaml(struct arena *a, const char *text)
{
    err_t e;
    struct json *spec;
    if (!OK_CALL(yaml_parse(a, str_c(text), &spec, &e), &e))
        exit(EXIT_FAILURE);
    return schedule_spec_read(a, spec, (struct schedule_defaults){ .find_zone = tz_get });
}

static void problems(void)
{
    static const struct {
        const char *spec, *reason, *sentence; /* reason NULL: nothing to complain about */
        enum schedule_use use;
    } cases[] = {
        { "triggers: [" TRIGGER(DAYS) "]", NULL, NULL, SCHEDULE_USED },
        { "triggers: [{name: w, startTime: '9am', endTime: '17:00:00', " DAYS "}]", "InvalidTime",
          "trigger w: startTime is \"9am\", but must be a time of day HH:MM or HH:MM:SS, up to 23:59:59, which as an end "
          "means the end of the day",
          SCHEDULE_INVALID },
        { "triggers: [{name: w, startTime: '09:00:00', endTime: '09:00:00', " DAYS "}]",
          "EmptyWindow", "trigger w: startTime and endTime are equal, so it is never active",
          SCHEDULE_INVALID },
        { "triggers: [" TRIGGER("interval: {recurring: 'M', startDate: '2026-02-30'}") "]",
          "InvalidDate",
          "trigger w: interval.startDate is \"2026-02-30\", but must be a date YYYY-MM-DD",
          SCHEDULE_INVALID },
        { "triggers: [" TRIGGER("interval: {startDate: '2026-03-02', endDate: '2026-03-01'}") "]",
          "InvalidDate",
          "trigger w: interval.startDate 2026-03-02 is after interval.endDate 2026-03-01",
          SCHEDULE_INVALID },
        { "triggers: [" TRIGGER("interval: {startDate: '2026-03-02'}") "]", "NoInterval",
          "trigger w: interval selects no day; set recurring (such as M,TU,W) or both startDate and "
          "endDate",
          SCHEDULE_NO_DAYS },
        { "triggers: [" TRIGGER("timezone: Mars/Base, " DAYS) "]", "InvalidTimezone",
          "trigger w: timezone is \"Mars/Base\", but must be an IANA name such as Europe/Berlin; using "
          "UTC",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER("timezone: Local, " DAYS) "]", "InvalidTimezone",
          "trigger w: timezone is Local, which depends on the machine, but must be an IANA name; using UTC",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER("interval: {recurring: 'M,T'}") "]", "UnknownWeekday",
          "trigger w: interval.recurring has \"T\", but days must be SUN, M, TU, W, TH, F or "
          "SAT",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER(DAYS) ", " TRIGGER(DAYS) "]", "DuplicateTriggerName",
          "trigger w: a later trigger has the same name and replaces it", SCHEDULE_DROPPED },
        { "triggers: [" TRIGGER(DAYS ", startHPAConfig: {minReplicas: 5, maxReplicas: 3}") "]",
          "MinAboveMax",
          "trigger w: startHPAConfig has minReplicas 5 above maxReplicas 3; it has no effect",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER(DAYS ", startHPAConfig: {minReplicas: -5, maxReplicas: 3}") "]",
          "InvalidReplicas", "trigger w: startHPAConfig.minReplicas is -5, but must be at least 0",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER(DAYS ", startHPAConfig: {minReplicas: '5', maxReplicas: 3}") "]",
          "InvalidReplicas",
          "trigger w: startHPAConfig.minReplicas is not a 32-bit integer; it is ignored",
          SCHEDULE_USED },
        { "triggers: [" TRIGGER(DAYS ", priority: high") "]", "InvalidField",
          "trigger w: priority has type string, but must be an integer", SCHEDULE_USED },
        { "triggers: [" TRIGGER(
              "interval: {recurring: 'M', excludeDates: ['2026-12-25', tomorrow]}") "]",
          "InvalidDate",
          "trigger w: interval.excludeDates is \"tomorrow\", but must be a date YYYY-MM-DD",
          SCHEDULE_USED },
        { "triggers: [text]", "InvalidField",
          "trigger trigger-0: the entry has type string, but must be an object", SCHEDULE_INVALID },
        { "{hpaObjectRef: {name: web}, triggers: [" TRIGGER(DAYS) "]}", "AliasField",
          "spec: hpaObjectRef is an alias of HPAObjectRef", SCHEDULE_USED },
        { "triggers: [{name: w, startTime: '22:00:00', endTime: '06:00:00', " DAYS "}]",
          "OvernightSplit", NULL, SCHEDULE_USED },
        { "triggers: [{name: w, startTime: '22:00:00', endTime: '06:00:00', interval: {recurring: M, "
          "overnightDay: Calendar}}]",
          NULL, NULL, SCHEDULE_USED },
        { "triggers: [" TRIGGER(DAYS ", startHPAConfig: {minReplicas: 5, maxReplicas: 9}, "
                                     "endHPAConfig: {minReplicas: 1}") "]",
          "PartialConfig", NULL, SCHEDULE_USED },
        { "triggers: [{name: w, suspend: true, startTime: broken}]", NULL, NULL,
          SCHEDULE_SUSPENDED },
        { "{driftPolicy: Sometimes, triggers: [" TRIGGER(DAYS) "]}", "InvalidField",
          "spec: driftPolicy is \"Sometimes\", but must be Enforce or OnTransition; using Enforce",
          SCHEDULE_USED },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        auto_arena struct arena a = { 0 };
        struct schedule_spec *spec = read_yaml(&a, cases[i].spec);
        EQ_INT(spec->triggers[0].use, cases[i].use);
        if (!EQ_INT(spec->problems_n, cases[i].reason ? 1 : 0) || !cases[i].reason)
            continue;
        EQ_STR(str_c(schedule_problem_reason(spec->problems[0].kind)), str_c(cases[i].reason));
        if (cases[i].sentence)
            EQ_STR(spec->problems[0].text, str_c(cases[i].sentence));
    }
}

static void a_bad_trigger_leaves_the_others(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        read_yaml(&a,
                  "triggers: [{name: bad, startTime: '9'}, 7, " TRIGGER(DAYS ", priority: -3") "]");
    EQ_INT(spec->triggers_n, 3);
    EQ_INT(spec->triggers[0].use, SCHEDULE_INVALID);
    EQ_INT(spec->triggers[1].use, SCHEDULE_INVALID);
    EQ_INT(spec->triggers[2].use, SCHEDULE_USED);
    EQ_INT(spec->triggers[2].priority, -3);
    EQ_INT(spec->triggers[2].weekdays, 1 << 1 | 1 << 2);
    EQ_INT(spec->triggers[2].start_s, 9 * 3600);
}

static void end_of_day_is_exclusive_midnight(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        read_yaml(&a, "triggers: [{startTime: '00:00:00', endTime: '23:59:59', " DAYS "}]");
    EQ_STR(spec->triggers[0].name, S("trigger-0"));
    EQ_INT(spec->triggers[0].end_s, 86400);
}

static void capitalised_names_win_over_aliases(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        read_yaml(&a, "{HPAObjectRef: {name: one, namespace: team}, hpaObjectRef: {name: two}}");
    EQ_STR(spec->hpa_name, S("one"));
    EQ_STR(spec->hpa_namespace, S("team"));
    EQ_INT(spec->problems_n, 1);
}

static void extensions_have_the_original_behaviour_as_default(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        schedule_spec_read(&a, NULL, (struct schedule_defaults){ .find_zone = tz_get });
    EQ_INT(spec->triggers_n + spec->problems_n, 0);
    OK(!spec->suspend && spec->drift == SCHEDULE_ENFORCE && spec->deletion == SCHEDULE_RETAIN);
    OK(!spec->advice.enabled && schedule_config_empty(&spec->default_config));
    spec = read_yaml(&a, "{suspend: true, driftPolicy: OnTransition, deletionPolicy: Restore, "
                         "desiredReplicasPolicy: Exact, defaultHPAConfig: {minReplicas: 2}, "
                         "smartRecommendation: {enabled: true, frequency: 30, mode: Apply, "
                         "profile: economy, timezone: Europe/Berlin}}");
    OK(spec->suspend && spec->drift == SCHEDULE_ON_TRANSITION &&
       spec->deletion == SCHEDULE_RESTORE);
    OK(spec->desired == SCHEDULE_EXACT && spec->default_config.has_min &&
       spec->default_config.min == 2);
    OK(spec->advice.enabled && spec->advice.apply && spec->advice.profile == SCHEDULE_ECONOMY);
    EQ_INT(spec->advice.frequency_minutes, 30);
    EQ_INT(spec->advice.lookback_days, 28);
    EQ_STR(tz_name(spec->advice.zone), S("Europe/Berlin"));
    spec =
        read_yaml(&a, "aiScheduler: {enabled: true, analysisIntervalHours: 6, lookbackDays: 14}");
    OK(spec->advice.enabled && !spec->advice.apply);
    EQ_INT(spec->advice.frequency_minutes, 360);
    EQ_INT(spec->advice.lookback_days, 14);
}

/* Fields of the design that have no effect are named; nothing is accepted silently. */
static void unused_fields_are_named(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec =
        read_yaml(&a, "aiScheduler: {enabled: true, deviationCheckIntervalMinutes: 5, "
                      "deviationThresholdPercent: 20, peakMultiplierPercent: 150, "
                      "weekdayWeekendSplitThresholdPercent: 20, minDataPointsRequired: 72}");
    EQ_INT(spec->problems_n, 5);
    for (size_t i = 0; i < spec->problems_n; i++)
        OK(spec->problems[i].kind == SCHEDULE_UNUSED_FIELD &&
           !schedule_problem_is_error(spec->problems[i].kind) &&
           str_find(spec->problems[i].text, S("has no effect")) != SIZE_MAX);
    spec = read_yaml(&a, "{smartRecommendation: {enabled: true}, aiScheduler: {enabled: true}}");
    EQ_INT(spec->problems_n, 1);
}

/* "0 9 30 2 *" is well-formed and never fires; February 29 does. */
static void lines_that_never_match(void)
{
    static const struct {
        const char *line;
        bool fires;
    } lines[] = { { "0 9 30 2 *", false },  { "0 9 31 4,6,9,11 *", false }, { "0 9 29 2 *", true },
                  { "0 9 30 2 MON", true }, { "0 9 30 * *", true },         { "0 9 * 2 *", true },
                  { "0 9 */30 2 *", true } };
    for (size_t i = 0; i < countof(lines); i++) {
        auto_arena struct arena a = { 0 };
        struct json *tree = NULL;
        str text = arena_printf(
            &a, "{\"triggers\":[{\"name\":\"t\",\"schedule\":\"%s\",\"duration\":\"8h\"}]}",
            lines[i].line);
        OK(json_parse(&a, text, &tree, NULL) == 0);
        struct schedule_spec *spec =
            schedule_spec_read(&a, tree, (struct schedule_defaults){ .find_zone = tz_get });
        EQ_INT(spec->triggers[0].use == SCHEDULE_USED, lines[i].fires);
        EQ_INT(spec->problems_n, !lines[i].fires);
        if (spec->problems_n)
            EQ_STR(str_c(schedule_problem_reason(spec->problems[0].kind)), S("InvalidCron"));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(problems),
        TAP(a_bad_trigger_leaves_the_others),
        TAP(end_of_day_is_exclusive_midnight),
        TAP(capitalised_names_win_over_aliases),
        TAP(extensions_have_the_original_behaviour_as_default),
        TAP(lines_that_never_match),
        TAP(unused_fields_are_named),
        { 0 },
    });
}
