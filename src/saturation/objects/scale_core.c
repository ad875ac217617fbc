/* Rate limits as in the HPA controller: see scale_core.h. A history holds at most one hour of
 * wishes and changes. */
#include "scale_core.h"

#include <math.h>

enum { FORGET_S = 3600 }; /* no window and no period is longer */

const struct scale_behavior scale_behavior_default = {
    .up = { 0, SCALE_SELECT_MAX, { { true, 100, 15 }, { false, 4, 15 } }, 2 },
    .down = { 300, SCALE_SELECT_MAX, { { true, 100, 15 } }, 1 },
};

void scale_history_done(struct scale_history *h)
{
    vec_done(&h->wishes);
    vec_done(&h->ups);
    vec_done(&h->downs);
}

#define FORGET_BEFORE(marks, time_s)                                                               \
    while ((marks)->n && (marks)->at[0].at_s < (time_s))                                           \
    vec_remove((marks), 0)

static int changes_since(const struct scale_mark *at, size_t n, int64_t since_s)
{
    int sum = 0;
    for (size_t i = 0; i < n; i++)
        if (at[i].at_s > since_s)
            sum += at[i].replicas;
    return sum;
}

/* Clamps `current` between the lowest wish of the scale-up window and the highest of the scale-down
 * window. */
static int stabilize_wish(const struct scale_history *h, const struct scale_behavior *b,
                          int64_t now_s, int current, int wish)
{
    int up = wish, down = wish;
    for (size_t i = 0; i < h->wishes.n; i++) {
        const struct scale_mark *m = &h->wishes.at[i];
        if (m->at_s > now_s - b->up.window_s)
            up = MIN(up, m->replicas);
        if (m->at_s > now_s - b->down.window_s)
            down = MAX(down, m->replicas);
    }
    return current < up ? up : current > down ? down : current;
}

static int policy_limit(const struct scale_policy *p, int start, bool up)
{
    double part = p->percent ? (double)start * p->value / 100 : p->value;
    double limit = up ? ceil(start + part) : floor(start - part);
    return (int)fmax(0, fmin(limit, INT32_MAX));
}

/* The farthest number of replicas that the policies allow now in one direction. */
static int rate_limit(const struct scale_history *h, const struct scale_rules *rules, int64_t now_s,
                      int current, bool up)
{
    if (rules->select == SCALE_SELECT_DISABLED)
        return current;
    int best = 0;
    for (size_t i = 0; i < rules->policy_n; i++) {
        const struct scale_policy *p = &rules->policies[i];
        int64_t since = now_s - p->period_s;
        int start = current - changes_since(h->ups.at, h->ups.n, since) +
                    changes_since(h->downs.at, h->downs.n, since);
        int limit = policy_limit(p, start, up);
        bool farther = up ? limit > best : limit < best;
        if (i == 0 || farther == (rules->select == SCALE_SELECT_MAX))
            best = limit;
    }
    return best;
}

int scale_next_replicas(struct scale_history *h, const struct scale_behavior *b, int64_t now_s,
                        int current, int wish)
{
    FORGET_BEFORE(&h->wishes, now_s - FORGET_S);
    FORGET_BEFORE(&h->ups, now_s - FORGET_S);
    FORGET_BEFORE(&h->downs, now_s - FORGET_S);
    if (!h->wishes.n)
        vec_push(&h->wishes, ((struct scale_mark){ now_s, current }));
    vec_push(&h->wishes, ((struct scale_mark){ now_s, wish }));
    int next = stabilize_wish(h, b, now_s, current, wish);
    if (next > current)
        return MAX(current, MIN(next, rate_limit(h, &b->up, now_s, current, true)));
    if (next < current)
        return MIN(current, MAX(next, rate_limit(h, &b->down, now_s, current, false)));
    return current;
}

void scale_record_change(struct scale_history *h, int64_t now_s, int from, int to)
{
    if (to > from)
        vec_push(&h->ups, ((struct scale_mark){ now_s, to - from }));
    else if (to < from)
        vec_push(&h->downs, ((struct scale_mark){ now_s, from - to }));
}
