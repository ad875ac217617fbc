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
#include "../base/clock.h"
#include "../base/duration.h"
#include "schedule_reader_spec.h"

/* The object under the CRD's field name, or under the alias that SmartHPA's documentation uses. */
static const struct json *read_aliased(struct schedule_reader *r, const struct json *spec,
                                       const char *field, const char *alias)
{
    const struct json *value = json_get(spec, field), *other = json_get(spec, alias);
    if (other)
        schedule_add_problem(r, SCHEDULE_ALIAS_FIELD, "%s is an alias of %s%s", alias, field,
                             value ? ", which is set too and takes precedence" : "");
    value = value ? value : other;
    return schedule_check_type(r, value, JSON_OBJ, field, "an object") ? value : NULL;
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
static void read_triggers(struct schedule_reader *r, const struct json *list)
{
    if (!schedule_check_type(r, list, JSON_ARR, "triggers", "a list"))
        return;
    struct schedule_spec *spec = r->spec;
    size_t n = MIN((size_t)list->n, (size_t)SCHEDULE_TRIGGERS_MAX);
    if (n < list->n)
        schedule_add_problem(r, SCHEDULE_INVALID_FIELD,
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
        if (!schedule_check_type(r, object, JSON_OBJ, "the entry", "an object")) {
            t->use = SCHEDULE_INVALID;
        } else if (name.n && has_later_duplicate(list, i, name)) {
            t->use = SCHEDULE_DROPPED;
            schedule_add_problem(r, SCHEDULE_DUPLICATE_NAME,
                                 "a later trigger has the same name and replaces it");
        } else if (schedule_read_bool(r, object, "suspend")) {
            t->use = SCHEDULE_SUSPENDED;
        } else {
            schedule_read_trigger(r, object, t);
        }
    }
    r->trigger = -1;
}

/* Warns if only some configs set a bound: its value then depends on which trigger came before. */
static void check_partial(struct schedule_reader *r)
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
        schedule_add_problem(
            r, SCHEDULE_PARTIAL_CONFIG,
            "%zu of %zu configs set minReplicas and %zu set maxReplicas; an unset bound "
            "keeps the value of the trigger before",
            with_min, configs, with_max);
}

/* ---- the rest of the object */

/* Settings of SmartHPA's design that this implementation has no use for. Nothing is accepted silently. */
static void check_unused(struct schedule_reader *r, const struct json *ai, bool use_ai)
{
    static const struct {
        const char *field, *why;
    } unused[] = {
        { "deviationCheckIntervalMinutes", "the analysis runs every analysisIntervalHours" },
        { "deviationThresholdPercent", "every analysis replaces the learned windows" },
        { "peakMultiplierPercent",
          "windows follow from the cost of too few replicas; see profile" },
        { "weekdayWeekendSplitThresholdPercent",
          "weekdays are grouped by the likeness of their profiles" },
        { "minDataPointsRequired", "an analysis needs 72 hourly points and 7 days" },
    };
    if (!json_is(ai, JSON_OBJ))
        return;
    if (!use_ai) {
        schedule_add_problem(r, SCHEDULE_UNUSED_FIELD,
                             "aiScheduler has no effect while smartRecommendation is enabled");
        return;
    }
    for (size_t i = 0; i < countof(unused); i++)
        if (json_get(ai, unused[i].field))
            schedule_add_problem(r, SCHEDULE_UNUSED_FIELD, "aiScheduler.%s has no effect: %s",
                                 unused[i].field, unused[i].why);
}

/* smartRecommendation, or aiScheduler (its other name) if the former is not enabled. */
static void read_advice(struct schedule_reader *r, const struct json *spec)
{
    const struct json *own = json_get(spec, "smartRecommendation"),
                      *ai = json_get(spec, "aiScheduler");
    struct schedule_advice *advice = &r->spec->advice;
    bool use_ai = !json_bool(json_get(own, "enabled"), false) && ai;
    const struct json *from = use_ai ? ai : own;
    check_unused(r, ai, use_ai);
    if (!schedule_check_type(r, from, JSON_OBJ, use_ai ? "aiScheduler" : "smartRecommendation",
                             "an object"))
        return;
    advice->enabled = schedule_read_bool(r, from, "enabled");
    int mode = schedule_read_choice(r, from, "mode",
                                    (const char *const[3]){ "Recommend", "Apply", "Forecast" });
    advice->apply = mode == 1;
    advice->forecast = mode == 2;
    advice->allow_lower_max = schedule_read_bool(r, from, "allowLowerMax");
    advice->profile = (enum schedule_profile)schedule_read_choice(
        r, from, "profile", (const char *const[3]){ "safe", "balanced", "economy" });
    advice->frequency_minutes =
        schedule_read_in_range(r, from, "frequency", (struct schedule_range){ 5, 10080, 60 });
    if (use_ai)
        advice->frequency_minutes =
            60 * schedule_read_in_range(r, from, "analysisIntervalHours",
                                        (struct schedule_range){ 1, 168, 1 });
    advice->lookback_days =
        schedule_read_in_range(r, from, "lookbackDays", (struct schedule_range){ 7, 90, 28 });
    advice->lead_minutes =
        schedule_read_in_range(r, from, "leadMinutes", (struct schedule_range){ 0, 120, 10 });
    advice->query = schedule_read_text(r, from, "query");
    str zone = schedule_read_text(r, from, "timezone");
    if (!zone.n && r->spec->triggers_n)
        zone = tz_name(r->spec->triggers[0].zone);
    advice->zone = schedule_read_zone(r, zone);
}

/* spread: "10m", at most a day; 0 if unset. */
static int32_t read_spread(struct schedule_reader *r, const struct json *spec)
{
    str text = schedule_read_text(r, spec, "spread");
    int64_t ns = 0;
    err_t e;
    if (!text.n)
        return 0;
    if (duration_parse(text, &ns, &e) == 0 && ns >= 0 && ns <= CIVIL_DAY_S * NS_PER_S)
        return (int32_t)(ns / NS_PER_S);
    schedule_add_problem(r, SCHEDULE_INVALID_FIELD,
                         "spread is \"" STR_FMT "\", but must be 0s to 24h, such as 10m; using 0",
                         STR_ARG(text));
    return 0;
}

void schedule_spec_set_name(struct schedule_spec *spec, str ns, str name)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    str parts[] = { ns, S("/"), name };
    for (size_t i = 0; i < countof(parts); i++)
        for (size_t k = 0; k < parts[i].n; k++)
            hash = (hash ^ (unsigned char)parts[i].p[k]) * UINT64_C(1099511628211);
    hash ^= hash >> 32; /* the low bits of similar names are too much alike */
    spec->shift_s = spec->spread_s ? (int32_t)(hash % (uint64_t)spec->spread_s) : 0;
}

/* Triggers come before the recommendation, whose zone defaults to that of the first trigger. */
struct schedule_spec *schedule_spec_read(struct arena *a, const struct json *spec,
                                         struct schedule_defaults defaults)
{
    struct schedule_reader r = { a, arena_new(a, struct schedule_spec), defaults, .trigger = -1 };
    struct schedule_spec *out = r.spec;
    const struct json *ref = read_aliased(&r, spec, "HPAObjectRef", "hpaObjectRef");
    out->hpa_namespace = schedule_read_text(&r, ref, "namespace");
    out->hpa_name = schedule_read_text(&r, ref, "name");
    out->hpa_api_version = schedule_read_text(&r, ref, "apiVersion");
    out->hpa_kind = schedule_read_text(&r, ref, "kind");
    out->template = read_aliased(&r, spec, "HPASpecTemplate", "hpaSpecTemplate");
    out->template_config = schedule_config_read(json_get(out->template, "spec"));
    out->suspend = schedule_read_bool(&r, spec, "suspend");
    out->spread_s = read_spread(&r, spec);
    out->default_config = schedule_read_config(&r, spec, "defaultHPAConfig");
    out->drift = (enum schedule_drift)schedule_read_choice(&r, spec, "driftPolicy",
                                                           (const char *const[3]){
                                                               "Enforce", "OnTransition" });
    out->deletion =
        (enum schedule_deletion)schedule_read_choice(&r, spec, "deletionPolicy",
                                                     (const char *const[3]){ "Retain", "Restore" });
    out->desired =
        (enum schedule_desired)schedule_read_choice(&r, spec, "desiredReplicasPolicy",
                                                    (const char *const[3]){ "RaiseOnly", "Exact" });
    read_triggers(&r, json_get(spec, "triggers"));
    check_partial(&r);
    read_advice(&r, spec);
    return out;
}
