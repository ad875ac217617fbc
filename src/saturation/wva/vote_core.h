/* Replica targets from the votes of analyzers, in any unit: each states how much capacity a role of
 * the model needs or can spare, and how much one replica of each variant provides. Every need is
 * covered before anything shrinks; a role shrinks only if every live voter can spare it.
 *
 *     vote_decide()   without a limit on accelerators: WVA's optimizer "cost-aware"
 *     fair_decide()   with one (fair_core.h): "greedy-by-score"
 *
 * One voter is the *binding* one. It sizes the steps: `saturation` if it votes, is live and knows a
 * variant, else the only other voter of which that is true. Without one the model is held. */
#ifndef FLYBALL_VOTE_CORE_H
#define FLYBALL_VOTE_CORE_H

#include "../../base/arena.h"

struct vote_variant {
    str name;
    str accelerator; /* its type; "": unknown */
    str role;        /* "": both */
    double cost;     /* of one replica */
    int64_t current;
    int64_t min, max; /* replicas; a max of 0: unbounded */
    int64_t gpus;     /* per replica; less than 1 counts as 1 */
};

struct vote_role {
    str role;
    double required, spare, demand;
};

struct vote_voter {
    str name;
    double score;
    bool votes; /* listed and enabled; one that does not vote still describes the model */
    bool live;  /* had a usable result recently; one that had none cannot prevent a scale-down */
    bool informative;          /* knows the capacity of at least one variant now */
    const double *per_replica; /* one for each variant of the model; 0: unknown */
    double required, spare, demand;
    const struct vote_role *roles; /* empty: all variants have the role both */
    size_t role_n;
};

struct vote_model {
    str ns, model;
    double priority;
    const struct vote_variant *variants;
    size_t variant_n;
    const struct vote_voter *voters;
    size_t voter_n;
};

struct vote_target {
    int64_t replicas;
    str category, reason;
    double required, spare; /* of the variant's role, as the binding voter sees it */
};

/* One target per variant, in the arena; NULL: no voter is binding, so the model is held. */
struct vote_target *vote_decide(struct arena *a, const struct vote_model *model);

#endif
