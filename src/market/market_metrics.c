/* Metrics of the controller: see market_metrics.h. */
#include "market_metrics.h"

static const double turn_bounds[] = { .001, .005, .01, .05, .1, .25, .5, 1, 5, 10, 30 };

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
}

void market_metrics_turn(const struct market_metrics *m, double seconds)
{
    metric_observe(METRIC_ALONE(m->duration), seconds);
}

void market_metrics_patch_failed(const struct market_metrics *m, str reason)
{
    metric_add(METRIC(m->patch_errors, reason), 1);
}

void market_metrics_verified(const struct market_metrics *m)
{
    metric_add(METRIC_ALONE(m->verified), 1);
}
