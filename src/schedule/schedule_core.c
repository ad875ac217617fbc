/* Which trigger governs: see schedule_core.h.
 *
 * Open windows compete by (priority, start of the window, position in the list); the winner's
 * startHPAConfig applies. If no window is open, the one that ended last leaves its endHPAConfig in
 * effect until the next one opens:
 *
 *     office   priority 0   ......[==========]..........
 *     sale     priority 5   ..........[===]..............
 *     applies               none  office sale office  end:office ->
 *
 * This is a state, not an event: the answer is the same whether flyball ran at the boundary or not. Acting on
 * boundaries as events, as SmartHPA does, loses a window whenever a write fails or the controller is down at
 * that moment. */
#include "schedule_core.h"

#include "schedule_ramp_core.h"
#include "schedule_windows_core.h"

static const char *const state_names[SCHEDULE_STATE_N] = {
    [SCHEDULE_STATE_WITHIN] = "Within",   [SCHEDULE_STATE_BEFORE] = "Before",
    [SCHEDULE_STATE_AFTER] = "After",     [SCHEDULE_STATE_INACTIVE] = "Inactive",
    [SCHEDULE_STATE_INVALID] = "Invalid", [SCHEDULE_STATE_SUSPENDED] = "Suspended",
    [SCHEDULE_STATE_DROPPED] = "Dropped",
};

static const char *const source_names[SCHEDULE_SOURCE_N] = {
    [SCHEDULE_FROM_NONE] = "none",
    [SCHEDULE_FROM_START] = "start",
    [SCHEDULE_FROM_END] = "end",
    [SCHEDULE_FROM_HOLD] = "hold",
};

const char *schedule_state_name(enum schedule_state state)
{
    return state_names[state];
}

static const char *schedule_source_name(enum schedule_source source)
{
    return source_names[source];
}

str schedule_source_text(struct arena *a, const struct schedule_spec *spec,
                         const struct schedule_effective *e)
{
    if (e->trigger < 0)
        return S("none");
    return arena_printf(a, "%s:" STR_FMT, schedule_source_name(e->source),
                        STR_ARG(spec->triggers[e->trigger].name));
}

static enum schedule_state state_of_unused(enum schedule_use use)
{
    switch (use) {
    case SCHEDULE_DROPPED:
        return SCHEDULE_STATE_DROPPED;
    case SCHEDULE_SUSPENDED:
        return SCHEDULE_STATE_SUSPENDED;
    case SCHEDULE_INVALID:
        return SCHEDULE_STATE_INVALID;
    case SCHEDULE_USED:
    case SCHEDULE_NO_DAYS:
        break;
    }
    return SCHEDULE_STATE_INACTIVE;
}

static struct schedule_trigger_now state_now(const struct schedule_view *v)
{
    struct schedule_span window;
    if (schedule_window_now(v, &window))
        return (struct schedule_trigger_now){ SCHEDULE_STATE_WITHIN, SCHEDULE_GOVERNS, window.from,
                                              window.to };
    if (!schedule_view_has_window(v))
        return (struct schedule_trigger_now){ SCHEDULE_STATE_INACTIVE };
    return (struct schedule_trigger_now){ schedule_is_before_window(v) ? SCHEDULE_STATE_BEFORE
                                                                       : SCHEDULE_STATE_AFTER };
}

/* Compares an open window with the current leader: GOVERNS, or the reason why it does not. */
static enum schedule_rank rank_against(const struct schedule_spec *spec,
                                       const struct schedule_trigger_now *states, size_t at,
                                       size_t leader)
{
    int64_t mine = spec->triggers[at].priority, its = spec->triggers[leader].priority;
    if (mine != its)
        return mine > its ? SCHEDULE_GOVERNS : SCHEDULE_LOWER_PRIORITY;
    if (states[at].window_s != states[leader].window_s)
        return states[at].window_s > states[leader].window_s ? SCHEDULE_GOVERNS
                                                             : SCHEDULE_EARLIER_START;
    return at < leader ? SCHEDULE_GOVERNS : SCHEDULE_LATER_IN_LIST;
}

/* Returns the governing open window, or -1 if none is open, and ranks the others. */
static int rank_open_windows(const struct schedule_spec *spec, struct schedule_trigger_now *states)
{
    int leader = -1;
    for (size_t i = 0; i < spec->triggers_n; i++)
        if (states[i].state == SCHEDULE_STATE_WITHIN &&
            (leader < 0 || rank_against(spec, states, i, (size_t)leader) == SCHEDULE_GOVERNS))
            leader = (int)i;
    for (size_t i = 0; leader >= 0 && i < spec->triggers_n; i++)
        if (states[i].state == SCHEDULE_STATE_WITHIN && (int)i != leader)
            states[i].rank = rank_against(spec, states, i, (size_t)leader);
    return leader;
}

/* Of two windows that end together, the one with an endHPAConfig wins, then the higher priority. */
static bool has_end_precedence(const struct schedule_trigger *t,
                               const struct schedule_trigger *best)
{
    bool mine = !schedule_config_empty(&t->end), its = !schedule_config_empty(&best->end);
    return mine != its ? mine : t->priority > best->priority;
}

/* A window that ended before the object was created counts only if it ended on that local day: a schedule
 * written in the evening applies to that evening. Evaluated at the time of creation, not at `now`, so that the
 * answer does not change at midnight. The end is checked as well: an overnight window that belongs to the day on
 * which it opens last ended days before. */
static bool ended_on_first_day(const struct schedule_trigger *t, int64_t created, int64_t *ret)
{
    struct schedule_view v = schedule_view(t, created);
    return schedule_view_has_window(&v) && !schedule_is_before_window(&v) &&
           schedule_last_end(&v, schedule_view_start(&v, v.today, 0) - 1, ret);
}

/* Finds the trigger whose window ended last, and when. Leaves e->trigger at -1 if there is none. */
static void find_last_ended(const struct schedule_spec *spec, int64_t created, int64_t now,
                            struct schedule_effective *e)
{
    for (size_t i = 0; i < spec->triggers_n; i++) {
        const struct schedule_trigger *t = &spec->triggers[i];
        if (t->use != SCHEDULE_USED)
            continue;
        struct schedule_view v = schedule_view(t, now);
        int64_t end;
        if (!schedule_last_end(&v, created, &end) && !ended_on_first_day(t, created, &end))
            continue;
        if (e->trigger >= 0 &&
            (end < e->since ||
             (end == e->since && !has_end_precedence(t, &spec->triggers[e->trigger]))))
            continue;
        e->trigger = (int)i;
        e->since = end;
    }
}

/* No window is open: the end config of the last one, completed from defaultHPAConfig. */
static void set_resting_config(const struct schedule_spec *spec, struct schedule_effective *e)
{
    if (e->trigger >= 0) {
        e->config = spec->triggers[e->trigger].end;
        e->source = schedule_config_empty(&e->config) ? SCHEDULE_FROM_HOLD : SCHEDULE_FROM_END;
    }
    schedule_config_fill(&e->config, &spec->default_config);
}

/* The decision without ramps. Also collects the state of every trigger and the next boundary. */
struct schedule_effective schedule_effective_unramped(const struct schedule_spec *spec,
                                                      int64_t created, int64_t now,
                                                      struct schedule_trigger_now *states)
{
    struct schedule_effective e = { .trigger = -1 };
    for (size_t i = 0; i < spec->triggers_n; i++) {
        const struct schedule_trigger *t = &spec->triggers[i];
        if (t->use != SCHEDULE_USED) {
            states[i] = (struct schedule_trigger_now){ state_of_unused(t->use) };
            continue;
        }
        struct schedule_view v = schedule_view(t, now);
        states[i] = state_now(&v);
        e.within_n += states[i].state == SCHEDULE_STATE_WITHIN;
        int64_t boundary;
        if (schedule_next_boundary(&v, &boundary) && (!e.next || boundary < e.next))
            e.next = boundary;
    }
    e.trigger = rank_open_windows(spec, states);
    if (e.trigger >= 0) {
        e.source = SCHEDULE_FROM_START;
        e.config = spec->triggers[e.trigger].start;
        e.since = states[e.trigger].window_s;
    } else {
        find_last_ended(spec, created, now, &e);
        set_resting_config(spec, &e);
    }
    return e;
}

static int64_t shift_instant(int64_t at, int64_t by)
{
    return at == 0 || at == INT64_MIN || at == INT64_MAX ? at : at + by;
}

/* A schedule that is spread behaves as one whose clock is late: it is evaluated at an earlier instant, and what it
 * returns is moved by the same amount. */
struct schedule_effective schedule_effective(const struct schedule_spec *spec, int64_t created,
                                             int64_t now, struct schedule_trigger_now *states)
{
    int64_t by = spec->shift_s;
    struct schedule_effective e = schedule_effective_unramped(spec, created - by, now - by, states);
    schedule_ramp(spec, created - by, now - by, states, &e);
    for (size_t i = 0; by && i < spec->triggers_n; i++) {
        states[i].window_s = shift_instant(states[i].window_s, by);
        states[i].window_e = shift_instant(states[i].window_e, by);
    }
    e.since = shift_instant(e.since, by);
    e.next = shift_instant(e.next, by);
    return e;
}
