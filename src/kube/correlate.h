/* Decides what happens to an event: dropped, combined, counted or new. Pure: `now` is an argument.
 *
 *   spam       an object may emit 25 at once, then one per 300 s
 *   combined   more than 10 within 600 s that differ only in their message share one event
 *   repeated   the same event again increments the count of the first
 *
 * Memory is bounded: the 3,072 most recently used facts are kept. */
#ifndef FLYBALL_KUBE_CORRELATE_H
#define FLYBALL_KUBE_CORRELATE_H

#include "../base/map.h"

struct correlate_fact;

struct correlate {
    struct map facts;                       /* by their key */
    struct correlate_fact *newest, *oldest; /* by last use */
};

struct correlate_in {
    str object; /* identifies the object */
    str alike;  /* everything but the message */
    str message;
};

struct correlated {
    bool drop;
    bool combined; /* the message must be marked as combined */
    int64_t count; /* 1: a new event */
    int64_t first_ns;
    /* Buffer in which the caller keeps the name of the Event it wrote; empty for a new one. Valid until the
     * next call. */
    char *name;
};

enum { CORRELATE_NAME_MAX = 320 };

void correlate_done(struct correlate *c);
struct correlated correlate(struct correlate *c, const struct correlate_in *in, int64_t now_ns);

#endif
