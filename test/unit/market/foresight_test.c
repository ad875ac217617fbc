/* The agent looks ahead for as long as resizes take on this node. */
#include "agent_scene.h"

static int64_t wish(struct scene *s)
{
    return milli_of(json_at(allocation(s, "default-grows"), "spec", "desiredCPULimit", NULL));
}

/* Until it has been the same for a minute. */
static void let_wish_settle(struct scene *s)
{
    int64_t last = 0;
    for (int i = 0, still = 0; i < 3000 && still < 60; i++) {
        pass(s, 1);
        still = wish(s) == last ? still + 1 : 0;
        last = wish(s) < 400 ? wish(s) : 0; /* it has much more than it needs */
    }
    OK(last > 0);
}

/* The most that it wishes for a load that grows from 300 to 450, after a pod that had too much
 * was resized: at once or, with a slow kubelet, a minute later. */
static int64_t most_while_growing(bool slow)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "grows", NULL, 100, 1500, 300 });
    struct world_group *g = group_of(&s, "default", "grows");
    agent_up(&s);
    s.idle_kubelet = slow;
    let_wish_settle(&s);
    EQ_INT(g->cfs.limit_milli, slow ? 1500 : wish(&s));
    s.idle_kubelet = false;
    pass(&s, 2);
    EQ_INT(g->cfs.limit_milli, wish(&s));
    int64_t most = 0;
    for (int i = 0; i < 15; i++) {
        g->demand_milli += 10;
        pass(&s, 1);
        most = MAX(most, wish(&s));
    }
    end(&s);
    return most;
}

static void who_is_resized_slowly_is_served_further_ahead(void)
{
    int64_t soon = most_while_growing(false), later = most_while_growing(true);
    if (!OK(later > soon + 200))
        printf("# %lld and %lld\n", (long long)soon, (long long)later);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(who_is_resized_slowly_is_served_further_ahead), { 0 } });
}
