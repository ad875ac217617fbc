/* Metrics of the node agent: see market_agent_metrics.h.
 *
 * The node's own numbers are ordinary metrics. Those of the pods are not stored as series: the
 * registry calls show_pods() during a scrape, which reads the pods of the sampler in parts of
 * 16, so that a scrape of a large node does not need the whole text at once. */
#include "market_agent_metrics.h"

#include "market_agent_internal.h"

enum { PODS_PER_PART = 16 }; /* up to 20 KB of text */

static const double duration_bounds[] = { .0001, .0005, .001, .005, .01, .05, .1, .5, 1 };
static const double latency_bounds[AGENT_LATENCY_BUCKETS - 1] = { 0.1, 0.5, 1, 2, 5, 10, 30 };
static const double reward_bounds[AGENT_REWARD_BUCKETS - 1] = { -100, -50, -20, -10, 0,
                                                                5,    10,  15,  20 };

/* ---- one pod's numbers */

static size_t bucket_of(const double *bounds, size_t n, double value)
{
    size_t i = 0;
    while (i < n && !(value <= bounds[i]))
        i++;
    return i;
}

void market_agent_metrics_add_reward(struct agent_rewards *r, double reward)
{
    r->counts[bucket_of(reward_bounds, countof(reward_bounds), reward)]++;
    r->sum += reward;
}

void market_agent_metrics_add_latency(struct agent_changes *c, double seconds)
{
    c->latencies[bucket_of(latency_bounds, countof(latency_bounds), seconds)]++;
    c->latency_sum += seconds;
    c->asked_ns = 0;
}

static const struct agent_changes *changes_of(const struct agent_pod *pod)
{
    static const struct agent_changes none;
    return pod->changes ? pod->changes : &none;
}

static void put_counts(struct metric_view *view, uint64_t *room, const uint32_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        room[i] = counts[i];
        view->count += counts[i];
    }
    view->counts = room;
}

static void show_ups(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = changes_of(pod)->ups;
}

static void show_downs(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = changes_of(pod)->downs;
}

static void show_latency(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    view->value = changes_of(pod)->latency_sum;
    put_counts(view, room, changes_of(pod)->latencies, AGENT_LATENCY_BUCKETS);
}

static void show_reward(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    view->value = pod->rewards.sum;
    put_counts(view, room, pod->rewards.counts, AGENT_REWARD_BUCKETS);
}

static void show_throttling(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = (double)pod->sampled.throttled;
}

static void show_allocation(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = (double)pod->sampled.market.limit_milli;
}

static void show_usage(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = (double)pod->sampled.usage_milli;
}

static void show_pressure(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = (double)pod->sampled.pressure;
}

static void show_working_set(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    struct agent_memory_sum sum = market_agent_sum_memory(pod);
    view->value = sum.is_known ? (double)sum.working_set : -1;
}

static void show_memory_need(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    struct agent_memory_sum sum = market_agent_sum_memory(pod);
    view->value = sum.is_known ? (double)sum.need : -1;
}

static void show_memory_psi(const struct agent_pod *pod, struct metric_view *view, uint64_t *room)
{
    (void)room;
    view->value = market_agent_sum_memory(pod).psi;
}

static const struct {
    struct metric_spec spec;
    void (*show)(const struct agent_pod *pod, struct metric_view *view, uint64_t *room);
    void (*show_down)(const struct agent_pod *pod, struct metric_view *view, uint64_t *room);
} of_pods[AGENT_POD_FAMILIES] = {
    { { .name = "mbcas_allocation_changes_total",
        .help = "Limit changes requested, by direction",
        .kind = METRIC_COUNTER,
        .labels = { "pod", "namespace", "direction" } },
      show_ups,
      show_downs },
    { { .name = "mbcas_allocation_latency_seconds",
        .help = "Time from requesting a limit until it is in force",
        .kind = METRIC_HISTOGRAM,
        .labels = { "pod", "namespace" },
        .bounds = latency_bounds,
        .bound_n = countof(latency_bounds) },
      show_latency,
      NULL },
    { { .name = "mbcas_qlearning_reward",
        .help = "Rewards of the pod's agent",
        .kind = METRIC_HISTOGRAM,
        .labels = { "pod", "namespace" },
        .bounds = reward_bounds,
        .bound_n = countof(reward_bounds) },
      show_reward,
      NULL },
    { { .name = "mbcas_throttling_ratio",
        .help = "Share of periods that hit the quota, in the last fast window",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_throttling,
      NULL },
    { { .name = "mbcas_cpu_pressure_ratio",
        .help = "Share of the last slow window in which a task waited for CPU (PSI)",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_pressure,
      NULL },
    { { .name = "mbcas_pod_cpu_allocation_millicores",
        .help = "CPU limit in force",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_allocation,
      NULL },
    { { .name = "mbcas_pod_cpu_usage_millicores",
        .help = "CPU used, in the last fast window",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_usage,
      NULL },
    { { .name = "mbcas_memory_working_set_bytes",
        .help = "Memory in use without inactive page cache",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_working_set,
      NULL },
    { { .name = "mbcas_memory_need_bytes",
        .help = "Highest working set of the last hours and days",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_memory_need,
      NULL },
    { { .name = "mbcas_memory_pressure_ratio",
        .help = "Share of the last 10 s in which a task waited for memory (PSI)",
        .kind = METRIC_GAUGE,
        .labels = { "pod", "namespace" } },
      show_memory_psi,
      NULL },
};

/* Shows pods `from`, `from` + 1, ... and returns where to continue; 0: done. If a pod is removed
 * between two parts, the last one takes its place in the array: it may be missing from a scrape,
 * but never appears twice. */
static size_t show_pods(void *context, const struct metric_spec *spec, size_t from,
                        const struct metrics_reader *reader)
{
    const struct market_agent *a = context;
    size_t end = MIN(from + PODS_PER_PART, sampler_count(a->sampler));
    uint64_t room[MAX((int)AGENT_REWARD_BUCKETS, (int)AGENT_LATENCY_BUCKETS)];
    size_t which = 0;
    while (of_pods[which].spec.name != spec->name)
        which++;
    for (size_t i = from; i < end; i++) {
        const struct agent_pod *pod =
            container_of(sampler_at(a->sampler, i), struct agent_pod, sampled);
        str values[] = { pod->record->meta.name, pod->record->meta.ns, S("up") };
        struct metric_view view = { .spec = spec, .values = values };
        of_pods[which].show(pod, &view, room);
        if (spec->kind == METRIC_GAUGE && view.value < 0) /* unknown */
            continue;
        reader->series(reader->context, &view);
        if (!of_pods[which].show_down)
            continue;
        values[2] = S("down");
        of_pods[which].show_down(pod, &view, room);
        reader->series(reader->context, &view);
    }
    return end < sampler_count(a->sampler) ? end : 0;
}

/* ---- the node's numbers */

static struct metric *single_metric(struct metrics *r, const char *name, const char *help,
                                    enum metric_kind kind)
{
    return METRIC_ALONE(
        metrics_family(r, &(struct metric_spec){ .name = name, .help = help, .kind = kind }));
}

/* Registers the metrics of the last clearing. */
static void init_clearing(struct agent_metrics *m, struct metrics *r)
{
    m->iterations =
        single_metric(r, "mbcas_nash_iterations",
                      "Passes of the last clearing over the bids, until the level was found",
                      METRIC_GAUGE);
    m->price = single_metric(r, "mbcas_nash_shadow_price", "Congestion price of the last clearing",
                             METRIC_GAUGE);
    m->lambda = single_metric(r, "mbcas_nash_lambda",
                              "Utility of one more millicore at the last clearing", METRIC_GAUGE);
    m->capacity =
        single_metric(r, "mbcas_capacity_millicores", "CPU that was shared out", METRIC_GAUGE);
    m->mode = metrics_family(r, &(struct metric_spec){ .name = "mbcas_nash_mode",
                                                       .help = "1 for the last clearing's mode",
                                                       .kind = METRIC_GAUGE,
                                                       .labels = { "mode" } });
    m->mode_total = metrics_family(r, &(struct metric_spec){ .name = "mbcas_nash_mode_total",
                                                             .help = "Clearings by mode",
                                                             .kind = METRIC_COUNTER,
                                                             .labels = { "mode" } });
}

void market_agent_metrics_init(struct agent_metrics *m, struct metrics *r,
                               struct market_agent *agent)
{
    m->managed = single_metric(r, "mbcas_managed_pods", "Pods in this node's market", METRIC_GAUGE);
    m->duration = METRIC_ALONE(
        metrics_family(r, &(struct metric_spec){ .name = "mbcas_agent_allocation_duration_seconds",
                                                 .help = "CPU time of a slow round",
                                                 .kind = METRIC_HISTOGRAM,
                                                 .bounds = duration_bounds,
                                                 .bound_n = countof(duration_bounds) }));
    m->read_errors = single_metric(r, "mbcas_agent_cgroup_read_errors_total",
                                   "Counters of a pod that could not be read", METRIC_COUNTER);
    m->refused_writes =
        single_metric(r, "mbcas_agent_refused_writes_total",
                      "Desired CPU that was not written because it is invalid", METRIC_COUNTER);
    m->overcommit =
        single_metric(r, "mbcas_limit_overcommit_ratio",
                      "Limits may add up to this multiple of the capacity", METRIC_GAUGE);
    m->limits =
        single_metric(r, "mbcas_limits_millicores", "Sum of the desired limits", METRIC_GAUGE);
    m->requests =
        single_metric(r, "mbcas_requests_millicores", "Sum of the desired requests", METRIC_GAUGE);
    m->victims = single_metric(r, "mbcas_share_victims_ratio",
                               "Seconds in which a pod below its share waited", METRIC_GAUGE);
    m->lent = single_metric(r, "mbcas_lent_millicores", "Baselines of idle pods that are lent",
                            METRIC_GAUGE);
    m->oom_kills = single_metric(r, "mbcas_memory_oom_kills_total",
                                 "Containers killed for lack of memory", METRIC_COUNTER);
    m->problems =
        single_metric(r, "mbcas_config_problems", "Settings that are invalid", METRIC_GAUGE);
    init_clearing(m, r);
    for (size_t i = 0; i < AGENT_POD_FAMILIES; i++) {
        m->of_pods[i] = metrics_family(r, &of_pods[i].spec);
        metric_set_source(m->of_pods[i], show_pods, agent);
    }
}

void market_agent_metrics_done(struct agent_metrics *m)
{
    for (size_t i = 0; i < AGENT_POD_FAMILIES; i++)
        if (m->of_pods[i])
            metric_set_source(m->of_pods[i], NULL, NULL);
}

void market_agent_metrics_add_round(struct agent_metrics *m, const struct round_report *report)
{
    const struct clearing *c = &report->clearing;
    metric_observe(m->duration, (double)report->took_ns / 1e9);
    metric_set(m->iterations, c->passes);
    metric_set(m->price, c->price);
    metric_set(m->lambda, c->lambda);
    metric_set(m->capacity, (double)report->capacity_milli);
    const struct market_node *node = report->node;
    metric_set(m->overcommit, (double)node->kappa.kappa_milli / 1000);
    metric_set(m->limits, (double)node->limits_milli);
    metric_set(m->requests, (double)node->requests_milli);
    metric_set(m->victims, (double)node->pressure.victims_ppm / 1e6);
    metric_set(m->lent, (double)node->lent_milli);
    for (int i = 0; i < MARKET_MODE_N; i++)
        metric_set(METRIC(m->mode, str_c(market_mode_name((enum market_mode)i))),
                   (int)c->mode == i);
    metric_add(METRIC(m->mode_total, str_c(market_mode_name(c->mode))), 1);
}
