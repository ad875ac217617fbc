/* See saturation_gauges.h.
 *
 * The series of variants, namespaces and accelerators are not stored: a scrape reads them from struct variant and
 * from the watch caches. They therefore appear and disappear with the variant, with its management, and with a
 * change of its labels, and a cycle over thousands of variants sets no gauge. Only counters and the few
 * numbers of a whole cycle are ordinary metrics.
 *
 * Names, labels and the texts of label values are quoted: WVA 0.9. wva_available_gpus is what nodes can allocate,
 * as there; what is free is flyball_gpus_free. */
#include "saturation_gauges.h"

#include "saturation_limits.h"
#include "saturation_tokens.h"

#include <math.h>

enum { VARIANTS_PER_PART = 256 };

/* ---- series of variants */

enum which { UTILIZATION, REQUIRED, SPARE, TOKENS_USED, TOKENS, METRICS_UP, FRESHNESS, WHICH_N };

#define OF_VARIANT "variant_name", "namespace"

static const struct {
    const char *name, *help;
    const char *labels[5];
} of_variants[WHICH_N] = {
    [UTILIZATION] = { "wva_saturation_utilization",
                      "Share of the capacity of a variant that is in use",
                      { OF_VARIANT, "model_name", "accelerator_type" } },
    [REQUIRED] = { "wva_required_capacity",
                   "Capacity that a variant lacks",
                   { OF_VARIANT, "model_name", "unit" } },
    [SPARE] = { "wva_spare_capacity",
                "Capacity that a variant can spare",
                { OF_VARIANT, "model_name", "unit" } },
    [TOKENS_USED] = { "wva_kv_cache_tokens_used",
                      "Tokens in the KV caches of a variant",
                      { OF_VARIANT, "model_name" } },
    [TOKENS] = { "wva_kv_cache_tokens_capacity",
                 "Tokens that fit into the KV caches of a variant",
                 { OF_VARIANT, "model_name" } },
    [METRICS_UP] = { "wva_saturation_metrics_up",
                     "Whether the last decision about a variant used fresh metrics",
                     { OF_VARIANT } },
    [FRESHNESS] = { "wva_metrics_freshness_status",
                    "1 for the state of the metrics of a variant: fresh, stale, unavailable, missing",
                    { "variant_name", "status" } },
};

/* NaN: there is no such series. */
static double value_of(const struct variant *v, enum which which)
{
    const struct variant_basis *b = &v->basis;
    switch (which) {
    case UTILIZATION:
        return b->utilization;
    case REQUIRED:
        return b->required;
    case SPARE:
        return b->spare;
    case TOKENS_USED:
        return b->tokens_used;
    case TOKENS:
        return b->tokens;
    case METRICS_UP:
        return b->up;
    case FRESHNESS:
    case WHICH_N:
        break;
    }
    return 1;
}

static void show_variant(const struct saturation *s, const struct variant *v, enum which which,
                         const struct metric_spec *spec, const struct metrics_reader *reader)
{
    const struct variant_basis *b = &v->basis;
    str last[WHICH_N] = { [UTILIZATION] = saturation_limits_shown_type(s, v),
                          [REQUIRED] = str_c(b->by_tokens ? "continuous" : "binary"),
                          [SPARE] = str_c(b->by_tokens ? "continuous" : "") };
    str values[6] = { v->name, v->ns, v->spec.model, last[which] };
    double value = value_of(v, which);
    size_t n = 0;
    if (!b->known || isnan(value) || !v->series.model) /* not managed, or no decision yet */
        return;
    if (which == FRESHNESS)
        values[1] = str_c(b->freshness);
    while (n < countof(of_variants[0].labels) && of_variants[which].labels[n])
        n++;
    values[n] = s->metrics.instance; /* ignored if there is none */
    reader->series(reader->context,
                   &(struct metric_view){ .spec = spec, .values = values, .value = value });
}

static size_t show_variants(void *context, const struct metric_spec *spec, size_t from,
                            const struct metrics_reader *reader)
{
    const struct saturation *s = context;
    enum which which = 0;
    size_t at = 0;
    while (which < WHICH_N && strcmp(of_variants[which].name, spec->name) != 0)
        which++;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot)); at++) {
        if (at == from + VARIANTS_PER_PART)
            return at;
        if (at >= from)
            show_variant(s, slot->value, which, spec, reader);
    }
    return 0;
}

/* ---- accelerators */

/* One series per product: what all nodes can allocate. Or one per type: what is free on nodes that can run pods. */
static size_t show_gpus(void *context, const struct metric_spec *spec, size_t from,
                        const struct metrics_reader *reader)
{
    struct saturation *s = context;
    bool free_only = !strcmp(spec->name, "flyball_gpus_free");
    auto_arena struct arena a = { 0 };
    (void)from;
    if (!s->nodes || !cache_synced(s->nodes) || cache_absent(s->nodes))
        return 0;
    struct gathering g = { .s = s, .a = &a };
    struct stock stock = saturation_limits_stock(&g);
    const struct stock_item **first = arena_array(&a, stock.n, sizeof(struct stock_item *));
    double *sums = arena_array(&a, stock.n, sizeof(double));
    size_t n = 0;
    for (size_t i = 0; i < stock.n; i++) { /* there are few products, and many nodes */
        const struct stock_item *x = &stock.items[i];
        bool counts = !free_only || (!x->at->unschedulable && x->at->ready == STOCK_READY);
        size_t at = 0;
        while (at < n && !str_eq(free_only ? x->type : x->product,
                                 free_only ? first[at]->type : first[at]->product))
            at++;
        first[at] = at < n ? first[at] : x;
        n = MAX(n, at + 1);
        if (counts)
            sums[at] += (double)(free_only ? MAX(x->count - x->used, (int64_t)0) : x->count);
    }
    for (size_t i = 0; i < n; i++) {
        str all[] = { str_c(first[i]->vendor), first[i]->product, first[i]->type,
                      s->metrics.instance };
        reader->series(reader->context, &(struct metric_view){ .spec = spec,
                                                               .values = free_only ? &all[2] : all,
                                                               .value = sums[i] });
    }
    return 0;
}

/* ---- namespaces */

/* Pods that report metrics. */
static size_t show_namespaces(void *context, const struct metric_spec *spec, size_t from,
                              const struct metrics_reader *reader)
{
    const struct saturation *s = context;
    auto_arena struct arena a = { 0 };
    struct map sums = { 0 };
    (void)from;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        double *sum = map_get(&sums, v->ns);
        if (!sum) {
            sum = arena_new(&a, double);
            *sum = 0;
            map_put(&sums, v->ns, sum);
        }
        *sum += v->seen_reporting;
    }
    for (struct map_slot *slot = NULL; (slot = map_next(&sums, slot));)
        reader->series(reader->context,
                       &(struct metric_view){ .spec = spec,
                                              .values =
                                                  (const str[]){ slot->key, s->metrics.instance },
                                              .value = *(double *)slot->value });
    map_done(&sums);
    return 0;
}

/* ---- registering */

static const double duration_bounds[] = { .01, .05, .1, .25, .5, 1, 2.5, 5, 10 };

static struct metric_family *add_family(struct saturation *s, struct metric_spec spec)
{
    size_t n = 0;
    while (spec.labels[n])
        n++;
    if (s->metrics.has_instance)
        spec.labels[n] = "controller_instance";
    return metrics_family(manager_metrics(s->manager), &spec);
}

static struct metric_family *add_gauge(struct saturation *s, const char *name, const char *help)
{
    return add_family(s, (struct metric_spec){ .name = name, .help = help, .kind = METRIC_GAUGE });
}

static void set_alone(struct saturation *s, const char *name, const char *help, double value)
{
    metric_set(METRIC(add_gauge(s, name, help), s->metrics.instance), value);
}

static struct metric_family *source_family(struct saturation *s, size_t i)
{
    static const struct metric_spec others[] = {
        { .name = "wva_available_gpus",
          .help = "Accelerators that the nodes can allocate",
          .kind = METRIC_GAUGE,
          .labels = { "accelerator_vendor", "accelerator_model", "accelerator_type" } },
        { .name = "flyball_gpus_free",
          .help = "Accelerators that no pod uses, on nodes that can run pods",
          .kind = METRIC_GAUGE,
          .labels = { "accelerator_type" } },
        { .name = "wva_metrics_pods_discovered",
          .help = "Pods that report metrics",
          .kind = METRIC_GAUGE,
          .labels = { "namespace" } },
    };
    if (i >= WHICH_N)
        return add_family(s, others[i - WHICH_N]);
    struct metric_spec spec = { .name = of_variants[i].name,
                                .help = of_variants[i].help,
                                .kind = METRIC_GAUGE };
    for (size_t k = 0; k < countof(of_variants[i].labels) && of_variants[i].labels[k]; k++)
        spec.labels[k] = of_variants[i].labels[k];
    return add_family(s, spec);
}

enum { SOURCE_N = WHICH_N + 3 };

static metric_source *source_of(size_t i)
{
    return i < WHICH_N ? show_variants : i < SOURCE_N - 1 ? show_gpus : show_namespaces;
}

bool saturation_gauges_wanted(const struct saturation *s)
{
    return s->nine;
}

void saturation_gauges_done(struct saturation *s)
{
    for (size_t i = 0; i < SOURCE_N && s->gauges; i++)
        metric_set_source(source_family(s, i), NULL, NULL);
    s->gauges = false;
}

/* ---- a cycle */

static void set_active(struct saturation *s, const char *optimizer, bool active)
{
    struct metric_family *f =
        add_family(s, (struct metric_spec){ .name = "wva_optimizer_active",
                                            .help = "1 for the optimizer in use",
                                            .kind = METRIC_GAUGE,
                                            .labels = { "optimizer_name" } });
    metric_set(METRIC(f, str_c(optimizer), s->metrics.instance), active);
}

static str bool_text(bool value)
{
    return value ? S("true") : S("false");
}

/* The configuration that holds for a model without an entry of its own. */
static void show_config(struct saturation *s)
{
    struct sat_lookup q = { S(""), S(""), NULL, 0 };
    struct sat_resolved r = sat_snapshot_resolve(s->snapshot, &q);
    bool by_tokens = str_eqc(r.analyzer, "saturation") || r.policy.analyzer_n;
    bool zero = r.policy.has_zero ? r.policy.zero : s->o.zero_by_default;
    struct metric_family *info =
        add_family(s,
                   (struct metric_spec){
                       .name = "wva_config_info",
                       .help = "The configuration of models without an entry of their own",
                       .kind = METRIC_GAUGE,
                       .labels = { "analyzer_name", "limiter_enabled", "scale_to_zero_enabled" } });
    metric_drop_all(info, NULL, 0);
    metric_set(METRIC(info, by_tokens ? S("saturation") : S(""),
                      bool_text(saturation_limits_policy(s) != NULL), bool_text(zero),
                      s->metrics.instance),
               1);
    set_alone(s, "wva_config_kv_spare_threshold", "kvSpareTrigger of the default entry",
              r.config.kv_spare_trigger);
    set_alone(s, "wva_config_queue_spare_threshold", "queueSpareTrigger of the default entry",
              r.config.queue_spare_trigger);
    set_alone(s, "wva_config_optimization_interval_seconds", "GLOBAL_OPT_INTERVAL",
              (double)s->snapshot->interval_ns / (double)NS_PER_S);
}

static bool is_described_by_scaler(const struct saturation *s)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));)
        if (((const struct variant *)slot->value)->scaler)
            return true;
    return false;
}

void saturation_gauges_cycle(struct saturation *s, double seconds)
{
    if (s->o.metrics == METRICS_SEED)
        return;
    s->nine = s->nine || s->o.metrics == METRICS_NINE || is_described_by_scaler(s);
    if (!s->nine)
        return;
    for (size_t i = 0; i < SOURCE_N && !s->gauges; i++)
        metric_set_source(source_family(s, i), source_of(i), s);
    s->gauges = true;
    set_alone(s, "wva_models_processed", "Models of the last cycle", (double)s->models.n);
    bool limited = saturation_limits_policy(s) != NULL;
    set_active(s, "cost-aware", !limited);
    set_active(s, "greedy-by-score", limited);
    show_config(s);
    struct metric_family *duration =
        add_family(s, (struct metric_spec){ .name = "wva_optimization_duration_seconds",
                                            .help = "Duration of a cycle over all models",
                                            .kind = METRIC_HISTOGRAM,
                                            .labels = { "status" },
                                            .bounds = duration_bounds,
                                            .bound_n = countof(duration_bounds) });
    metric_observe(METRIC(duration, S("success"), s->metrics.instance), seconds);
}

void saturation_gauges_count_error(struct saturation *s, const char *component, const char *type)
{
    if (!s->nine)
        return;
    struct metric_family *f =
        add_family(s, (struct metric_spec){ .name = "wva_errors_total",
                                            .help = "Errors by component",
                                            .kind = METRIC_COUNTER,
                                            .labels = { "component", "error_type" } });
    metric_add(METRIC(f, str_c(component), str_c(type), s->metrics.instance), 1);
}

void saturation_gauges_count_enforced(struct saturation *s, bool to_zero)
{
    if (!s->nine)
        return;
    struct metric_family *f =
        add_family(s, (struct metric_spec){ .name = "wva_enforcer_modifications_total",
                                            .help = "Targets that a policy changed",
                                            .kind = METRIC_COUNTER,
                                            .labels = { "policy_type" } });
    metric_add(METRIC(f, to_zero ? S("scale_to_zero") : S("minimum_replicas"), s->metrics.instance),
               1);
}

void saturation_gauges_observe(void *context, const char *kind, double seconds,
                               const err_t *failure)
{
    static const double bounds[] = { .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5 };
    struct saturation *s = context;
    if (!s->nine)
        return;
    struct metric_family *duration =
        add_family(s, (struct metric_spec){ .name = "wva_metrics_collection_duration_seconds",
                                            .help = "Duration of queries of Prometheus",
                                            .kind = METRIC_HISTOGRAM,
                                            .labels = { "query_type" },
                                            .bounds = bounds,
                                            .bound_n = countof(bounds) });
    metric_observe(METRIC(duration, str_c(kind), s->metrics.instance), seconds);
    if (!failure)
        return;
    struct metric_family *errors =
        add_family(s, (struct metric_spec){ .name = "wva_metrics_collection_errors_total",
                                            .help = "Failed queries of Prometheus",
                                            .kind = METRIC_COUNTER,
                                            .labels = { "query_type", "reason" } });
    metric_add(METRIC(errors, str_c(kind), failure->code == ETIMEDOUT ? S("timeout") : S("error"),
                      s->metrics.instance),
               1);
}

void saturation_gauges_count_strays(struct saturation *s, str ns, size_t n)
{
    if (!s->nine || !n)
        return;
    struct metric_family *f =
        add_family(s, (struct metric_spec){ .name = "wva_pod_mapping_miss_total",
                                            .help = "Samples of pods that belong to no variant",
                                            .kind = METRIC_COUNTER,
                                            .labels = { "namespace", "reason" } });
    metric_add(METRIC(f, ns, S("unresolved"), s->metrics.instance), (double)n);
}

/* ---- what a decision was based on */

static void note_tokens(struct gathering *g, size_t i, struct variant_basis *b)
{
    for (size_t k = 0; k < g->replica_n; k++) {
        const struct sat_replica *r = &g->replicas[k];
        const struct sat_sample *sample = collect_get_sample(&g->m->feed, r->pod);
        if (!sample || !str_eq(r->variant, g->states[i].variant) ||
            !(sample->traffic.kv_tokens > 0))
            continue;
        double tokens = sample->traffic.kv_tokens;
        b->tokens = (isnan(b->tokens) ? 0 : b->tokens) + tokens;
        if (!isnan(r->kv_usage))
            b->tokens_used = (isnan(b->tokens_used) ? 0 : b->tokens_used) + r->kv_usage * tokens;
    }
}

static void note_analysis(const struct sat_token_turn *turn, size_t i, struct variant_basis *b)
{
    const struct sat_token_analysis *t = &turn->analysis;
    b->by_tokens = true;
    b->utilization = t->variants[i].utilization;
    b->required = t->required;
    b->spare = t->spare;
    for (size_t k = 0; k < t->role_n; k++)
        if (str_eq(t->roles[k].role, t->variants[i].role)) {
            b->required = t->roles[k].required;
            b->spare = t->roles[k].spare;
        }
}

void saturation_gauges_note(struct gathering *g, const struct decide_answers *answers,
                            const struct sat_config *config)
{
    if (!g->s->nine)
        return;
    for (size_t i = 0; i < g->n; i++) {
        struct variant *v = g->variants[i];
        struct variant_basis b = { .known = true,
                                   .up = g->fresh,
                                   .freshness = g->fresh ? "fresh" : "stale",
                                   .utilization = v->seen_reporting ? v->seen_kv : NAN,
                                   .tokens = NAN,
                                   .tokens_used = NAN };
        b.required = answers->at[i].target > answers->at[i].current;
        b.spare = fmax(0, config->kv_threshold - b.utilization);
        note_tokens(g, i, &b);
        if (g->turn)
            note_analysis(g->turn, i, &b);
        v->basis = b;
    }
}

void saturation_gauges_note_held(struct gathering *g, const char *reason)
{
    if (!g->s->nine)
        return;
    saturation_gauges_count_error(g->s, "collector", reason);
    for (size_t i = 0; i < g->n; i++)
        g->variants[i]->basis =
            (struct variant_basis){ .known = true,
                                    .freshness = !strcmp(reason, "MetricsStale") ? "stale"
                                                 : !strcmp(reason, "MetricsMissing")
                                                     ? "missing"
                                                     : "unavailable",
                                    .utilization = NAN,
                                    .required = NAN,
                                    .spare = NAN,
                                    .tokens = NAN,
                                    .tokens_used = NAN };
}
