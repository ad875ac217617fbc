/* Which requests follow the shares of the market, and in what order.
 *
 * The scheduler and the kubelet admit by requests, so their sum must stay within what the node
 * can allocate: a rise waits for a fall. Requests fall only when a rise needs the room, because a
 * request that is too high costs no other pod anything until then. */
#ifndef FLYBALL_REQUEST_CORE_H
#define FLYBALL_REQUEST_CORE_H

#include "../base/arena.h"
#include "clear_core.h"

enum request_reason { REQUEST_KEEP, REQUEST_SET, REQUEST_DEFERRED, REQUEST_REASON_N };
const char *request_reason_name(enum request_reason reason);

struct request_pod {
    int64_t share_milli;
    int64_t limit_milli;   /* that will be in force; at least 2 */
    int64_t request_milli; /* in force; the result replaces it */
    int64_t held_milli;    /* held for an HPA; 0: not held */
    int64_t since_s;       /* since the request was last changed */
    bool guaranteed;       /* QoS class: request and limit stay equal */
    bool writable;         /* false: a resize is in flight, or was just made */
    bool with_limit;       /* the limit is written in this round anyway */

    enum request_reason reason; /* result */
};

/* Sets request_milli and reason of every pod; returns what is left of `allocatable_milli`. The sum
 * of the requests never exceeds the larger of allocatable and their sum before. */
int64_t request_settle(int64_t allocatable_milli, struct request_pod *pods, size_t n,
                       struct clear_scratch *scratch, struct arena *a);

#endif
