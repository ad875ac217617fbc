/* The forecast in a closed loop: a simulated HPA follows a daily load, with and without the floor. Prints the table of
 * docs/schedule.md.
 *
 * The HPA is that of Kubernetes in steps of 15 s: it sees the load of a minute ago; a saturated pod reports at most its
 * full capacity, 1/0.7 of the target; it at most doubles (or adds four) per step, and holds the largest wish of five
 * minutes before it scales down. A new pod is ready after the start delay. The floor comes from the whole path:
 * history, analysis every three hours, the published status, the reader. Four weeks are learned, the next one is measured. */
#include "base/civil.h"
#include "base/random.h"
#include "schedule/schedule_advice_core.h"
#include "schedule/schedule_forecast_core.h"
#include "tap.h"

#include <math.h>

enum { STEP_S = 15, DAYS = 35, LEARN_DAYS = 28, SEEN_S = 60, HOLD_S = 300, MOST = 60 };
enum { GRID = DAYS * 288, QUEUE = 900 / STEP_S + 1, HOLD = HOLD_S / STEP_S };

static const int64_t monday = 20458 * CIVIL_DAY_S;
static struct schedule_sample history[GRID];

typedef double shape_fn(int64_t second, int weekday);

/* A steep start of work at 09:00 and a lunch break. */
static double office(int64_t second, int weekday)
{
    double hour = (double)second / 3600;
    if (weekday == 0 || weekday == 6)
        return 2;
    return hour < 9 || hour >= 18 ? 2 : hour >= 12 && hour < 13 ? 12 : 20;
}

/* A smooth day with its peak at 15:00. */
static double smooth(int64_t second, int weekday)
{
    double day = (double)second / CIVIL_DAY_S;
    return (weekday == 0 || weekday == 6 ? .6 : 1) * (11 - 9 * cos(2 * M_PI * (day - .125)));
}

/* No pattern: it moves by chance, at any time. */
static double chance(int64_t second, int weekday)
{
    (void)second, (void)weekday;
    return 8;
}

/* Five-minute samples with noise; `wander` is the size of a random walk on top. */
static void record_load(shape_fn *shape, double noise, double wander)
{
    struct random r;
    random_init(&r, 18, 7);
    double level = 0;
    for (int i = 0; i < GRID; i++) {
        int64_t at = monday + (int64_t)i * 300, day = civil_day_of(at);
        level = level * .98 + wander * (random_unit(&r) - .5);
        double value = shape(at - day * CIVIL_DAY_S, civil_weekday(day));
        value *= 1 + noise * (random_unit(&r) - .5) + level;
        history[i] = (struct schedule_sample){ at, fmax(.1, value) };
    }
}

static double load_at(int64_t at)
{
    return history[(at - monday) / 300].value;
}

struct loop_result {
    double attained; /* share of the load that was served */
    double full;     /* share of the time with enough pods */
    double cost;     /* replica-hours */
};

struct pods {
    int ready, wanted;
    int starting[QUEUE]; /* ready after this many steps */
    int wishes[HOLD];
};

static int count_all(const struct pods *p)
{
    int n = p->ready;
    for (int i = 0; i < QUEUE; i++)
        n += p->starting[i];
    return n;
}

/* One sync of the HPA: the wanted number of pods. */
static int sync_hpa(struct pods *p, int64_t at, int min, int step)
{
    int all = count_all(p);
    double seen = fmin(load_at(at - SEEN_S), p->ready / .7);
    bool is_near = fabs(seen / p->ready - 1) <= .1; /* the tolerance of an HPA */
    int wish = is_near ? p->ready : (int)ceil(seen);
    p->wishes[step % HOLD] = wish;
    int held = wish;
    for (int i = 0; i < HOLD; i++)
        held = MAX(held, p->wishes[i]);
    int to = wish > all ? MIN(wish, MAX(2 * all, 4)) : MIN(held, all);
    return MIN(MAX(to, min), MOST);
}

static void change_pods(struct pods *p, int to, int delay_steps)
{
    int all = count_all(p);
    if (to > all)
        p->starting[delay_steps] += to - all;
    for (int i = QUEUE - 1; i >= 0 && all > to; i--) { /* those that are not ready go first */
        int less = MIN(p->starting[i], all - to);
        p->starting[i] -= less;
        all -= less;
    }
    p->ready -= MAX(0, all - to);
    p->ready += p->starting[0];
    memmove(p->starting, p->starting + 1, (QUEUE - 1) * sizeof(*p->starting));
    p->starting[QUEUE - 1] = 0;
}

/* ---- the floor as the operator sees it: analyzed every three hours from what has happened so far */

enum { WEEK_GRID = (DAYS - LEARN_DAYS) * 288, ANALYSIS_S = 3 * 3600 };

static void compute_floors(enum schedule_profile profile, int floors[WEEK_GRID])
{
    struct arena a = { 0 };
    struct json *status = NULL;
    for (int i = 0; i < WEEK_GRID; i++) {
        int64_t at = monday + LEARN_DAYS * CIVIL_DAY_S + (int64_t)i * 300;
        if (at % ANALYSIS_S == 0) {
            arena_done(&a);
            a = (struct arena){ 0 };
            struct schedule_advice advice = { .enabled = true,
                                              .forecast = true,
                                              .frequency_minutes = ANALYSIS_S / 60,
                                              .profile = profile,
                                              .zone = tz_utc() };
            struct schedule_history h = { history + i, LEARN_DAYS * 288, SCHEDULE_SIGNAL_DEMAND,
                                          at };
            struct schedule_advice_result r = schedule_advise(&a, &advice, &h);
            status = r.good_enough ? r.status : NULL;
        }
        floors[i] = schedule_forecast_read(json_get(status, "forecast"), at).floor;
    }
    arena_done(&a);
}

static int largest(const int floors[WEEK_GRID])
{
    int most = 0;
    for (int i = 0; i < WEEK_GRID; i++)
        most = MAX(most, floors[i]);
    return most;
}

/* Runs the last week; without floors: the HPA alone. */
static struct loop_result run_loop(int delay_s, const int *floors, int min)
{
    struct loop_result out = { 0 };
    struct pods p = { .ready = 4 };
    int64_t start = monday + LEARN_DAYS * CIVIL_DAY_S;
    double served = 0, needed = 0, full = 0;
    int steps = 0;
    for (int64_t at = start; at < monday + DAYS * CIVIL_DAY_S; at += STEP_S, steps++) {
        int floor = floors ? MAX(min, floors[(at - start) / 300]) : min;
        change_pods(&p, sync_hpa(&p, at, floor, steps), delay_s / STEP_S);
        double load = load_at(at), capacity = p.ready / .7;
        needed += load;
        served += fmin(load, capacity);
        full += load <= capacity;
        out.cost += count_all(&p) * STEP_S / 3600.;
    }
    out.attained = 100 * served / needed;
    out.full = 100 * full / steps;
    return out;
}

static void print_row(const char *load, int delay_s, const char *policy, struct loop_result r)
{
    printf("# | %-6s | %3d s | %-18s | %6.2f | %6.2f | %5.0f |\n", load, delay_s, policy,
           r.attained, r.full, r.cost);
}

/* The load that is missed must fall at least by half, at a bounded price. */
static void compare(const char *name, const int *delays, size_t n, double most_cost)
{
    static const char *const names[] = { "Forecast safe", "Forecast balanced", "Forecast economy" };
    static int floors[3][WEEK_GRID];
    for (int profile = 0; profile < 3; profile++) {
        compute_floors((enum schedule_profile)profile, floors[profile]);
        OK(largest(floors[profile]) > 2);
    }
    for (size_t i = 0; i < n; i++) {
        struct loop_result alone = run_loop(delays[i], NULL, 2);
        print_row(name, delays[i], "HPA alone", alone);
        for (int profile = 0; profile < 3; profile++) {
            struct loop_result with = run_loop(delays[i], floors[profile], 2);
            print_row(name, delays[i], names[profile], with);
            OK(100 - with.attained <= .5 * (100 - alone.attained));
            OK(with.cost <= most_cost * alone.cost);
        }
        print_row(name, delays[i], "minReplicas 20", run_loop(delays[i], NULL, 20));
    }
}

static void a_steep_morning(void)
{
    record_load(office, .2, 0);
    compare("office", (const int[]){ 60, 300, 600 }, 3, 1.4);
}

/* A day that yesterday only half predicts: a random walk moves it by a third. */
static void an_uncertain_day(void)
{
    record_load(office, .2, .15);
    compare("uneven", (const int[]){ 300 }, 1, 1.5);
}

static void a_smooth_day(void)
{
    record_load(smooth, .2, 0);
    compare("smooth", (const int[]){ 300, 600 }, 2, 1.4);
}

/* The backtest finds no pattern: no floor, no cost. */
static void a_load_without_a_pattern_gets_no_floor(void)
{
    static int floors[WEEK_GRID];
    record_load(chance, .1, .2);
    compute_floors(SCHEDULE_SAFE, floors);
    EQ_INT(largest(floors), 0);
    print_row("chance", 300, "HPA alone", run_loop(300, NULL, 2));
    print_row("chance", 300, "Forecast safe", run_loop(300, floors, 2));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_steep_morning),
        TAP(an_uncertain_day),
        TAP(a_smooth_day),
        TAP(a_load_without_a_pattern_gets_no_floor),
        { 0 },
    });
}
