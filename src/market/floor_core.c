/* Guarantees of a node's pods: see floor_core.h.
 *
 *      floor_read_min/max()   annotation text -> millicores, or a problem
 *         |
 *         v
 *      bound_annotation()     min-cpu <= max-cpu, original limit, share of the node
 *         |
 *         v
 *      baselines fit? --no--> share_baselines(): no pod above its baseline, sum = capacity
 *         | yes
 *         v
 *      grant_stage() x 3      held, min-cpu, boost: what is missing, water-filled into the room
 *
 * The invariant: the guarantees add up to at most the capacity whenever the baselines do. Each
 * stage is filled with equal weights, so that no pod gets more of a scarce room by asking for more.
 *
 * An annotation is bounded by the limit before the first resize because a ResourceQuota admitted
 * that limit, and by a share of the node because one pod must not own it. Before this rule,
 * `min-cpu=10` on a node of two cores left 14 millicores to each neighbor. */
#include "floor_core.h"

#include "../base/quantity.h"

struct floor_problem_name floor_problem_name(enum floor_problem problem)
{
    static const struct floor_problem_name names[FLOOR_PROBLEM_N] = {
        [FLOOR_MIN_BAD_QUANTITY] = { "min_cpu", "bad-quantity" },
        [FLOOR_MIN_NOT_POSITIVE] = { "min_cpu", "not-positive" },
        [FLOOR_MIN_ABOVE_MAX] = { "min_cpu", "above-max" },
        [FLOOR_MIN_ABOVE_ORIGINAL_LIMIT] = { "min_cpu", "above-original-limit" },
        [FLOOR_MIN_ABOVE_SHARE] = { "min_cpu", "above-share" },
        [FLOOR_MAX_BAD_QUANTITY] = { "max_cpu", "bad-quantity" },
        [FLOOR_MAX_NOT_POSITIVE] = { "max_cpu", "not-positive" },
        [FLOOR_HELD_REDUCED] = { "held", "reduced" },
        [FLOOR_MIN_REDUCED] = { "min_cpu", "reduced" },
        [FLOOR_BOOST_REDUCED] = { "boost", "reduced" },
    };
    return names[problem];
}

static void add_problem(uint32_t *problems, enum floor_problem problem)
{
    *problems |= UINT32_C(1) << problem;
}

/* Returns the millicores of a positive quantity, or 0 and one of the two problems. */
static int64_t read_amount(str text, enum floor_problem bad, enum floor_problem not_positive,
                           uint32_t *problems)
{
    struct quantity q;
    int64_t milli = 0;
    if (quantity_parse(text, &q, NULL)) {
        add_problem(problems, bad);
        return 0;
    }
    if (quantity_scaled(&q, -3, &milli)) /* out of range: only the sign still matters */
        milli = q.negative ? -1 : CLEAR_MILLI_MAX;
    if (milli <= 0) {
        add_problem(problems, not_positive);
        return 0;
    }
    return MIN(milli, CLEAR_MILLI_MAX);
}

int64_t floor_read_min(str text, uint32_t *problems)
{
    return read_amount(text, FLOOR_MIN_BAD_QUANTITY, FLOOR_MIN_NOT_POSITIVE, problems);
}

int64_t floor_read_max(str text, uint32_t *problems)
{
    return read_amount(text, FLOOR_MAX_BAD_QUANTITY, FLOOR_MAX_NOT_POSITIVE, problems);
}

/* The part of the node that one pod may claim for itself: exact for shares of up to nine
 * decimals. */
static int64_t floor_share(int64_t capacity_milli, double max_share)
{
    static const int64_t unit = 1000000000; /* 0.29 of 100 is 29, which 0.29 * 100 misses */
    int64_t share = (int64_t)(MIN(MAX(max_share, 0.0), 1.0) * (double)unit + 0.5);
    __extension__ typedef __int128 wide;
    return (int64_t)((wide)MAX(capacity_milli, INT64_C(0)) * share / unit);
}

/* Lowers min-cpu to each of its bounds in turn, and notes every one that applied. */
static void bound_annotation(struct floor_pod *pod, int64_t share_milli)
{
    const struct {
        bool applies;
        int64_t most;
        enum floor_problem problem;
    } bounds[] = {
        { pod->max_milli > 0, pod->max_milli, FLOOR_MIN_ABOVE_MAX },
        { pod->original_limit_milli > 0, pod->original_limit_milli,
          FLOOR_MIN_ABOVE_ORIGINAL_LIMIT },
        { true, share_milli, FLOOR_MIN_ABOVE_SHARE },
    };
    pod->bounded_milli = MAX(pod->min_milli, INT64_C(0));
    for (size_t i = 0; i < countof(bounds); i++) {
        if (!bounds[i].applies || pod->bounded_milli <= bounds[i].most)
            continue;
        pod->bounded_milli = bounds[i].most;
        add_problem(&pod->problems, bounds[i].problem);
    }
}

/* Overload: no pod gets more than its baseline, and the sum is the capacity. */
static void share_baselines(int64_t capacity, struct floor_pod *pods, size_t n,
                            struct clear_scratch *scratch, struct arena *a)
{
    struct bid *bids = arena_array(a, n, sizeof(*bids));
    int64_t *x = arena_array(a, n, sizeof(*x));
    for (size_t i = 0; i < n; i++)
        bids[i] = (struct bid){ .min_milli = pods[i].baseline_milli, .weight = pods[i].weight };
    market_clear(capacity, bids, n, scratch, x);
    for (size_t i = 0; i < n; i++)
        pods[i].overload_milli = x[i];
}

enum stage { STAGE_HELD, STAGE_ANNOTATION, STAGE_BOOST, STAGE_N };

/* What the pod should be guaranteed from this stage on. */
static int64_t stage_wish(const struct floor_pod *pod, enum stage stage, int64_t share_milli)
{
    if (stage == STAGE_HELD)
        return pod->held_milli;
    if (stage == STAGE_ANNOTATION)
        return pod->bounded_milli;
    int64_t boost = MIN(pod->boost_milli, share_milli);
    return pod->max_milli > 0 ? MIN(boost, pod->max_milli) : boost;
}

/* Raises guarantees to what the stage asks for, as far as there is room. Returns the rest of the
 * room. */
static int64_t grant_stage(enum stage stage, int64_t room, int64_t share_milli,
                           struct floor_pod *pods, size_t n, struct clear_scratch *scratch,
                           struct arena *a)
{
    static const enum floor_problem reduced[STAGE_N] = { FLOOR_HELD_REDUCED, FLOOR_MIN_REDUCED,
                                                         FLOOR_BOOST_REDUCED };
    struct bid *bids = arena_array(a, n, sizeof(*bids));
    int64_t *x = arena_array(a, n, sizeof(*x)), wishes = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t more = stage_wish(&pods[i], stage, share_milli) - pods[i].guaranteed_milli;
        bids[i] = (struct bid){ .max_milli = MAX(more, INT64_C(0)), .weight = 1 };
        wishes += bids[i].max_milli;
    }
    if (!wishes)
        return room;
    market_clear(room, bids, n, scratch, x);
    for (size_t i = 0; i < n; i++) {
        pods[i].guaranteed_milli += x[i];
        room -= x[i];
        if (x[i] < bids[i].max_milli)
            add_problem(&pods[i].problems, reduced[stage]);
    }
    return room;
}

struct floor_result floor_guarantee(const struct floor_rules *rules, struct floor_pod *pods,
                                    size_t n, struct clear_scratch *scratch, struct arena *a)
{
    int64_t share = floor_share(rules->capacity_milli, rules->max_share), sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct floor_pod *pod = &pods[i];
        bound_annotation(pod, share);
        int64_t baseline = rules->baseline_milli;
        if (pod->max_milli > 0)
            baseline = MIN(baseline, pod->max_milli);
        pod->baseline_milli = pod->guaranteed_milli = MAX(baseline, rules->absolute_min_milli);
        pod->overload_milli = 0;
        sum += pod->baseline_milli;
    }
    if (sum > rules->capacity_milli) {
        share_baselines(MAX(rules->capacity_milli, INT64_C(0)), pods, n, scratch, a);
        bool below = (int64_t)n * rules->absolute_min_milli > rules->capacity_milli;
        return (struct floor_result){ .overloaded = true, .below_kernel_minimum = below };
    }
    int64_t room = rules->capacity_milli - sum;
    for (enum stage stage = STAGE_HELD; stage < STAGE_N; stage++)
        room = grant_stage(stage, room, share, pods, n, scratch, a);
    return (struct floor_result){ .room_milli = room };
}
