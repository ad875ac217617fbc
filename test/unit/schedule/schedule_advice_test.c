/* From history to what is published and applied. */
#include "base/civil.h"
#include "schedule/schedule_signal.h"
#include "tap.h"

#include <math.h>

enum { STEP_S = 300, DAYS = 28, SAMPLES = DAYS * 288 };

static const int64_t monday = 20458 * CIVIL_DAY_S; /* 2026-01-05 */

/* Office hours on weekdays, with a steep start at 09:00. */
static double office(int64_t at)
{
    int64_t day = civil_day_of(at);
    int hour = (int)((at - day * CIVIL_DAY_S) / 3600), weekday = civil_weekday(day);
    return weekday >= 1 && weekday <= 5 && hour >= 9 && hour < 17 ? 12 : 2;
}

static size_t record(struct schedule_sample *out, int days, double (*demand)(int64_t at))
{
    for (int i = 0; i < days * 288; i++) {
        int64_t at = monday + (int64_t)i * STEP_S;
        out[i] = (struct schedule_sample){ at, demand(at) };
    }
    return (size_t)days * 288;
}

static double flat(int64_t at)
{
    (void)at;
    return 5;
}

static struct schedule_sample samples[SAMPLES];

static struct schedule_advice_result advise(struct arena *a, size_t n)
{
    struct schedule_advice advice = { .enabled = true, .lead_minutes = 10, .zone = tz_utc() };
    struct schedule_history h = { samples, n, SCHEDULE_SIGNAL_DEMAND, monday + DAYS * CIVIL_DAY_S };
    return schedule_advise(a, &advice, &h);
}

static void a_pattern_is_published_with_its_backtest(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice_result advised = advise(&a, record(samples, DAYS, office));
    OK(!advised.reason && advised.good_enough);
    EQ_STR(json_text(json_get(json_item(advised.triggers, 0), "name")), S("ai-mtuwthf-0850-1700"));
    EQ_INT(json_int(json_get(json_item(advised.triggers, 0), "priority"), 0), -99);
    EQ_STR(json_text(json_get(advised.status, "computedAt")), S("2026-02-02T00:00:00Z"));
    EQ_STR(json_text(json_get(advised.status, "dataFrom")), S("2026-01-05T00:00:00Z"));
    EQ_STR(json_text(json_get(advised.status, "signal")), S("demand"));
    EQ_INT(json_int(json_get(advised.status, "samples"), 0), SAMPLES);
    const struct json *backtest = json_get(advised.status, "backtest");
    EQ_REAL(json_real(json_get(backtest, "underRatio"), -1), 0);
    OK(json_real(json_get(backtest, "underRatioWithout"), -1) > 0);
    EQ_REAL(json_real(json_get(backtest, "coverage"), -1), 1);
    EQ_REAL(json_real(json_get(backtest, "seasonalStrength"), -1), 1);
}

static void samples_that_were_not_requested_are_ignored(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice advice = { .enabled = true, .lead_minutes = 10, .zone = tz_utc() };
    size_t n = record(samples, DAYS, office);
    static const int64_t shifts[] = { -400, 40 };
    for (size_t i = 0; i < countof(shifts); i++) {
        int64_t now = monday + (DAYS - shifts[i]) * CIVIL_DAY_S;
        struct schedule_history h = { samples, n, SCHEDULE_SIGNAL_USER, now,
                                      now - DAYS * CIVIL_DAY_S };
        EQ_STR(schedule_advise(&a, &advice, &h).message,
               S("found 0 hours of history; need at least 72 hours on 7 different days"));
    }
}

/* Documented: a query of the user replaces all other signals. */
static void only_built_in_signals_have_a_next_one(void)
{
    OK(!schedule_signal_has_next(SCHEDULE_SIGNAL_USER));
    OK(schedule_signal_has_next(SCHEDULE_SIGNAL_DEMAND));
    OK(schedule_signal_has_next(SCHEDULE_SIGNAL_DESIRED));
    OK(!schedule_signal_has_next(SCHEDULE_SIGNAL_CURRENT));
}

static void too_little_is_said(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice_result advised = advise(&a, record(samples, 2, office));
    EQ_STR(str_c(advised.reason), S("InsufficientData"));
    EQ_STR(advised.message,
           S("found 48 hours of history; need at least 72 hours on 7 different days"));
    OK(!advised.status && !advised.triggers);
    EQ_STR(str_c(advise(&a, 0).reason), S("InsufficientData"));
    EQ_STR(str_c(advise(&a, record(samples, 6, office)).reason), S("InsufficientData"));
}

static void without_a_week_to_hold_back_nothing_is_applied(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice_result advised = advise(&a, record(samples, 10, office));
    OK(advised.status && !json_get(advised.status, "backtest") && !advised.good_enough);
}

static void a_flat_line_needs_no_trigger(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice_result advised = advise(&a, record(samples, DAYS, flat));
    EQ_INT(json_len(advised.triggers), 0);
    OK(!advised.good_enough); /* it does not help, so it is not applied */
}

static void queries_name_the_hpa(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice advice = { .query = S("sum(up)") };
    EQ_STR(schedule_signal_query(&a, SCHEDULE_SIGNAL_USER, &advice, S("n"), S("h")), S("sum(up)"));
    EQ_STR(schedule_signal_query(&a, SCHEDULE_SIGNAL_DESIRED, &advice, S("n"), S("h\"x")),
           S("kube_horizontalpodautoscaler_status_desired_replicas{namespace=\"n\","
             "horizontalpodautoscaler=\"h\\\"x\"}"));
    EQ_STR(schedule_signal_query(&a, SCHEDULE_SIGNAL_DEMAND, &advice, S("n"), S("h")),
           S("kube_horizontalpodautoscaler_status_current_replicas{namespace=\"n\","
             "horizontalpodautoscaler=\"h\"} * on(namespace,horizontalpodautoscaler) "
             "max by(namespace,horizontalpodautoscaler)("
             "kube_horizontalpodautoscaler_status_target_metric{namespace=\"n\","
             "horizontalpodautoscaler=\"h\"} / kube_horizontalpodautoscaler_spec_target_metric{"
             "namespace=\"n\",horizontalpodautoscaler=\"h\"})"));
}

static void manual_triggers_are_never_touched(void)
{
    auto_arena struct arena a = { 0 };
    struct json *now = NULL, *learned = NULL, *merged;
    err_t e;
    OK_CALL(json_parse(&a, S("[{\"name\":\"b\",\"x\":1},{\"name\":\"ai-old\"},{\"y\":2}]"), &now,
                       &e),
            &e);
    OK_CALL(json_parse(&a, S("[{\"name\":\"ai-new\"}]"), &learned, &e), &e);
    merged = schedule_advice_merge(&a, now, learned);
    EQ_STR(json_to_str(&a, merged),
           S("[{\"name\":\"b\",\"x\":1},{\"y\":2},{\"name\":\"ai-new\"}]"));
    OK(!schedule_advice_merge(&a, merged, learned));
}

/* Learning may raise maxReplicas, and does not lower it. */
static void room_for_peaks_is_kept(void)
{
    auto_arena struct arena a = { 0 };
    struct json *learned = NULL;
    OK(json_parse(
           &a,
           S("[{\"startHPAConfig\":{\"minReplicas\":2,\"maxReplicas\":5},\"endHPAConfig\":{\"maxReplicas\":50}}]"),
           &learned, NULL) == 0);
    schedule_advice_keep_max(&a, learned, 20);
    EQ_STR(json_to_str(&a, learned),
           S("[{\"startHPAConfig\":{\"minReplicas\":2,\"maxReplicas\":20},"
             "\"endHPAConfig\":{\"maxReplicas\":50}}]"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_pattern_is_published_with_its_backtest),
        TAP(samples_that_were_not_requested_are_ignored),
        TAP(only_built_in_signals_have_a_next_one),
        TAP(too_little_is_said),
        TAP(without_a_week_to_hold_back_nothing_is_applied),
        TAP(a_flat_line_needs_no_trigger),
        TAP(queries_name_the_hpa),
        TAP(manual_triggers_are_never_touched),
        TAP(room_for_peaks_is_kept),
        { 0 },
    });
}
