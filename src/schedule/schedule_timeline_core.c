/* Walking the transitions: see schedule_timeline_core.h. Equal neighbors are one period.
 *
 * A source may leave a bound unset, which keeps what came before. The walk therefore carries the bounds along. It
 * starts some weeks before the timeline, so that its first period knows them too. */
#include "schedule_timeline_core.h"

#include "../base/civil.h"
#include "schedule_apply_core.h"

enum { WARM_UP_DAYS = 35, WARM_UP_STEPS_MAX = 2000 };

static bool same_config(const struct schedule_config *x, const struct schedule_config *y)
{
    return x->has_min == y->has_min && x->has_max == y->has_max &&
           x->has_desired == y->has_desired && x->min == y->min && x->max == y->max &&
           x->desired == y->desired;
}

static bool same_period(const struct schedule_period *x, const struct schedule_period *y)
{
    return x->source == y->source && x->trigger == y->trigger &&
           same_config(&x->config, &y->config) && same_config(&x->bounds, &y->bounds);
}

/* The bounds after a config is applied to `before`, by the rules of schedule_apply(): a config that is impossible changes
 * nothing, and max limits min. desiredReplicas is not a bound: it acts once. */
static struct schedule_config bounds_after(const struct schedule_config *config,
                                           const struct schedule_config *before)
{
    struct schedule_config bounds = *config;
    if (schedule_config_is_impossible(config))
        return *before;
    schedule_config_fill(&bounds, before);
    bounds.has_desired = false;
    bounds.desired = 0;
    if (bounds.has_min && bounds.has_max && bounds.min > bounds.max)
        bounds.min = bounds.max;
    return bounds;
}

/* The bounds just before `from`, as far as the schedule has set them. */
static struct schedule_config bounds_before(const struct schedule_spec *spec, int64_t created,
                                            int64_t from, struct schedule_trigger_now *states)
{
    struct schedule_config bounds = { 0 };
    int64_t at = MAX(created, from - WARM_UP_DAYS * CIVIL_DAY_S);
    if (at >= from)
        return bounds;
    struct schedule_effective e = schedule_effective(spec, created, at, states);
    if (e.source == SCHEDULE_FROM_HOLD && e.since > created) {
        struct schedule_effective open =
            schedule_effective(spec, created, e.since - 1,
                               states); /* a range that ended long ago */
        bounds = bounds_after(&open.config, &bounds);
    }
    for (int step = 0; step < WARM_UP_STEPS_MAX && at < from; step++) {
        e = schedule_effective(spec, created, at, states);
        bounds = bounds_after(&e.config, &bounds);
        at = e.next ? MIN(e.next, from) : from;
    }
    return bounds;
}

/* Jumps from boundary to boundary, so that a year costs as many evaluations as it has boundaries. */
struct schedule_timeline schedule_timeline(struct arena *a, const struct schedule_spec *spec,
                                           int64_t created, int64_t from, int64_t to)
{
    struct schedule_timeline line = { spec, from, from, NULL, 0 };
    struct schedule_trigger_now *states = arena_array(a, spec->triggers_n, sizeof(*states));
    struct schedule_config bounds = bounds_before(spec, created, from, states);
    size_t cap = 0;
    while (line.to < to) {
        struct schedule_effective e = schedule_effective(spec, created, line.to, states);
        int64_t until = e.next ? MIN(e.next, to) : to;
        bounds = bounds_after(&e.config, &bounds);
        struct schedule_period one = { line.to, until, e.source, e.trigger, e.config, bounds };
        struct schedule_period *last = line.n ? &line.periods[line.n - 1] : NULL;
        if (last && same_period(last, &one)) {
            last->to = line.to = until;
            continue;
        }
        if (line.n == SCHEDULE_PERIODS_MAX)
            break;
        if (line.n == cap) {
            cap = MAX(cap * 2, (size_t)32);
            struct schedule_period *more = arena_array(a, cap, sizeof(*more));
            if (line.n)
                memcpy(more, line.periods, line.n * sizeof(*more));
            line.periods = more;
        }
        line.periods[line.n++] = one;
        line.to = until;
    }
    return line;
}

str schedule_config_text(struct arena *a, const struct schedule_config *c)
{
    if (schedule_config_empty(c))
        return S("unchanged");
    str text = S("");
    if (c->has_min)
        text = arena_printf(a, "min %d", c->min);
    if (c->has_max)
        text = arena_printf(a, STR_FMT "%smax %d", STR_ARG(text), text.n ? ", " : "", c->max);
    if (c->has_desired)
        text =
            arena_printf(a, STR_FMT "%sdesired %d", STR_ARG(text), text.n ? ", " : "", c->desired);
    return text;
}

str schedule_period_text(struct arena *a, const struct schedule_period *s)
{
    bool sets =
        (s->config.has_min || s->config.has_max) && !schedule_config_is_impossible(&s->config);
    struct schedule_config all = s->bounds;
    all.has_desired = s->config.has_desired;
    all.desired = s->config.desired;
    str text = schedule_config_text(a, &all);
    bool kept = !sets && (s->bounds.has_min || s->bounds.has_max);
    return kept ? arena_printf(a, STR_FMT " (kept)", STR_ARG(text)) : text;
}
