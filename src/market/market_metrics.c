/* Counting: see market_metrics.h. */
#include "market_metrics.h"

static const double turn_bounds[] = { .001, .005, .01, .05, .1, .25, .5, 1, 5, 10, 30 };
static const double latency_bounds[] = { 0.1, 0.5, 1, 2, 5, 10, 30 };
static const char *const directions[] = { "down", "up" };

void market_metrics_init(struct market_metrics *m, struct metrics *registry)
{
    m->duration =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "mbcas_controller_reconcile_duration_seconds",
                                              .help = "From the start of a turn to its last answer",
                                              .kind = METRIC_HISTOGRAM,
                                              .bounds = turn_bounds,
                                              .bound_n = countof(turn_bounds) });
    m->patch_errors =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "mbcas_controller_pod_patch_errors_total",
                                              .help = "Resizes that the API server refused",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "reason" } });
    m->verified =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "mbcas_controller_resize_verified_total",
                                              .help = "Resizes that the node reported as in force",
                                              .kind = METRIC_COUNTER });
    m->changes =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "mbcas_allocation_changes_total",
                                              .help = "Resizes that were sent",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "pod", "namespace", "direction" } });
    m->latency =
        metrics_family(registry, &(struct metric_spec){ .name = "mbcas_allocation_latency_seconds",
                                                        .help = "From a wish to its being in force",
                                                        .kind = METRIC_HISTOGRAM,
                                                        .labels = { "pod", "namespace" },
                                                        .bounds = latency_bounds,
                                                        .bound_n = countof(latency_bounds) });
}

void market_metrics_turn(const struct market_metrics *m, double seconds)
{
    metric_observe(METRIC_ALONE(m->duration), seconds);
}

void market_metrics_patch(const struct market_metrics *m, str ns, str pod, bool grows)
{
    metric_add(METRIC(m->changes, pod, ns, str_c(directions[grows])), 1);
}

void market_metrics_patch_failed(const struct market_metrics *m, str reason)
{
    metric_add(METRIC(m->patch_errors, reason), 1);
}

void market_metrics_verified(const struct market_metrics *m, str ns, str pod, double seconds)
{
    metric_add(METRIC_ALONE(m->verified), 1);
    if (seconds >= 0)
        metric_observe(METRIC(m->latency, pod, ns), seconds);
}

void market_metrics_forget(const struct market_metrics *m, str ns, str pod)
{
    metric_drop(m->latency, (const str[]){ pod, ns });
    for (size_t i = 0; i < countof(directions); i++)
        metric_drop(m->changes, (const str[]){ pod, ns, str_c(directions[i]) });
}
