/* The memory of a node's containers over time: see memory_track_core.h.
 *
 * The room of a node is what is left of 95 % of its allocatable memory when every container is at
 * its known peak. Growth within a round shares it. Requests have a room of their own, because the
 * kubelet defers a resize whose requests do not fit, and with it the limit that was to grow. */
#include "memory_track_core.h"

enum { RECENT_S = 60, SLOPE_READINGS = 6, ROOM_PERCENT = 95 };
enum { TRACK_HOUR_S = 3600, TRACK_DAY_S = 86400 };

/* ---- one container */

/* Moves the ring so that [0] is the present period. */
static void shift_ring(int64_t *ring, int64_t n, int64_t periods)
{
    for (int64_t i = n; i-- > 0 && periods > 0;)
        ring[i] = i >= periods ? ring[i - periods] : 0;
}

static void note_recent(struct memory_track *t, int64_t now_s, int64_t working_set)
{
    int keep = 0;
    for (int i = 0; i < t->recent_n; i++)
        if (now_s - t->recent_s[i] <= RECENT_S && t->recent_n - i < MEMORY_RECENT) {
            t->recent[keep] = t->recent[i];
            t->recent_s[keep++] = t->recent_s[i];
        }
    t->recent[keep] = working_set;
    t->recent_s[keep] = now_s;
    t->recent_n = keep + 1;
}

void memory_track_sample(struct memory_track *t, int64_t now_s, int64_t working_set, double psi)
{
    if (t->first_s) {
        shift_ring(t->hourly, MEMORY_HOURS, now_s / TRACK_HOUR_S - t->read_s / TRACK_HOUR_S);
        shift_ring(t->daily, MEMORY_DAYS, now_s / TRACK_DAY_S - t->read_s / TRACK_DAY_S);
    } else {
        t->first_s = now_s;
    }
    t->read_s = now_s;
    t->working_set = working_set;
    t->psi = psi;
    t->hourly[0] = MAX(t->hourly[0], working_set);
    t->daily[0] = MAX(t->daily[0], working_set);
    if (psi > 0.01)
        t->pressed_s = now_s;
    note_recent(t, now_s, working_set);
}

void memory_track_oom(struct memory_track *t, int64_t now_s, int64_t limit)
{
    t->oom_s = now_s;
    t->limit_at_oom = limit;
    t->recent_n = 0; /* the container starts again: the way down is no slope */
}

int64_t memory_track_need(const struct memory_track *t)
{
    return memory_need(t->working_set, t->hourly, MEMORY_HOURS, t->daily, MEMORY_DAYS);
}

static double slope_of(const struct memory_track *t)
{
    if (t->recent_n < SLOPE_READINGS)
        return 0;
    int last = t->recent_n - 1;
    int64_t seconds = t->recent_s[last] - t->recent_s[0];
    return seconds > 0 ? (double)(t->recent[last] - t->recent[0]) / (double)seconds : 0;
}

static int64_t seconds_since(int64_t then_s, int64_t now_s)
{
    return then_s ? MAX(now_s - then_s, (int64_t)0) : MEMORY_NEVER;
}

struct memory_bid memory_track_bid(const struct memory_track *t, int64_t now_s, int64_t limit)
{
    return memory_bid(&(struct memory_signals){ .working_set = t->working_set,
                                                .limit = limit,
                                                .need = memory_track_need(t),
                                                .psi = t->psi,
                                                .slope = slope_of(t),
                                                .since_oom_s = seconds_since(t->oom_s, now_s),
                                                .limit_at_oom = t->limit_at_oom });
}

/* ---- the node */

/* What a container must be able to have: its known peak, or more than it uses now. */
static int64_t claim_of(const struct memory_container *c)
{
    return MAX(memory_track_need(c->track), memory_guarded(c->track->working_set));
}

static void measure_node(struct memory_node *node, struct memory_container *containers, size_t n,
                         int64_t *ret_request_room)
{
    int64_t claimed = node->others, safe = node->others, requested = node->others_requested;
    node->demand = node->others;
    for (size_t i = 0; i < n; i++) {
        struct memory_container *c = &containers[i];
        c->bid = memory_track_bid(c->track, node->now_s, c->limit);
        claimed += claim_of(c);
        safe += c->bid.safe;
        requested += c->request;
        node->demand += c->bid.want;
    }
    node->room = node->allocatable / 100 * ROOM_PERCENT - claimed;
    node->overloaded = safe > node->allocatable;
    *ret_request_room = MAX(node->allocatable - requested, (int64_t)0);
}

static struct memory_change settle_container(const struct memory_node *node,
                                             const struct memory_container *c, int64_t room)
{
    struct memory_track *t = c->track;
    return memory_settle(&(struct memory_state){
        .working_set = t->working_set,
        .limit = c->limit,
        .request = c->request,
        .need = memory_track_need(t),
        .want = node->requests_only ? 0 : c->bid.want, /* no growth */
        .room = room,
        .restarts_on_resize = c->restarts_on_resize,
        .allow_restart = c->allow_restart,
        .swap = c->swap,
        .qos = c->qos,
        .shrink = c->shrink && !node->requests_only,
        .kubernetes_minor = node->kubernetes_minor,
        .known_s = t->first_s ? node->now_s - t->first_s : 0,
        .since_change_s = seconds_since(t->changed_s, node->now_s),
        .since_oom_s = seconds_since(t->oom_s, node->now_s),
        .since_psi_s = seconds_since(t->pressed_s, node->now_s),
        .hpa_memory = c->hpa_memory,
    });
}

static void decide_container(struct memory_node *node, struct memory_container *c, int64_t *room,
                             int64_t *request_room)
{
    c->change = (struct memory_change){ c->limit, c->request, MEMORY_KEEP, "Applying" };
    if (c->busy)
        return;
    c->change = settle_container(node, c, *room);
    int64_t rise = MAX(c->change.request - c->request, (int64_t)0);
    if (rise > *request_room && c->qos == MEMORY_GUARANTEED)
        c->change = (struct memory_change){ c->limit, c->request, MEMORY_KEEP, "NoRoom" };
    else if (rise > *request_room)
        c->change.request = c->request + *request_room;
    if (c->change.limit == c->limit && c->change.request == c->request)
        c->change.action = MEMORY_KEEP;
    if (c->change.action == MEMORY_KEEP)
        return;
    *request_room -= MAX(c->change.request - c->request, (int64_t)0);
    *room -= MAX(c->change.limit - c->limit, (int64_t)0);
    c->track->changed_s = node->now_s;
}

void memory_round(struct memory_node *node, struct memory_container *containers, size_t n)
{
    int64_t request_room;
    measure_node(node, containers, n, &request_room);
    int64_t room = node->allocatable > 0 ? node->room : -1;
    for (int urgent = 1; urgent >= 0; urgent--)
        for (size_t i = 0; i < n; i++)
            if (containers[i].bid.urgent == urgent)
                decide_container(node, &containers[i], &room, &request_room);
}
