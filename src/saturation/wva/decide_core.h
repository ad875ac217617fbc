/* One decision about one model: analysis, targets, arbitration with the optimizer, and scale to
 * zero, in this order. Each variant gets a target and a reason. */
#ifndef FLYBALL_DECIDE_CORE_H
#define FLYBALL_DECIDE_CORE_H

#include "hybrid_core.h"

enum decide_rules {
    DECIDE_BY_NEED,
    DECIDE_SEED, /* this and the next: WVA's rules */
    DECIDE_2026,
    DECIDE_SLO,   /* latency targets: see slo_core.h */
    DECIDE_TOKENS /* the token analyzer: see saturation_tokens.c */
};

static inline bool decide_is_compat(enum decide_rules rules)
{
    return rules == DECIDE_SEED || rules == DECIDE_2026;
}

enum decide_mode { DECIDE_CAPACITY, DECIDE_HYBRID, DECIDE_MODEL_ONLY };

/* What `need` remembers about a model between decisions; `{0}`: nothing yet. */
struct decide_memory {
    double queue;           /* waiting requests at the last decision */
    double queue_at_growth; /* the same when replicas were last added */
    double grown_at;        /* s; when replicas were last added; 0: never */
    double start_delay;     /* s that replicas take to start, learned; 0: never seen */
};

struct decide_latency { /* s; means of the last minute and their targets; 0 or NaN: unknown */
    double ttft, itl;
    double ttft_target, itl_target;
};

struct decide_input {
    enum decide_rules rules;
    enum decide_mode mode;
    struct sat_config config;
    const struct sat_replica *replicas; /* ready ones only */
    size_t replica_n;
    const struct sat_state *states; /* one per variant */
    size_t state_n;
    struct decide_memory *memory; /* `need`: updated by the decision; NULL: decide without memory */
    const struct sat_targets *slo; /* DECIDE_SLO, DECIDE_TOKENS: targets by variant */
    double now;                    /* s; only used with a memory */
    double start_delay;            /* s that a replica took which just became ready; 0: none did */
    struct decide_latency latency;
    bool just_grown; /* replicas arrived so recently that the samples do not show their effect */
    const int *model_targets; /* per state, from the optimizer; NULL: no answer */
    bool scale_to_zero;       /* allowed for this model */
    bool requests_known;
    double requests;       /* in the retention period */
    const bool *keeps_min; /* per state: the minimum applies to scale to zero too */
};

enum decide_source {
    DECIDE_FROM_CAPACITY,
    DECIDE_FROM_MODEL,  /* or arbitration with it */
    DECIDE_FROM_VETO,   /* the optimizer was overruled */
    DECIDE_FROM_BOUNDS, /* a minimum or maximum moved it */
    DECIDE_FROM_ZERO,   /* scale to zero, or the last replica */
    DECIDE_FROM_SLO     /* latency targets */
};

struct decide_answer {
    str variant;
    int current, target;
    enum decide_source source;
    str reason;
    str limited; /* what a limiter cut, and why; "": nothing */
};

struct decide_answers {
    struct decide_answer *at; /* sorted by variant */
    size_t n;
    int needed;
    bool in_transition; /* WVA's rules: nothing is decided until it ends */
    struct sat_analysis analysis;
};

struct decide_answers decide_model(struct arena *a, const struct decide_input *in);

#endif
