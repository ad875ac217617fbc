/* Which request is sent next: classes, owners and flows in turn. */
#include "base/clock.h"
#include "base/random.h"
#include "kube/sendqueue.h"
#include "tap.h"

struct request {
    struct sendqueue_item item;
    int owner, flow, number;
};

static char owners[8];

static void add(struct sendqueue *q, struct request *r, enum send_class class, int owner, int flow,
                int64_t now)
{
    r->owner = owner;
    r->flow = flow;
    sendqueue_add(q, &r->item, class, &owners[owner], (uint32_t)flow, now);
}

static struct request *take_next(struct sendqueue *q, int64_t now)
{
    struct sendqueue_item *next = sendqueue_next(q, now);
    if (!next)
        return NULL;
    sendqueue_take(q, next);
    return container_of(next, struct request, item);
}

static void classes_come_in_order(void)
{
    struct sendqueue q = { 0 };
    struct request r[4] = { 0 };
    for (int i = 0; i < 4; i++)
        add(&q, &r[i], (enum send_class)(SEND_CLASS_N - 1 - i), 0, 0, 0);
    for (int i = 4; i-- > 0;)
        OK(take_next(&q, 1) == &r[i]);
    OK(!take_next(&q, 1));
    EQ_INT(q.n, 0);
    sendqueue_done(&q);
}

/* A thousand requests of one controller and tenant delay those of others by one each. */
static void owners_and_flows_take_turns(void)
{
    struct sendqueue q = { 0 };
    static struct request many[1000], one, other;
    for (int i = 0; i < 1000; i++)
        add(&q, &many[i], SEND_WORKLOAD, 0, 0, 0);
    add(&q, &other, SEND_WORKLOAD, 1, 0, 0); /* another controller */
    add(&q, &one, SEND_WORKLOAD, 0, 1, 0);   /* the same one, another namespace */
    OK(take_next(&q, 1) == &many[0]);
    OK(take_next(&q, 1) == &other);
    OK(take_next(&q, 1) == &one);
    for (int i = 1; i < 1000; i++)
        if (!OK(take_next(&q, 1) == &many[i])) /* and its own stay in order */
            break;
    sendqueue_done(&q);
}

/* However many namespaces there are, none shares the turns of one with a storm. */
static void no_flow_is_shared(void)
{
    enum { STORM = 1000, OTHERS = 200 };
    struct sendqueue q = { 0 };
    static struct request many[STORM], others[OTHERS];
    for (int i = 0; i < STORM; i++)
        add(&q, &many[i], SEND_WORKLOAD, 0, 0, 0);
    for (int i = 0; i < OTHERS; i++)
        add(&q, &others[i], SEND_WORKLOAD, 0, i + 1, 0);
    OK(take_next(&q, 1) == &many[0]);
    for (int i = 0; i < OTHERS; i++)
        if (!OK(take_next(&q, 1) == &others[i]))
            break;
    while (take_next(&q, 1))
        ;
    sendqueue_done(&q);
}

/* One that replaces another has its place: before the others of its flow, but not before other flows' turns. */
static void a_replacement_keeps_the_place(void)
{
    struct sendqueue q = { 0 };
    struct request r[4] = { 0 };
    for (int i = 0; i < 3; i++)
        add(&q, &r[i], SEND_WORKLOAD, 0, i == 2, 0);
    sendqueue_remove(&q, &r[0].item); /* not sent */
    r[3].item.replaces = true;
    add(&q, &r[3], SEND_WORKLOAD, 0, 0, 0);
    OK(take_next(&q, 1) == &r[3]);
    OK(take_next(&q, 1) == &r[2]);
    OK(take_next(&q, 1) == &r[1]);
    sendqueue_done(&q);
}

/* Every fourth turn goes to a class that has waited too long. */
static void nothing_waits_for_ever(void)
{
    struct sendqueue q = { 0 };
    static struct request work[40], status;
    int64_t now = 20 * NS_PER_S;
    add(&q, &status, SEND_STATUS, 0, 0, 0);
    for (int i = 0; i < 40; i++)
        add(&q, &work[i], SEND_WORKLOAD, 0, 0, 0);
    int turn = 0;
    while (take_next(&q, now) != &status)
        turn++;
    OK(turn < 4);
    struct request *r;
    while ((r = take_next(&q, NS_PER_S))) /* but not if it came a moment ago */
        if (r == &work[5])
            add(&q, &status, SEND_STATUS, 0, 0, NS_PER_S);
        else if (r == &status)
            EQ_INT(q.n, 0);
    sendqueue_done(&q);
}

/* Random adds, takes and removals against a count: nothing is lost, and what is given out is of the first class. */
static void random_histories(void)
{
    enum { N = 300 };
    struct sendqueue q = { 0 };
    static struct request r[N];
    struct random random;
    size_t waiting[SEND_CLASS_N] = { 0 };
    random_init(&random, 5, 1);
    for (int step = 0; step < 20000; step++) {
        struct request *one = &r[random_below(&random, N)];
        if (!one->item.lane && random_below(&random, 3)) {
            enum send_class class = (enum send_class)random_below(&random, SEND_CLASS_N);
            add(&q, one, class, (int)random_below(&random, 8), (int)random_below(&random, 100), 0);
            waiting[class]++;
        } else if (one->item.lane && !random_below(&random, 4)) {
            waiting[one->item.class]--;
            sendqueue_remove(&q, &one->item);
            sendqueue_remove(&q, &one->item); /* twice has no effect */
        } else if ((one = take_next(&q, 0))) {
            for (size_t c = 0; c < one->item.class; c++)
                if (!OK(!waiting[c])) /* a higher class must not wait */
                    return;
            waiting[one->item.class]--;
        }
        if (!OK(q.n == waiting[0] + waiting[1] + waiting[2] + waiting[3]))
            return;
    }
    while (take_next(&q, 0))
        ;
    EQ_INT(q.n, 0);
    sendqueue_done(&q);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(classes_come_in_order),
                                        TAP(owners_and_flows_take_turns),
                                        TAP(no_flow_is_shared),
                                        TAP(a_replacement_keeps_the_place),
                                        TAP(nothing_waits_for_ever),
                                        TAP(random_histories),
                                        { 0 } });
}
