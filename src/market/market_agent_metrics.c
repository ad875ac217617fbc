/* Counting: see market_agent_metrics.h. */
#include "market_agent_metrics.h"

static const double duration_bounds[] = { .0001, .0005, .001, .005, .01, .05, .1, .5, 1 };
static const double latency_bounds[] = { 0.1, 0.5, 1, 2, 5, 10, 30 };
static const double reward_bounds[] = { -100, -50, -20, -10, 0, 5, 10, 15, 20 };

static struct metric *alone(struct metrics *r, const char *name, const char *help,
                            enum metric_kind kind)
{
    return METRIC_ALONE(
        metrics_family(r, &(struct metric_spec){ .name = name, .help = help, .kind = kind }));
}

static struct metric_family *of_pod(struct metrics *r, struct metric_spec spec)
{
    spec.labels[0] = "pod";
    spec.labels[1] = "namespace";
    return metrics_family(r, &spec);
}

static void init_pods(struct agent_metrics *m, struct metrics *r)
{
    m->changes = of_pod(r, (struct metric_spec){ .name = "mbcas_allocation_changes_total",
                                                 .help = "Limits asked for, by direction",
                                                 .kind = METRIC_COUNTER,
                                                 .labels = { "", "", "direction" } });
    m->latency = of_pod(r, (struct metric_spec){ .name = "mbcas_allocation_latency_seconds",
                                                 .help = "From asking for a limit to its being in "
                                                         "force",
                                                 .kind = METRIC_HISTOGRAM,
                                                 .bounds = latency_bounds,
                                                 .bound_n = countof(latency_bounds) });
    m->reward = of_pod(r, (struct metric_spec){ .name = "mbcas_qlearning_reward",
                                                .help = "What a pod's agent learnt from",
                                                .kind = METRIC_HISTOGRAM,
                                                .bounds = reward_bounds,
                                                .bound_n = countof(reward_bounds) });
    m->throttling = of_pod(r, (struct metric_spec){ .name = "mbcas_throttling_ratio",
                                                    .help = "Share of periods that hit the quota, "
                                                            "in the last fast window",
                                                    .kind = METRIC_GAUGE });
    m->allocation = of_pod(r, (struct metric_spec){ .name = "mbcas_pod_cpu_allocation_millicores",
                                                    .help = "CPU limit in force",
                                                    .kind = METRIC_GAUGE });
    m->usage = of_pod(r, (struct metric_spec){ .name = "mbcas_pod_cpu_usage_millicores",
                                               .help = "CPU used, in the last fast window",
                                               .kind = METRIC_GAUGE });
}

void agent_metrics_init(struct agent_metrics *m, struct metrics *r)
{
    m->managed = alone(r, "mbcas_managed_pods", "Pods in this node's market", METRIC_GAUGE);
    m->duration = METRIC_ALONE(
        metrics_family(r, &(struct metric_spec){ .name = "mbcas_agent_allocation_duration_seconds",
                                                 .help = "CPU time of a slow round",
                                                 .kind = METRIC_HISTOGRAM,
                                                 .bounds = duration_bounds,
                                                 .bound_n = countof(duration_bounds) }));
    m->read_errors = alone(r, "mbcas_agent_cgroup_read_errors_total",
                           "Counters of a pod that could not be read", METRIC_COUNTER);
    m->iterations = alone(r, "mbcas_nash_iterations",
                          "Passes of the last clearing: one to find the price, one to clear at it",
                          METRIC_GAUGE);
    m->price =
        alone(r, "mbcas_nash_shadow_price", "Congestion price of the last clearing", METRIC_GAUGE);
    m->lambda = alone(r, "mbcas_nash_lambda", "Utility of one more millicore at the last clearing",
                      METRIC_GAUGE);
    m->capacity = alone(r, "mbcas_capacity_millicores", "CPU that was shared out", METRIC_GAUGE);
    m->mode = metrics_family(r, &(struct metric_spec){ .name = "mbcas_nash_mode",
                                                       .help = "1 for the last clearing's mode",
                                                       .kind = METRIC_GAUGE,
                                                       .labels = { "mode" } });
    m->mode_total = metrics_family(r, &(struct metric_spec){ .name = "mbcas_nash_mode_total",
                                                             .help = "Clearings by mode",
                                                             .kind = METRIC_COUNTER,
                                                             .labels = { "mode" } });
    init_pods(m, r);
}

void agent_metrics_round(struct agent_metrics *m, const struct round_report *report)
{
    enum { PASSES = 2 };
    const struct clearing *c = &report->clearing;
    metric_observe(m->duration, (double)report->took_ns / 1e9);
    metric_set(m->iterations, report->pods ? PASSES : 0);
    metric_set(m->price, c->price);
    metric_set(m->lambda, c->lambda);
    metric_set(m->capacity, (double)report->capacity_milli);
    for (int i = 0; i < MARKET_MODE_N; i++)
        metric_set(METRIC(m->mode, str_c(market_mode_name((enum market_mode)i))),
                   (int)c->mode == i);
    metric_add(METRIC(m->mode_total, str_c(market_mode_name(c->mode))), 1);
}

void agent_metrics_change(struct agent_metrics *m, str ns, str pod, bool up)
{
    metric_add(METRIC(m->changes, pod, ns, up ? S("up") : S("down")), 1);
}

void agent_metrics_show(struct agent_metrics *m, str ns, str pod, const struct sampled *sampled)
{
    metric_set(METRIC(m->throttling, pod, ns), (double)sampled->throttled);
    metric_set(METRIC(m->allocation, pod, ns), (double)sampled->market.limit_milli);
    metric_set(METRIC(m->usage, pod, ns), (double)sampled->usage_milli);
}

void agent_metrics_forget(struct agent_metrics *m, str ns, str pod)
{
    const str up[] = { pod, ns, S("up") }, down[] = { pod, ns, S("down") };
    struct metric_family *const families[] = { m->latency, m->reward, m->throttling, m->allocation,
                                               m->usage };
    metric_drop(m->changes, up);
    metric_drop(m->changes, down);
    for (size_t i = 0; i < countof(families); i++)
        metric_drop(families[i], up);
}
