/* The parts of a decision that vote_core.c, fair_core.c and rescale_core.c share: the needs of one
 * model while replicas are added to cover them. */
#ifndef FLYBALL_VOTE_PARTS_CORE_H
#define FLYBALL_VOTE_PARTS_CORE_H

#include "vote_core.h"

#define VOTE_UNLIMITED INT64_MAX

struct vote_budget {
    str type;     /* of accelerator */
    int64_t free; /* VOTE_UNLIMITED: no limit. May become negative, as in WVA. */
};

struct vote_budgets {
    struct vote_budget *at;
    size_t n;
};

/* The free accelerators of a type; a type that is not listed has none. */
int64_t vote_budget_get(const struct vote_budgets *budgets, str type);
struct vote_budget *vote_budget_find(const struct vote_budgets *budgets, str type);

struct vote_run {
    struct arena *arena;
    const struct vote_model *model;
    const struct vote_voter *binding;
    const struct vote_voter **voters; /* those that vote */
    size_t voter_n;
    str *roles; /* sorted */
    size_t role_n;
    double *needs, *spares; /* [voter * role_n + role] */
    double *rest;           /* what each voter's model-wide need still is */
    int64_t *targets;       /* per variant */
};

/* False: no voter is binding. */
bool vote_run_start(struct arena *a, const struct vote_model *model, struct vote_run *ret);
/* Sets the needs again: of a voter without roles to what is left, else to its full needs. */
void vote_run_load_needs(struct vote_run *run);

/* Adds replicas until no need is left or nothing fits. `budgets` NULL: no limit, and `share` is
 * unused; else one step adds at most `share` of capacity to a variant. */
void vote_run_grow(struct vote_run *run, struct vote_budgets *budgets, double share);
void vote_run_shrink(struct vote_run *run);
struct vote_target *vote_run_targets(const struct vote_run *run, const char *optimizer);

str vote_role_name(str role); /* "" is "both" */
int64_t vote_gpus(const struct vote_variant *v);
int64_t vote_replicas(double value); /* a number of replicas as an integer, within bounds */

/* The variants of a role: indexes of `run->model->variants`, in the arena. */
struct vote_order {
    size_t *at;
    size_t n;
};
struct vote_order vote_order_by_efficiency(const struct vote_run *run, str role);
struct vote_order vote_order_for_shrinking(const struct vote_run *run, str role);

/* Takes replicas from the variants in that order. `fit` returns how many may be removed from a
 * variant, `removed` is called with the number that were. The last variant keeps one replica if no other has
 * any. */
struct vote_shrink {
    int64_t (*fit)(void *context, size_t variant);
    void (*removed)(void *context, size_t variant, int64_t n);
    void *context;
};
void vote_shrink_in_order(struct vote_run *run, struct vote_order order,
                          const struct vote_shrink *shrink);

#endif
