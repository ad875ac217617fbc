/* The forecast: level and trend of what a pod uses, also when its quota hides how much it wants. */
#include "market/forecast_core.h"

#include "base/random.h"
#include "tap.h"

#include <math.h>

/* A reading a second, `first` cores and `more` with each. */
static void feed(struct forecast *f, int seconds, double first, double more)
{
    for (int i = 0; i < seconds; i++)
        forecast_update(f, (float)(first + more * i), 0, 1);
}

static void nothing_seen_is_nothing_foreseen(void)
{
    struct forecast f = { 0 };
    EQ_REAL((double)forecast_demand(&f, 60), 0);
}

static void who_is_steady_stays(void)
{
    struct forecast f = { 0 };
    feed(&f, 600, 0.5, 0);
    OK(fabsf(f.level - 0.5F) < 1e-3F && fabsf(f.trend) < 1e-4F);
    OK(forecast_demand(&f, 15) < 0.55F && forecast_demand(&f, 15) >= 0.5F);
}

static void a_trend_goes_on(void)
{
    struct forecast f = { 0 };
    feed(&f, 300, 0.1, 0.002);
    OK(fabsf(f.trend - 0.002F) < 2e-4F);
    OK(fabsf(forecast_demand(&f, 60) - (0.1F + 0.002F * 360)) < 0.1F);
    struct forecast down = { 0 };
    feed(&down, 300, 1, -0.002);
    OK(forecast_demand(&down, 60) >= down.level); /* what falls is not foreseen lower */
}

static void the_further_the_less_is_known(void)
{
    struct forecast f = { 0 };
    struct random r;
    random_init(&r, 9, 1);
    for (int i = 0; i < 600; i++)
        forecast_update(&f, (float)(0.4 + 0.2 * random_unit(&r)), 0, 1);
    OK(forecast_demand(&f, 0) < forecast_demand(&f, 15));
    OK(forecast_demand(&f, 15) < forecast_demand(&f, 60));
    OK(forecast_demand(&f, 0) > f.level); /* nine times of ten enough */
    OK(fabsf(f.level - 0.5F) < 0.05F);
}

static void a_jump_is_believed_at_once(void)
{
    struct forecast f = { 0 };
    feed(&f, 300, 0.2, 0);
    forecast_update(&f, 2, 0, 1);
    EQ_REAL((double)f.level, 2);
}

/* A quota of half a core: the reading is what was used, not what was wanted. */
static void throttled_readings_are_a_lower_bound(void)
{
    struct forecast f = { 0 };
    feed(&f, 300, 1, 0);
    for (int i = 0; i < 30; i++)
        forecast_update(&f, 0.5F, 0.15F, 1);
    OK(f.level > 0.99F); /* lightly throttled: no reason to think that it wants less */
    for (int i = 0; i < 30; i++)
        forecast_update(&f, 0.5F, 1, 1);
    OK(f.level > 1.5F); /* always throttled: it wants much more */
    struct forecast freely = { 0 };
    feed(&freely, 300, 1, 0);
    feed(&freely, 30, 0.5, 0);
    OK(freely.level < 0.6F);
}

static void nothing_makes_it_infinite(void)
{
    struct forecast f = { 0 };
    struct random r;
    random_init(&r, 4, 1);
    for (int i = 0; i < 100000 && !tap_failures; i++) {
        float used = (float)(random_below(&r, 20) ? random_unit(&r) : 1e4 * random_unit(&r));
        float seconds = random_below(&r, 50) ? 1 : random_below(&r, 2) ? 0 : 3600;
        forecast_update(&f, used, (float)random_below(&r, 11) / 10, seconds);
        float demand = forecast_demand(&f, 60);
        OK(isfinite(demand) && demand >= 0 && f.p00 >= 0 && f.p11 >= -1e-6F);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(nothing_seen_is_nothing_foreseen),
        TAP(who_is_steady_stays),
        TAP(a_trend_goes_on),
        TAP(the_further_the_less_is_known),
        TAP(a_jump_is_believed_at_once),
        TAP(throttled_readings_are_a_lower_bound),
        TAP(nothing_makes_it_infinite),
        { 0 },
    });
}
