/* Weight, error budget and limit from a latency objective: see latency_core.h. Windows are
 * exponential averages, so the state of a pod is 11 floats however often it is updated. */
#include "latency_core.h"

#include <math.h>

static const double weight_min = 0.5, weight_max = 4, gain_error = 0.1, gain_change = 0.3,
                    forget = 0.9;

double latency_weight(struct latency_state *state, double weight, double ratio)
{
    if (!(ratio > 0) || !isfinite(ratio)) {
        state->known = false;
        return 1 + (weight - 1) * forget;
    }
    double error = log(ratio), change = state->known ? error - (double)state->previous : 0;
    state->previous = (float)error;
    state->known = true;
    return fmin(fmax(weight * exp(gain_change * change + gain_error * error), weight_min),
                weight_max);
}

bool latency_is_burning(struct latency_state *state, bool over, double seconds)
{
    static const struct {
        float seconds, rate;
    } windows[LATENCY_WINDOWS] = { { 300, 14.4F }, { 3600, 14.4F }, { 1800, 6 }, { 21600, 6 } };
    static const float budget = 0.01F;
    bool burns[LATENCY_WINDOWS];
    for (int i = 0; i < LATENCY_WINDOWS; i++) { /* older seconds decay */
        float kept = expf(-(float)seconds / windows[i].seconds);
        state->over[i] = state->over[i] * kept + (over ? (float)seconds : 0);
        state->seen[i] = state->seen[i] * kept + (float)seconds;
        burns[i] = state->over[i] > windows[i].rate * budget * state->seen[i];
    }
    return (burns[0] && burns[1]) || (burns[2] && burns[3]);
}

double latency_limit(struct latency_state *state, double ratio, double usage_milli,
                     double limit_milli)
{
    static const double busiest = 0.95;
    if (!(ratio > 0) || !isfinite(ratio) || !(usage_milli > 0) || !(limit_milli > 0))
        return 0;
    double congestion = 1 / (1 - fmin(usage_milli / limit_milli, busiest));
    state->fit_xy = (float)(forget * (double)state->fit_xy + congestion * ratio);
    state->fit_xx = (float)(forget * (double)state->fit_xx + congestion * congestion);
    double alone =
        (double)state->fit_xy / (double)state->fit_xx; /* latency over target without contention */
    return ratio > 1 && alone < busiest ? usage_milli / (1 - alone) : 0;
}
