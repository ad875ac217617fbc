/* CFS bandwidth model: see cfs_model.h for the rules.
 *
 * Time is cut at period boundaries. Within a period the group runs flat out until its quota is used up, so
 * usage and throttled time follow from one number, the moment the quota is gone (`empty_at`); no thread is
 * simulated. */
#include "cfs_model.h"

#include <math.h>

static const double period_usec = 100000;

/* One slice within a period, in cores and microseconds: the group runs until its quota for the period is gone. */
static void run_slice(struct cfs_group *g, double demand, double grant, double usec)
{
    double threads = ceil(demand), limit = (double)g->limit_milli / 1000;
    double rate = fmin(demand, grant);
    g->wanted_usec += demand * usec;
    if (g->limit_milli <= 0 || rate <= limit) {
        g->usage_usec += rate * usec;
        return;
    }
    /* The group runs flat out from the start of the period, so its quota is gone at `empty_at`. */
    double speed = fmin(threads, fmax(grant, limit));
    double empty_at = limit * period_usec / speed;
    double from = g->phase_usec, to = from + usec;
    double running = fmax(0, fmin(to, empty_at) - from);
    g->usage_usec += running * speed;
    g->throttled_usec += (usec - running) * threads;
}

static void end_period(struct cfs_group *g, double demand, double grant)
{
    g->phase_usec = 0;
    if (g->limit_milli <= 0 || demand <= 0)
        return; /* without a quota, or without work, periods do not tick */
    g->nr_periods++;
    g->nr_throttled += fmin(demand, grant) * 1000 > (double)g->limit_milli;
}

void cfs_run(struct cfs_group *group, double demand_milli, double grant_milli, int64_t ns)
{
    double left = (double)ns / 1000, demand = demand_milli / 1000, grant = grant_milli / 1000;
    while (left > 0) {
        double slice = fmin(left, period_usec - group->phase_usec);
        run_slice(group, demand, grant, slice);
        group->phase_usec += slice;
        if (period_usec - group->phase_usec < 1e-6)
            end_period(group, demand, grant);
        left -= slice;
    }
}

/* Water filling: a claim below its share gets what it wants, the remainder is shared among the others, and
 * so on until every remaining claim exceeds its share. Each round settles at least one claim, so there are
 * at most n rounds. A weight is at least 2, the kernel's minimum of cpu.shares. */
void cfs_share(double capacity_milli, struct cfs_claim *claims, size_t n)
{
    for (size_t i = 0; i < n; i++)
        claims[i].grant_milli = -1;
    for (bool changed = true; changed;) {
        double rest = capacity_milli, weight = 0;
        for (size_t i = 0; i < n; i++) {
            rest -= fmax(claims[i].grant_milli, 0);
            weight += claims[i].grant_milli < 0 ? fmax(claims[i].weight, 2) : 0;
        }
        changed = false;
        for (size_t i = 0; i < n; i++) {
            struct cfs_claim *c = &claims[i];
            if (c->grant_milli < 0 && c->demand_milli <= rest * fmax(c->weight, 2) / weight) {
                c->grant_milli = c->demand_milli;
                changed = true;
            }
        }
        if (changed)
            continue;
        for (size_t i = 0; i < n; i++)
            if (claims[i].grant_milli < 0)
                claims[i].grant_milli = fmax(0, rest) * fmax(claims[i].weight, 2) / weight;
    }
}

void cfs_print_stat(const struct cfs_group *g, struct buf *out)
{
    buf_printf(
        out,
        "usage_usec %.0f\nuser_usec %.0f\nsystem_usec 0\nnr_periods %lld\nnr_throttled %lld\n"
        "throttled_usec %.0f\nnr_bursts 0\nburst_usec 0\n",
        floor(g->usage_usec), floor(g->usage_usec), (long long)g->nr_periods,
        (long long)g->nr_throttled, floor(g->throttled_usec));
}
