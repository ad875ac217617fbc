/* From history to windows: see schedule_recommend_core.h.
 *
 *     samples --collect_days--> one row of 48 half-hour slots per local date (maximum of each slot)
 *             --drop_unusual--> without dates far from their weekday's median (holidays)
 *             --weigh_days----> recent dates count more: half the weight after 21 days
 *             --group_weekdays-> weekdays whose median profiles are similar form a group
 *             --group_steps---> per group: quantile per slot, cut into steps (schedule_segment_core)
 *             --make_triggers-> lowest level: base; every other step: a trigger that opens early
 *
 * The floor is a quantile, not a maximum, so that one busy day does not set the floor for weeks; the profile
 * (safe, balanced, economy) selects it together with the relative cost of one replica too few.
 *
 * Rejected: fixed day and night buckets (they miss a lunch peak), and "hours above 1.5 times the median"
 * (finds almost nothing on real traffic).
 *
 * All working memory comes from the caller's arena. Weekdays are counted from Monday inside this file and from
 * Sunday in results (sunday_first). */
#include "schedule_recommend_core.h"

#include "../base/civil.h"

#include <math.h>
#include <stdio.h>

enum { WEEK = 7, HOLIDAY_LEAST_DATES = 4, LEARNED_DAYS_MAX = 400 };

static const double TINY = 1e-9;

struct history_day {
    int64_t day;                  /* local date, days since 1970-01-01 */
    int weekday;                  /* 0 is Monday, in this file only */
    double slots[SCHEDULE_SLOTS]; /* largest sample of the slot; NAN: none */
    double weight;
};

struct history {
    struct history_day *days; /* ascending */
    size_t n;
};

/* The parameters of a profile. `under` is the cost of one replica too few relative to one too many. */
struct schedule_learn_params schedule_learn_defaults(enum schedule_profile profile,
                                                     int32_t lead_minutes)
{
    static const struct {
        double tau, under;
    } profiles[] = {
        [SCHEDULE_SAFE] = { .80, 4 },
        [SCHEDULE_BALANCED] = { .65, 2 },
        [SCHEDULE_ECONOMY] = { .50, 1 },
    };
    return (struct schedule_learn_params){
        .tau_floor = profiles[profile].tau,
        .tau_group = .50,
        .tau_max = .99,
        .half_life_days = 21,
        .headroom = 1,
        .max_headroom = 1.25,
        .costs = { 1, profiles[profile].under, .02, 2, 6 },
        .lead_minutes = lead_minutes,
        .likeness = .15,
        .least_days = WEEK,
        .mad_factor = 4,
    };
}

/* ---- samples to days */

static int monday_first(int64_t day)
{
    return (civil_weekday(day) + 6) % WEEK;
}

/* The row of a date, cleared at first use: a weight of NAN marks an unused row. */
static struct history_day *day_of(struct history *h, int64_t first_day, int64_t day)
{
    struct history_day *d = &h->days[day - first_day];
    if (isnan(d->weight)) {
        d->weight = 0;
        d->day = day;
        d->weekday = monday_first(day);
        for (int k = 0; k < SCHEDULE_SLOTS; k++)
            d->slots[k] = NAN;
    }
    return d;
}

/* One row per date that has samples, for at most the last LEARNED_DAYS_MAX dates. */
static struct history collect_days(struct arena *a, const struct schedule_sample *samples, size_t n,
                                   const struct tz *zone)
{
    int64_t last = INT64_MIN, first = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t day = civil_day_of(samples[i].at + tz_offset_at(zone, samples[i].at));
        last = MAX(last, day);
        first = MIN(first, day);
    }
    if (!n)
        return (struct history){ 0 };
    first = MAX(first, last - LEARNED_DAYS_MAX + 1);
    size_t range = (size_t)(last - first + 1);
    struct history h = { arena_array(a, range, sizeof(*h.days)), 0 };
    for (size_t i = 0; i < range; i++)
        h.days[i].weight = NAN;
    for (size_t i = 0; i < n; i++) {
        int64_t local = samples[i].at + tz_offset_at(zone, samples[i].at);
        int64_t day = civil_day_of(local);
        if (!isfinite(samples[i].value) || day < first)
            continue;
        int slot = (int)((local - day * CIVIL_DAY_S) / (SCHEDULE_SLOT_MINUTES * 60));
        struct history_day *d = day_of(&h, first, day);
        d->slots[slot] = fmax(d->slots[slot], samples[i].value);
    }
    for (size_t i = 0; i < range; i++)
        if (!isnan(h.days[i].weight))
            h.days[h.n++] = h.days[i];
    return h;
}

/* ---- unusual dates */

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_double);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double day_mean(const struct history_day *d)
{
    double sum = 0;
    int n = 0;
    for (int k = 0; k < SCHEDULE_SLOTS; k++)
        if (!isnan(d->slots[k]))
            sum += d->slots[k], n++;
    return n ? sum / n : 0;
}

/* The allowed distance of a date's mean from its weekday's median; INFINITY with few dates. */
static double allowed_distance(struct arena *a, const struct history *h, int weekday,
                               double mad_factor, double *ret_median)
{
    double *means = arena_array(a, h->n, sizeof(*means));
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->days[i].weekday == weekday)
            means[n++] = day_mean(&h->days[i]);
    if (n < HOLIDAY_LEAST_DATES)
        return INFINITY;
    double middle = median(means, n);
    for (size_t i = 0; i < n; i++)
        means[i] = fabs(means[i] - middle);
    *ret_median = middle;
    return mad_factor * fmax(1.4826 * median(means, n), .02 * middle);
}

static void drop_unusual(struct arena *a, struct history *h,
                         const struct schedule_learn_params *params,
                         struct schedule_recommendation *out)
{
    double middle[WEEK] = { 0 }, allowed[WEEK];
    for (int w = 0; w < WEEK; w++)
        allowed[w] = allowed_distance(a, h, w, params->mad_factor, &middle[w]);
    out->dropped_days = arena_array(a, h->n, sizeof(*out->dropped_days));
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct history_day *d = &h->days[i];
        if (fabs(day_mean(d) - middle[d->weekday]) > allowed[d->weekday])
            out->dropped_days[out->dropped_n++] = (int32_t)d->day;
        else
            h->days[kept++] = *d;
    }
    h->n = kept;
}

static void weigh_days(struct history *h, double half_life_days)
{
    for (size_t i = 0; i < h->n; i++)
        h->days[i].weight =
            exp2(-(double)(h->days[h->n - 1].day - h->days[i].day) / half_life_days);
}

/* ---- similar weekdays */

/* A weighted quantile of one slot over the dates of these weekdays (bit 0 is Monday); 0 without data. */
static double slot_quantile(struct arena *a, const struct history *h, unsigned weekdays, int slot,
                            double tau)
{
    struct arena_mark mark = arena_mark(a);
    struct schedule_weighted *pairs = arena_array(a, h->n, sizeof(*pairs));
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (weekdays >> h->days[i].weekday & 1 && !isnan(h->days[i].slots[slot]))
            pairs[n++] = (struct schedule_weighted){ h->days[i].slots[slot], h->days[i].weight };
    double value = schedule_quantile(pairs, n, tau);
    arena_reset(a, mark);
    return isnan(value) ? 0 : value;
}

/* 0: equal profiles; 1: no overlap at all. */
static double profile_distance(const double *p, const double *q)
{
    double apart = 0, larger = 0;
    for (int k = 0; k < SCHEDULE_SLOTS; k++) {
        apart += fabs(p[k] - q[k]);
        larger += fmax(p[k], q[k]);
    }
    return larger > 0 ? apart / larger : 0;
}

/* Mean distance of all pairs (average linkage). */
static double group_distance(double between[WEEK][WEEK], unsigned g, unsigned h)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < WEEK; i++)
        for (int j = 0; j < WEEK; j++)
            if (g >> i & 1 && h >> j & 1)
                sum += between[i][j], n++;
    return sum / n;
}

/* Joins the two closest groups; false if none are close enough. */
static bool join_closest(double between[WEEK][WEEK], double likeness, unsigned groups[WEEK],
                         size_t *n)
{
    size_t into = 0, from = 0;
    double closest = INFINITY;
    for (size_t i = 0; i < *n; i++) {
        for (size_t j = i + 1; j < *n; j++) {
            double distance = group_distance(between, groups[i], groups[j]);
            if (distance < closest)
                closest = distance, into = i, from = j;
        }
    }
    if (!(closest <= likeness))
        return false;
    groups[into] |= groups[from];
    memmove(groups + from, groups + from + 1, (*n - from - 1) * sizeof(*groups));
    (*n)--;
    return true;
}

/* Agglomerative clustering of the weekdays by their median profiles; returns the number of groups. */
static size_t group_weekdays(struct arena *a, const struct history *h,
                             const struct schedule_learn_params *params, unsigned groups[WEEK])
{
    double profiles[WEEK][SCHEDULE_SLOTS], between[WEEK][WEEK];
    size_t n = 0;
    unsigned seen = 0;
    for (size_t i = 0; i < h->n; i++)
        seen |= 1u << h->days[i].weekday;
    for (int w = 0; w < WEEK; w++) {
        if (seen >> w & 1)
            groups[n++] = 1u << w;
        for (int k = 0; k < SCHEDULE_SLOTS; k++)
            profiles[w][k] = slot_quantile(a, h, 1u << w, k, params->tau_group);
    }
    for (int i = 0; i < WEEK; i++)
        for (int j = 0; j < WEEK; j++)
            between[i][j] = profile_distance(profiles[i], profiles[j]);
    while (n > 1 && join_closest(between, params->likeness, groups, &n))
        continue;
    return n;
}

/* ---- steps to triggers */

struct step {
    unsigned weekdays; /* bit 0 is Monday */
    struct schedule_segment segment;
    int max;
};

/* The steps of one group of weekdays, and the wanted floor of each slot; returns the number of steps. */
static size_t group_steps(struct arena *a, const struct history *h,
                          const struct schedule_learn_params *params, unsigned weekdays,
                          struct step *out, int floors[SCHEDULE_SLOTS])
{
    double caps[SCHEDULE_SLOTS];
    for (int k = 0; k < SCHEDULE_SLOTS; k++) {
        double floor = params->headroom * slot_quantile(a, h, weekdays, k, params->tau_floor);
        floors[k] = (int)fmin(fmax(1, ceil(floor - TINY)), 1e6);
        caps[k] = fmin(slot_quantile(a, h, weekdays, k, params->tau_max), 1e6);
    }
    struct schedule_segment segments[SCHEDULE_SLOTS];
    int n = schedule_segments(floors, &params->costs, segments);
    for (int i = 0; i < n; i++) {
        double cap = 0;
        for (int k = segments[i].from; k < segments[i].to; k++)
            cap = fmax(cap, caps[k]);
        int max = MAX(segments[i].level + 1, (int)ceil(params->max_headroom * cap - TINY));
        out[i] = (struct step){ weekdays, segments[i], max };
    }
    return (size_t)n;
}

static int by_place(const void *a, const void *b)
{
    const struct schedule_segment *x = &((const struct step *)a)->segment,
                                  *y = &((const struct step *)b)->segment;
    if (x->from != y->from)
        return x->from - y->from;
    if (x->to != y->to)
        return x->to - y->to;
    return x->level - y->level;
}

/* Merges equal steps of different groups; returns the new number. */
static size_t merge_equal(struct step *steps, size_t n)
{
    size_t kept = 0;
    qsort(steps, n, sizeof(*steps), by_place);
    for (size_t i = 0; i < n; i++) {
        if (kept && by_place(&steps[kept - 1], &steps[i]) == 0) {
            steps[kept - 1].weekdays |= steps[i].weekdays;
            steps[kept - 1].max = MAX(steps[kept - 1].max, steps[i].max);
        } else {
            steps[kept++] = steps[i];
        }
    }
    return kept;
}

/* The number of distinct levels above the base up to this one: higher floors get higher priorities. */
static int rank_of(const struct step *steps, size_t n, int base, int level)
{
    int rank = 0;
    for (size_t i = 0; i < n; i++) {
        int one = steps[i].segment.level;
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first = first && steps[j].segment.level != one;
        rank += first && one > base && one <= level;
    }
    return rank;
}

static uint8_t sunday_first(unsigned monday_bits)
{
    return (uint8_t)((monday_bits << 1 | monday_bits >> 6) & 0x7f);
}

/* Splits the steps into the base and triggers. */
static void make_triggers(struct arena *a, const struct step *steps, size_t n, int lead_minutes,
                          struct schedule_recommendation *out)
{
    out->base_min = INT32_MAX;
    for (size_t i = 0; i < n; i++)
        out->base_min = MIN(out->base_min, steps[i].segment.level);
    out->triggers = arena_array(a, n, sizeof(*out->triggers));
    for (size_t i = 0; i < n; i++) {
        const struct schedule_segment *s = &steps[i].segment;
        if (s->level == out->base_min) {
            out->base_max = MAX(out->base_max, steps[i].max);
            continue;
        }
        out->triggers[out->triggers_n++] = (struct schedule_learned_trigger){
            .weekdays = sunday_first(steps[i].weekdays),
            .start_minute = MAX(0, s->from * SCHEDULE_SLOT_MINUTES - lead_minutes),
            .end_minute = s->to * SCHEDULE_SLOT_MINUTES,
            .min = s->level,
            .max = steps[i].max,
            .priority = MIN(-100 + rank_of(steps, n, out->base_min, s->level), -1),
        };
    }
}

/* Copies the median profile of a group to each of its weekdays, for the backtest. */
static void keep_profile(struct arena *a, const struct history *h, unsigned weekdays, double tau,
                         struct schedule_recommendation *out)
{
    for (int k = 0; k < SCHEDULE_SLOTS; k++) {
        double median = slot_quantile(a, h, weekdays, k, tau);
        for (int w = 0; w < WEEK; w++)
            if (weekdays >> w & 1)
                out->profile[(w + 1) % WEEK][k] = median;
    }
}

/* The pipeline that is drawn at the top of this file. */
struct schedule_recommendation *schedule_recommend(struct arena *a,
                                                   const struct schedule_sample *samples, size_t n,
                                                   const struct tz *zone,
                                                   const struct schedule_learn_params *params)
{
    struct history h = collect_days(a, samples, n, zone);
    if (h.n < (size_t)params->least_days)
        return NULL;
    struct schedule_recommendation *out = arena_new(a, struct schedule_recommendation);
    drop_unusual(a, &h, params, out);
    weigh_days(&h, params->half_life_days);
    unsigned groups[WEEK];
    int floors[SCHEDULE_SLOTS];
    struct step steps[WEEK * SCHEDULE_SLOTS];
    out->is_forecast = params->forecast;
    size_t steps_n = 0;
    out->groups_n = group_weekdays(a, &h, params, groups);
    out->days_n = h.n;
    for (size_t i = 0; i < out->groups_n; i++) {
        out->groups[i] = sunday_first(groups[i]);
        steps_n += group_steps(a, &h, params, groups[i], steps + steps_n, floors);
        for (int w = 0; w < WEEK; w++)
            if (groups[i] >> w & 1)
                memcpy(out->floors[(w + 1) % WEEK], floors, sizeof(floors));
        keep_profile(a, &h, groups[i], params->tau_group, out);
    }
    steps_n = merge_equal(steps, steps_n);
    make_triggers(a, steps, steps_n, params->lead_minutes, out);
    return out;
}

int32_t schedule_forecast_floor(const struct schedule_recommendation *r, const struct tz *zone,
                                int64_t at)
{
    enum { SLOT_S = SCHEDULE_SLOT_MINUTES * 60, AHEAD_S = 2 * SLOT_S };
    static const int64_t ahead[] = { 0, SLOT_S, AHEAD_S - 1 }; /* one instant in each slot */
    int32_t floor = 0;
    for (size_t i = 0; i < countof(ahead); i++) {
        int64_t then = at + ahead[i], local = then + tz_offset_at(zone, then);
        int64_t day = civil_day_of(local);
        int slot = (int)((local - day * CIVIL_DAY_S) / SLOT_S);
        floor = MAX(floor, r->floors[civil_weekday(day)][slot]);
    }
    return floor;
}

int32_t schedule_recommended_floor(const struct schedule_recommendation *r, const struct tz *zone,
                                   int64_t at, bool *ret_open)
{
    int64_t local = at + tz_offset_at(zone, at), day = civil_day_of(local);
    int minute = (int)((local - day * CIVIL_DAY_S) / 60);
    const struct schedule_learned_trigger *best = NULL;
    if (r->is_forecast) {
        int32_t floor = schedule_forecast_floor(r, zone, at);
        *ret_open = floor > r->base_min;
        return floor;
    }
    for (size_t i = 0; i < r->triggers_n; i++) {
        const struct schedule_learned_trigger *t = &r->triggers[i];
        bool open = t->weekdays >> civil_weekday(day) & 1 && minute >= t->start_minute &&
                    minute < t->end_minute;
        if (open && (!best || t->priority > best->priority))
            best = t;
    }
    *ret_open = best != NULL;
    return best ? best->min : r->base_min;
}

/* ---- as a manifest */

static const char *const codes[WEEK] = { "SUN", "M", "TU", "W", "TH", "F", "SAT" };

static str weekdays_joined(struct arena *a, uint8_t weekdays, const char *separator)
{
    char text[40] = "";
    size_t n = 0;
    for (int i = 1; i <= WEEK; i++)
        if (weekdays >> (i % WEEK) & 1)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? separator : "",
                                  codes[i % WEEK]);
    return arena_str(a, (str){ text, n });
}

str schedule_weekdays_text(struct arena *a, uint8_t weekdays)
{
    return weekdays_joined(a, weekdays, ",");
}

str schedule_learned_name(struct arena *a, const struct schedule_learned_trigger *t)
{
    char days[40] = "daily";
    if (t->weekdays != 0x7f) {
        str joined = weekdays_joined(a, t->weekdays, "");
        for (size_t i = 0; i < joined.n; i++)
            days[i] = (char)(joined.p[i] | 0x20); /* lower case; these are letters only */
        days[joined.n] = '\0';
    }
    return arena_printf(a, "ai-%s-%02d%02d-%02d%02d", days, t->start_minute / 60,
                        t->start_minute % 60, t->end_minute / 60, t->end_minute % 60);
}

static struct json *bounds_json(struct arena *a, int32_t min, int32_t max)
{
    struct json *config = json_new_obj(a);
    json_set_int(a, config, "minReplicas", min);
    json_set_int(a, config, "maxReplicas", max);
    return config;
}

/* A complete trigger, so that the spec it is written to needs no defaults. */
struct json *schedule_learned_json(struct arena *a, const struct schedule_recommendation *r,
                                   size_t at, str zone_name)
{
    const struct schedule_learned_trigger *t = &r->triggers[at];
    struct json *out = json_new_obj(a), *interval = json_new_obj(a);
    json_set_str(a, interval, "recurring", schedule_weekdays_text(a, t->weekdays));
    json_set_str(a, out, "name", schedule_learned_name(a, t));
    json_set_int(a, out, "priority", t->priority);
    json_set_str(a, out, "timezone", zone_name);
    json_set(a, out, S("interval"), interval);
    json_set_str(a, out, "startTime",
                 arena_printf(a, "%02d:%02d:00", t->start_minute / 60, t->start_minute % 60));
    json_set_str(a, out, "endTime",
                 t->end_minute == 24 * 60
                     ? S("23:59:59")
                     : arena_printf(a, "%02d:%02d:00", t->end_minute / 60, t->end_minute % 60));
    json_set(a, out, S("startHPAConfig"), bounds_json(a, t->min, t->max));
    json_set(a, out, S("endHPAConfig"), bounds_json(a, r->base_min, r->base_max));
    return out;
}
