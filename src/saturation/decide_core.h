/* One decision about one model: analysis, targets, what the optimizer wants, and the rules about zero,
 * in this order, each variant's answer with its reason. */
#ifndef FLYBALL_DECIDE_CORE_H
#define FLYBALL_DECIDE_CORE_H

#include "hybrid_core.h"

enum decide_rules {
    DECIDE_BY_NEED,
    DECIDE_SEED, /* this and the next: compat */
    DECIDE_2026,
    DECIDE_SLO /* latency targets decide: see slo_core.h */
};

static inline bool decide_is_compat(enum decide_rules rules)
{
    return rules == DECIDE_SEED || rules == DECIDE_2026;
}

enum decide_mode { DECIDE_CAPACITY, DECIDE_HYBRID, DECIDE_MODEL_ONLY };

/* What `need` remembers of a model between decisions; `{0}` remembers nothing. */
struct decide_memory {
    double queue;           /* waiting requests at the last decision */
    double queue_at_growth; /* and when replicas were last added */
    double grown_at;        /* s; when that was; 0: never */
};

struct decide_latency { /* means of the last minute, and their targets; 0 or NaN: not known */
    double ttft, itl;
    double ttft_target, itl_target;
};

struct decide_input {
    enum decide_rules rules;
    enum decide_mode mode;
    struct sat_config config;
    const struct sat_replica *replicas; /* that are ready */
    size_t replica_n;
    const struct sat_state *states; /* one a variant */
    size_t state_n;
    struct decide_memory *memory;  /* `need`: changed by the decision; NULL: each stands alone */
    const struct sat_targets *slo; /* DECIDE_SLO: what the policy wants, by variant */
    double now;                    /* s; with a memory */
    double start_delay;            /* s until a replica serves; 0: 120 */
    struct decide_latency latency;
    bool just_grown; /* replicas came so lately that the samples do not show their effect */
    const int *model_targets; /* of each state, from the optimizer; NULL: it has no answer */
    bool scale_to_zero;       /* allowed for this model */
    bool requests_known;
    double requests;       /* in the retention period */
    const bool *keeps_min; /* of each state: its minimum was asked for and holds against zero too */
};

enum decide_source {
    DECIDE_FROM_CAPACITY,
    DECIDE_FROM_MODEL,  /* or brought together with it */
    DECIDE_FROM_VETO,   /* the optimizer was overruled */
    DECIDE_FROM_BOUNDS, /* a minimum or maximum moved it */
    DECIDE_FROM_ZERO,   /* the rules about zero */
    DECIDE_FROM_SLO     /* latency targets */
};

struct decide_answer {
    str variant;
    int current, target;
    enum decide_source source;
    str reason;
};

struct decide_answers {
    struct decide_answer *at; /* sorted by variant */
    size_t n;
    int needed;
    bool in_transition; /* compat: nothing is decided until it ends */
    struct sat_analysis analysis;
};

struct decide_answers decide_model(struct arena *a, const struct decide_input *in);

#endif
