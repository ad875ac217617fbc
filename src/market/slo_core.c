/* See slo_core.h. */
#include "slo_core.h"

#include <math.h>

static const double weight_min = 0.5, weight_max = 4, gain_error = 0.1, gain_change = 0.3,
                    forget = 0.9;

double slo_weight(struct slo_state *state, double weight, double ratio)
{
    if (!(ratio > 0) || !isfinite(ratio)) {
        *state = (struct slo_state){ 0 };
        return 1 + (weight - 1) * forget;
    }
    double error = log(ratio), change = state->known ? error - (double)state->previous : 0;
    *state = (struct slo_state){ (float)error, true };
    return fmin(fmax(weight * exp(gain_change * change + gain_error * error), weight_min),
                weight_max);
}
