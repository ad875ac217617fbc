/* Kalman filter with state [level, trend]: see forecast_core.h.
 *
 * A throttled reading is only a lower bound of demand: it raises the level, never lowers it, and
 * its variance is up to ten times as large. The noise adapts to the errors of the prediction; a
 * jump of more than five standard deviations restarts the filter at once, because smoothing it
 * would take many rounds. */
#include "forecast_core.h"

#include <math.h>

static const float noise_min = 1e-6F, noise_start = 1e-3F, drift_start = 1e-6F;
static const float drift_min = 1e-10F, drift_max = 1e-2F;

static void forecast_restart(struct forecast *f, float level)
{
    *f = (struct forecast){ .level = level,
                            .p00 = 0.01F,
                            .p11 = 1e-5F,
                            .noise = noise_start,
                            .drift = drift_start,
                            .started = true };
}

static void forecast_predict(struct forecast *f, float dt)
{
    f->level += dt * f->trend;
    f->p00 += 2 * dt * f->p01 + dt * dt * f->p11 + f->drift * dt * dt * dt / 3;
    f->p01 += dt * f->p11 + f->drift * dt * dt / 2;
    f->p11 += f->drift * dt;
}

/* Estimates what the pod would have used without its quota. */
static float estimate_demand(const struct forecast *f, float used, float throttled)
{
    static const float light = 0.2F, weight = 0.9F;
    if (throttled <= 0)
        return used;
    return throttled < light ? MAX(used, f->level) : used / (1 - throttled * weight);
}

/* Adjusts noise and drift to how far the prediction was off. */
static void forecast_adapt(struct forecast *f, float surprise, float variance)
{
    f->noise = 0.95F * f->noise + 0.05F * MAX(noise_min, surprise * surprise - f->p00);
    float ratio = surprise * surprise / variance;
    f->surprises = (uint8_t)(ratio > 4 ? f->surprises + 1 : 0);
    f->calms = (uint8_t)(ratio < 0.2F ? f->calms + 1 : 0);
    if (f->surprises >= 5) {
        f->drift = MIN(drift_max, f->drift * 2);
        f->surprises = 0;
    } else if (f->calms >= 5) {
        f->drift = MAX(drift_min, f->drift / 2);
        f->calms = 0;
    }
}

void forecast_update(struct forecast *f, float used, float throttled, float seconds)
{
    if (!f->started || !(seconds > 0)) {
        forecast_restart(f, used);
        return;
    }
    forecast_predict(f, seconds);
    float reading = estimate_demand(f, used, throttled), noise = f->noise * (1 + 9 * throttled);
    float surprise = reading - f->level, variance = f->p00 + noise;
    if (fabsf(surprise) > 5 * sqrtf(variance)) {
        forecast_restart(f, reading);
        return;
    }
    float k0 = f->p00 / variance, k1 = f->p01 / variance;
    f->level += k0 * surprise;
    f->trend += k1 * surprise;
    /* the Joseph form keeps the covariance positive */
    float a = 1 - k0, p00 = f->p00, p01 = f->p01, p11 = f->p11;
    f->p00 = a * a * p00 + k0 * k0 * noise;
    f->p01 = a * (p01 - k1 * p00) + k0 * k1 * noise;
    f->p11 = p11 - 2 * k1 * p01 + k1 * k1 * p00 + k1 * k1 * noise;
    forecast_adapt(f, surprise, variance);
}

float forecast_demand(const struct forecast *f, float horizon_s)
{
    static const float nine_of_ten = 1.28F;
    if (!f->started)
        return 0;
    float spread = f->p00 + 2 * horizon_s * f->p01 + horizon_s * horizon_s * f->p11;
    return MAX(0, f->level + horizon_s * MAX(f->trend, 0)) + nine_of_ten * sqrtf(MAX(0, spread));
}
