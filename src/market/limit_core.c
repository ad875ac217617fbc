/* Limits: see limit_core.h. Amounts are rounded to the nearest millicore; MBCAS truncates
 * (compat_core). */
#include "limit_core.h"

#include "milli.h"

#include <math.h>

int64_t limit_request(int64_t limit_milli)
{
    int64_t request = (9 * limit_milli + 5) / 10;
    return MAX((int64_t)1, MIN(MAX(request, (int64_t)10), limit_milli - 1));
}

double limit_smooth(double allocation_milli, double last_milli)
{
    double share = allocation_milli < last_milli ? 0.7 : 0.1;
    return share * allocation_milli + (1 - share) * last_milli;
}

int64_t limit_boost(int64_t current_milli, double throttling, const struct limit_boost_rules *rules)
{
    if (!(throttling > rules->threshold))
        return current_milli;
    double step = rules->step_min + (rules->step_max - rules->step_min) * MIN(throttling, 1.0);
    return MAX(current_milli, milli_round((double)current_milli * (1 + step)));
}

bool limit_differs(int64_t from_milli, int64_t to_milli, double min_change_percent)
{
    if (from_milli <= 0)
        return true;
    return fabs((double)(to_milli - from_milli)) / (double)from_milli * 100 >= min_change_percent;
}
