/* Mode Forecast: the floor of the model, its published form, and what a plan makes of it. */
#include "base/civil.h"
#include "base/random.h"
#include "base/rfc3339.h"
#include "schedule/schedule_advice_core.h"
#include "schedule/schedule_forecast_core.h"
#include "schedule/schedule_status_core.h"
#include "schedule_world.h"
#include "tap.h"
#include "json/yaml.h"

#include <math.h>

#define FORECAST "smartRecommendation: {enabled: true, mode: Forecast}\n"
#define DAY                                                                                        \
    "HPAObjectRef: {name: web}\n" FORECAST "triggers:\n"                                           \
    "- {name: day, interval: {recurring: 'M,TU,W,TH,F'}, startTime: '09:00', endTime: '17:00',\n"  \
    "   startHPAConfig: {minReplicas: 8, maxReplicas: 20},\n"                                      \
    "   endHPAConfig: {minReplicas: 2, maxReplicas: 5}}\n"
#define BARE "HPAObjectRef: {name: web}\n" FORECAST

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

/* ---- the model */

/* Twelve replicas from 09:00 to 17:00 UTC on weekdays, otherwise two. */
static double office(int64_t t)
{
    int64_t day = civil_day_of(t);
    int hour = (int)((t - day * CIVIL_DAY_S) / 3600), weekday = civil_weekday(day);
    return weekday >= 1 && weekday <= 5 && hour >= 9 && hour < 17 ? 12 : 2;
}

enum { DAYS = 28, SAMPLES = DAYS * 288 };
static struct schedule_sample samples[SAMPLES];

static size_t record_days(int days)
{
    for (int i = 0; i < days * 288; i++) {
        int64_t t = at("2026-06-01T00:00:00Z") - (days * 288 - i) * INT64_C(300); /* to a Monday */
        samples[i] = (struct schedule_sample){ t, office(t) };
    }
    return (size_t)days * 288;
}

static struct schedule_advice_result advise(struct arena *a, int days, const struct tz *zone)
{
    struct schedule_advice advice = {
        .enabled = true, .forecast = true, .frequency_minutes = 60, .zone = zone
    };
    struct schedule_history h = { samples, record_days(days), SCHEDULE_SIGNAL_DEMAND,
                                  at("2026-06-01T00:00:00Z") };
    return schedule_advise(a, &advice, &h);
}

static int32_t floor_at(const struct json *status, const char *time)
{
    return schedule_forecast_read(json_get(status, "forecast"), at(time)).floor;
}

static void the_floor_is_that_of_the_next_hour(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice_result r = advise(&a, DAYS, tz_utc());
    OK(!r.reason && r.good_enough);
    EQ_INT(floor_at(r.status, "2026-06-01T00:00:00Z"), 2);
    EQ_INT(floor_at(r.status, "2026-06-01T07:59:59Z"), 2);
    EQ_INT(floor_at(r.status, "2026-06-01T08:00:00Z"), 2); /* [08:00, 09:00) */
    EQ_INT(floor_at(r.status, "2026-06-01T08:30:00Z"), 12);
    EQ_INT(floor_at(r.status, "2026-06-01T16:59:59Z"), 12);
    EQ_INT(floor_at(r.status, "2026-06-01T17:00:00Z"), 2);
    const struct json *forecast = json_get(r.status, "forecast");
    EQ_STR(json_text(json_get(forecast, "validUntil")), S("2026-06-02T01:00:00Z"));
    EQ_INT(json_len(json_get(forecast, "floors")), 3); /* equal neighbors are one step */
    EQ_INT(schedule_forecast_read(forecast, at("2026-06-01T03:00:00Z")).next,
           at("2026-06-01T08:30:00Z"));
    OK(json_real(json_at(r.status, "backtest", "underRatio", NULL), 1) <
       json_real(json_at(r.status, "backtest", "underRatioWithout", NULL), 0));
}

static void it_follows_the_local_clock(void)
{
    auto_arena struct arena a = { 0 };
    const struct tz *zone = NULL;
    err_t e;
    OK_CALL(tz_get(S("Asia/Kathmandu"), &zone, &e),
            &e); /* UTC+05:45: slots begin at :15 and :45 UTC */
    struct schedule_advice_result r = advise(&a, DAYS, zone);
    const struct json *floors = json_at(r.status, "forecast", "floors", NULL);
    OK(json_len(floors) > 1);
    for (size_t i = 1; i < json_len(floors); i++)
        EQ_INT(at(json_text(json_get(json_item(floors, i), "from")).p) % 1800, 900);
}

static void little_history_gives_none(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(str_c(advise(&a, 5, tz_utc()).reason), S("InsufficientData"));
    struct schedule_advice_result r = advise(&a, 9, tz_utc());
    OK(!r.reason && !r.good_enough && !json_get(r.status, "backtest"));
}

/* Data that ended long ago does not predict the next hour. */
static void history_that_ended_gives_none(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_advice advice = {
        .enabled = true, .forecast = true, .frequency_minutes = 60, .zone = tz_utc()
    };
    struct schedule_history h = { samples, record_days(DAYS), SCHEDULE_SIGNAL_DEMAND,
                                  at("2026-06-01T23:00:00Z") };
    OK(!schedule_advise(&a, &advice, &h).reason);
    h.now = at("2026-06-02T01:00:00Z");
    struct schedule_advice_result r = schedule_advise(&a, &advice, &h);
    EQ_STR(str_c(r.reason), S("InsufficientData"));
    EQ_STR(r.message, S("the history ends at 2026-05-31T23:55:00Z; mode Forecast needs data of the "
                        "last 24 hours"));
    for (int i = SAMPLES - 300; i < SAMPLES; i++)
        samples[i].value = NAN; /* is no data */
    h.now = at("2026-06-01T00:00:00Z");
    EQ_STR(str_c(schedule_advise(&a, &advice, &h).reason), S("InsufficientData"));
    advice.forecast = false; /* windows still can be learned */
    OK(!schedule_advise(&a, &advice, &h).reason);
}

static void a_weekday_without_data_is_unknown(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_recommendation r = { .base_min = 1 };
    EQ_INT(schedule_forecast_floor(&r, tz_utc(), at("2026-06-01T10:00:00Z")), 0);
    r.floors[2][0] = 7; /* Tuesday 00:00 */
    EQ_INT(schedule_forecast_floor(&r, tz_utc(), at("2026-06-01T22:59:59Z")), 0);
    EQ_INT(schedule_forecast_floor(&r, tz_utc(), at("2026-06-01T23:00:01Z")), 7);
}

/* A status can be edited by any client that may write it. */
static void a_strange_status_gives_no_floor(void)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{validUntil: x, floors: [{from: '2026-06-01T00:00:00Z', minReplicas: 4}]}",
        "{validUntil: '2026-06-02T00:00:00Z', floors: 7}",
        "{validUntil: '2026-06-02T00:00:00Z', floors: [1, {}, {from: 3}, {minReplicas: 9}]}",
        "{validUntil: '2026-06-02T00:00:00Z', floors: [{from: '2026-06-01T00:00:00Z', minReplicas: -4}]}",
        "{validUntil: '2036-06-02T00:00:00Z', floors: [{from: '2026-06-01T00:00:00Z', minReplicas: 4}]}",
        "{validUntil: '2026-06-01T00:00:00Z', floors: [{from: '2026-06-01T00:00:00Z', minReplicas: 4}]}",
        "{validUntil: '2026-06-02T00:00:00Z', floors: [{from: '2026-06-01T13:00:00Z', minReplicas: 4}]}",
    };
    for (size_t i = 0; i < countof(texts); i++) {
        auto_arena struct arena a = { 0 };
        struct json *tree = NULL;
        err_t e;
        OK_CALL(yaml_parse(&a, str_c(texts[i]), &tree, &e), &e);
        EQ_INT(schedule_forecast_read(tree, at("2026-06-01T12:00:00Z")).floor, 0);
    }
}

/* ---- the plan */

/* A status with one floor from 00:00 to 24:00 of that Wednesday, and another one from `from2` on. */
static void publish(struct schedule_world *w, int floor, const char *from2, int floor2, bool good)
{
    auto_buf struct buf text = { 0 };
    struct json *tree = NULL;
    err_t e;
    buf_printf(&text,
               "{backtest: {goodEnough: %s, underRatio: 0.01, underRatioWithout: 0.05, "
               "seasonalStrength: 0.8}, forecast: {validUntil: '2026-06-04T00:00:00Z', floors: "
               "[{from: '2026-06-03T00:00:00Z', minReplicas: %d}, {from: '%s', minReplicas: %d}]}}",
               good ? "true" : "false", floor, from2, floor2);
    OK_CALL(yaml_parse(&w->arena, buf_str(&text), &tree, &e), &e);
    w->status = w->status ? w->status : json_new_obj(&w->arena);
    json_set(&w->arena, w->status, S("recommendation"), tree);
}

static struct schedule_world world_new(const char *yaml, const char *now)
{
    struct schedule_world w = {
        .hpa = { .found = true, .bounds = { 2, 9 }, .replicas = 3, .has_target = true },
        .workload = 3
    };
    err_t e;
    w.created = at("2026-06-03T08:00:00Z");
    w.now = at(now);
    OK_CALL(yaml_parse(&w.arena, str_c(yaml), &w.spec, &e), &e);
    w.generation = 1;
    return w;
}
#define auto_world __attribute__((cleanup(schedule_world_done)))

static void pass_at(struct schedule_world *w, const char *now)
{
    w->now = at(now);
    schedule_world_pass(w);
}

static void has_bounds(const struct schedule_world *w, int32_t min, int32_t max)
{
    EQ_INT(w->hpa.bounds.min, min);
    EQ_INT(w->hpa.bounds.max, max);
}

static void is_forecast(const struct schedule_world *w, const char *status, const char *reason)
{
    const struct json *c = schedule_condition_find(w->status, "Forecast");
    EQ_STR(json_text(json_get(c, "status")), str_c(status));
    EQ_STR(json_text(json_get(c, "reason")), str_c(reason));
}

static void a_floor_raises_a_window_and_never_lowers_it(void)
{
    auto_world struct schedule_world w = world_new(DAY, "2026-06-03T10:00:00Z");
    publish(&w, 13, "2026-06-03T12:00:00Z", 4, true);
    schedule_world_pass(&w);
    has_bounds(&w, 13, 20);
    is_forecast(&w, "True", "Forecasting");
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9,\"own\":8,\"floor\":13}"));
    pass_at(&w, "2026-06-03T11:59:00Z");
    EQ_INT(w.wake, at("2026-06-03T12:00:00Z"));
    EQ_INT(w.hpa_writes, 1);
    pass_at(&w, "2026-06-03T12:00:00Z"); /* the window's own 8 is more than 4 */
    has_bounds(&w, 8, 20);
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9}"));
    EQ_INT(w.memory.next, 0); /* our own floor is not drift */
    pass_at(&w, "2026-06-03T17:00:00Z");
    has_bounds(&w, 4, 5);
    OK(schedule_world_has_event_since(&w, "HPAUpdated", 0));
}

static void it_stays_below_max(void)
{
    auto_world struct schedule_world w = world_new(DAY, "2026-06-03T18:00:00Z");
    publish(&w, 13, "2026-06-03T20:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 5, 5);
    OK(str_find(json_text(json_get(schedule_condition_find(w.status, "Forecast"), "message")),
                S("maxReplicas is lower")) != SIZE_MAX);
    pass_at(&w, "2026-06-03T20:00:00Z");
    has_bounds(&w, 2, 5);
}

static void without_windows_the_users_bounds_come_back(void)
{
    auto_world struct schedule_world w = world_new(BARE, "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 6, 9);
    w.hpa.bounds = (struct schedule_bounds){ 3, 9 }; /* by hand */
    pass_at(&w, "2026-06-03T11:00:00Z");
    has_bounds(&w, 6, 9);
    pass_at(&w, "2026-06-03T12:00:00Z");
    has_bounds(&w, 3, 9);
    EQ_STR(w.hpa.baseline, S(""));
    size_t writes = w.hpa_writes;
    pass_at(&w, "2026-06-03T12:05:00Z");
    EQ_INT(w.hpa_writes, writes);
}

static void turning_it_off_takes_the_floor_back(void)
{
    auto_world struct schedule_world w = world_new(DAY, "2026-06-03T10:00:00Z");
    publish(&w, 13, "2026-06-03T20:00:00Z", 4, true);
    schedule_world_pass(&w);
    has_bounds(&w, 13, 20);
    json_set_str(&w.arena, json_get(w.spec, "smartRecommendation"), "mode", S("Recommend"));
    pass_at(&w, "2026-06-03T10:01:00Z");
    has_bounds(&w, 8, 20);
    is_forecast(&w, "False", "Off");
}

static void held_bounds_are_those_of_the_last_window(void)
{
    auto_world struct schedule_world w =
        world_new("HPAObjectRef: {name: web}\n" FORECAST "triggers:\n"
                  "- {name: a, interval: {recurring: W}, startTime: '09:00', endTime: '10:00',\n"
                  "   startHPAConfig: {minReplicas: 5}}\n"
                  "- {name: b, interval: {recurring: W}, startTime: '10:00', endTime: '11:00',\n"
                  "   startHPAConfig: {minReplicas: 6}}\n",
                  "2026-06-03T09:30:00Z");
    publish(&w, 8, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 8, 9);
    pass_at(&w, "2026-06-03T10:30:00Z");
    pass_at(&w, "2026-06-03T11:30:00Z");
    has_bounds(&w, 8, 9);
    pass_at(&w, "2026-06-03T12:00:00Z");
    has_bounds(&w, 6, 9);
}

static void no_forecast_is_no_floor(void)
{
    auto_world struct schedule_world w = world_new(DAY, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    is_forecast(&w, "False", "Pending");
    w.advice_reason = "InsufficientData";
    schedule_world_pass(&w);
    is_forecast(&w, "False", "InsufficientData");
    w.advice_reason = NULL;
    publish(&w, 13, "2026-06-03T12:00:00Z", 4, false);
    schedule_world_pass(&w);
    is_forecast(&w, "False", "BacktestFailed");
    has_bounds(&w, 8, 20);
    publish(&w, 13, "2026-06-03T12:00:00Z", 4, true);
    json_set_str(&w.arena, json_get(w.status, "recommendation"), "signal", S("desiredReplicas"));
    schedule_world_pass(&w);
    is_forecast(&w, "False", "LimitedSignal");
    has_bounds(&w, 8, 20);
    json_del(json_get(w.status, "recommendation"), S("backtest"));
    schedule_world_pass(&w);
    is_forecast(&w, "False", "InsufficientData");
    publish(&w, 13, "2026-06-03T12:00:00Z", 14, true);
    schedule_world_pass(&w);
    has_bounds(&w, 13, 20);
    pass_at(&w, "2026-06-04T10:00:00Z");
    is_forecast(&w, "False", "ForecastExpired");
    has_bounds(&w, 8, 20);
}

static void it_is_off_by_default_and_respects_a_night_at_zero(void)
{
    auto_world struct schedule_world off =
        world_new("HPAObjectRef: {name: web}\nsmartRecommendation: {enabled: true}\n",
                  "2026-06-03T10:00:00Z");
    publish(&off, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&off);
    has_bounds(&off, 2, 9);
    OK(!schedule_condition_find(off.status, "Forecast"));
    auto_world struct schedule_world w =
        world_new(BARE "triggers:\n"
                       "- {name: night, interval: {recurring: W}, startTime: '09:00', endTime: "
                       "'17:00', startHPAConfig: {desiredReplicas: 0}}\n",
                  "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    EQ_INT(w.workload, 0);
}

/* Turns the mode off and expects the bounds that were beneath the floor. */
static void turn_off(struct schedule_world *w, const char *now, int32_t min, int32_t max)
{
    json_set_str(&w->arena, json_get(w->spec, "smartRecommendation"), "mode", S("Recommend"));
    pass_at(w, now);
    has_bounds(w, min, max);
}

/* The pass that writes the floor plans again with a status that has no source yet: the schedule is new, or another one
 * governed its target until now. */
static void a_first_floor_is_not_taken_for_the_users_bound(void)
{
    auto_world struct schedule_world w = world_new(BARE, "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 6, 9);
    EQ_INT(w.hpa_writes, 1);
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9,\"own\":2,\"floor\":6}"));
    turn_off(&w, "2026-06-03T10:01:00Z", 2, 9);
}

static void a_floor_after_a_takeover_ends_at_the_bound_beneath_it(void)
{
    auto_world struct schedule_world w = world_new(BARE, "2026-06-03T10:00:00Z");
    w.hpa.bounds.min = 3; /* the deleted schedule left this and its annotation */
    w.hpa.baseline = S("{\"min\":2,\"max\":9}");
    w.managed_by = S("shop/older");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    has_bounds(&w, 3, 9);
    w.managed_by = S("");
    pass_at(&w, "2026-06-03T10:01:00Z");
    has_bounds(&w, 6, 9);
    EQ_INT(w.hpa_writes, 1);
    turn_off(&w, "2026-06-03T10:02:00Z", 3, 9);
}

/* The last window is removed in the same pass in which a floor begins; then once more, with the floor already there. */
static void a_removed_window_leaves_the_baseline_beneath_the_floor(void)
{
    for (int has_floor = 0; has_floor < 2; has_floor++) {
        auto_world struct schedule_world w = world_new(DAY, "2026-06-03T10:00:00Z");
        if (has_floor)
            publish(&w, 13, "2026-06-03T20:00:00Z", 4, true);
        schedule_world_pass(&w);
        has_bounds(&w, has_floor ? 13 : 8, 20);
        publish(&w, 13, "2026-06-03T20:00:00Z", 4, true);
        json_del(w.spec, S("triggers"));
        size_t writes = w.hpa_writes;
        pass_at(&w, "2026-06-03T10:01:00Z");
        has_bounds(&w, 9, 9); /* the baseline's maximum limits the floor */
        EQ_INT(w.hpa_writes, writes + 1);
        turn_off(&w, "2026-06-03T10:02:00Z", 2, 9);
    }
}

/* Another client's minimum ends the note: the same number, set by hand later, is not ours. */
static void a_note_ends_when_another_client_raises_min(void)
{
    auto_world struct schedule_world w = world_new(BARE, "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    w.hpa.bounds.min = 7;
    pass_at(&w, "2026-06-03T10:01:00Z");
    has_bounds(&w, 7, 9);
    EQ_STR(w.hpa.baseline, S(""));
    EQ_INT(w.hpa_writes, 2);
    EQ_INT(schedule_world_count(&w, "HPAUpdated"), 1);
    turn_off(&w, "2026-06-03T10:02:00Z", 7, 9);
    w.hpa.bounds.min = 6;
    pass_at(&w, "2026-06-03T10:03:00Z");
    has_bounds(&w, 6, 9);
    EQ_INT(w.hpa_writes, 2);
}

static void a_note_ends_even_if_drift_is_left_alone(void)
{
    auto_world struct schedule_world w =
        world_new(BARE "driftPolicy: OnTransition\n", "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    w.hpa.bounds.min = 4;
    pass_at(&w, "2026-06-03T10:01:00Z");
    has_bounds(&w, 4, 9);
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9}"));
    EQ_INT(w.memory.next, 0);
    size_t writes = w.hpa_writes;
    pass_at(&w, "2026-06-03T10:02:00Z");
    EQ_INT(w.hpa_writes, writes);
}

static void a_floor_ends_without_the_annotation(void)
{
    static const char *const texts[] = { "", "{\"minReplicas\":-5}", "?" };
    for (size_t i = 0; i < 2 * countof(texts); i++) {
        bool deleted = i % 2;
        auto_world struct schedule_world w =
            world_new(BARE "deletionPolicy: Restore\n", "2026-06-03T10:00:00Z");
        publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
        schedule_world_pass(&w);
        w.hpa.baseline = str_c(texts[i / 2]); /* by another client */
        size_t writes = w.hpa_writes;
        pass_at(&w, "2026-06-03T10:01:00Z");
        pass_at(&w, "2026-06-03T10:02:00Z");
        EQ_INT(w.hpa_writes, writes); /* it is not fought over */
        if (!deleted) {
            turn_off(&w, "2026-06-03T10:03:00Z", 2, 9);
            OK(!json_get(w.status, "minReplicasWithoutForecast"));
            continue;
        }
        w.deleting = true;
        pass_at(&w, "2026-06-03T10:03:00Z");
        OK(w.gone);
        has_bounds(&w, 2, 9);
    }
    auto_world struct schedule_world w = world_new(DAY, "2026-06-03T10:00:00Z");
    publish(&w, 13, "2026-06-03T12:00:00Z", 4, true);
    schedule_world_pass(&w);
    w.hpa.baseline = S("");
    pass_at(&w, "2026-06-03T12:00:00Z");
    has_bounds(&w, 8, 20);
}

static void a_night_at_zero_is_the_reason_why_min_is_not_raised(void)
{
    auto_world struct schedule_world w =
        world_new(BARE "triggers:\n"
                       "- {name: night, interval: {recurring: W}, startTime: '09:00', endTime: "
                       "'17:00', startHPAConfig: {maxReplicas: 4, desiredReplicas: 0}}\n",
                  "2026-06-03T10:00:00Z");
    publish(&w, 6, "2026-06-03T12:00:00Z", 1, true);
    schedule_world_pass(&w);
    str message = json_text(json_get(schedule_condition_find(w.status, "Forecast"), "message"));
    OK(str_find(message, S("scales the workload to zero")) != SIZE_MAX);
    OK(str_find(message, S("maxReplicas")) == SIZE_MAX);
}

/* Random windows, floors, restarts and failed writes: beside a world without the forecast, minReplicas is never lower
 * and never above maxReplicas, maxReplicas is the same, and when the floors end, both worlds are equal. */
static void a_floor_only_ever_raises_min(void)
{
    struct random r;
    random_init(&r, 18, 4);
    for (int round = 0; round < 150; round++) {
        auto_buf struct buf yaml = { 0 };
        buf_put(&yaml, S("HPAObjectRef: {name: web}\ntriggers:\n"));
        for (int i = 0; i < 3; i++) {
            uint32_t hour = random_below(&r, 20), low = 1 + random_below(&r, 9);
            buf_printf(
                &yaml,
                "- {name: t%d, priority: %u, interval: {recurring: W}, startTime: '%02u:00', "
                "endTime: '%02u:30', startHPAConfig: {minReplicas: %u%s}%s}\n",
                i, random_below(&r, 3), hour, hour + 1 + random_below(&r, 3), low,
                random_below(&r, 2) ? ", maxReplicas: 12" : "",
                random_below(&r, 2) ? ", endHPAConfig: {minReplicas: 3}" : "");
        }
        auto_world struct schedule_world plain = world_new(yaml.p, "2026-06-03T08:00:00Z");
        buf_put(&yaml, S(FORECAST));
        auto_world struct schedule_world w = world_new(yaml.p, "2026-06-03T08:00:00Z");
        publish(&w, (int)random_below(&r, 20), "2026-06-03T14:00:00Z", (int)random_below(&r, 20),
                true);
        for (int i = 0; i < 30; i++) {
            w.now = plain.now += random_below(&r, 3000);
            w.failures = (int)random_below(&r, 3);
            schedule_world_pass(&plain);
            schedule_world_pass(&w);
            OK(w.hpa.bounds.min >= plain.hpa.bounds.min && w.hpa.bounds.min <= w.hpa.bounds.max);
            EQ_INT(w.hpa.bounds.max, plain.hpa.bounds.max);
        }
        w.now = plain.now = at("2026-06-04T00:00:01Z");
        schedule_world_pass(&plain);
        schedule_world_pass(&w);
        if (!OK(w.hpa.bounds.min == plain.hpa.bounds.min))
            printf("# %s# min %d, without %d, note %.*s\n", yaml.p, w.hpa.bounds.min,
                   plain.hpa.bounds.min, (int)w.hpa.baseline.n, w.hpa.baseline.p);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(the_floor_is_that_of_the_next_hour),
        TAP(it_follows_the_local_clock),
        TAP(little_history_gives_none),
        TAP(history_that_ended_gives_none),
        TAP(a_weekday_without_data_is_unknown),
        TAP(a_strange_status_gives_no_floor),
        TAP(a_floor_raises_a_window_and_never_lowers_it),
        TAP(it_stays_below_max),
        TAP(without_windows_the_users_bounds_come_back),
        TAP(turning_it_off_takes_the_floor_back),
        TAP(held_bounds_are_those_of_the_last_window),
        TAP(no_forecast_is_no_floor),
        TAP(it_is_off_by_default_and_respects_a_night_at_zero),
        TAP(a_first_floor_is_not_taken_for_the_users_bound),
        TAP(a_floor_after_a_takeover_ends_at_the_bound_beneath_it),
        TAP(a_removed_window_leaves_the_baseline_beneath_the_floor),
        TAP(a_note_ends_when_another_client_raises_min),
        TAP(a_note_ends_even_if_drift_is_left_alone),
        TAP(a_floor_ends_without_the_annotation),
        TAP(a_night_at_zero_is_the_reason_why_min_is_not_raised),
        TAP(a_floor_only_ever_raises_min),
        { 0 },
    });
}
