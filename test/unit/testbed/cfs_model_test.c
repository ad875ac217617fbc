#include "tap.h"

#include "testbed/cfs_model.h"

static const int64_t second = 1000000000;

/* One spinner with a fifth of a core for 5 s: what the kernel shows for the same. */
static void a_spinner_is_throttled(void)
{
    struct cfs_group g = { .limit_milli = 200 };
    cfs_run(&g, 1000, 2000, 5 * second);
    EQ_REAL(g.usage_usec, 1e6);
    EQ_REAL(g.throttled_usec, 4e6);
    EQ_INT(g.nr_periods, 50);
    EQ_INT(g.nr_throttled, 50);
    EQ_REAL(g.wanted_usec, 5e6);
}

static void threads_count_their_own_throttling(void)
{
    struct cfs_group g = { .limit_milli = 500 };
    cfs_run(&g, 4000, 8000, second);
    EQ_REAL(g.usage_usec, 5e5);
    EQ_REAL(g.throttled_usec, 3.5e6); /* (4 - 0.5) s of one second */
}

static void no_quota_no_periods(void)
{
    struct cfs_group g = { .limit_milli = 0 };
    cfs_run(&g, 700, 2000, second);
    EQ_REAL(g.usage_usec, 7e5);
    EQ_INT(g.nr_periods, 0);
}

/* Reading in odd slices gives the same totals as reading once. */
static void slices_add_up(void)
{
    struct cfs_group whole = { .limit_milli = 300 }, sliced = { .limit_milli = 300 };
    cfs_run(&whole, 1500, 4000, 2 * second);
    for (int i = 0; i < 2000; i++)
        cfs_run(&sliced, 1500, 4000, second / 1000);
    EQ_REAL(sliced.usage_usec, whole.usage_usec);
    EQ_REAL(sliced.throttled_usec, whole.throttled_usec);
    EQ_INT(sliced.nr_periods, whole.nr_periods);
}

static void a_full_node_is_shared_by_weight(void)
{
    struct cfs_claim claims[] = { { 3000, 1000, 0 }, { 3000, 3000, 0 }, { 100, 1000, 0 } };
    cfs_share(2000, claims, 3);
    EQ_REAL(claims[2].grant_milli, 100);
    EQ_REAL(claims[0].grant_milli, 475);
    EQ_REAL(claims[1].grant_milli, 1425);
    cfs_share(9000, claims, 3);
    EQ_REAL(claims[0].grant_milli, 3000);
    cfs_share(2000, claims, 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_spinner_is_throttled),
                                        TAP(threads_count_their_own_throttling),
                                        TAP(no_quota_no_periods),
                                        TAP(slices_add_up),
                                        TAP(a_full_node_is_shared_by_weight),
                                        { 0 } });
}
