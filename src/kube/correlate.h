/* What becomes of an event: dropped, combined, counted or new. Pure: `now` is an argument.
 *
 *   spam       an object gets 25 at once, then one in 300 s
 *   combined   more than 10 that differ only in their message within 600 s share one event
 *   repeated   the same again raises the count of the first
 *
 * Memory is bounded: of each kind of fact the 1,024 last used are kept. */
#ifndef FLYBALL_KUBE_CORRELATE_H
#define FLYBALL_KUBE_CORRELATE_H

#include "../base/map.h"

struct correlate_fact;

struct correlate {
    struct map facts;                       /* by their key */
    struct correlate_fact *newest, *oldest; /* by last use */
};

struct correlate_in {
    str object; /* which object, by which component */
    str alike;  /* all but the message */
    str message;
};

struct correlated {
    bool drop;
    bool combined; /* the message is to be marked as standing for several */
    int64_t count; /* 1: a new event */
    int64_t first_ns;
    /* Where the caller keeps the name of the event that was written; lives until the fact is forgotten
     * and is empty for a new one. */
    char *name;
};

enum { CORRELATE_NAME_MAX = 320 };

void correlate_done(struct correlate *c);
struct correlated correlate(struct correlate *c, const struct correlate_in *in, int64_t now_ns);

#endif
