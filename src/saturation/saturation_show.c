/* What others see of a decision: the metrics that an HPA or KEDA reads, events, and the status of a variant.
 *
 * The engine decides; this file publishes. A view is everything that a status shows. It is compared with the one that
 * was last shown, and only a difference that a reader would care about (status_core.c) queues the variant for a
 * write, so that a steady state sends nothing to the API server. Texts of a view are copied into the variant's own
 * arena, because those of the decision end with the cycle.
 *
 * Metrics are different: they are set in every cycle, since a scrape must never find a gap. */
#include "saturation_show.h"

#include "../base/log.h"
#include "saturation_gauges.h"
#include "saturation_limits.h"
#include "saturation_slo.h"
#include "saturation_targets.h"
#include "saturation_tokens.h"
#include "saturation_wake.h"

static str keep_text(struct variant *v, str text)
{
    return arena_str(&v->shown.texts, text);
}

/* Stores the view and queues a status write, unless the view only repeats what is already shown. */
void saturation_show_view(struct saturation *s, struct variant *v, const struct sat_view *view,
                          str reason)
{
    if (v->decided && sat_view_is_same(&v->shown.view, view))
        return;
    const struct sat_condition *was = &v->shown.view.conditions[SAT_OPTIMIZATION_READY],
                               *is = &view->conditions[SAT_OPTIMIZATION_READY];
    bool broken =
        is->known && !is->holds &&
        (!strcmp(is->reason, "NoAnalyzer") || !strcmp(is->reason, "InvalidConfiguration"));
    if (broken && saturation_gauges_wanted(s) &&
        !(v->decided && was->known && !strcmp(was->reason, is->reason)))
        saturation_emit(s, v, true, "OptimizationFailed", is->message); /* quoted: WVA 0.9 */
    struct arena old = v->shown.texts;
    v->shown.texts = (struct arena){ 0 };
    v->shown.view = *view;
    v->shown.view.accelerator = keep_text(v, view->accelerator);
    for (int i = 0; i < SAT_CONDITION_N; i++)
        v->shown.view.conditions[i].message = keep_text(v, view->conditions[i].message);
    v->shown.reason = keep_text(v, reason);
    arena_done(&old);
    v->decided = true;
    controller_add(s->variants, v->ns, v->name);
}

struct sat_condition saturation_show_condition(bool holds, const char *reason, str message)
{
    return (struct sat_condition){ true, holds, reason, message };
}

struct variant_labels saturation_show_labels(const struct saturation *s, const struct variant *v)
{
    return (struct variant_labels){ v->ns, v->name, v->spec.target_name, v->spec.model,
                                    saturation_limits_shown_type(s, v) };
}

/* Shows why a variant takes no part in the decision. A workload at 0 replicas keeps its metrics,
 * with a target of 0, so that an HPA or KEDA does not lose them; two models that fight over a
 * workload keep their last ones; for any other reason they are removed. */
void saturation_show_skipped(struct saturation *s, struct arena *a,
                             const struct saturation_skipped *x)
{
    struct variant *v = x->variant;
    bool asleep = x->asleep && v->accelerator.n >= 2; /* see above */
    if (!asleep && !x->conflict)
        saturation_metrics_hide(&s->metrics, &v->series, v->ns, v->name);
    if (!x->why.n)
        return;
    struct sat_view view = { .load = v->model->feed.load, .cost = v->spec.cost };
    view.conditions[SAT_TARGET_RESOLVED] = saturation_targets_condition(s, a, v);
    view.gone = !strcmp(view.conditions[SAT_TARGET_RESOLVED].reason, "TargetNotFound");
    bool excluded = saturation_is_excluded(s, v);
    view.conditions[SAT_OPTIMIZATION_READY] =
        saturation_show_condition(false,
                                  excluded      ? "NamespaceExcluded"
                                  : x->conflict ? "TargetConflict"
                                                : "SkippedProcessing",
                                  x->why);
    if (asleep) {
        view.conditions[SAT_ACTIVE] = saturation_wake_condition(v);
        view.accelerator = v->accelerator;
        view.has_current = view.has_desired = view.applied = true;
        v->desired = 0;
        saturation_want_save(s, v, x->why);
        struct variant_labels labels = saturation_show_labels(s, v);
        saturation_metrics_show(&s->metrics, &v->series, &labels, 0, 0);
    }
    saturation_show_view(s, v, &view, x->why);
}

static enum sat_cause map_cause(const struct decide_answer *x)
{
    switch (x->source) {
    case DECIDE_FROM_MODEL:
        return SAT_CAUSE_OPTIMIZER;
    case DECIDE_FROM_VETO:
        return SAT_CAUSE_SAFETY;
    case DECIDE_FROM_BOUNDS:
        return SAT_CAUSE_BOUNDS;
    case DECIDE_FROM_ZERO:
        return x->target > x->current ? SAT_CAUSE_WAKE : SAT_CAUSE_ZERO;
    case DECIDE_FROM_SLO:
        return SAT_CAUSE_SLO;
    case DECIDE_FROM_CAPACITY:
        break;
    }
    return SAT_CAUSE_SATURATION;
}

/* Counts, logs and emits a change of the target. The direction compares targets: from 4 to 3 is
 * down, even while only 2 replicas exist. */
static void report_change(struct saturation *s, struct variant *v, const struct decide_answer *x,
                          int from)
{
    struct variant_labels labels = saturation_show_labels(s, v);
    bool up = x->target > from;
    auto_arena struct arena a = { 0 };
    enum sat_cause cause = map_cause(x);
    saturation_metrics_count_change(&s->metrics, &labels, up, cause);
    if (saturation_gauges_wanted(s))
        saturation_metrics_count_change_09(&s->metrics, &labels, up, cause,
                                           str_starts(x->reason, S("V2 ")));
    if (cause == SAT_CAUSE_ZERO || (cause == SAT_CAUSE_BOUNDS && up))
        saturation_gauges_count_enforced(s, cause == SAT_CAUSE_ZERO);
    log_info("Processing decision for VA", KV("namespace", v->ns), KV("variant", v->name),
             KV_C("action", sat_action_name(from, x->target)), KV_INT("current", x->current),
             KV_INT("target", x->target), KV("reason", x->reason));
    str there = from == x->current ? S("") : arena_printf(&a, " (%d now)", x->current);
    str message = arena_printf(&a, "%d -> %d replicas" STR_FMT ": " STR_FMT, from, x->target,
                               STR_ARG(there), STR_ARG(x->reason));
    saturation_emit(s, v, false, up ? "ScaleUp" : "ScaleDown", message);
    if (saturation_gauges_wanted(s)) /* quoted: WVA 0.9 */
        saturation_emit(s, v, false, up ? "ScaledUp" : "ScaledDown", message);
}

static str append_problems(struct arena *a, const struct variant *v, str text)
{
    for (size_t i = 0; i < v->spec.problem_n; i++)
        text = arena_printf(a, STR_FMT "; " STR_FMT, STR_ARG(text), STR_ARG(v->spec.problems[i]));
    return text;
}

/* The condition OptimizationReady: which rule decided, its reason and target, and what is wrong
 * with the spec. */
static struct sat_condition optimization_condition(struct arena *a, const struct variant *v,
                                                   const struct decide_answer *x, bool ready)
{
    if (ready && x->source == DECIDE_FROM_SLO)
        return saturation_show_condition(
            true, "LatencyTargets",
            append_problems(a, v,
                            arena_printf(a, STR_FMT " (target: %d replicas; " STR_FMT ")",
                                         STR_ARG(x->reason), x->target,
                                         STR_ARG(saturation_slo_describe(a, v->model->slo)))));
    if (str_eqc(x->reason, SAT_TOKENS_NO_VOTE))
        return saturation_show_condition(false, "NoAnalyzer", append_problems(a, v, x->reason));
    if (!ready)
        return saturation_show_condition(false, "MetricsUnavailable",
                                         append_problems(a, v, x->reason));
    if (x->source == DECIDE_FROM_VETO)
        return saturation_show_condition(
            true, "SaturationSafetyOverride",
            append_problems(a, v,
                            arena_printf(a, "saturation safety override: " STR_FMT,
                                         STR_ARG(x->reason))));
    bool model = x->source == DECIDE_FROM_MODEL;
    str text = arena_printf(a, "%s: " STR_FMT " (target: %d replicas)",
                            model ? "Hybrid mode" : "saturation-only decision", STR_ARG(x->reason),
                            x->target);
    return saturation_show_condition(true, model ? "OptimizationSucceeded" : "SaturationOnlyMode",
                                     append_problems(a, v, text));
}

/* Publishes the answer for one variant: metrics, event and status. */
void saturation_show_answer(struct gathering *g, size_t i, const struct decide_answer *x,
                            struct sat_condition metrics)
{
    struct saturation *s = g->s;
    struct variant *v = g->variants[i];
    bool fresh = x->target != v->desired;
    int from = v->desired > 0 ? v->desired : x->current;
    if (fresh && x->target != from)
        report_change(s, v, x, from);
    if (fresh)
        v->decided_ns = g->now_ns;
    if (fresh && x->target > x->current)
        v->growing = true;
    v->desired = x->target;
    if (fresh || !v->decided)
        saturation_want_save(s, v, x->reason);
    struct variant_labels labels = saturation_show_labels(s, v);
    saturation_metrics_show(&s->metrics, &v->series, &labels, g->present[i], x->target);
    struct sat_view view = {
        .accelerator = v->accelerator,
        .has_current = true,
        .current = x->current,
        .wanted = g->wanted[i],
        .cost = v->spec.cost,
        .load = g->m->feed.load,
        .has_desired = true,
        .desired = x->target,
        .applied = !v->spec.writes_scale || g->wanted[i] == x->target,
    };
    view.conditions[SAT_TARGET_RESOLVED] = saturation_targets_condition(s, g->a, v);
    view.conditions[SAT_METRICS_AVAILABLE] = metrics;
    view.conditions[SAT_ACTIVE] = saturation_wake_condition(v);
    view.conditions[SAT_RESOURCE_CONSTRAINED] = saturation_limits_condition(v, x);
    const struct sat_condition *shown = &v->shown.view.conditions[SAT_OPTIMIZATION_READY];
    bool ready = metrics.holds || x->source == DECIDE_FROM_MODEL;
    bool same = v->decided && shown->known && !fresh && str_eq(x->reason, v->shown.reason) &&
                shown->holds == ready;
    view.conditions[SAT_OPTIMIZATION_READY] =
        same ? *shown /* the text need not be formatted again */
             : optimization_condition(g->a, v, x, ready);
    saturation_show_view(s, v, &view, x->reason);
}
