/* The parts of the slo policy, private to its files; slo_core.c calls them in this order. */
#ifndef FLYBALL_SLO_PARTS_CORE_H
#define FLYBALL_SLO_PARTS_CORE_H

#include "slo_core.h"

#include <math.h>

/* One step in progress. The input is a copy in which every unusable number is NaN and the variants
 * are sorted by id, so that no sum and no tie depends on the order in which they were given. */
struct slo_turn {
    const struct slo_config *c;
    struct slo_state *s;
    struct slo_input in;
    size_t given_at[SLO_VARIANTS_MAX];         /* index in the input of a sorted variant */
    struct slo_speed *speed[SLO_VARIANTS_MAX]; /* its part of the state */
    int target[SLO_VARIANTS_MAX];              /* its target */
    enum slo_fit fit[SLO_VARIANTS_MAX];
    double capacity[SLO_VARIANTS_MAX];
    bool queueing[SLO_VARIANTS_MAX]; /* limited by cache, seats or prefill, not by the ITL */
    struct slo_output *out;

    uint32_t at;              /* this cycle's entry in the rings */
    double weighed[SLO_RING]; /* loads of the ring in busy replicas, by the current weights */
    double per_request;       /* weight of a mean request: busy seconds */
    int pool;                 /* replicas of the model, at least 1 */
    double ready_capacity;    /* of the replicas that serve */
    int watched;          /* cycles before this one whose need is known, of the last start delay */
    bool knows_hold;      /* that of all of them is */
    bool has_alternative; /* a fitting variant can grow: unfit ones do not count */
};

static inline double slo_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Units of th[1] and th[2], so that all three coefficients are of the same size: seconds for a
 * prompt token and for an attended token on a middling accelerator. A generated token attends to
 * its context and to SLO_FIXED_CONTEXT tokens' worth of work that does not grow with it. */
#define SLO_PROMPT_UNIT 1e-4
#define SLO_ATTEND_UNIT 2e-7
#define SLO_FIXED_CONTEXT 300.0

/* ---- slo_learn_core.c */
void slo_speed_init(struct slo_speed *x, uint64_t id);
void slo_learn_speed(struct slo_turn *t, size_t v);

/* ---- slo_capacity_core.c */
/* A load in busy replicas of the reference variant. */
double slo_weigh_load(const struct slo_state *s, struct slo_load load);
/* Requests/s that a replica carries within the targets, planning with `margin` of them. 0: none. */
double slo_get_capacity(struct slo_turn *t, size_t v, double margin);
/* Share of requests that miss a target at `load` times the capacity. */
double slo_expect_misses(double goal, double load);

/* ---- slo_forecast_core.c */
/* out->forecast, headroom, level; out->need: the capacity to hold at the horizon. */
void slo_forecast_load(struct slo_turn *t);

/* ---- slo_plan_core.c */
void slo_plan_capacity(struct slo_turn *t); /* fit and capacity of each variant; out->have */
void slo_plan_cold(struct slo_turn *t);     /* raises out->need until a cold start is over */
void slo_plan_backlog(struct slo_turn *t);  /* adds to out->need what drains the gateway's queue */
void slo_plan_up(struct slo_turn *t);
int slo_plan_down(struct slo_turn *t); /* replicas removed */

#endif
