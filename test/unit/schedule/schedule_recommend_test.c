/* Learning at its edges; the golden vectors have the ordinary cases. */
#include "base/civil.h"
#include "schedule/schedule_recommend_core.h"
#include "tap.h"

#include <math.h>

enum { STEP_S = 1800, DAYS_MAX = 28, SAMPLES_MAX = DAYS_MAX * 48 };

/* Two replicas at night, eight from 09:00 to 18:00, from a Monday on. */
static size_t office(struct schedule_sample *out, size_t days, int64_t start)
{
    for (size_t i = 0; i < days * 48; i++) {
        size_t slot = i % 48;
        out[i] = (struct schedule_sample){ start + (int64_t)i * STEP_S,
                                           slot >= 18 && slot < 36 ? 8 : 2 };
    }
    return days * 48;
}

static const int64_t monday = 20458 * CIVIL_DAY_S; /* 2026-01-05 */

static void too_little_gives_nothing(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_sample samples[SAMPLES_MAX];
    struct schedule_learn_params params = schedule_learn_defaults(SCHEDULE_SAFE, 10);
    OK(!schedule_recommend(&a, samples, 0, tz_utc(), &params));
    OK(!schedule_recommend(&a, samples, office(samples, 6, monday), tz_utc(), &params));
    OK(schedule_recommend(&a, samples, office(samples, 7, monday), tz_utc(), &params));
    for (size_t i = 0; i < 7 * 48; i++)
        samples[i].value = NAN;
    OK(!schedule_recommend(&a, samples, 7 * 48, tz_utc(), &params));
}

static void a_daily_pattern_is_one_daily_trigger(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_sample samples[SAMPLES_MAX];
    struct schedule_learn_params params = schedule_learn_defaults(SCHEDULE_SAFE, 10);
    struct schedule_recommendation *r =
        schedule_recommend(&a, samples, office(samples, 28, monday), tz_utc(), &params);
    EQ_INT(r->groups_n, 1);
    EQ_INT(r->triggers_n, 1);
    EQ_STR(schedule_learned_name(&a, &r->triggers[0]), S("ai-daily-0850-1800"));
    EQ_INT(r->triggers[0].min, 8);
    EQ_INT(r->triggers[0].max, 10);
    EQ_INT(r->triggers[0].priority, -99);
    EQ_INT(r->base_min, 2);
    EQ_INT(r->base_max, 3);
}

static void windows_follow_the_local_clock(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_sample samples[SAMPLES_MAX];
    struct schedule_learn_params params = schedule_learn_defaults(SCHEDULE_SAFE, 0);
    const struct tz *berlin;
    err_t e;
    OK_CALL(tz_get(S("Europe/Berlin"), &berlin, &e), &e);
    struct schedule_recommendation *r =
        schedule_recommend(&a, samples, office(samples, 28, monday), berlin, &params);
    EQ_STR(schedule_learned_name(&a, &r->triggers[0]), S("ai-daily-1000-1900"));
}

static void a_day_off_is_left_out(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_sample samples[SAMPLES_MAX];
    struct schedule_learn_params params = schedule_learn_defaults(SCHEDULE_SAFE, 10);
    size_t n = office(samples, 28, monday);
    for (size_t i = 0; i < 48; i++)
        samples[14 * 48 + i].value = 1;
    struct schedule_recommendation *r = schedule_recommend(&a, samples, n, tz_utc(), &params);
    EQ_INT(r->dropped_n, 1);
    EQ_INT(r->dropped_days[0], 20458 + 14);
    EQ_INT(r->days_n, 27);
}

static void extreme_values_do_no_harm(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_sample samples[SAMPLES_MAX];
    struct schedule_learn_params params = schedule_learn_defaults(SCHEDULE_SAFE, 120);
    static const double values[] = { 1e308, -1e308, 0, INFINITY, -INFINITY, NAN, 1e-308 };
    for (size_t i = 0; i < SAMPLES_MAX; i++)
        samples[i] =
            (struct schedule_sample){ monday + (int64_t)i * STEP_S, values[i % countof(values)] };
    struct schedule_recommendation *r =
        schedule_recommend(&a, samples, SAMPLES_MAX, tz_utc(), &params);
    OK(!r || r->base_min >= 1);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(too_little_gives_nothing),
        TAP(a_daily_pattern_is_one_daily_trigger),
        TAP(windows_follow_the_local_clock),
        TAP(a_day_off_is_left_out),
        TAP(extreme_values_do_no_harm),
        { 0 },
    });
}
