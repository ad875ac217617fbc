/* Requests that wait to be sent: see sendqueue.h.
 *
 *     class --> lanes (one per owner, round robin) --> flows (one per namespace, round robin) --> items
 *           \-> ages (all items of the class, oldest first)
 *
 * Lanes are made when an owner first waits in a class and stay, because owners are few and live as long as the client. Flows
 * exist while something waits in them: namespaces are many. A fixed number of flows, shared by hash, was rejected: a namespace
 * that shares one with a storm would wait for all of it. */
#include "sendqueue.h"

#include "../base/clock.h"

enum { LATE_TURN = 4 }; /* every fourth turn may go to a class that waits too long */

/* How long a class waits behind the others before it gets turns of its own. */
static const int64_t late_ns[SEND_CLASS_N] = { [SEND_URGENT] = INT64_MAX,
                                               [SEND_WORKLOAD] = INT64_MAX,
                                               [SEND_STATUS] = 15 * NS_PER_S,
                                               [SEND_EVENT] = 30 * NS_PER_S };

void sendqueue_done(struct sendqueue *q)
{
    for (size_t i = 0; i < SEND_CLASS_N; i++)
        for (struct send_lane *lane = q->classes[i].all, *next; lane; lane = next) {
            next = lane->next;
            map_done(&lane->by_hash);
            free(lane);
        }
    *q = (struct sendqueue){ 0 };
}

static struct send_lane *get_lane(struct sendqueue *q, enum send_class class, const void *owner)
{
    struct send_lane *lane = q->classes[class].all;
    while (lane && lane->owner != owner)
        lane = lane->next;
    if (lane)
        return lane;
    lane = mem_zero(1, sizeof(*lane));
    lane->owner = owner;
    lane->next = q->classes[class].all;
    q->classes[class].all = lane;
    return lane;
}

static str flow_key(const uint64_t *hash)
{
    return (str){ (const char *)hash, sizeof(*hash) };
}

static struct send_flow *get_flow(struct send_lane *lane, uint64_t hash)
{
    struct send_flow *flow = map_get(&lane->by_hash, flow_key(&hash));
    if (flow)
        return flow;
    flow = mem_zero(1, sizeof(*flow));
    flow->hash = hash;
    map_put(&lane->by_hash, flow_key(&flow->hash), flow);
    list_append(&lane->flows, &flow->item);
    return flow;
}

static void free_flow(struct send_lane *lane, struct send_flow *flow)
{
    map_del(&lane->by_hash, flow_key(&flow->hash));
    list_remove(&flow->item);
    free(flow);
}

void sendqueue_add(struct sendqueue *q, struct sendqueue_item *item, enum send_class class,
                   const void *owner, uint64_t flow, int64_t now_ns)
{
    struct send_lane *lane = get_lane(q, class, owner);
    item->lane = lane;
    item->class = class;
    item->of = get_flow(lane, flow);
    item->since_ns = now_ns;
    if (item->replaces)
        list_prepend(&item->of->items, &item->flow);
    else
        list_append(&item->of->items, &item->flow);
    list_append(&q->classes[class].ages, &item->age);
    if (!lane->active.in)
        list_append(&q->classes[class].lanes, &lane->active);
    q->n++;
}

/* The oldest item of the lowest class that waits too long. */
static struct sendqueue_item *find_late(const struct sendqueue *q, int64_t now_ns)
{
    for (size_t i = SEND_CLASS_N; i-- > 0;) {
        struct sendqueue_item *oldest = list_first(&q->classes[i].ages, struct sendqueue_item, age);
        if (oldest && now_ns - oldest->since_ns > late_ns[i])
            return oldest;
    }
    return NULL;
}

struct sendqueue_item *sendqueue_next(const struct sendqueue *q, int64_t now_ns)
{
    bool is_late_turn = !q->classes[SEND_URGENT].lanes.n && q->turns % LATE_TURN == LATE_TURN - 1;
    struct sendqueue_item *late = is_late_turn ? find_late(q, now_ns) : NULL;
    if (late)
        return late;
    for (size_t i = 0; i < SEND_CLASS_N; i++) {
        struct send_lane *lane = list_first(&q->classes[i].lanes, struct send_lane, active);
        struct send_flow *flow = lane ? list_first(&lane->flows, struct send_flow, item) : NULL;
        if (flow)
            return list_first(&flow->items, struct sendqueue_item, flow);
    }
    return NULL;
}

void sendqueue_remove(struct sendqueue *q, struct sendqueue_item *item)
{
    struct send_lane *lane = item->lane;
    if (!lane)
        return;
    list_remove(&item->flow);
    list_remove(&item->age);
    item->lane = NULL;
    if (!item->of->items.n)
        free_flow(lane, item->of);
    if (!lane->flows.n)
        list_remove(&lane->active);
    q->n--;
}

void sendqueue_take(struct sendqueue *q, struct sendqueue_item *item)
{
    struct send_lane *lane = item->lane;
    list_move(&lane->flows, &item->of->item);
    sendqueue_remove(q, item);
    q->turns++;
    if (lane->active.in)
        list_move(&q->classes[item->class].lanes, &lane->active);
}
