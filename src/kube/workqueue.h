/* Keys waiting to be reconciled. Pure: no clock, no loop; `now` is an argument.
 *
 * A key is in the queue at most once, no matter how often it was added. A key that is added while it is
 * worked on is given out again once, after that work. A key can be added with a delay; the earliest time
 * wins. A key that failed is retried after 5 ms, doubling to 1000 s; all retries together are limited to 10
 * per second with bursts of 100. */
#ifndef FLYBALL_KUBE_WORKQUEUE_H
#define FLYBALL_KUBE_WORKQUEUE_H

#include "../base/heap.h"
#include "../base/list.h"
#include "../base/set.h"

struct work_key {
    struct set_node node;
    struct heap_node due;   /* in the heap while it waits */
    struct list_item ready; /* in the list while it is ready */
    int64_t ready_ns;       /* when it became ready, for metrics */
    int64_t started_ns;     /* when it was given out */
    uint32_t failures;      /* in a row */
    uint32_t skipped;       /* reports in a row that were not sent; see controller.c */
    bool working, again;    /* `again`: added while worked on */
    str ns, name;           /* stored behind the struct */
};

struct workqueue {
    struct set keys;   /* owned: every key that is ready, working, waiting or has failed */
    struct list ready; /* first in, first out */
    struct list later; /* the same, for keys that give way to all others */
    struct heap waiting;
    double tokens;     /* of the retry limit */
    int64_t tokens_ns; /* when `tokens` was updated */
    uint64_t adds, retries;
};

void workqueue_init(struct workqueue *q);
void workqueue_done(struct workqueue *q);

void workqueue_add(struct workqueue *q, str ns, str name, int64_t now_ns);
void workqueue_add_at(struct workqueue *q, str ns, str name, int64_t at_ns, int64_t now_ns);

/* Success, with a part left that can wait: the key is given out again by workqueue_take_later(). Adding it meanwhile makes it
 * ready as usual. */
void workqueue_finish_later(struct workqueue *q, struct work_key *key, int64_t now_ns);
/* The next one of those; NULL: there is none. Called when workqueue_take() returned NULL. */
struct work_key *workqueue_take_later(struct workqueue *q, int64_t now_ns);

/* The next key to work on, or NULL. It must be given back with finish or retry. */
struct work_key *workqueue_take(struct workqueue *q, int64_t now_ns);
/* Success: resets the failure count. May free `key`. */
void workqueue_finish(struct workqueue *q, struct work_key *key, int64_t now_ns);
/* Failure: the key waits for its backoff, even if it was added meanwhile. Returns when it is due. */
int64_t workqueue_retry(struct workqueue *q, struct work_key *key, int64_t now_ns);
/* The same with a backoff of at most `most_ns`: for a cause that may be gone soon. */
int64_t workqueue_retry_within(struct workqueue *q, struct work_key *key, int64_t most_ns,
                               int64_t now_ns);

/* The cause of failures is gone: resets all failure counts and makes keys that wait after one ready. */
void workqueue_retry_now(struct workqueue *q, int64_t now_ns);

/* When workqueue_take() may next return a key: `now_ns` if one is ready, INT64_MAX if none waits. */
int64_t workqueue_wake(const struct workqueue *q, int64_t now_ns);

#endif
