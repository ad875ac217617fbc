/* Ramps: see schedule_ramp_core.h.
 *
 *     min   window     .      ________
 *                           _/        \_
 *           resting  _____/              \_____
 *                        |r |  window  | r|           r: rampMinutes
 *
 * With r minutes, min rises from the resting value to the window's own in the r minutes before the start,
 * and falls back in the r minutes after the end. max is the larger of both values during the ramp, so that
 * it never limits it. Only a window that will govern (or did) has a ramp, and only for bounds that both
 * sides set: without a known value there is nothing to start from. */
#include "schedule_ramp_core.h"

#include "schedule_windows_core.h"

enum { MINUTE_S = 60 };

struct slope {
    int64_t from, to; /* [from, to), whole minutes apart */
    bool down;
};

/* Does the trigger govern at that instant, past or future? */
static bool governs_at(const struct schedule_spec *spec, int64_t created, int64_t at,
                       size_t trigger)
{
    struct arena a = { 0 };
    struct schedule_trigger_now *states = arena_array(&a, spec->triggers_n, sizeof(*states));
    struct schedule_effective e = schedule_effective_unramped(spec, created, at, states);
    arena_done(&a);
    return e.source == SCHEDULE_FROM_START && e.trigger == (int)trigger;
}

/* Raises the bounds to the step of the slope that now is in; rounds min up. Each slope starts from the resting value:
 * where two overlap, the higher one applies, not their sum. */
static void ramp_config(const struct slope *s, int64_t now, const struct schedule_config *window,
                        const struct schedule_config *resting, struct schedule_config *config)
{
    int64_t steps = (s->to - s->from) / MINUTE_S, at = (now - s->from) / MINUTE_S;
    int64_t climbed = s->down ? steps - at : at;
    if (window->has_min && resting->has_min && window->min > resting->min) {
        int64_t rise = (((int64_t)window->min - resting->min) * climbed + steps - 1) / steps;
        config->min = MAX(config->min, (int32_t)(resting->min + rise));
    }
    if (window->has_max && config->has_max)
        config->max = MAX(config->max, window->max);
}

static void wake_no_later(struct schedule_effective *e, int64_t at)
{
    if (!e->next || at < e->next)
        e->next = at;
}

/* Applies one slope of a window if it is under way, and schedules the wake-up for its next step. */
static void apply_slope(const struct schedule_spec *spec, int64_t created, int64_t now,
                        size_t trigger, const struct slope *s,
                        const struct schedule_config *resting, struct schedule_effective *e)
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
        ramp_config(s, now, &spec->triggers[trigger].start, resting, &e->config);
}

void schedule_ramp(const struct schedule_spec *spec, int64_t created, int64_t now,
                   const struct schedule_trigger_now *states, struct schedule_effective *e)
{
    const struct schedule_config resting = e->config;
    for (size_t i = 0; i < spec->triggers_n; i++) {
        const struct schedule_trigger *t = &spec->triggers[i];
        int64_t length = t->ramp_minutes * (int64_t)MINUTE_S, at;
        if (!length || t->use != SCHEDULE_USED || states[i].state == SCHEDULE_STATE_WITHIN)
            continue;
        struct schedule_view v = schedule_view(t, now);
        if (schedule_next_boundary(&v, &at))
            apply_slope(spec, created, now, i, &(struct slope){ at - length, at, false }, &resting,
                        e);
        if (schedule_last_end(&v, MAX(created, now - length - 1), &at))
            apply_slope(spec, created, now, i, &(struct slope){ at, at + length, true }, &resting,
                        e);
    }
}
