/* Counting: see runtimeconfig_metrics.h. */
#include "runtimeconfig_metrics.h"

/* Names and labels are documented in docs/runtimeconfig.md. */
void runtimeconfig_metrics_init(struct runtimeconfig_metrics *m, struct metrics *registry)
{
    m->resolutions =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "aim_runtimeconfig_resolutions_total",
                                              .help = "Configurations looked up for consumers",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "kind", "outcome" } });
    m->consumers =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "aim_runtimeconfig_consumers",
                                              .help = "Objects that use a configuration",
                                              .kind = METRIC_GAUGE,
                                              .labels = { "scope", "namespace", "name" } });
    m->renders = metrics_family(registry, &(struct metric_spec){ .name = "aim_path_render_total",
                                                                 .help = "Path templates rendered",
                                                                 .kind = METRIC_COUNTER,
                                                                 .labels = { "result" } });
    m->conflicts =
        metrics_family(registry,
                       &(struct metric_spec){ .name = "aim_route_conflicts",
                                              .help = "Services whose path another one owns",
                                              .kind = METRIC_GAUGE });
    m->refused =
        metrics_family(registry, &(struct metric_spec){
                                     .name = "aim_incomplete_refused_total",
                                     .help = "Incomplete InferenceServices that were not sent",
                                     .kind = METRIC_COUNTER });
    m->statuses = metrics_family(registry, &(struct metric_spec){ .name = "aim_service_status",
                                                                  .help = "AIMServices by status",
                                                                  .kind = METRIC_GAUGE,
                                                                  .labels = { "status" } });
}

void runtimeconfig_metrics_resolved(const struct runtimeconfig_metrics *m, enum aim_kind kind,
                                    enum aim_resolve_outcome outcome)
{
    const struct aim_kinds *kinds = aim_kinds(AIM_GROUP);
    metric_add(METRIC(m->resolutions, str_c(kinds->at[kind].kind),
                      str_c(aim_resolve_outcome_name(outcome))),
               1);
}

void runtimeconfig_metrics_rendered(const struct runtimeconfig_metrics *m, bool worked)
{
    metric_add(METRIC(m->renders, worked ? S("success") : S("failure")), 1);
}

void runtimeconfig_metrics_consumers(const struct runtimeconfig_metrics *m, str ns, str name,
                                     size_t total)
{
    metric_set(METRIC(m->consumers, ns.n ? S("Namespace") : S("Cluster"), ns, name), (double)total);
}

void runtimeconfig_metrics_forget(const struct runtimeconfig_metrics *m, str ns, str name)
{
    metric_drop(m->consumers, (const str[]){ ns.n ? S("Namespace") : S("Cluster"), ns, name });
}

void runtimeconfig_metrics_refused(const struct runtimeconfig_metrics *m)
{
    metric_add(METRIC_ALONE(m->refused), 1);
}

void runtimeconfig_metrics_conflicts(const struct runtimeconfig_metrics *m, size_t n)
{
    metric_set(METRIC_ALONE(m->conflicts), (double)n);
}
