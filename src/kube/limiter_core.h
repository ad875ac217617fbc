/* How many requests may be in flight: as many as the server takes without slowing down. Pure: no clock, no loop; `now` is an
 * argument.
 *
 *     if (limiter_can_send(&l, now))
 *         limiter_sent(&l, now);
 *     ...
 *     limiter_answered(&l, &(struct limiter_answer){ .kind = 1, .latency_ns = took }, now);
 *
 * A fixed number of requests per second is either too few for a fast server or too many for one in trouble, and the right
 * number depends on what the other clients do. Latency shows it: as long as it stays flat, another request in flight costs
 * no client anything; once it grows, requests only wait in the server instead of here, and every other client waits with them. */
#ifndef FLYBALL_KUBE_LIMITER_CORE_H
#define FLYBALL_KUBE_LIMITER_CORE_H

#include "../base/base.h"

enum {
    LIMITER_KINDS = 4,  /* of requests, whose latencies are compared only with their own */
    LIMITER_FIRST = 1,  /* in flight before anything is known */
    LIMITER_FLOOR = 1,  /* latency alone lowers the limit no further: see `base_ns` */
    LIMITER_MOST = 128, /* in flight */
};

struct limiter {
    double limit; /* requests in flight that are allowed, 1 to LIMITER_MOST */
    size_t in_flight;
    size_t fixed;                  /* this many instead; 0: adaptive */
    double base_ns[LIMITER_KINDS]; /* latency while few requests are in flight; 0: not known yet */

    /* the current window: about as many answers as requests fit in flight, which is one round trip */
    size_t samples, most_in_flight;
    float ratios[LIMITER_MOST]; /* of latency to base_ns */

    int64_t shrunk_ns; /* when the limit was last lowered; older requests cannot show its effect */
    double ceiling;    /* four fifths of the limit that the server refused... */
    int64_t ceiling_until_ns; /* ...is not exceeded before then; 0: it refused nothing */
    int64_t hold_until_ns;    /* the server asked to wait until then; 0: it did not */
    int64_t last_ns;          /* when a request was last sent or answered; 0: never */
    bool is_past_start;       /* the first growth, which doubles, is over */
};

enum limiter_verdict {
    LIMITER_SERVED,
    LIMITER_OVERLOADED, /* 429, 504, or Retry-After: the server takes no more */
    LIMITER_UNKNOWN,    /* cancelled, broken, or of a length of its own (a list): shows nothing */
};

struct limiter_answer {
    unsigned kind; /* below LIMITER_KINDS */
    enum limiter_verdict verdict;
    int64_t latency_ns;
    int64_t hold_ns; /* from Retry-After: send nothing for that time; 0: not requested */
};

/* `fixed`: exactly this many in flight, for users who know better; 0: adaptive. */
void limiter_init(struct limiter *l, size_t fixed);
bool limiter_can_send(const struct limiter *l, int64_t now_ns);
/* When limiter_can_send() may become true without an answer; INT64_MAX: not by itself. */
int64_t limiter_wake_ns(const struct limiter *l, int64_t now_ns);
void limiter_sent(struct limiter *l, int64_t now_ns);
void limiter_answered(struct limiter *l, const struct limiter_answer *answer, int64_t now_ns);

#endif
