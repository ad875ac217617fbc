/* Kalman filter with state [level, trend]: see forecast_core.h.
 *
 * A throttled reading is only a lower bound of demand: it pulls the level up, never down, and counts
 * less. Noise adapts to the surprises seen; a jump (five deviations) starts the filter anew at once. */
#include "forecast_core.h"

#include <math.h>

static const double noise_min = 1e-6, noise_start = 1e-3, drift_start = 1e-6;
static const double drift_min = 1e-10, drift_max = 1e-2;

static void restart(struct forecast *f, double level)
{
    *f = (struct forecast){ .level = level,
                            .p00 = 0.01,
                            .p11 = 1e-5,
                            .noise = noise_start,
                            .drift = drift_start,
                            .started = true };
}

static void predict(struct forecast *f, double dt)
{
    f->level += dt * f->trend;
    f->p00 += 2 * dt * f->p01 + dt * dt * f->p11 + f->drift * dt * dt * dt / 3;
    f->p01 += dt * f->p11 + f->drift * dt * dt / 2;
    f->p11 += f->drift * dt;
}

/* What the pod would have used without its quota. */
static double uncensored(const struct forecast *f, double used, double throttled)
{
    static const double slightly = 0.2, weight = 0.9;
    if (throttled <= 0)
        return used;
    return throttled < slightly ? fmax(used, f->level) : used / (1 - throttled * weight);
}

static void adapt(struct forecast *f, double surprise, double variance)
{
    f->noise = 0.95 * f->noise + 0.05 * fmax(noise_min, surprise * surprise - f->p00);
    double ratio = surprise * surprise / variance;
    f->surprises = (uint8_t)(ratio > 4 ? f->surprises + 1 : 0);
    f->calms = (uint8_t)(ratio < 0.2 ? f->calms + 1 : 0);
    if (f->surprises >= 5) {
        f->drift = fmin(drift_max, f->drift * 2);
        f->surprises = 0;
    } else if (f->calms >= 5) {
        f->drift = fmax(drift_min, f->drift / 2);
        f->calms = 0;
    }
}

void forecast_update(struct forecast *f, double used, double throttled, double seconds)
{
    if (!f->started || !(seconds > 0)) {
        restart(f, used);
        return;
    }
    predict(f, seconds);
    double reading = uncensored(f, used, throttled), noise = f->noise * (1 + 9 * throttled);
    double surprise = reading - f->level, variance = f->p00 + noise;
    if (fabs(surprise) > 5 * sqrt(variance)) {
        restart(f, reading);
        return;
    }
    double k0 = f->p00 / variance, k1 = f->p01 / variance;
    f->level += k0 * surprise;
    f->trend += k1 * surprise;
    /* Joseph form keeps the covariance positive */
    double a = 1 - k0, p00 = f->p00, p01 = f->p01, p11 = f->p11;
    f->p00 = a * a * p00 + k0 * k0 * noise;
    f->p01 = a * (p01 - k1 * p00) + k0 * k1 * noise;
    f->p11 = p11 - 2 * k1 * p01 + k1 * k1 * p00 + k1 * k1 * noise;
    adapt(f, surprise, variance);
}

double forecast_demand(const struct forecast *f, double horizon_s)
{
    static const double nine_of_ten = 1.28;
    if (!f->started)
        return 0;
    double spread = f->p00 + 2 * horizon_s * f->p01 + horizon_s * horizon_s * f->p11;
    return fmax(0, f->level + horizon_s * fmax(f->trend, 0)) + nine_of_ten * sqrt(fmax(0, spread));
}
