/* Which trigger governs: the five scenarios of the original, and laws that hold for any spec at any
 * instant. The oracle below knows only the definition: it lists pieces day by day with the slow
 * conversion, and asks nothing of schedule_windows but that. */
#include "base/civil.h"
#include "base/random.h"
#include "base/rfc3339.h"
#include "schedule/schedule_core.h"
#include "schedule/schedule_windows_core.h"
#include "tap.h"

enum { TRIGGERS = 5, ROUNDS = 4000, ORACLE_DAYS = 12 };

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static struct schedule_trigger daily(const char *name, int from_hour, int to_hour, int64_t priority)
{
    return (struct schedule_trigger){
        .name = str_c(name),
        .zone = tz_utc(),
        .priority = priority,
        .start_s = from_hour * 3600,
        .end_s = to_hour * 3600,
        .weekdays = 0x7f,
        .first_day = INT32_MIN,
        .last_day = INT32_MAX,
        .start = { .has_min = true, .min = from_hour },
        .end = { .has_min = true, .min = to_hour },
    };
}

static str source_at(struct arena *a, struct schedule_spec *spec, const char *created,
                     const char *now)
{
    struct schedule_trigger_now states[TRIGGERS];
    struct schedule_effective e = schedule_effective(spec, at(created), at(now), states);
    return schedule_source_text(a, spec, &e);
}

static void scenarios(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger triggers[] = { daily("low", 8, 18, 10), daily("high", 10, 12, 20),
                                           daily("late", 11, 20, 20) };
    struct schedule_spec two = { .triggers = triggers, .triggers_n = 2 };
    struct schedule_spec all = { .triggers = triggers, .triggers_n = 3 };
    static const char *const born = "2026-06-03T07:00:00Z";
    EQ_STR(source_at(&a, &two, born, "2026-06-03T07:59:59Z"), S("none"));
    EQ_STR(source_at(&a, &two, born, "2026-06-03T08:00:00Z"), S("start:low"));
    EQ_STR(source_at(&a, &two, born, "2026-06-03T10:00:00Z"), S("start:high"));
    EQ_STR(source_at(&a, &two, born, "2026-06-03T12:00:00Z"), S("start:low"));
    EQ_STR(source_at(&a, &two, born, "2026-06-03T18:00:00Z"), S("end:low"));
    EQ_STR(source_at(&a, &two, born, "2026-06-04T07:59:59Z"), S("end:low"));
    EQ_STR(source_at(&a, &all, born, "2026-06-03T11:00:00Z"),
           S("start:late")); /* a tie: the later */
    EQ_STR(source_at(&a, &all, born, "2026-06-03T19:00:00Z"), S("start:late")); /* low has ended */
}

static void resting_values_fill_what_an_end_leaves_open(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger triggers[] = { daily("w", 8, 18, 0) };
    struct schedule_spec spec = { .triggers = triggers,
                                  .triggers_n = 1,
                                  .default_config = {
                                      .has_min = true, .min = 2, .has_max = true, .max = 7 } };
    struct schedule_trigger_now states[1];
    struct schedule_effective e = schedule_effective(&spec, 0, at("2026-06-03T19:00:00Z"), states);
    OK(e.config.min == 18 && e.config.max == 7);
    triggers[0].end = (struct schedule_config){ 0 };
    e = schedule_effective(&spec, 0, at("2026-06-03T19:00:00Z"), states);
    EQ_STR(schedule_source_text(&a, &spec, &e), S("hold:w"));
    OK(e.config.min == 2 && e.config.max == 7);
    e = schedule_effective(&spec, 0, at("2026-06-03T09:00:00Z"), states);
    OK(e.config.min == 8 && !e.config.has_max); /* an open window is not filled */
}

static void an_excluded_date_has_no_window(void)
{
    auto_arena struct arena a = { 0 };
    int32_t holidays[] = { 20446, 20447 }; /* 2025-12-24, 25 */
    struct schedule_trigger triggers[] = { daily("w", 8, 18, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 1 };
    static const char *const born = "2025-12-01T00:00:00Z";
    triggers[0].excluded_days = holidays;
    triggers[0].excluded_n = 2;
    EQ_STR(source_at(&a, &spec, born, "2025-12-23T12:00:00Z"), S("start:w"));
    EQ_STR(source_at(&a, &spec, born, "2025-12-24T12:00:00Z"), S("end:w"));
    struct schedule_trigger_now states[1];
    struct schedule_effective e =
        schedule_effective(&spec, at(born), at("2025-12-23T19:00:00Z"), states);
    EQ_INT(e.next, at("2025-12-26T08:00:00Z"));
}

static void a_range_that_ended_long_ago_still_rests(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger triggers[] = { daily("sale", 8, 18, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 1 };
    triggers[0].weekdays = 0;
    triggers[0].first_day = triggers[0].last_day = 20446; /* 2025-12-24 */
    EQ_STR(source_at(&a, &spec, "2025-12-01T00:00:00Z", "2026-12-24T12:00:00Z"), S("end:sale"));
    EQ_STR(source_at(&a, &spec, "2025-12-25T00:00:00Z", "2026-12-24T12:00:00Z"), S("none"));
    struct schedule_trigger_now states[1];
    EQ_INT(schedule_effective(&spec, 0, at("2026-12-24T12:00:00Z"), states).next, 0);
}

static void ramps_climb_before_and_fall_after(void)
{
    struct schedule_trigger triggers[] = { daily("low", 1, 6, 0), daily("w", 9, 17, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 2 };
    triggers[0].end = (struct schedule_config){ true, true, false, 2, 6, 0 };
    triggers[1].start = (struct schedule_config){ true, true, false, 10, 20, 0 };
    triggers[1].end = (struct schedule_config){ true, true, false, 3, 5, 0 };
    triggers[1].ramp_minutes = 10;
    static const struct {
        const char *now;
        int32_t min, max;
        const char *next;
    } cases[] = {
        { "2026-06-03T08:49:59Z", 2, 6, "2026-06-03T08:50:00Z" },
        { "2026-06-03T08:50:00Z", 2, 20, "2026-06-03T08:51:00Z" },
        { "2026-06-03T08:51:30Z", 3, 20, "2026-06-03T08:52:00Z" },
        { "2026-06-03T08:55:00Z", 6, 20, "2026-06-03T08:56:00Z" },
        { "2026-06-03T08:59:59Z", 10, 20, "2026-06-03T09:00:00Z" },
        { "2026-06-03T09:00:00Z", 10, 20, "2026-06-03T17:00:00Z" },
        { "2026-06-03T17:00:00Z", 10, 20, "2026-06-03T17:01:00Z" },
        { "2026-06-03T17:05:00Z", 7, 20, "2026-06-03T17:06:00Z" },
        { "2026-06-03T17:09:59Z", 4, 20, "2026-06-03T17:10:00Z" },
        { "2026-06-03T17:10:00Z", 3, 5, "2026-06-04T01:00:00Z" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct schedule_trigger_now states[2];
        struct schedule_effective e = schedule_effective(&spec, 0, at(cases[i].now), states);
        EQ_INT(e.config.min, cases[i].min);
        EQ_INT(e.config.max, cases[i].max);
        EQ_INT(e.next, at(cases[i].next));
    }
    triggers[0].priority = 5;
    triggers[0].end_s =
        24 * 3600; /* open and stronger: the other never governs, so it has no ramp */
    struct schedule_trigger_now states[2];
    EQ_INT(schedule_effective(&spec, 0, at("2026-06-03T08:55:00Z"), states).config.min, 1);
}

/* The night is shorter than both slopes together: where they overlap, the higher one applies, and no bound rises above
 * what either of them asks for. */
static void slopes_that_overlap_are_not_added_up(void)
{
    struct schedule_trigger triggers[] = { daily("w", 8, 20, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 1 };
    triggers[0].start = (struct schedule_config){ true, true, false, 101, 200, 0 };
    triggers[0].end = (struct schedule_config){ true, true, false, 1, 10, 0 };
    triggers[0].ramp_minutes = 600;
    static const struct {
        const char *now;
        int32_t min;
    } cases[] = {
        { "2026-06-03T20:00:00Z", 101 }, { "2026-06-03T21:00:00Z", 91 },
        { "2026-06-04T01:00:00Z", 51 }, /* falling 51, rising 31 */
        { "2026-06-04T02:00:00Z", 41 }, /* both */
        { "2026-06-04T03:00:00Z", 51 },  { "2026-06-04T07:59:00Z", 101 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct schedule_trigger_now states[1];
        EQ_INT(schedule_effective(&spec, 0, at(cases[i].now), states).config.min, cases[i].min);
    }
}

/* Both windows stay open for weeks. Who opened last does not change with the day on which the question is asked. */
static void a_tie_has_one_answer_while_both_are_open(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger triggers[] = { daily("always", 0, 24, 0), daily("november", 0, 24, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 2 };
    int64_t first = at("2026-11-01T00:00:00Z");
    triggers[1].weekdays = 0;
    triggers[1].first_day = (int32_t)civil_day_of(first);
    triggers[1].last_day = triggers[1].first_day + 29;
    for (int hour = 0; hour < 30 * 24; hour++) {
        struct schedule_trigger_now states[2];
        struct schedule_effective e = schedule_effective(&spec, 0, first + hour * 3600, states);
        if (!EQ_INT(e.trigger, 1) || !EQ_INT(e.since, first) ||
            !EQ_INT(states[1].window_e, first + 30 * CIVIL_DAY_S) ||
            !OK(states[0].window_s == INT64_MIN && states[0].window_e == INT64_MAX) ||
            !EQ_INT(states[0].rank, SCHEDULE_EARLIER_START))
            break;
    }
    EQ_STR(source_at(&a, &spec, "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"), S("start:always"));
    int32_t holiday = triggers[1].first_day + 9;
    triggers[0].excluded_days = &holiday;
    triggers[0].excluded_n = 1; /* now the other one is open since later */
    EQ_STR(source_at(&a, &spec, "2026-01-01T00:00:00Z", "2026-11-10T12:00:00Z"),
           S("start:november"));
    EQ_STR(source_at(&a, &spec, "2026-01-01T00:00:00Z", "2026-11-11T00:00:00Z"), S("start:always"));
    EQ_STR(source_at(&a, &spec, "2026-01-01T00:00:00Z", "2026-11-29T00:00:00Z"), S("start:always"));
}

/* Fridays 22:00 to Saturdays 06:00, created on a Friday at noon: the last window ended six days before. */
static void a_window_before_creation_never_governs(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger triggers[] = { daily("night", 22, 6, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 1 };
    triggers[0].weekdays = 1 << 5;
    triggers[0].overnight = SCHEDULE_START;
    static const char *const born = "2026-06-05T12:00:00Z";
    EQ_STR(source_at(&a, &spec, born, "2026-06-05T12:00:00Z"), S("none"));
    EQ_STR(source_at(&a, &spec, born, "2026-06-05T21:59:59Z"), S("none"));
    EQ_STR(source_at(&a, &spec, born, "2026-06-05T22:00:00Z"), S("start:night"));
    EQ_STR(source_at(&a, &spec, born, "2026-06-06T06:00:00Z"), S("end:night"));
    triggers[0].overnight = SCHEDULE_CALENDAR; /* its early part ended this morning */
    EQ_STR(source_at(&a, &spec, born, "2026-06-05T12:00:00Z"), S("end:night"));
}

/* The same schedule, later by an amount that depends on the name only. */
static void a_spread_schedule_is_late(void)
{
    struct schedule_trigger triggers[] = { daily("w", 9, 17, 0) };
    struct schedule_spec spec = { .triggers = triggers, .triggers_n = 1, .spread_s = 600 };
    int shifts[16];
    size_t distinct = 0;
    for (int i = 0; i < 16; i++) {
        char name[] = { 'w', 'e', 'b', (char)('a' + i), 0 };
        schedule_spec_set_name(&spec, S("shop"), str_c(name));
        OK(spec.shift_s >= 0 && spec.shift_s < 600);
        shifts[i] = spec.shift_s;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= shifts[k] == shifts[i];
        distinct += !seen;
        struct schedule_trigger_now states[1];
        int64_t open = at("2026-06-03T09:00:00Z") + spec.shift_s;
        EQ_INT(schedule_effective(&spec, 0, open - 1, states).source, SCHEDULE_FROM_END);
        struct schedule_effective e = schedule_effective(&spec, 0, open, states);
        EQ_INT(e.source, SCHEDULE_FROM_START);
        EQ_INT(e.since, open);
        EQ_INT(states[0].window_e, at("2026-06-03T17:00:00Z") + spec.shift_s);
        EQ_INT(e.next, at("2026-06-03T17:00:00Z") + spec.shift_s);
    }
    OK(distinct >= 14);
}

/* ---- the oracle */

struct oracle {
    bool within;
    int64_t last_end, next; /* 0: none near */
};

static void oracle_piece(struct oracle *o, int64_t from, int64_t to, int64_t now)
{
    if (from >= to)
        return;
    o->within |= from <= now && now < to;
    if (to <= now)
        o->last_end = MAX(o->last_end, to);
    int64_t boundary = from > now ? from : to;
    if (boundary > now && (!o->next || boundary < o->next))
        o->next = boundary;
}

static struct oracle ask_oracle(const struct schedule_trigger *t, int64_t now)
{
    struct oracle o = { 0 };
    int64_t today = civil_day_of(now + tz_offset_at(t->zone, now));
    for (int64_t day = today - ORACLE_DAYS; day <= today + ORACLE_DAYS; day++) {
        int64_t midnight = day * CIVIL_DAY_S;
        if (!schedule_trigger_has_day(t, day))
            continue;
        if (t->start_s < t->end_s) {
            oracle_piece(&o, schedule_wall_start(t->zone, midnight + t->start_s),
                         schedule_wall_end(t->zone, midnight + t->end_s), now);
        } else if (t->overnight == SCHEDULE_CALENDAR) {
            oracle_piece(&o, schedule_wall_start(t->zone, midnight),
                         schedule_wall_end(t->zone, midnight + t->end_s), now);
            oracle_piece(&o, schedule_wall_start(t->zone, midnight + t->start_s),
                         schedule_wall_end(t->zone, midnight + CIVIL_DAY_S), now);
        } else if (schedule_date_exists(t->zone, day)) {
            oracle_piece(&o, schedule_wall_start(t->zone, midnight + t->start_s),
                         schedule_wall_end(t->zone, midnight + CIVIL_DAY_S + t->end_s), now);
        }
    }
    return o;
}

/* ---- random specs around instants where clocks jump */

static const char *const zones[] = {
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Beirut",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Chatham",
    "America/St_Johns",
};

static int32_t random_second(struct random *r)
{
    return (int32_t)(random_below(r, 4) ? random_below(r, 96) * 900 : random_below(r, 86400));
}

static struct schedule_trigger random_trigger(struct random *r, int64_t now, const char *name,
                                              int32_t holidays[2])
{
    struct schedule_trigger t = daily(name, 0, 0, random_below(r, 3));
    tz_get(str_c(zones[random_below(r, countof(zones))]), &t.zone, NULL);
    do {
        t.start_s = random_second(r);
        t.end_s = random_second(r);
        if (!random_below(r, 6))
            t.end_s = 86400;
    } while (t.start_s == t.end_s);
    int32_t today = (int32_t)civil_day_of(now);
    t.weekdays = (uint8_t)(1 + random_below(r, 127));
    if (!random_below(r, 3)) {
        t.weekdays = 0;
        t.first_day = today - 10 + (int32_t)random_below(r, 20);
        t.last_day = t.first_day + (int32_t)random_below(r, 12);
    }
    if (!random_below(r, 3)) {
        holidays[0] = today - 1 + (int32_t)random_below(r, 3);
        holidays[1] = holidays[0] + 1;
        t.excluded_days = holidays;
        t.excluded_n = 2;
    }
    t.overnight = (enum schedule_overnight)random_below(r, 2);
    if (!random_below(r, 4))
        t.ramp_minutes = 1 + (int32_t)random_below(r, 90);
    if (!random_below(r, 3))
        t.end = (struct schedule_config){ 0 };
    return t;
}

static int64_t random_instant(struct random *r)
{
    static const char *const jumps[] = {
        "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z",
        "2026-11-01T06:00:00Z", "2011-12-30T10:00:00Z", "2026-04-04T15:00:00Z",
        "2018-11-04T03:00:00Z", "2026-04-23T22:00:00Z", "2030-06-01T00:00:00Z",
    };
    int64_t spread = 3 * CIVIL_DAY_S;
    return at(jumps[random_below(r, countof(jumps))]) - spread +
           (int64_t)random_below(r, (uint32_t)(2 * spread));
}

struct world {
    struct schedule_trigger triggers[TRIGGERS];
    int32_t holidays[TRIGGERS][2];
    struct schedule_spec spec;
    int64_t now, created;
};

static void random_world(struct random *r, struct world *w)
{
    static const char *const names[TRIGGERS] = { "a", "b", "c", "d", "e" };
    w->now = random_instant(r);
    w->created = w->now - (int64_t)random_below(r, 20 * 86400);
    w->spec = (struct schedule_spec){ .triggers = w->triggers,
                                      .triggers_n = 1 + random_below(r, TRIGGERS) };
    for (size_t i = 0; i < w->spec.triggers_n; i++)
        w->triggers[i] = random_trigger(r, w->now, names[i], w->holidays[i]);
}

static void agrees_with_the_definition(void)
{
    struct random r;
    random_init(&r, 1, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        struct world w;
        random_world(&r, &w);
        for (size_t i = 0; i < w.spec.triggers_n; i++) {
            struct oracle o = ask_oracle(&w.triggers[i], w.now);
            struct schedule_view v = schedule_view(&w.triggers[i], w.now);
            struct schedule_span window;
            bool within = schedule_window_now(&v, &window);
            int64_t end = 0, next = 0;
            schedule_last_end(&v, w.now - 8 * CIVIL_DAY_S, &end);
            schedule_next_boundary(&v, &next);
            if (o.last_end <= w.now - 8 * CIVIL_DAY_S)
                o.last_end = 0;
            bad += !EQ_INT(within, o.within) || !EQ_INT(end, o.last_end) ||
                   (o.next && !EQ_INT(next, o.next));
            if (within)
                bad += !OK(window.from <= w.now && w.now < window.to);
        }
    }
}

static bool same(const struct schedule_effective *x, const struct schedule_effective *y)
{
    return x->source == y->source && x->trigger == y->trigger && x->next == y->next &&
           x->within_n == y->within_n && !memcmp(&x->config, &y->config, sizeof(x->config));
}

static void constant_between_transitions(void)
{
    struct random r;
    random_init(&r, 2, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        struct world w;
        struct schedule_trigger_now states[TRIGGERS];
        random_world(&r, &w);
        struct schedule_effective first = schedule_effective(&w.spec, w.created, w.now, states);
        int64_t until = first.next ? first.next : w.now + 30 * CIVIL_DAY_S;
        uint32_t length = (uint32_t)MIN(until - w.now, (int64_t)INT32_MAX);
        int64_t later[] = { w.now + (int64_t)random_below(&r, length), until - 1 };
        for (int k = 0; k < 2; k++) {
            struct schedule_effective e = schedule_effective(&w.spec, w.created, later[k], states);
            bad += !OK(same(&first, &e));
        }
    }
}

/* Turning the list round may only change who wins a full tie. */
static void order_decides_only_ties(void)
{
    struct random r;
    random_init(&r, 3, 1);
    int bad = 0, same_winner = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        struct world w, turned;
        struct schedule_trigger_now states[TRIGGERS], states2[TRIGGERS];
        random_world(&r, &w);
        turned = w;
        turned.spec.triggers = turned.triggers;
        size_t n = w.spec.triggers_n;
        for (size_t i = 0; i < n; i++)
            turned.triggers[i] = w.triggers[n - 1 - i];
        struct schedule_effective e = schedule_effective(&w.spec, w.created, w.now, states);
        struct schedule_effective f = schedule_effective(&turned.spec, w.created, w.now, states2);
        bad += !EQ_INT(e.source == SCHEDULE_FROM_START, f.source == SCHEDULE_FROM_START);
        bad += !EQ_INT(e.since, f.since) || !EQ_INT(e.next, f.next);
        if (e.trigger < 0 || f.trigger < 0)
            continue;
        const struct schedule_trigger *x = &w.triggers[e.trigger], *y = &turned.triggers[f.trigger];
        same_winner += str_eq(x->name, y->name);
        bad += !EQ_INT(x->priority, y->priority);
    }
    OK(same_winner > ROUNDS / 2);
}

/* A tie's answer is constant while both stay open, for random triggers and random pairs of instants. */
static void ties_never_flip(void)
{
    struct random r;
    random_init(&r, 4, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        struct world w;
        struct schedule_trigger_now now[TRIGGERS], then[TRIGGERS];
        random_world(&r, &w);
        for (size_t i = 0; i < w.spec.triggers_n; i++) {
            w.triggers[i].priority = 0;
            w.triggers[i].ramp_minutes = 0;
            if (random_below(&r, 2)) {
                w.triggers[i].start_s = 0;
                w.triggers[i].end_s = CIVIL_DAY_S;
                w.triggers[i].last_day += w.triggers[i].last_day < INT32_MAX ? 60 : 0;
            }
        }
        struct schedule_effective e = schedule_effective(&w.spec, w.created, w.now, now);
        int64_t later = w.now + (int64_t)random_below(&r, 60 * 86400);
        struct schedule_effective f = schedule_effective(&w.spec, w.created, later, then);
        bool same_set = e.source == SCHEDULE_FROM_START;
        for (size_t i = 0; i < w.spec.triggers_n; i++) {
            bool open = now[i].state == SCHEDULE_STATE_WITHIN;
            if (open && later < now[i].window_e) /* open without a break until then */
                bad += !EQ_INT(then[i].window_s, now[i].window_s) ||
                       !EQ_INT(then[i].window_e, now[i].window_e);
            same_set &= open ? later < now[i].window_e : then[i].state != SCHEDULE_STATE_WITHIN;
        }
        if (same_set)
            bad += !EQ_INT(e.trigger, f.trigger) || !EQ_INT(e.since, f.since);
    }
}

/* Whatever ended on a day before the day of creation leaves nothing behind. */
static void nothing_before_creation_governs(void)
{
    struct random r;
    random_init(&r, 5, 1);
    int bad = 0;
    for (int round = 0; round < ROUNDS && bad < 5; round++) {
        struct world w;
        struct schedule_trigger_now states[TRIGGERS];
        random_world(&r, &w);
        struct schedule_effective e = schedule_effective(&w.spec, w.created, w.now, states);
        if (e.source != SCHEDULE_FROM_END && e.source != SCHEDULE_FROM_HOLD)
            continue;
        const struct tz *zone = w.triggers[e.trigger].zone;
        int64_t day = civil_day_of(w.created + tz_offset_at(zone, w.created));
        bad += !OK(e.since > w.created || e.since >= schedule_wall_start(zone, day * CIVIL_DAY_S));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(scenarios),
        TAP(resting_values_fill_what_an_end_leaves_open),
        TAP(an_excluded_date_has_no_window),
        TAP(a_range_that_ended_long_ago_still_rests),
        TAP(ramps_climb_before_and_fall_after),
        TAP(slopes_that_overlap_are_not_added_up),
        TAP(a_tie_has_one_answer_while_both_are_open),
        TAP(a_window_before_creation_never_governs),
        TAP(a_spread_schedule_is_late),
        TAP(agrees_with_the_definition),
        TAP(constant_between_transitions),
        TAP(order_decides_only_ties),
        TAP(ties_never_flip),
        TAP(nothing_before_creation_governs),
        { 0 },
    });
}
