/* The queue's promises, on a clock of our own. */
#include "base/clock.h"
#include "kube/workqueue.h"
#include "tap.h"

#define MS NS_PER_MS

static struct work_key *take_named(struct workqueue *q, const char *name, int64_t now)
{
    struct work_key *key = workqueue_take(q, now);
    if (OK(key))
        EQ_STR(key->name, str_c(name));
    return key;
}

static void a_key_is_queued_once(void)
{
    struct workqueue q;
    workqueue_init(&q);
    for (int i = 0; i < 5; i++)
        workqueue_add(&q, S("ns"), S("a"), 1);
    workqueue_add(&q, S("ns"), S("b"), 1);
    workqueue_add(&q, S("n"), S("sb"), 1); /* not the same key as ns/b */
    EQ_INT(q.ready.n, 3);
    EQ_INT(q.adds, 7);
    struct work_key *a = take_named(&q, "a", 2), *b = take_named(&q, "b", 2),
                    *c = take_named(&q, "sb", 2);
    OK(!workqueue_take(&q, 2));
    EQ_INT(workqueue_wake(&q, 2), INT64_MAX);
    workqueue_finish(&q, a, 3);
    workqueue_finish(&q, b, 3);
    workqueue_finish(&q, c, 3);
    EQ_INT(q.keys.n, 0);
    workqueue_done(&q);
}

static void work_on_a_key_never_overlaps(void)
{
    struct workqueue q;
    workqueue_init(&q);
    workqueue_add(&q, S(""), S("a"), 1);
    struct work_key *a = take_named(&q, "a", 1);
    workqueue_add(&q, S(""), S("a"), 2);
    workqueue_add(&q, S(""), S("a"), 2);
    OK(!workqueue_take(&q, 2));
    workqueue_finish(&q, a, 3);
    EQ_INT(q.ready.n, 1);
    a = take_named(&q, "a", 3);
    workqueue_finish(&q, a, 4);
    OK(!workqueue_take(&q, 4));
    workqueue_done(&q);
}

static void the_earliest_wish_wins(void)
{
    struct workqueue q;
    workqueue_init(&q);
    workqueue_add_at(&q, S(""), S("a"), 100, 1);
    workqueue_add_at(&q, S(""), S("a"), 50, 1);
    workqueue_add_at(&q, S(""), S("a"), 70, 1);
    EQ_INT(workqueue_wake(&q, 1), 50);
    OK(!workqueue_take(&q, 49));
    struct work_key *a = take_named(&q, "a", 50);
    workqueue_add_at(&q, S(""), S("a"), 60, 50); /* due while it is worked on */
    OK(!workqueue_take(&q, 61));
    workqueue_finish(&q, a, 62);
    a = take_named(&q, "a", 62);
    workqueue_add_at(&q, S(""), S("a"), 90, 62);
    workqueue_finish(&q, a, 63);
    EQ_INT(workqueue_wake(&q, 63), 90);
    workqueue_add(&q, S(""), S("a"), 64); /* now beats later */
    EQ_INT(workqueue_wake(&q, 64), 64);
    workqueue_finish(&q, take_named(&q, "a", 64), 65);
    EQ_INT(workqueue_wake(&q, 65), INT64_MAX);
    EQ_INT(q.keys.n, 0);
    workqueue_done(&q);
}

static void failures_back_off(void)
{
    struct workqueue q;
    workqueue_init(&q);
    int64_t now = NS_PER_S, waited[20];
    workqueue_add(&q, S(""), S("a"), now);
    for (int i = 0; i < 20; i++) {
        struct work_key *a = take_named(&q, "a", now);
        workqueue_add(&q, S(""), S("a"), now); /* no shortcut */
        int64_t at = workqueue_retry(&q, a, now);
        waited[i] = at - now;
        OK(!workqueue_take(&q, at - 1));
        now = at;
    }
    EQ_INT(waited[0], 5 * MS);
    EQ_INT(waited[1], 10 * MS);
    EQ_INT(waited[10], 5120 * MS);
    EQ_INT(waited[18], 1000000 * MS);
    EQ_INT(waited[19], 1000000 * MS);
    workqueue_finish(&q, take_named(&q, "a", now), now);
    EQ_INT(q.keys.n, 0); /* success forgets */
    workqueue_add(&q, S(""), S("a"), now);
    struct work_key *a = take_named(&q, "a", now);
    EQ_INT(workqueue_retry(&q, a, now) - now, 5 * MS);
    EQ_INT(q.retries, 21);
    workqueue_done(&q);
}

static void retries_share_a_limit(void)
{
    struct workqueue q;
    workqueue_init(&q);
    int64_t now = NS_PER_S, last = 0;
    char name[16];
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        workqueue_add(&q, S(""), str_c(name), now);
        last = workqueue_retry(&q, workqueue_take(&q, now), now);
        if (i < 100)
            EQ_INT(last - now, 5 * MS);
    }
    EQ_INT(last - now, 5000 * MS); /* 50 above the burst, 10 a second */
    workqueue_done(&q);
}

/* A key with a part that can wait gives way to all others, and is ready as usual once it is added. */
static void keys_can_give_way(void)
{
    struct workqueue q;
    workqueue_init(&q);
    workqueue_add(&q, S("n"), S("a"), 0);
    workqueue_add(&q, S("n"), S("b"), 0);
    struct work_key *a = workqueue_take(&q, 0);
    workqueue_add(&q, S("n"), S("a"), 0); /* looked at in the later turn */
    workqueue_finish_later(&q, a, 0);
    struct work_key *b = workqueue_take(&q, 0);
    EQ_STR(b->name, S("b"));
    OK(!workqueue_take(&q, 0));
    EQ_INT(workqueue_wake(&q, 5), 5);
    workqueue_finish_later(&q, b, 0);
    workqueue_add(&q, S("n"), S("b"), 1);
    EQ_STR(workqueue_take(&q, 1)->name, S("b"));
    a = workqueue_take_later(&q, 1);
    EQ_STR(a->name, S("a"));
    workqueue_finish(&q, a, 1);
    OK(!workqueue_take_later(&q, 1) && !workqueue_take(&q, 1));
    workqueue_finish(&q, b, 1);
    EQ_INT(workqueue_wake(&q, 1), INT64_MAX);
    workqueue_done(&q);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_key_is_queued_once),
                                        TAP(work_on_a_key_never_overlaps),
                                        TAP(the_earliest_wish_wins),
                                        TAP(failures_back_off),
                                        TAP(keys_can_give_way),
                                        TAP(retries_share_a_limit),
                                        { 0 } });
}
