/* Exported metrics: see saturation_metrics.h.
 *
 * A series is identified by its labels, and a label may change (accelerator, model, workload).
 * struct variant_series holds the labels that are exported, so that the old series can be removed;
 * gauges are set only when a value changes, because a cycle over 1,000 models has 4,000 variants.
 * Names and help of wva_* and inferno_* are quoted: WVA. */
#include "saturation_metrics.h"

static const char *const causes[SAT_CAUSE_N] = {
    [SAT_CAUSE_SATURATION] = "saturation", [SAT_CAUSE_SLO] = "slo",
    [SAT_CAUSE_OPTIMIZER] = "optimizer",   [SAT_CAUSE_SAFETY] = "safety",
    [SAT_CAUSE_BOUNDS] = "bounds",         [SAT_CAUSE_ZERO] = "scale-to-zero",
    [SAT_CAUSE_WAKE] = "scale-from-zero",
};

static const char *const causes_09[] = { "V2", "saturation-only mode", "scale-from-zero" };

static const double cycle_bounds[] = { .0001, .001, .005, .01, .02, .05, .1, .5, 1 };

/* Adds the label controller_instance, if there is an instance. */
static struct metric_family *register_family(struct metrics *r, const struct saturation_metrics *m,
                                             struct metric_spec spec)
{
    size_t n = 0;
    while (spec.labels[n])
        n++;
    if (m->has_instance)
        spec.labels[n] = "controller_instance";
    return metrics_family(r, &spec);
}

static struct metric_family *register_gauge(struct metrics *r, const struct saturation_metrics *m,
                                            const char *name, const char *help)
{
    return register_family(r, m,
                           (struct metric_spec){
                               .name = name,
                               .help = help,
                               .kind = METRIC_GAUGE,
                               .labels = { "variant_name", "namespace", "accelerator_type" } });
}

static struct metric_family *register_counter(struct metrics *r, const struct saturation_metrics *m,
                                              const char *name)
{
    return register_family(r, m,
                           (struct metric_spec){
                               .name = name,
                               .help = "Total number of replica scaling decisions",
                               .kind = METRIC_COUNTER,
                               .labels = { "variant_name", "namespace", "direction", "reason" } });
}

void saturation_metrics_init(struct saturation_metrics *m, struct metrics *r, str instance,
                             bool inferno)
{
    *m = (struct saturation_metrics){ .has_instance = instance.n > 0, .instance = instance };
    static const char desired[] = "Desired number of replicas for each variant",
                      current[] = "Current number of replicas for each variant",
                      ratio[] = "Ratio of desired to current replicas for each variant";
    m->optimized =
        metrics_family(r, &(struct metric_spec){
                              .name = "workload_optimized_replicas",
                              .help = "Replicas that the workload of a variant should have",
                              .kind = METRIC_GAUGE,
                              .labels = { "model_id", "variant", "namespace" } });
    m->wva = (struct saturation_metric_set){ register_gauge(r, m, "wva_desired_replicas", desired),
                                             register_gauge(r, m, "wva_current_replicas", current),
                                             register_gauge(r, m, "wva_desired_ratio", ratio),
                                             register_counter(r, m, "wva_replica_scaling_total") };
    if (inferno)
        m->inferno = (struct saturation_metric_set){
            register_gauge(r, m, "inferno_desired_replicas", desired),
            register_gauge(r, m, "inferno_current_replicas", current),
            register_gauge(r, m, "inferno_desired_ratio", ratio),
            register_counter(r, m, "inferno_replica_scaling_total")
        };
    m->cycles =
        metrics_family(r, &(struct metric_spec){ .name = "saturation_decisions_total",
                                                 .help = "Decisions about models, by outcome",
                                                 .kind = METRIC_COUNTER,
                                                 .labels = { "outcome" } });
    m->cycle_seconds =
        metrics_family(r, &(struct metric_spec){
                              .name = "saturation_cycle_seconds",
                              .help = "CPU time of one optimization cycle over all models",
                              .kind = METRIC_HISTOGRAM,
                              .bounds = cycle_bounds,
                              .bound_n = countof(cycle_bounds) });
    m->limited = register_family(r, m,
                                 (struct metric_spec){
                                     .name = "wva_decisions_limited_total",
                                     .help = "Decisions that a limiter reduced",
                                     .kind = METRIC_COUNTER,
                                     .labels = { "variant_name", "namespace", "limiter_name" } });
    m->models = metrics_family(r, &(struct metric_spec){ .name = "saturation_models",
                                                         .help = "Models that have a variant",
                                                         .kind = METRIC_GAUGE });
}

static void set_gauges(const struct saturation_metric_set *set, const str *labels, int current,
                       int desired)
{
    metric_set(metric_at(set->desired, labels), desired);
    metric_set(metric_at(set->current, labels), current);
    metric_set(metric_at(set->ratio, labels), current ? (double)desired / current : desired);
}

static void remove_gauges(const struct saturation_metric_set *set, const str *labels)
{
    metric_drop(set->desired, labels);
    metric_drop(set->current, labels);
    metric_drop(set->ratio, labels);
}

static void remove_counters(const struct saturation_metric_set *set, str name, str ns, str instance)
{
    static const str directions[] = { STR_INIT("up"), STR_INIT("down"), STR_INIT("scale-up"),
                                      STR_INIT("scale-down") };
    for (size_t i = 0; i < countof(directions); i++)
        for (size_t k = 0; k < SAT_CAUSE_N + countof(causes_09); k++)
            metric_drop(set->changes,
                        (const str[]){
                            name, ns, directions[i],
                            str_c(k < SAT_CAUSE_N ? causes[k] : causes_09[k - SAT_CAUSE_N]),
                            instance });
}

static void copy_text(char **to, str from)
{
    free(*to);
    *to = mem_dup(from.p, from.n);
}

void saturation_metrics_hide(const struct saturation_metrics *m, struct variant_series *shown,
                             str ns, str name)
{
    if (shown->model) {
        str accelerator = str_c(shown->accelerator);
        metric_drop(m->optimized, (const str[]){ str_c(shown->model), name, ns });
        remove_gauges(&m->wva, (const str[]){ name, ns, accelerator, m->instance });
        if (m->by_target && !str_eqc(name, shown->target))
            remove_gauges(&m->wva,
                          (const str[]){ str_c(shown->target), ns, accelerator, m->instance });
        remove_counters(&m->wva, name, ns, m->instance);
        metric_drop_all(m->limited, (const str[]){ name, ns }, 2);
        if (m->inferno.desired) {
            remove_gauges(&m->inferno,
                          (const str[]){ str_c(shown->target), ns, accelerator, m->instance });
            remove_counters(&m->inferno, str_c(shown->target), ns, m->instance);
        }
    }
    free(take(shown->target));
    free(take(shown->model));
    free(take(shown->accelerator));
}

void saturation_metrics_show(const struct saturation_metrics *m, struct variant_series *shown,
                             const struct variant_labels *l, int current, int desired)
{
    bool same = shown->model && str_eqc(l->target, shown->target) &&
                str_eqc(l->model, shown->model) && str_eqc(l->accelerator, shown->accelerator);
    if (same && shown->current == current && shown->desired == desired)
        return;
    if (!same)
        saturation_metrics_hide(m, shown, l->ns, l->name);
    if (!shown->model) {
        copy_text(&shown->target, l->target);
        copy_text(&shown->model, l->model);
        copy_text(&shown->accelerator, l->accelerator);
    }
    shown->current = current;
    shown->desired = desired;
    metric_set(METRIC(m->optimized, l->model, l->name, l->ns), desired);
    set_gauges(&m->wva, (const str[]){ l->name, l->ns, l->accelerator, m->instance }, current,
               desired);
    if (m->by_target && !str_eq(l->name, l->target))
        set_gauges(&m->wva, (const str[]){ l->target, l->ns, l->accelerator, m->instance }, current,
                   desired);
    if (m->inferno.desired)
        set_gauges(&m->inferno, (const str[]){ l->target, l->ns, l->accelerator, m->instance },
                   current, desired);
}

void saturation_metrics_count_change_09(const struct saturation_metrics *m,
                                        const struct variant_labels *l, bool up,
                                        enum sat_cause cause, bool by_tokens)
{
    const char *reason = causes_09[cause == SAT_CAUSE_WAKE ? 2 : by_tokens ? 0 : 1];
    metric_add(METRIC(m->wva.changes, l->name, l->ns, up ? S("scale-up") : S("scale-down"),
                      str_c(reason), m->instance),
               1);
}

void saturation_metrics_count_change(const struct saturation_metrics *m,
                                     const struct variant_labels *l, bool up, enum sat_cause cause)
{
    str direction = up ? S("up") : S("down"), reason = str_c(causes[cause]);
    metric_add(METRIC(m->wva.changes, l->name, l->ns, direction, reason, m->instance), 1);
    if (m->inferno.desired)
        metric_add(METRIC(m->inferno.changes, l->target, l->ns, direction, reason, m->instance), 1);
}
