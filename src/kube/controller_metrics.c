/* See controller_metrics.h. Turns are counted as they end; gauges (depth, workers, running time) and the
 * queue's own counters are collected when the registry is read. */
#include "controller_metrics.h"

#include "../base/clock.h"
#include "controller.h"

static const double bounds[] = { 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                 0.5,   1,     2.5,  5,     10,   30,  60 };

enum series {
    ERRORS,
    MOST,
    ACTIVE,
    TURN_TIME,
    DEPTH,
    ADDS,
    RETRIES,
    UNFINISHED,
    LONGEST,
    WAIT_TIME,
    WORK_TIME,
    SERIES_N
};

static const struct {
    const char *name, *help, *label;
    enum metric_kind kind;
} specs[SERIES_N] = {
    [ERRORS] = { "controller_runtime_reconcile_errors_total", "Turns that failed.", "controller",
                 METRIC_COUNTER },
    [MOST] = { "controller_runtime_max_concurrent_reconciles", "Turns that may run at once.",
               "controller", METRIC_GAUGE },
    [ACTIVE] = { "controller_runtime_active_workers", "Turns under way.", "controller",
                 METRIC_GAUGE },
    [TURN_TIME] = { "controller_runtime_reconcile_time_seconds",
                    "Length of a turn, with its writes.", "controller", METRIC_HISTOGRAM },
    [DEPTH] = { "workqueue_depth", "Keys that are ready and wait for a worker.", "name",
                METRIC_GAUGE },
    [ADDS] = { "workqueue_adds_total", "Keys added.", "name", METRIC_COUNTER },
    [RETRIES] = { "workqueue_retries_total", "Keys added again after a failure.", "name",
                  METRIC_COUNTER },
    [UNFINISHED] = { "workqueue_unfinished_work_seconds",
                     "Sum of the time that turns under way have taken.", "name", METRIC_GAUGE },
    [LONGEST] = { "workqueue_longest_running_processor_seconds",
                  "Time that the longest turn under way has taken.", "name", METRIC_GAUGE },
    [WAIT_TIME] = { "workqueue_queue_duration_seconds", "Time a key waits for a worker.", "name",
                    METRIC_HISTOGRAM },
    [WORK_TIME] = { "workqueue_work_duration_seconds", "Time a key is worked on.", "name",
                    METRIC_HISTOGRAM },
};

struct controller_metrics {
    const struct controller *c;
    struct metrics *metrics;
    struct metric *series[SERIES_N];
    struct metric *results[TURN_RESULT_N];
    uint64_t adds, retries; /* of the queue, as reported */
};

static void count_up(struct metric *s, uint64_t now, uint64_t *reported)
{
    metric_add(s, (double)(now - *reported));
    *reported = now;
}

/* Scans the queue for running keys; called when the registry is read. */
static void collect_metrics(void *context)
{
    struct controller_metrics *cm = context;
    const struct workqueue *q = controller_queue(cm->c);
    int64_t now = controller_now_ns(cm->c);
    double sum = 0, longest = 0;
    for (size_t at = 0; at < q->keys.cap; at++) {
        const struct work_key *key = (const struct work_key *)q->keys.slots[at];
        if (!key || !key->working)
            continue;
        double s = (double)(now - key->started_ns) / NS_PER_S;
        sum += s;
        longest = MAX(longest, s);
    }
    metric_set(cm->series[UNFINISHED], sum);
    metric_set(cm->series[LONGEST], longest);
    metric_set(cm->series[DEPTH], (double)q->ready.n);
    metric_set(cm->series[ACTIVE], (double)controller_turns(cm->c));
    count_up(cm->series[ADDS], q->adds, &cm->adds);
    count_up(cm->series[RETRIES], q->retries, &cm->retries);
}

struct controller_metrics *controller_metrics_new(struct metrics *m, const struct controller *c,
                                                  int workers)
{
    static const struct metric_spec total = { .name = "controller_runtime_reconcile_total",
                                              .help = "Turns by how they ended.",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "controller", "result" } };
    static const char *const results[] = { "success", "error", "requeue_after" };
    struct controller_metrics *cm = mem_zero(1, sizeof(*cm));
    str name = str_c(controller_name(c));
    cm->c = c;
    cm->metrics = m;
    for (size_t i = 0; i < TURN_RESULT_N; i++)
        cm->results[i] = METRIC(metrics_family(m, &total), name, str_c(results[i]));
    for (size_t i = 0; i < SERIES_N; i++) {
        bool counts = specs[i].kind == METRIC_HISTOGRAM;
        struct metric_spec spec = { specs[i].name,          specs[i].help,
                                    specs[i].kind,          { specs[i].label },
                                    counts ? bounds : NULL, counts ? countof(bounds) : 0 };
        cm->series[i] = METRIC(metrics_family(m, &spec), name);
    }
    metric_set(cm->series[MOST], workers);
    metrics_on_read(m, collect_metrics, cm);
    return cm;
}

void controller_metrics_free(struct controller_metrics *cm)
{
    metrics_off_read(cm->metrics, cm);
    free(cm);
}

void controller_metrics_wait(struct controller_metrics *cm, int64_t ns)
{
    metric_observe(cm->series[WAIT_TIME], (double)ns / NS_PER_S);
}

void controller_metrics_turn(struct controller_metrics *cm, enum turn_result result, int64_t ns)
{
    metric_add(cm->results[result], 1);
    if (result == TURN_ERROR)
        metric_add(cm->series[ERRORS], 1);
    metric_observe(cm->series[TURN_TIME], (double)ns / NS_PER_S);
    metric_observe(cm->series[WORK_TIME], (double)ns / NS_PER_S);
}
