#include "tap.h"

#include "testbed/hpa_model.h"

static struct hpa_input input(int64_t now_s, int32_t current, const struct hpa_metric *metric)
{
    return (struct hpa_input){ .now_s = now_s,
                               .current = current,
                               .min = 1,
                               .max = 50,
                               .metrics = metric,
                               .metric_n = 1,
                               .behavior = hpa_model_default_behavior() };
}

static int32_t once(int32_t current, struct hpa_metric metric)
{
    struct hpa_history h = { 0 };
    struct hpa_input in = input(0, current, &metric);
    in.behavior.down.stabilization_s = 0;
    int32_t desired = hpa_model_decide(&h, &in).desired;
    hpa_model_history_done(&h);
    return desired;
}

static void ratio_and_tolerance(void)
{
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_UTILIZATION, 50, 100 }), 8);
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_UTILIZATION, 50, 54 }), 4); /* within 10 % */
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_UTILIZATION, 50, 46 }), 4);
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_UTILIZATION, 50, 25 }), 2);
    EQ_INT(once(2, (struct hpa_metric){ true, HPA_AVERAGE_VALUE, 1, 3 }),
           3); /* external, 1 a pod */
    EQ_INT(once(2, (struct hpa_metric){ true, HPA_VALUE, 10, 15 }), 3);
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_AVERAGE_VALUE, 1, 0 }), 1); /* min */
}

/* Metric type Pods: pods without the metric count as at their target on the way down, as idle on the way up. */
static void missing_pods_dampen(void)
{
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 80, 4 }), 8);
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 42, 4 }), 4); /* within 10 % */
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 20, 4 }), 2);
    EQ_INT(once(8, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 100, 4 }), 10); /* four start */
    EQ_INT(once(8, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 60, 4 }), 8); /* they will do */
    EQ_INT(once(8, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 20, 4 }), 6);
    EQ_INT(once(4, (struct hpa_metric){ true, HPA_POD_AVERAGE, 10, 0, 0 }), 4); /* no pod reports */
}

/* What is there at the first look counts as recommended then. */
static void a_new_hpa_holds_for_its_window(void)
{
    struct hpa_history h = { 0 };
    struct hpa_metric idle = { true, HPA_UTILIZATION, 50, 10 };
    struct hpa_input in = input(1000, 10, &idle);
    EQ_INT(hpa_model_decide(&h, &in).desired, 10);
    in.now_s = 1285;
    EQ_INT(hpa_model_decide(&h, &in).desired, 10);
    in.now_s = 1300;
    EQ_INT(hpa_model_decide(&h, &in).desired, 2);
    hpa_model_history_done(&h);
}

static void up_is_limited_by_policy(void)
{
    EQ_INT(once(2, (struct hpa_metric){ true, HPA_UTILIZATION, 10, 1000 }),
           6); /* 4 pods beat 100 % */
    EQ_INT(once(10, (struct hpa_metric){ true, HPA_UTILIZATION, 10, 1000 }), 20); /* 100 % */
    EQ_INT(once(40, (struct hpa_metric){ true, HPA_UTILIZATION, 10, 1000 }), 50); /* max */
}

static void down_waits_for_the_window(void)
{
    struct hpa_history h = { 0 };
    struct hpa_metric busy = { true, HPA_UTILIZATION, 50, 50 },
                      idle = { true, HPA_UTILIZATION, 50, 10 };
    struct hpa_input in = input(0, 10, &busy);
    EQ_INT(hpa_model_decide(&h, &in).desired, 10);
    for (int64_t now = 15; now < 300; now += 15) {
        in = input(now, 10, &idle);
        EQ_INT(hpa_model_decide(&h, &in).desired, 10);
    }
    in = input(300, 10, &idle);
    EQ_INT(hpa_model_decide(&h, &in).desired, 2);
    hpa_model_history_done(&h);
}

static void changes_count_against_the_period(void)
{
    struct hpa_history h = { 0 };
    struct hpa_metric hot = { true, HPA_UTILIZATION, 10, 1000 };
    struct hpa_input in = input(100, 2, &hot);
    int32_t desired = hpa_model_decide(&h, &in).desired;
    EQ_INT(desired, 6);
    hpa_model_scaled(&h, 100, 2, desired);
    in = input(105, 6, &hot);
    EQ_INT(hpa_model_decide(&h, &in).desired,
           6); /* the allowance of this quarter minute is used up */
    in = input(116, 6, &hot);
    EQ_INT(hpa_model_decide(&h, &in).desired, 12);
    hpa_model_history_done(&h);
}

static void unreadable_metrics_never_shrink(void)
{
    struct hpa_metric metrics[] = { { true, HPA_UTILIZATION, 50, 10 }, { .available = false } };
    struct hpa_history h = { 0 };
    struct hpa_input in = input(0, 10, metrics);
    in.metric_n = 2;
    in.behavior.down.stabilization_s = 0;
    EQ_INT(hpa_model_decide(&h, &in).desired, 10);
    in.metrics = &metrics[1];
    in.metric_n = 1;
    struct hpa_decision d = hpa_model_decide(&h, &in);
    OK(d.desired == 10 && !d.active);
    hpa_model_history_done(&h);
}

static void zero_is_switched_off(void)
{
    EQ_INT(once(0, (struct hpa_metric){ true, HPA_UTILIZATION, 10, 1000 }), 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(ratio_and_tolerance),
                                        TAP(missing_pods_dampen),
                                        TAP(a_new_hpa_holds_for_its_window),
                                        TAP(up_is_limited_by_policy),
                                        TAP(down_waits_for_the_window),
                                        TAP(changes_count_against_the_period),
                                        TAP(unreadable_metrics_never_shrink),
                                        TAP(zero_is_switched_off),
                                        { 0 } });
}
