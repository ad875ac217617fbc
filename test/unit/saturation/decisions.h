/* The load and the variants of closed_loop_test.c, and the decisions of one run, step by step. */
#ifndef FLYBALL_TEST_DECISIONS_H
#define FLYBALL_TEST_DECISIONS_H

#include "tap.h"
#include "testbed/policies.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { VARIANTS = 2, STEPS_MAX = 200, LENGTH_S = 1500, CYCLE_S = 15 };

static struct fleet_variant variants[VARIANTS] = {
    { { "a100", 4 }, 40, 0, 16, 0, { 11, 0.04, 0.095, 0.00008, 0.03, 25700, 16, 256, 512 } },
    { { "l40s", 4 }, 15, 0, 16, 0, { 21, 0.05, 0.13, 0.00018, 0.03, 11900, 16, 256, 512 } },
};

static const char *const accelerators[VARIANTS] = { "A100", "L40S" };

/* Twenty-five minutes: 6 to 22 requests/s and back, with prompts and answers of many lengths. */
static size_t make_trace(struct replica_request *out, size_t most)
{
    struct random r;
    size_t n = 0;
    random_init(&r, 5, 7);
    for (double t = 0.01; t < LENGTH_S && n < most; n++) {
        double rate = 14 - 8 * cos(2 * 3.14159265 * t / LENGTH_S);
        out[n] = (struct replica_request){
            .arrived_ns = (int64_t)(t * 1e9),
            .prompt_tokens = 100 + (int32_t)(1000 * -log(1 - random_unit(&r))),
            .output_tokens = 20 + (int32_t)(190 * -log(1 - random_unit(&r))),
        };
        t += -log(1 - random_unit(&r)) / rate;
    }
    return n;
}

struct decisions {
    size_t n;
    int target[STEPS_MAX][VARIANTS];
    char reason[STEPS_MAX][FLEET_REASON_ROOM];
};

static void note_decision(void *context, const struct fleet *f UNUSED, const int *before UNUSED,
                          const struct fleet_answer *answer)
{
    struct decisions *d = context;
    if (d->n == STEPS_MAX)
        return;
    memcpy(d->target[d->n], answer->targets, sizeof(d->target[0]));
    memcpy(d->reason[d->n++], answer->reason, sizeof(d->reason[0]));
}

/* The least and the most that were wanted within one cycle of a step. */
static bool is_near(const struct decisions *d, size_t at, size_t v, int target)
{
    int least = INT_MAX, most = INT_MIN;
    for (size_t k = at ? at - 1 : 0; k <= at + 1 && k < d->n; k++) {
        least = MIN(least, d->target[k][v]);
        most = MAX(most, d->target[k][v]);
    }
    return target >= least && target <= most;
}

static void compare(const struct decisions *want, const struct decisions *got)
{
    size_t far = 0, differ = 0, moves = 0;
    EQ_INT((int64_t)got->n, (int64_t)want->n);
    for (size_t i = 0; i < got->n && i < want->n; i++)
        for (size_t v = 0; v < VARIANTS; v++) {
            bool same = got->target[i][v] == want->target[i][v];
            bool near = is_near(want, i, v, got->target[i][v]);
            differ += !same;
            far += !near;
            moves += i && want->target[i][v] != want->target[i - 1][v];
            if (!same || getenv("CLOSED_LOOP_SHOW"))
                printf("# %4zu s %.*s: %d, simulated %d\n#   %s\n#   %s\n",
                       FLEET_POLICY_FROM_S + CYCLE_S * i, (int)variants[v].name.n,
                       variants[v].name.p, got->target[i][v], want->target[i][v], got->reason[i],
                       want->reason[i]);
        }
    printf("# %zu steps, %zu changes, %zu decisions differ, %zu by more than a cycle\n", got->n,
           moves, differ, far);
    OK(moves >= 8);
    EQ_INT((int64_t)far, 0);
}

#endif
