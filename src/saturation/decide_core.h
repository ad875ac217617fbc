/* One decision about one model: analysis, targets, what the optimizer wants, and the rules about zero,
 * in this order, each variant's answer with its reason. */
#ifndef FLYBALL_DECIDE_CORE_H
#define FLYBALL_DECIDE_CORE_H

#include "hybrid_core.h"

enum decide_rules { DECIDE_BY_NEED, DECIDE_SEED, DECIDE_2026 }; /* the latter two: compat */

enum decide_mode { DECIDE_CAPACITY, DECIDE_HYBRID, DECIDE_MODEL_ONLY };

struct decide_input {
    enum decide_rules rules;
    enum decide_mode mode;
    struct sat_config config;
    const struct sat_replica *replicas; /* that are ready */
    size_t replica_n;
    const struct sat_state *states; /* one a variant */
    size_t state_n;
    bool just_grown; /* replicas came so lately that the samples do not show their effect */
    const int *model_targets; /* of each state, from the optimizer; NULL: it has no answer */
    bool scale_to_zero;       /* allowed for this model */
    bool requests_known;
    double requests;       /* in the retention period */
    const bool *keeps_min; /* of each state: its minimum was asked for and holds against zero too */
};

enum decide_source {
    DECIDE_FROM_CAPACITY,
    DECIDE_FROM_MODEL, /* or brought together with it */
    DECIDE_FROM_VETO   /* the optimizer was overruled */
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
