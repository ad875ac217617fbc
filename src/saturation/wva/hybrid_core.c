/* Arbitration and scale to zero: see hybrid_core.h. The reasons of hybrid_arbitrate() are quoted:
 * WVA. */
#include "hybrid_core.h"

#include <math.h>

const char *sat_action_name(int from, int to)
{
    return to > from ? "scale-up" : to < from ? "scale-down" : "no-change";
}

struct hybrid_decision hybrid_arbitrate(struct arena *a, struct hybrid_input in)
{
    int capacity = in.capacity_target - in.current, model = in.model_target - in.current;
    if (capacity > 0 && model < 0)
        return (struct hybrid_decision){
            .replicas = in.current,
            .safety_override = true,
            .capacity_based = true,
            .model_based = true,
            .reason = arena_printf(
                a, "Saturation veto: Saturation needs scale-up (Saturation=%d, model-based=%d)",
                in.capacity_target, in.model_target),
        };
    if (model < 0 && !in.scale_down_safe)
        return (struct hybrid_decision){
            .replicas = in.current,
            .safety_override = true,
            .capacity_based = true,
            .model_based = true,
            .reason =
                arena_printf(a, "saturation safety block: scale-down unsafe (model-based wants %d)",
                             in.model_target),
        };
    if (capacity > 0 && model == 0)
        return (struct hybrid_decision){
            .replicas = in.capacity_target,
            .capacity_based = true,
            .reason = arena_printf(a, "Saturation-driven scale-up to %d", in.capacity_target),
        };
    if (model != 0)
        return (struct hybrid_decision){
            .replicas = in.model_target,
            .model_based = true,
            .reason = arena_printf(a, "model-based recommendation: %s to %d (Saturation allows)",
                                   sat_action_name(in.current, in.model_target), in.model_target),
        };
    return (struct hybrid_decision){ .replicas = in.current, .reason = S("no action needed") };
}

static bool set_all_to_zero(struct sat_target *targets, size_t n)
{
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        changed |= targets[i].replicas != 0;
        targets[i].replicas = 0;
        targets[i].reason = S("no requests within the retention period: scaled to zero");
    }
    return changed;
}

/* Gives the cheapest variant one replica if no variant has any. */
static bool keep_one_replica(struct sat_target *targets, size_t n, const double *costs)
{
    static const double unknown_cost = 10;
    size_t cheapest = 0;
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        double cost = isnan(costs[i]) ? unknown_cost : costs[i];
        if (targets[i].replicas > 0)
            return false;
        if (cost < least) {
            least = cost;
            cheapest = i;
        }
    }
    if (n == 0)
        return false;
    targets[cheapest].replicas = 1;
    targets[cheapest].reason = S("scale to zero is off: the cheapest variant keeps one replica");
    return true;
}

bool hybrid_enforce_zero(struct sat_target *targets, size_t n, const struct hybrid_zero_input *in)
{
    if (!in->scale_to_zero)
        return keep_one_replica(targets, n, in->costs);
    if (!in->requests_known || !(in->requests <= 0))
        return false;
    return set_all_to_zero(targets, n);
}
