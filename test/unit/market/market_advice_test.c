/* Several nodes: who should move, when nothing should, and what is recommended instead. */
#include "tap.h"

#include "market/market_advice_core.h"

struct scene {
    struct market_advice_node nodes[3];
    struct market_advice_pod pods[4];
    struct market_advice_workload workloads[1];
    struct market_advice_view view;
    market_advice_list advices;
    struct arena arena;
};

/* Node a lacks 900m, b has 2400m left, c 300m. */
static void init_scene(struct scene *s)
{
    *s = (struct scene){
        .nodes = { { .name = S("a"), .capacity_milli = 3600, .wanted_milli = 4500, .price = 0.25 },
                   { .name = S("b"), .capacity_milli = 3600, .wanted_milli = 1200 },
                   { .name = S("c"), .capacity_milli = 3600, .wanted_milli = 3300 } },
        .pods = { { S("shop"), S("large"), 0, 0, 2000, 1500, 0, true },
                  { S("shop"), S("right"), 0, 0, 850, 700, 0, true },
                  { S("shop"), S("fixed"), 0, 0, 900, 700, 0, false },
                  { S("shop"), S("small"), 0, 0, 100, 100, 0, true } },
        .workloads = { { .ns = S("shop"), .kind = S("Deployment"), .name = S("web"), .pods = 4 } },
    };
    for (int i = 0; i < 3; i++)
        s->nodes[i].memory_free = INT64_MAX;
    s->view = (struct market_advice_view){ .nodes = s->nodes,
                                           .node_n = 3,
                                           .pods = s->pods,
                                           .pod_n = 4,
                                           .workloads = s->workloads,
                                           .workload_n = 1,
                                           .now_s = 1000000 };
}

static size_t advise(struct scene *s)
{
    for (size_t i = 0; i < s->view.workload_n; i++)
        s->workloads[i].rationed = s->workloads[i].on_hot = s->workloads[i].on_any = 0;
    return market_advice_update(&s->view, &s->advices, &s->arena);
}

static void done_scene(struct scene *s)
{
    vec_done(&s->advices);
    arena_done(&s->arena);
}

static void the_pod_nearest_to_what_lacks_moves(void)
{
    struct scene s;
    init_scene(&s);
    EQ_INT(advise(&s), 1);
    const struct market_advice *a = &s.advices.at[0];
    EQ_STR(str_c(market_advice_kind_names[a->kind]), S("Move"));
    OK(str_eqc(a->name, "right") && str_eqc(a->node, "a") && str_eqc(a->target, "b"));
    EQ_INT(a->gain_milli, 850);
    OK(str_eqc(a->reason, "node a lacks 900m (price 0.25), node b has 2400m free; moving this pod "
                          "would free 850m"));
    s.view.now_s += 60;
    EQ_INT(advise(&s), 0); /* one move in five minutes */
    s.view.now_s += 300;
    EQ_INT(advise(&s), 1); /* it was not followed: another pod */
    OK(str_eqc(s.advices.at[1].name, "small"));
    done_scene(&s);
}

static void an_advice_ends_when_the_pod_left_or_after_half_an_hour(void)
{
    struct scene s;
    init_scene(&s);
    advise(&s);
    s.pods[1].node = 1;
    s.nodes[0].price = 0;
    s.view.now_s += 60;
    EQ_INT(advise(&s), 0);
    EQ_STR(str_c(market_advice_state_names[s.advices.at[0].state]), S("Done"));
    s.view.now_s += 3600;
    advise(&s);
    EQ_INT(s.advices.n, 0); /* forgotten */
    done_scene(&s);
    init_scene(&s);
    advise(&s);
    s.nodes[0].price = 0;
    s.view.now_s += 1800;
    advise(&s);
    EQ_STR(str_c(market_advice_state_names[s.advices.at[0].state]), S("Expired"));
    done_scene(&s);
}

static bool fits_nowhere(void *context, size_t pod, size_t node)
{
    (void)context, (void)pod, (void)node;
    return false;
}

static void what_does_not_fit_is_not_moved(void)
{
    struct scene s;
    init_scene(&s);
    s.view.fits = fits_nowhere;
    EQ_INT(advise(&s), 0);
    s.view.fits = NULL;
    s.nodes[1].closed = true; /* cordoned: c is left, with room for the small pod only */
    EQ_INT(advise(&s), 1);
    OK(str_eqc(s.advices.at[0].name, "small") && str_eqc(s.advices.at[0].target, "c"));
    done_scene(&s);
    init_scene(&s);
    s.nodes[0].unknown = true;
    EQ_INT(advise(&s), 0);
    done_scene(&s);
}

static void without_a_cold_node_workloads_or_nodes_are_added(void)
{
    struct scene s;
    init_scene(&s);
    s.nodes[1] = s.nodes[2] =
        (struct market_advice_node){ .capacity_milli = 3600, .wanted_milli = 5000, .price = 0.4 };
    s.nodes[1].name = S("b");
    s.nodes[2].name = S("c");
    EQ_INT(advise(&s), 2);
    EQ_STR(str_c(market_advice_kind_names[s.advices.at[0].kind]), S("ScaleOut"));
    EQ_STR(str_c(market_advice_kind_names[s.advices.at[1].kind]), S("AddNode"));
    done_scene(&s);
    init_scene(&s);
    s.view.node_n = 1;
    s.workloads[0].has_hpa = true;
    s.workloads[0].at_max = true;
    EQ_INT(advise(&s), 2);
    EQ_STR(str_c(market_advice_kind_names[s.advices.at[0].kind]), S("RaiseMaxReplicas"));
    done_scene(&s);
}

static void a_workload_that_idles_for_long_may_shrink(void)
{
    struct scene s;
    init_scene(&s);
    s.nodes[0].price = 0;
    s.workloads[0].low_since_s = s.view.now_s - 1700;
    EQ_INT(advise(&s), 0);
    s.view.now_s += 200;
    EQ_INT(advise(&s), 1);
    EQ_STR(str_c(market_advice_kind_names[s.advices.at[0].kind]), S("ScaleIn"));
    done_scene(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_pod_nearest_to_what_lacks_moves),
                                        TAP(an_advice_ends_when_the_pod_left_or_after_half_an_hour),
                                        TAP(what_does_not_fit_is_not_moved),
                                        TAP(without_a_cold_node_workloads_or_nodes_are_added),
                                        TAP(a_workload_that_idles_for_long_may_shrink),
                                        { 0 } });
}
