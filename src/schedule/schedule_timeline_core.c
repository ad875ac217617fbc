/* Walking the transitions: see schedule_timeline_core.h. Equal neighbors are one period. */
#include "schedule_timeline_core.h"

static bool same_decision(const struct schedule_period *s, const struct schedule_effective *e)
{
    const struct schedule_config *x = &s->config, *y = &e->config;
    return s->source == e->source && s->trigger == e->trigger && x->has_min == y->has_min &&
           x->has_max == y->has_max && x->has_desired == y->has_desired && x->min == y->min &&
           x->max == y->max && x->desired == y->desired;
}

/* Jumps from boundary to boundary, so that a year costs as many evaluations as it has boundaries. */
struct schedule_timeline schedule_timeline(struct arena *a, const struct schedule_spec *spec,
                                           int64_t created, int64_t from, int64_t to)
{
    struct schedule_timeline line = { spec, from, from, NULL, 0 };
    struct schedule_trigger_now *states = arena_array(a, spec->triggers_n, sizeof(*states));
    size_t cap = 0;
    while (line.to < to) {
        struct schedule_effective e = schedule_effective(spec, created, line.to, states);
        int64_t until = e.next ? MIN(e.next, to) : to;
        struct schedule_period *last = line.n ? &line.periods[line.n - 1] : NULL;
        if (last && same_decision(last, &e)) {
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
        line.periods[line.n++] =
            (struct schedule_period){ line.to, until, e.source, e.trigger, e.config };
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
