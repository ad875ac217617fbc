/* Ramps: see schedule_ramp_core.h.
 *
 * With r minutes, min climbs from what rests to the window's own over the r minutes before its start, and
 * falls back over the r minutes after its end; max is the larger of both all the while, so that it is
 * never the limit. Only a window that will govern (or did) has a ramp, and only for bounds that both
 * sides set: from an unknown value there is no way to climb. */
#include "schedule_ramp_core.h"

#include "schedule_windows_core.h"

enum { MINUTE_S = 60 };

struct slope {
    int64_t from, to; /* [from, to), whole minutes apart */
    bool down;
};

/* Did the trigger govern at that instant, or will it? */
static bool governs_at(const struct schedule_spec *spec, int64_t created, int64_t at,
                       size_t trigger)
{
    struct arena a = { 0 };
    struct schedule_trigger_now *states = arena_array(&a, spec->triggers_n, sizeof(*states));
    struct schedule_effective e = schedule_effective_unramped(spec, created, at, states);
    arena_done(&a);
    return e.source == SCHEDULE_FROM_START && e.trigger == (int)trigger;
}

static void ramp_config(const struct slope *s, int64_t now, const struct schedule_config *window,
                        struct schedule_config *config)
{
    int64_t steps = (s->to - s->from) / MINUTE_S, at = (now - s->from) / MINUTE_S;
    int64_t climbed = s->down ? steps - at : at;
    if (window->has_min && config->has_min && window->min > config->min)
        config->min +=
            (int32_t)((((int64_t)window->min - config->min) * climbed + steps - 1) / steps);
    if (window->has_max && config->has_max)
        config->max = MAX(config->max, window->max);
}

static void wake_no_later(struct schedule_effective *e, int64_t at)
{
    if (!e->next || at < e->next)
        e->next = at;
}

/* One side of a window: before it, now and then there is a step to wake up for. */
static void apply_slope(const struct schedule_spec *spec, int64_t created, int64_t now,
                        size_t trigger, const struct slope *s, struct schedule_effective *e)
{
    if (now >= s->to)
        return;
    if (now < s->from) {
        wake_no_later(e, s->from);
        return;
    }
    wake_no_later(e, s->from + ((now - s->from) / MINUTE_S + 1) * MINUTE_S);
    int64_t inside = s->down ? s->from - 1 : s->to;
    if (governs_at(spec, created, inside, trigger))
        ramp_config(s, now, &spec->triggers[trigger].start, &e->config);
}

void schedule_ramp(const struct schedule_spec *spec, int64_t created, int64_t now,
                   const struct schedule_trigger_now *states, struct schedule_effective *e)
{
    for (size_t i = 0; i < spec->triggers_n; i++) {
        const struct schedule_trigger *t = &spec->triggers[i];
        int64_t length = t->ramp_minutes * (int64_t)MINUTE_S, at;
        if (!length || t->use != SCHEDULE_USED || states[i].state == SCHEDULE_STATE_WITHIN)
            continue;
        struct schedule_view v = schedule_view(t, now);
        if (schedule_next_boundary(&v, &at))
            apply_slope(spec, created, now, i, &(struct slope){ at - length, at, false }, e);
        if (schedule_last_end(&v, MAX(created, now - length - 1), &at))
            apply_slope(spec, created, now, i, &(struct slope){ at, at + length, true }, e);
    }
}
