/* Quantile and segmentation: see schedule_segment_core.h.
 *
 * The segmentation is exact: dynamic programming over all left edges. cuts[to] holds the cheapest way to
 * cover the slots before `to`, and the last segment of it; following `from` back from the end of the day
 * yields the segments. The best level of a segment is a quantile of its slots, because the cost is
 * piecewise linear. With 48 slots there are about a thousand segments, so an approximate method would cost
 * more lines than it saves time. */
#include "schedule_segment_core.h"

#include <math.h>

enum { LEVELS_MAX_DOUBLINGS = 64 };

static const double TINY = 1e-9; /* sums of decimal fractions are not exact */

static int by_value(const void *a, const void *b)
{
    double x = ((const struct schedule_weighted *)a)->value;
    double y = ((const struct schedule_weighted *)b)->value;
    return (x > y) - (x < y);
}

double schedule_quantile(struct schedule_weighted *pairs, size_t n, double tau)
{
    if (!n)
        return NAN;
    qsort(pairs, n, sizeof(*pairs), by_value);
    double sum = 0, reached = 0;
    for (size_t i = 0; i < n; i++)
        sum += pairs[i].weight;
    for (size_t i = 0; i < n; i++) {
        reached += pairs[i].weight;
        if (reached >= tau * sum - TINY * sum)
            return pairs[i].value;
    }
    return pairs[n - 1].value;
}

static int by_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Returns the least cost over the slots [from, to) and the level that has it. */
static double best_level(const int *wanted, int from, int to,
                         const struct schedule_step_costs *costs, int *ret_level)
{
    int sorted[SCHEDULE_SLOTS], n = to - from;
    memcpy(sorted, wanted + from, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), by_int);
    double share = costs->under / (costs->over + costs->under);
    int at = (int)ceil(share * n - TINY);
    int level = sorted[MIN(MAX(at, 1), n) - 1];
    double cost = 0;
    for (int i = 0; i < n; i++)
        cost += sorted[i] < level ? costs->over * (level - sorted[i])
                                  : costs->under * (sorted[i] - level);
    *ret_level = level;
    return cost;
}

struct cut {
    double cost; /* of all slots before this edge */
    int from, level;
};

/* Fills in the cheapest last segment for every edge of the day. */
static void find_cuts(const int *wanted, const struct schedule_step_costs *costs, double step_cost,
                      struct cut cuts[SCHEDULE_SLOTS + 1])
{
    cuts[0] = (struct cut){ 0 };
    for (int to = 1; to <= SCHEDULE_SLOTS; to++) {
        cuts[to] = (struct cut){ INFINITY };
        for (int from = 0; from <= to - costs->least_slots; from++) {
            int level;
            if (isinf(cuts[from].cost))
                continue;
            double cost = cuts[from].cost + best_level(wanted, from, to, costs, &level) + step_cost;
            if (cost < cuts[to].cost - TINY)
                cuts[to] = (struct cut){ cost, from, level };
        }
    }
}

/* Follows the cuts back from the end of the day; merges neighbors of the same level. */
static int collect_segments(const struct cut *cuts, struct schedule_segment out[SCHEDULE_SLOTS])
{
    struct schedule_segment backwards[SCHEDULE_SLOTS];
    int n = 0, merged = 0;
    for (int to = SCHEDULE_SLOTS; to > 0; to = cuts[to].from)
        backwards[n++] = (struct schedule_segment){ cuts[to].from, to, cuts[to].level };
    while (n--) {
        if (merged && out[merged - 1].level == backwards[n].level)
            out[merged - 1].to = backwards[n].to;
        else
            out[merged++] = backwards[n];
    }
    return merged;
}

/* Doubles the price of a step until few enough segments remain. */
int schedule_segments(const int wanted[SCHEDULE_SLOTS], const struct schedule_step_costs *costs,
                      struct schedule_segment out[SCHEDULE_SLOTS])
{
    struct cut cuts[SCHEDULE_SLOTS + 1];
    double sum = 0, per_step = costs->per_step;
    for (int i = 0; i < SCHEDULE_SLOTS; i++)
        sum += wanted[i];
    int n = 0;
    for (int i = 0; i < LEVELS_MAX_DOUBLINGS; i++, per_step *= 2) {
        find_cuts(wanted, costs, per_step * sum, cuts);
        n = collect_segments(cuts, out);
        if (n <= costs->most_segments)
            break;
    }
    return n;
}
