#include "tap.h"

#include "market/resize_core.h"

#include "base/random.h"

static void splits_are_exact(void)
{
    struct random r;
    random_init(&r, 1, 1);
    for (int round = 0; round < 20000 && !tap_failures; round++) {
        struct container_share shares[6] = { 0 };
        size_t n = 1 + random_below(&r, 6);
        int64_t limit = 100 + random_below(&r, 10000), request = limit * 9 / 10, limits = 0,
                requests = 0;
        for (size_t i = 0; i < n; i++)
            shares[i].weight_milli = random_below(&r, 3) ? random_below(&r, 4000) : 0;
        err_t e;
        if (!OK_CALL(resize_split(limit, request, shares, n, &e), &e))
            return;
        for (size_t i = 0; i < n; i++) {
            limits += shares[i].limit_milli;
            requests += shares[i].request_milli;
            OK(shares[i].limit_milli >= SHARE_MIN_MILLI &&
               shares[i].request_milli >= SHARE_MIN_MILLI);
            OK(shares[i].request_milli < shares[i].limit_milli ||
               shares[i].limit_milli == SHARE_MIN_MILLI);
        }
        EQ_INT(limits, limit);
        EQ_INT(requests, request);
    }
}

static void fixed_containers_keep_theirs(void)
{
    struct container_share shares[] = { { .weight_milli = 100 },
                                        { .fixed = true, .limit_milli = 300, .request_milli = 200 },
                                        { .weight_milli = 300 } };
    err_t e;
    OK_CALL(resize_split(1100, 900, shares, 3, &e), &e);
    OK(shares[1].limit_milli == 300 && shares[1].request_milli == 200);
    EQ_INT(shares[0].limit_milli + shares[2].limit_milli, 800);
    EQ_INT(shares[0].request_milli + shares[2].request_milli, 700);
    OK(resize_split(305, 250, shares, 3, &e) == -ERANGE);
}

static void steps_are_cut_to_what_is_allowed(void)
{
    auto_arena struct arena a = { 0 };
    EQ_INT(resize_step_check(&a, 100, 5000, -1).allowed_milli, 1000);
    EQ_INT(resize_step_check(&a, 5000, 100, -1).allowed_milli, 500);
    EQ_INT(resize_step_check(&a, 30000, 60000, -1).allowed_milli, 50000);
    struct resize_step s = resize_step_check(&a, 100, 200, 2 * INT64_C(1000000000));
    OK(s.verdict == STEP_COOLDOWN && s.wait_ns == 3 * INT64_C(1000000000));
    /* what is allowed is allowed */
    struct random r;
    random_init(&r, 2, 1);
    for (int i = 0; i < 20000 && !tap_failures; i++) {
        int64_t from = 1 + random_below(&r, 100000), to = 1 + random_below(&r, 100000);
        OK(resize_step_check(&a, from, resize_step_check(&a, from, to, -1).allowed_milli, -1)
               .verdict == STEP_OK);
        arena_reset(&a, (struct arena_mark){ 0 });
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(splits_are_exact),
                                        TAP(fixed_containers_keep_theirs),
                                        TAP(steps_are_cut_to_what_is_allowed),
                                        { 0 } });
}
