/* Publishing a recommendation: learned triggers as status and as entries of a spec; see schedule_advice_core.h.
 *
 *   samples -> enough hours? -> schedule_recommend: triggers -> backtest: would they have been good enough? -> JSON
 *
 * The samples are sorted here once, because the published range and the data check need their order; learning
 * does not. Numbers are rounded to four decimals. */
#include "schedule_advice_core.h"

#include "../base/civil.h"
#include "../base/rfc3339.h"
#include "schedule_forecast_core.h"

#include <math.h>

static const char *const signal_names[SCHEDULE_SIGNAL_N] = {
    [SCHEDULE_SIGNAL_USER] = "query",
    [SCHEDULE_SIGNAL_DEMAND] = "demand",
    [SCHEDULE_SIGNAL_DESIRED] = "desiredReplicas",
    [SCHEDULE_SIGNAL_CURRENT] = "currentReplicas",
};

static const char *schedule_signal_name(enum schedule_signal signal)
{
    return signal_names[signal];
}

bool schedule_signal_has_next(enum schedule_signal signal)
{
    return signal != SCHEDULE_SIGNAL_USER && signal + 1 < SCHEDULE_SIGNAL_N;
}

/* ---- enough data? */

static int by_time(const void *x, const void *y)
{
    int64_t a = ((const struct schedule_sample *)x)->at,
            b = ((const struct schedule_sample *)y)->at;
    return (a > b) - (a < b);
}

/* A sorted copy of the samples within the requested time. */
static struct schedule_sample *sort_samples(struct arena *a, const struct schedule_history *h,
                                            size_t *ret_n)
{
    struct schedule_sample *out = arena_array(a, h->n, sizeof(*out));
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->samples[i].at >= h->from && h->samples[i].at <= h->now)
            out[n++] = h->samples[i];
    if (n)
        qsort(out, n, sizeof(*out), by_time);
    *ret_n = n;
    return out;
}

/* The number of distinct hours that have a sample; the samples are sorted. */
static size_t count_hours(const struct schedule_sample *samples, size_t n)
{
    size_t hours = 0;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        if (samples[i].at / 3600 != last && isfinite(samples[i].value)) {
            last = samples[i].at / 3600;
            hours++;
        }
    }
    return hours;
}

/* ---- as JSON */

static void set_time(struct arena *a, struct json *out, const char *field, int64_t at)
{
    char text[RFC3339_TEXT_MAX];
    json_set_str(a, out, field, rfc3339_text(at, text));
}

static void set_rounded(struct arena *a, struct json *out, const char *field, double value)
{
    json_set(a, out, str_c(field), json_new_real(a, round(value * 1e4) / 1e4));
}

static struct json *backtest_json(struct arena *a, const struct schedule_backtest *b)
{
    struct json *out = json_new_obj(a);
    set_rounded(a, out, "underRatio", b->under);
    set_rounded(a, out, "underRatioWithout", b->under_without);
    set_rounded(a, out, "costRatio", b->cost);
    set_rounded(a, out, "costRatioWithout", b->cost_without);
    set_rounded(a, out, "coverage", b->coverage);
    set_rounded(a, out, "wape", b->wape);
    set_rounded(a, out, "seasonalStrength", b->strength);
    json_set_bool(a, out, "goodEnough", b->good_enough);
    return out;
}

static struct json *groups_json(struct arena *a, const struct schedule_recommendation *r)
{
    struct json *out = json_new_arr(a);
    for (size_t i = 0; i < r->groups_n; i++)
        json_push(a, out, json_new_str(a, schedule_weekdays_text(a, r->groups[i])));
    return out;
}

static struct json *dropped_json(struct arena *a, const struct schedule_recommendation *r)
{
    struct json *out = json_new_arr(a);
    for (size_t i = 0; i < r->dropped_n; i++) {
        char text[RFC3339_TEXT_MAX];
        str day = rfc3339_text(r->dropped_days[i] * CIVIL_DAY_S, text);
        json_push(a, out, json_new_str(a, str_upto(day, 10)));
    }
    return out;
}

/* status.recommendation without the backtest. */
static struct json *status_json(struct arena *a, const struct schedule_history *h,
                                const struct schedule_recommendation *r, struct json *triggers)
{
    struct json *out = json_new_obj(a), *base = json_make(a, out, "base", NULL);
    set_time(a, out, "computedAt", h->now);
    set_time(a, out, "dataFrom", h->samples[0].at);
    set_time(a, out, "dataTo", h->samples[h->n - 1].at);
    json_set_int(a, out, "samples", (int64_t)h->n);
    json_set_str(a, out, "signal", str_c(schedule_signal_name(h->signal)));
    json_set(a, out, S("groups"), groups_json(a, r));
    json_set(a, out, S("droppedDates"), dropped_json(a, r));
    json_set_int(a, base, "minReplicas", r->base_min);
    json_set_int(a, base, "maxReplicas", r->base_max);
    json_set(a, out, S("triggers"), triggers);
    return out;
}

/* Data that ended long ago does not predict the next hour. Returns the reason why there is no floor, or "". */
static str check_age(struct arena *a, const struct schedule_history *h)
{
    size_t n = h->n;
    char text[RFC3339_TEXT_MAX];
    while (n && !isfinite(h->samples[n - 1].value))
        n--;
    if (!n || h->samples[n - 1].at >= h->now - SCHEDULE_ADVICE_AGE_MAX_S)
        return S("");
    return arena_printf(a,
                        "the history ends at " STR_FMT
                        "; mode Forecast needs data of the last %d hours",
                        STR_ARG(rfc3339_text(h->samples[n - 1].at, text)),
                        SCHEDULE_ADVICE_AGE_MAX_S / 3600);
}

/* Checks the amount of data, learns, evaluates the backtest, and builds the JSON of all of it. */
struct schedule_advice_result schedule_advise(struct arena *a, const struct schedule_advice *advice,
                                              const struct schedule_history *history)
{
    struct schedule_learn_params params =
        schedule_learn_defaults(advice->profile, advice->lead_minutes);
    params.forecast = advice->forecast;
    size_t n = 0;
    struct schedule_sample *samples = sort_samples(a, history, &n);
    size_t hours = count_hours(samples, n);
    struct schedule_recommendation *r =
        hours < SCHEDULE_ADVICE_LEAST_HOURS
            ? NULL
            : schedule_recommend(a, samples, n, advice->zone, &params);
    if (!r)
        return (struct schedule_advice_result){
            .reason = "InsufficientData",
            .message = arena_printf(
                a, "found %zu hours of history; need at least %d hours on %d different days", hours,
                SCHEDULE_ADVICE_LEAST_HOURS, params.least_days),
        };
    struct schedule_history sorted = { samples, n, history->signal, history->now, 0 };
    str too_old = advice->forecast ? check_age(a, &sorted) : S("");
    if (too_old.n)
        return (struct schedule_advice_result){ .reason = "InsufficientData", .message = too_old };
    struct json *triggers = json_new_arr(a);
    for (size_t i = 0; i < r->triggers_n; i++)
        json_push(a, triggers, schedule_learned_json(a, r, i, tz_name(advice->zone)));
    struct schedule_advice_result out = { .status = status_json(a, &sorted, r, triggers),
                                          .triggers = triggers,
                                          .under = -1 };
    if (advice->forecast)
        json_set(a, out.status, S("forecast"),
                 schedule_forecast_json(a, r, advice->zone, history->now,
                                        history->now + advice->frequency_minutes * INT64_C(60) +
                                            SCHEDULE_FORECAST_SPARE_S));
    struct schedule_backtest backtest;
    if (schedule_backtest(a, samples, n, advice->zone, &params, &backtest)) {
        json_set(a, out.status, S("backtest"), backtest_json(a, &backtest));
        out.good_enough = backtest.good_enough;
        out.under = backtest.under;
    }
    return out;
}

/* Learned triggers replace older ones with the same prefix; those of the user stay. NULL: nothing would change. */
struct json *schedule_advice_merge(struct arena *a, const struct json *triggers,
                                   const struct json *learned)
{
    struct json *out = json_new_arr(a);
    for (size_t i = 0; i < json_len(triggers); i++)
        if (!str_starts(json_text(json_get(json_item(triggers, i), "name")),
                        S(SCHEDULE_ADVICE_PREFIX)))
            json_push(a, out, json_item(triggers, i));
    for (size_t i = 0; i < json_len(learned); i++)
        json_push(a, out, json_item(learned, i));
    return json_eq(out, triggers) ? NULL : out;
}

/* Raises learned maxima to `most`: a recommendation must not take away room that the user has granted. */
void schedule_advice_keep_max(struct arena *a, struct json *learned, int64_t most)
{
    static const char *const configs[] = { "startHPAConfig", "endHPAConfig" };
    for (size_t i = 0; i < json_len(learned); i++) {
        for (size_t k = 0; k < countof(configs); k++) {
            struct json *config = json_get(json_item(learned, i), configs[k]);
            if (json_is(config, JSON_OBJ) && json_int(json_get(config, "maxReplicas"), most) < most)
                json_set_int(a, config, "maxReplicas", most);
        }
    }
}
