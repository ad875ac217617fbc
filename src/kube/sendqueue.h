/* Requests that wait to be sent, and which of them is next. Pure: no clock, no loop; `now` is an argument.
 *
 *     class     leases, lists and watches; then workloads; then status; then events
 *     owner     within a class, owners (controllers) take turns
 *     flow      within an owner, flows (namespaces) take turns
 *     order     within a flow, first come, first served; one that replaces another, which was not sent, comes first
 *
 * So the storm of one controller or tenant delays another by one request, not by all of its own. A class that has waited too
 * long behind the ones above gets every fourth turn: status is late in a storm, but not lost. */
#ifndef FLYBALL_KUBE_SENDQUEUE_H
#define FLYBALL_KUBE_SENDQUEUE_H

#include "../base/list.h"
#include "../base/map.h"

enum send_class {
    SEND_URGENT,   /* leases; lists and watches, which everything else depends on */
    SEND_WORKLOAD, /* what users notice: specs, scale, reads */
    SEND_STATUS,
    SEND_EVENT,
    SEND_CLASS_N
};

struct sendqueue_item { /* embedded in the request; `{0}`: in no queue */
    struct list_item flow, age;
    struct send_lane *lane; /* NULL: in no queue */
    enum send_class class;
    bool replaces; /* set by the caller: it takes the place of one that was not sent */
    struct send_flow *of;
    int64_t since_ns;
};

struct send_flow {         /* exists while it has items */
    uint64_t hash;         /* of the namespace: the key in the lane's map */
    struct list items;     /* struct sendqueue_item: flow */
    struct list_item item; /* of the lane's list */
};

struct send_lane {           /* the requests of one owner in one class */
    struct list_item active; /* in the class's list while it has items */
    struct send_lane *next;
    const void *owner;
    struct map by_hash; /* struct send_flow, owned */
    struct list flows;  /* the same; the first one is next */
};

struct sendqueue { /* `{0}`: empty */
    struct {
        struct send_lane *all; /* owned */
        struct list lanes;     /* struct send_lane with items; the first one is next */
        struct list ages;      /* struct sendqueue_item: age; the oldest first */
    } classes[SEND_CLASS_N];
    size_t n, turns;
};

void sendqueue_done(struct sendqueue *q); /* it must be empty */

/* `owner` is only compared; `flow` is a hash of the namespace. */
void sendqueue_add(struct sendqueue *q, struct sendqueue_item *item, enum send_class class,
                   const void *owner, uint64_t flow, int64_t now_ns);
/* The next one, which stays in the queue; NULL: it is empty. */
struct sendqueue_item *sendqueue_next(const struct sendqueue *q, int64_t now_ns);
/* Removes it because it is sent: its owner and flow go to the back. */
void sendqueue_take(struct sendqueue *q, struct sendqueue_item *item);
/* Removes it for another reason; nothing happens if it is in no queue. */
void sendqueue_remove(struct sendqueue *q, struct sendqueue_item *item);

#endif
