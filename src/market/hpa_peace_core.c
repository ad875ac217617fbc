/* Peace with the HPA: see hpa_peace_core.h. */
#include "hpa_peace_core.h"

#include "limit_core.h"

#include <math.h>

const char *hpa_peace_name(enum hpa_peace peace)
{
    static const char *const names[HPA_PEACE_N] = { "None", "Held", "Moved", "NoRequest" };
    return names[peace];
}

bool hpa_peace_divides(const struct hpa_peace_metric *metric, str resource)
{
    bool of_pod =
        str_eq(metric->type, S("Resource")) || str_eq(metric->type, S("ContainerResource"));
    return of_pod && str_eq(metric->name, resource) &&
           str_eq(metric->target_type, S("Utilization"));
}

int64_t hpa_peace_target(const struct hpa_peace_metric *metric)
{
    return metric->percent > 0 ? metric->percent : HPA_TARGET_DEFAULT;
}

/* Exact for tolerances of up to nine decimals: request * target/100 * (1 + 2*tolerance), rounded
 * up. Twice the tolerance, because inside it the HPA does nothing. */
static int64_t hpa_peace_floor(int64_t original_request_milli, const struct hpa_divisor *divisor)
{
    __extension__ typedef __int128 wide;
    static const int64_t unit = 1000000000;
    double tolerance = divisor->tolerance_up;
    if (!(tolerance >= 0) || !isfinite(tolerance))
        tolerance = HPA_TOLERANCE_DEFAULT;
    int64_t factor = unit + 2 * (int64_t)(MIN(tolerance, 1000.0) * (double)unit + 0.5);
    wide scaled = (wide)original_request_milli * divisor->target_percent * factor;
    wide whole = (scaled + (wide)100 * unit - 1) / ((wide)100 * unit);
    int64_t floor = (int64_t)MIN(whole, (wide)INT32_MAX);
    return MAX(original_request_milli + 1, floor);
}

struct hpa_peace_result hpa_peace_decide(const struct hpa_peace_pod *pod,
                                         const struct hpa_divisor *divisor)
{
    struct hpa_peace_result r = { .limit_milli = pod->desired_limit_milli };
    r.request_milli = limit_request(pod->desired_limit_milli);
    if (!divisor)
        return r;
    if (pod->move || pod->original_request_milli <= 0) {
        r.state = pod->move ? HPA_PEACE_MOVED : HPA_PEACE_NO_REQUEST;
        return r;
    }
    r.state = HPA_PEACE_HELD;
    r.floor_milli = hpa_peace_floor(pod->original_request_milli, divisor);
    r.request_milli = pod->original_request_milli;
    r.limit_milli = MAX(pod->desired_limit_milli, r.floor_milli);
    return r;
}

bool hpa_peace_read(str text, bool *ret_move)
{
    *ret_move = str_eq(text, S("move"));
    return *ret_move || str_eq(text, S("hold"));
}
