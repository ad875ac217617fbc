/* Overcommit of limits: see overcommit_core.h.
 *
 * The constants were found in a closed loop over random nodes (docs/market.md): 70 % of the share
 * because bursts inside a second raise false alarms at 90 % and victims are overlooked at 50 %;
 * 250 ms because ordinary wake-up delays on a full node reach 100 ms. */
#include "overcommit_core.h"

enum {
    PPM = 1000000,
    WAITED_USEC = 250000, /* more than this in a second makes a victim */
    WORST_SECONDS = 5,    /* fewer counted seconds of a pod are ignored */
    FALL_VICTIMS = 5000,  /* ppm */
    FALL_WORST = 100000,  /* ppm: one pod among many */
    RISE_VICTIMS = 2500,  /* ppm: half of it, so that kappa does not swing around one value */
    RISE_WORST = 50000,   /* ppm */
    RISE_AFTER_S = 300,   /* since the last fall */
    RISE_STEP = 50,       /* thousandths */
    RISE_BELOW_UTILIZATION = 950000,
    FALL_LEAST = 50, /* a smaller overcommit is none */
    BLIND_MAX = 1500,
    START_LEAST = 1500,
};

enum overcommit_judgement overcommit_judge(int64_t share_milli, struct overcommit_second second)
{
    if (second.usage_milli <= 0 || second.throttled || 10 * second.usage_milli > 7 * share_milli)
        return OVERCOMMIT_IGNORED;
    return second.waited_usec > WAITED_USEC ? OVERCOMMIT_VICTIM : OVERCOMMIT_SERVED;
}

static int64_t ratio_ppm(int64_t part, int64_t whole)
{
    return whole > 0 ? PPM * part / whole : 0;
}

struct overcommit_window overcommit_add_window(struct overcommit_pressure *pressure,
                                               const struct overcommit_seconds *pods, size_t n)
{
    struct overcommit_window w = { .worst = n };
    int64_t counted = 0, victims = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t ppm = ratio_ppm(pods[i].victims, pods[i].counted);
        counted += pods[i].counted;
        victims += pods[i].victims;
        if (pods[i].counted < WORST_SECONDS || (w.worst < n && ppm <= w.worst_ppm))
            continue;
        w.worst_ppm = ppm;
        w.worst = i;
    }
    w.mean_ppm = ratio_ppm(victims, counted);
    pressure->victims_ppm = (3 * pressure->victims_ppm + w.mean_ppm) / 4;
    pressure->worst_ppm = (3 * pressure->worst_ppm + w.worst_ppm) / 4;
    return w;
}

const char *overcommit_reason_name(enum overcommit_reason reason)
{
    static const char *const names[OVERCOMMIT_REASON_N] = { "off",  "start", "capped",
                                                            "fall", "rise",  "hold" };
    return names[reason];
}

static int64_t limits_capacity(int64_t capacity_milli, int64_t kappa)
{
    __extension__ typedef __int128 wide;
    return (int64_t)((wide)capacity_milli * kappa / 1000);
}

static bool can_rise(const struct overcommit_state *s, int64_t kappa, int64_t max,
                     int64_t limits_milli)
{
    return s->pressure.victims_ppm <= RISE_VICTIMS && s->pressure.worst_ppm <= RISE_WORST &&
           s->since_fall_s >= RISE_AFTER_S && s->utilization_ppm < RISE_BELOW_UTILIZATION &&
           s->wanted_milli > limits_milli && kappa < max;
}

/* The next kappa in thousandths, and why. */
static int64_t next_kappa(int64_t max, int64_t capacity_milli, const struct overcommit_state *s,
                          enum overcommit_reason *reason)
{
    *reason = max <= 1000 ? OVERCOMMIT_OFF : OVERCOMMIT_START;
    if (max <= 1000)
        return 1000;
    if (s->kappa_milli <= 0) {
        __extension__ typedef __int128 wide;
        wide now = capacity_milli > 0 ? (wide)s->limits_milli * 1000 / capacity_milli : 0;
        return MIN(max, (int64_t)MAX((wide)START_LEAST, MIN(now, (wide)max)));
    }
    int64_t kappa = MAX(s->kappa_milli, INT64_C(1000));
    *reason = OVERCOMMIT_CAPPED;
    if (kappa > max)
        return max;
    if (s->pressure.victims_ppm > FALL_VICTIMS || s->pressure.worst_ppm > FALL_WORST) {
        int64_t over = 7 * (kappa - 1000) / 10;
        *reason = OVERCOMMIT_FALL;
        return over < FALL_LEAST ? 1000 : 1000 + over;
    }
    bool rises = can_rise(s, kappa, max, limits_capacity(capacity_milli, kappa));
    *reason = rises ? OVERCOMMIT_RISE : OVERCOMMIT_HOLD;
    return rises ? MIN(max, kappa + RISE_STEP) : kappa;
}

struct overcommit_kappa overcommit_next(double limit_overcommit, bool blind, int64_t capacity_milli,
                                        const struct overcommit_state *state)
{
    int64_t max = (int64_t)(MIN(MAX(limit_overcommit, 1.0), 10.0) * 1000 + 0.5);
    if (blind)
        max = MIN(max, (int64_t)BLIND_MAX);
    struct overcommit_kappa k = { 0 };
    k.kappa_milli = next_kappa(max, capacity_milli, state, &k.reason);
    k.limits_capacity_milli = limits_capacity(capacity_milli, k.kappa_milli);
    return k;
}
