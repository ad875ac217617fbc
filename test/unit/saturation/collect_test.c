/* Feeds that fetch in the background, without a server. */
#include "tap.h"

#include "saturation/collect/collect.h"

#include <stdio.h>

enum { FEEDS = 200, INTERVAL_S = 30 };

struct tenant {
    struct sat_feed feed;
    char ns[16];
    int64_t at_ns[3]; /* of the fetches */
    int n;
};

static void ask(void *context, struct sat_feed *feed)
{
    struct loop *loop = context;
    struct tenant *t = container_of(feed, struct tenant, feed);
    if (t->n < (int)countof(t->at_ns))
        t->at_ns[t->n++] = loop_mono_ns(loop);
}

static void fetched(void *context, struct sat_feed *feed, bool first)
{
    (void)context, (void)feed, (void)first;
}

static void at_end(struct timer *timer)
{
    (void)timer; /* only there for time to reach it */
}

/* All begin at once; from then on each has a place of its own, though all have the same model. */
static void fetches_are_spread_over_the_interval(void)
{
    static struct tenant tenants[FEEDS];
    struct loop *loop;
    struct timer end = { 0 };
    int by_second[INTERVAL_S] = { 0 };
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, &e), &e);
    struct sat_collector collector = {
        .loop = loop, .pods = ask, .fetched = fetched, .context = loop
    };
    int64_t begun = loop_mono_ns(loop);
    for (int i = 0; i < FEEDS; i++) {
        struct tenant *t = &tenants[i];
        snprintf(t->ns, sizeof(t->ns), "tenant-%d", i);
        t->feed = (struct sat_feed){ .ns = str_c(t->ns),
                                     .model = S("llama"),
                                     .interval_ns = INTERVAL_S * NS_PER_S };
        collect_start(&t->feed, &collector);
    }
    timer_set(loop, &end, begun + 2 * INTERVAL_S * NS_PER_S, at_end);
    while (timer_is_set(&end))
        loop_turn(loop);
    for (int i = 0; i < FEEDS; i++) {
        const struct tenant *t = &tenants[i];
        EQ_INT(t->at_ns[0], begun);
        int64_t second = (t->at_ns[1] - begun) / NS_PER_S;
        OK(second >= INTERVAL_S / 2 && second < INTERVAL_S);
        EQ_INT(t->at_ns[2] - t->at_ns[1], INTERVAL_S * NS_PER_S);
        by_second[second % INTERVAL_S]++;
        collect_stop(&tenants[i].feed);
    }
    for (int i = INTERVAL_S / 2; i < INTERVAL_S; i++)
        OK(by_second[i] > 0 && by_second[i] < 3 * FEEDS / (INTERVAL_S / 2));
    loop_free(loop);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(fetches_are_spread_over_the_interval), { 0 } });
}
