/* Keys waiting to be reconciled. Pure: no clock, no loop; `now` is an argument.
 *
 * A key is in the queue once, however often it was added. One that is added while it is being worked
 * on is not given out again before that work is done, and then once. A key can be added for later; the
 * earliest wish wins. A key that failed comes back after 5 ms, doubling to 1000 s, and all retries
 * together at most 10 a second with bursts of 100. */
#ifndef FLYBALL_KUBE_WORKQUEUE_H
#define FLYBALL_KUBE_WORKQUEUE_H

#include "../base/heap.h"
#include "../base/set.h"

struct work_key {
    struct set_node node;
    struct heap_node due;       /* waiting for its time */
    struct work_key *next;      /* of the ready list */
    int64_t ready_ns;           /* when it became ready: for metrics */
    int64_t started_ns;         /* when it was given out */
    uint32_t failures;          /* in a row */
    bool ready, working, again; /* `again`: added while worked on */
    str ns, name;               /* point behind the struct */
};

struct workqueue {
    struct set keys; /* owned: every key that is ready, working, waiting or has failed */
    struct work_key *first, **last; /* ready, in the order they came */
    struct heap waiting;
    double tokens;     /* of the limit on retries */
    int64_t tokens_ns; /* when it was last filled */
    size_t depth;      /* ready */
    uint64_t adds, retries;
};

void workqueue_init(struct workqueue *q);
void workqueue_done(struct workqueue *q);

void workqueue_add(struct workqueue *q, str ns, str name, int64_t now_ns);
void workqueue_add_at(struct workqueue *q, str ns, str name, int64_t at_ns, int64_t now_ns);

/* The next key to work on, or NULL. It must be given back with finish or retry. */
struct work_key *workqueue_take(struct workqueue *q, int64_t now_ns);
/* Work went well: failures are forgotten. `key` may be gone afterwards. */
void workqueue_finish(struct workqueue *q, struct work_key *key, int64_t now_ns);
/* Work failed: again after its backoff, also when it was added meanwhile, as what fails is not helped
 * by haste. Returns when. */
int64_t workqueue_retry(struct workqueue *q, struct work_key *key, int64_t now_ns);

/* What they failed of is over: failures are forgotten, and all that wait after one are ready. */
void workqueue_retry_now(struct workqueue *q, int64_t now_ns);

/* When workqueue_take() may have something: INT64_MAX when nothing waits, `now_ns` at once. */
int64_t workqueue_wake(const struct workqueue *q, int64_t now_ns);

#endif
