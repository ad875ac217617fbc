/* PromQL for each signal: see schedule_signal.h. The series are those of kube-state-metrics. */
#include "schedule_signal.h"

#include "../prom/query.h"

/* A series of kube-state-metrics for this HPA; label values are escaped. */
static void put_series(struct buf *out, const char *name, str ns, str hpa)
{
    buf_printf(out, "kube_horizontalpodautoscaler_%s{namespace=\"", name);
    prom_query_escape(out, ns);
    buf_put(out, S("\",horizontalpodautoscaler=\""));
    prom_query_escape(out, hpa);
    buf_put(out, S("\"}"));
}

/* Demand is current replicas times the largest ratio of a metric to its target: what was needed, even where a bound
 * limited it. */
str schedule_signal_query(struct arena *a, enum schedule_signal signal,
                          const struct schedule_advice *advice, str hpa_ns, str hpa_name)
{
    auto_buf struct buf out = { 0 };
    switch (signal) {
    case SCHEDULE_SIGNAL_USER:
        return advice->query;
    case SCHEDULE_SIGNAL_DEMAND:
        put_series(&out, "status_current_replicas", hpa_ns, hpa_name);
        buf_put(&out, S(" * on(namespace,horizontalpodautoscaler) "
                        "max by(namespace,horizontalpodautoscaler)("));
        put_series(&out, "status_target_metric", hpa_ns, hpa_name);
        buf_put(&out, S(" / "));
        put_series(&out, "spec_target_metric", hpa_ns, hpa_name);
        buf_putc(&out, ')');
        break;
    case SCHEDULE_SIGNAL_DESIRED:
        put_series(&out, "status_desired_replicas", hpa_ns, hpa_name);
        break;
    case SCHEDULE_SIGNAL_CURRENT:
        put_series(&out, "status_current_replicas", hpa_ns, hpa_name);
        break;
    case SCHEDULE_SIGNAL_N:
        break;
    }
    return arena_str(a, buf_str(&out));
}
