/* Memory of a container: see memory_core.h.
 *
 * What was rejected, and what it cost on the two nodes of `flyball simulate market`: shrinking
 * limits to save memory (31 kills per pod and day on the short node), limits that add up to the
 * node (1.6 kills where usage fitted), and letting a leak grow into the known peaks of others.
 * Growth is therefore bounded by the room of the node: all known peaks must fit.
 *
 * Percentages are computed in integers and rounded down. Amounts are clamped to 2^53, far above
 * any node, so that no product overflows. */
#include "memory_core.h"

#include <math.h>

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define BYTES_MAX (INT64_C(1) << 53)

enum { DAY_S = 86400, HOUR_S = 3600, CHANGE_INTERVAL_S = 600, SHRINK_MINOR = 34 };

static int64_t percent(int64_t bytes, int64_t of_hundred)
{
    return bytes * of_hundred / 100;
}

static int64_t clamp_bytes(int64_t bytes)
{
    return MIN(MAX(bytes, INT64_C(0)), BYTES_MAX);
}

int64_t memory_need(int64_t working_set, const int64_t *hourly, size_t hours, const int64_t *daily,
                    size_t days)
{
    __extension__ typedef __int128 wide;
    int64_t need = clamp_bytes(working_set), hundreds = 1, share = 1; /* 0.95^k = share/hundreds */
    for (size_t i = 0; i < MIN(hours, (size_t)MEMORY_HOURS); i++)
        need = MAX(need, clamp_bytes(hourly[i]));
    for (size_t k = 0; k < MIN(days, (size_t)MEMORY_DAYS); k++) {
        need = MAX(need, (int64_t)((wide)clamp_bytes(daily[k]) * share / hundreds));
        share *= 95;
        hundreds *= 100;
    }
    return need;
}

int64_t memory_want(int64_t need)
{
    int64_t first = MIN(need, GIB), rest = need - first;
    return need + MAX(32 * MIB, percent(first, 15) + percent(rest, 10));
}

int64_t memory_guarded(int64_t working_set)
{
    return working_set + MAX(16 * MIB, working_set / 10);
}

struct memory_bid memory_bid(const struct memory_signals *s)
{
    int64_t ws = clamp_bytes(s->working_set), limit = clamp_bytes(s->limit);
    struct memory_bid bid = { .safe = MIN(limit, memory_guarded(ws)),
                              .want = memory_want(MAX(clamp_bytes(s->need), ws)) };
    if (s->since_oom_s < DAY_S) {
        int64_t killed = clamp_bytes(s->limit_at_oom);
        bid.want = MAX(bid.want, MAX(percent(killed, 120), killed + 100 * MIB));
    }
    double growth = s->slope > 0 ? floor(60 * s->slope) : 0;
    int64_t ahead = clamp_bytes(ws + (int64_t)MIN(growth, (double)BYTES_MAX));
    bool pressed = s->psi > 0.01;
    bid.urgent = 10 * MAX(ws, ahead) > 9 * limit || pressed;
    if (bid.urgent)
        bid.want = MAX(bid.want, MAX(percent(ws, 125), memory_guarded(ahead)));
    if (pressed)
        bid.want = MAX(bid.want, percent(limit, 110));
    return bid;
}

const char *memory_action_name(enum memory_action action)
{
    static const char *const names[MEMORY_ACTION_N] = { "keep", "grow", "shrink", "request" };
    return names[action];
}

static struct memory_change keep_limit(const struct memory_state *s, const char *reason)
{
    return (struct memory_change){ s->limit, s->request, MEMORY_KEEP, reason };
}

/* Why the container's memory cannot be changed at all; NULL: it can. */
static const char *find_obstacle(const struct memory_state *s)
{
    if (s->restarts_on_resize && !s->allow_restart)
        return "RestartContainer";
    if (s->swap && !s->restarts_on_resize)
        return "Swap";
    if (s->qos == MEMORY_BEST_EFFORT)
        return "BestEffort";
    return s->limit <= 0 ? "NoLimit" : NULL;
}

/* The request that goes with a new limit. */
static int64_t request_below(const struct memory_state *s, int64_t limit, int64_t wanted)
{
    return s->qos == MEMORY_GUARANTEED ? limit : MIN(limit - MIB, wanted);
}

static struct memory_change grow_limit(const struct memory_state *s)
{
    if (s->room < 0 || 20 * clamp_bytes(s->room) < s->limit)
        return keep_limit(s, "NoRoom");
    int64_t limit = MIN(s->want, s->limit + clamp_bytes(s->room));
    int64_t wanted = s->hpa_memory ? s->request : MAX(s->request, s->need);
    return (struct memory_change){ limit, request_below(s, limit, wanted), MEMORY_GROW, "Need" };
}

static bool can_shrink(const struct memory_state *s)
{
    return s->shrink && s->kubernetes_minor >= SHRINK_MINOR && 10 * s->want <= 9 * s->limit &&
           s->since_change_s >= CHANGE_INTERVAL_S && s->since_oom_s >= DAY_S &&
           s->since_psi_s >= CHANGE_INTERVAL_S && s->known_s >= HOUR_S;
}

/* The request alone, toward need; not for Guaranteed pods, whose limit would have to follow. */
static struct memory_change move_request(const struct memory_state *s)
{
    int64_t target = MIN(s->limit - MIB, s->need);
    if (s->hpa_memory || s->qos == MEMORY_GUARANTEED || s->known_s < HOUR_S ||
        s->since_change_s < CHANGE_INTERVAL_S)
        return keep_limit(s, "Enough");
    if (target > s->request)
        target = MIN(target, s->request + clamp_bytes(s->room));
    int64_t difference = target > s->request ? target - s->request : s->request - target;
    if (difference <= MAX(32 * MIB, s->request / 10) || target <= 0)
        return keep_limit(s, "Enough");
    return (struct memory_change){ s->limit, target, MEMORY_REQUEST, "Need" };
}

struct memory_change memory_settle(const struct memory_state *s)
{
    const char *obstacle = find_obstacle(s);
    if (obstacle)
        return keep_limit(s, obstacle);
    if (100 * s->want > 102 * s->limit + 100 * MIB)
        return grow_limit(s);
    if (can_shrink(s)) {
        int64_t least = MAX(percent(s->limit, 90), memory_guarded(s->working_set));
        int64_t limit = MAX(s->want, least);
        if (limit < s->limit)
            return (struct memory_change){ limit, request_below(s, limit, s->request),
                                           MEMORY_SHRINK, "Surplus" };
    }
    return move_request(s);
}
