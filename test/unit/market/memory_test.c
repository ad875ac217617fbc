/* The memory of a node's containers over time: what is remembered, who grows first, and what never
 * happens, on random nodes. */
#include "tap.h"

#include "base/random.h"
#include "market/memory_track_core.h"

enum { NODES = 10000, CONTAINERS_MAX = 12 };
static const int64_t mib = 1 << 20, hour_s = 3600, day_s = 86400;

static void peaks_are_remembered_by_hour_and_day(void)
{
    struct memory_track t = { 0 };
    memory_track_sample(&t, 10, 900 * mib, 0);
    memory_track_sample(&t, 20, 100 * mib, 0);
    EQ_INT(memory_track_need(&t), 900 * mib);
    memory_track_sample(&t, 10 + 25 * hour_s, 100 * mib, 0); /* beyond the hours: a day ago */
    EQ_INT(memory_track_need(&t), 900 * mib * 95 / 100);
    memory_track_sample(&t, 10 + 8 * day_s, 100 * mib, 0);
    EQ_INT(memory_track_need(&t), 100 * mib);
}

static void growth_of_a_minute_is_seen_before_the_limit(void)
{
    struct memory_track t = { 0 };
    for (int k = 0; k < 5; k++)
        memory_track_sample(&t, 10 + 10 * k, (200 + 30 * k) * mib, 0);
    OK(!memory_track_bid(&t, 50, 512 * mib).urgent); /* five readings are no slope */
    memory_track_sample(&t, 60, 350 * mib, 0);
    struct memory_bid bid = memory_track_bid(&t, 60, 512 * mib);
    OK(bid.urgent);
    OK(bid.want > 512 * mib);
    memory_track_oom(&t, 70, 512 * mib);
    memory_track_sample(&t, 80, 200 * mib, 0);
    OK(memory_track_bid(&t, 80, 512 * mib).want >= 614 * mib); /* 1.2 times the limit that killed */
}

/* The one about to be killed gets the room, although it comes later in the list. */
static void urgent_growth_comes_first(void)
{
    struct memory_track calm = { 0 }, urgent = { 0 };
    memory_track_sample(&calm, 10, 420 * mib, 0);
    memory_track_sample(&urgent, 10, 600 * mib, 0);
    struct memory_container c[2] = {
        { .track = &calm, .limit = 470 * mib, .request = 400 * mib },
        { .track = &urgent, .limit = 610 * mib, .request = 300 * mib },
    };
    struct memory_node node = { .allocatable = 1300 * mib, .now_s = 10, .kubernetes_minor = 34 };
    memory_round(&node, c, 2);
    EQ_STR(str_c(memory_action_name(c[1].change.action)), S("grow"));
    OK(c[1].change.limit > 610 * mib);
    EQ_STR(str_c(memory_action_name(c[0].change.action)), S("keep"));
    node.allocatable = 0; /* unknown */
    memory_round(&node, c, 2);
    EQ_STR(str_c(c[1].change.reason), S("NoRoom"));
}

static int64_t random_between(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(r, (uint32_t)(high - low + 1));
}

/* Limits only grow and stay above what is in use, requests stay below them, all requests together fit if
 * they did before, and who is being resized keeps what it has. */
static void nothing_forbidden_happens_on_random_nodes(void)
{
    struct random r;
    random_init(&r, 7, 1);
    size_t bad = 0, grown = 0, moved = 0;
    for (int k = 0; k < NODES; k++) {
        struct memory_track tracks[CONTAINERS_MAX] = { 0 };
        struct memory_container c[CONTAINERS_MAX] = { 0 };
        size_t n = (size_t)random_between(&r, 1, CONTAINERS_MAX);
        struct memory_node node = { .allocatable = random_between(&r, 200, 12000) * mib,
                                    .others = random_between(&r, 0, 500) * mib,
                                    .kubernetes_minor = 34,
                                    .requests_only = random_between(&r, 0, 4) == 0 };
        int64_t before = node.others_requested = node.others, after = node.others;
        for (size_t i = 0; i < n; i++) {
            int64_t limit = random_between(&r, 64, 2048) * mib, now = 100;
            for (int64_t s = random_between(&r, 1, 7); s > 0;
                 s--, now += random_between(&r, 10, 900))
                memory_track_sample(&tracks[i], now, random_between(&r, 1, limit / mib) * mib,
                                    random_between(&r, 0, 9) == 0 ? 0.2 : 0);
            node.now_s = MAX(node.now_s, now);
            c[i] = (struct memory_container){ .track = &tracks[i],
                                              .limit = limit,
                                              .request = limit * random_between(&r, 10, 99) / 100,
                                              .busy = random_between(&r, 0, 9) == 0,
                                              .hpa_memory = random_between(&r, 0, 9) == 0 };
            before += c[i].request;
        }
        memory_round(&node, c, n);
        for (size_t i = 0; i < n; i++) {
            const struct memory_change *x = &c[i].change;
            after += x->request;
            grown += x->limit > c[i].limit;
            moved += x->action == MEMORY_REQUEST;
            bad += x->limit < c[i].limit || x->request > x->limit;
            bad += c[i].busy && (x->limit != c[i].limit || x->request != c[i].request);
            bad += node.requests_only && x->limit != c[i].limit;
            bad += c[i].hpa_memory && x->request != c[i].request;
        }
        bad += after > MAX(before, node.allocatable);
    }
    EQ_INT(bad, 0);
    OK(grown > NODES / 4);
    OK(moved > NODES / 10);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(peaks_are_remembered_by_hour_and_day),
                                        TAP(growth_of_a_minute_is_seen_before_the_limit),
                                        TAP(urgent_growth_comes_first),
                                        TAP(nothing_forbidden_happens_on_random_nodes),
                                        { 0 } });
}
