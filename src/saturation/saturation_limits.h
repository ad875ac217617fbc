/* Limits on accelerators in the engine (`enableLimiter` and `limiters` of the global default entry):
 * growth beyond the stock of the nodes or a quota is cut. Private to the engine. */
#ifndef FLYBALL_SATURATION_LIMITS_H
#define FLYBALL_SATURATION_LIMITS_H

#include "saturation_gather.h"

/* The policy of the global default entry; NULL: nothing is limited. */
const struct sat_policy *saturation_limits_policy(const struct saturation *s);
/* The short name of the accelerator that a variant needs, and how many a replica of it (which may be a group of pods). */
str saturation_limits_type(const struct saturation *s, const struct variant *v);
int64_t saturation_limits_gpus(const struct saturation *s, const struct variant *v);
/* Pods of the variant that are on a node. */
int64_t saturation_limits_bound(const struct saturation *s, const struct variant *v);
/* The value of the label accelerator_type: "unresolved" if the variant names no accelerator. */
str saturation_limits_shown_type(const struct saturation *s, const struct variant *v);
/* Once per cycle: reads the accelerators that pod templates select. `policy` NULL: nothing is limited. */
void saturation_limits_learn(struct saturation *s, const struct sat_policy *policy);
/* Whether the policy limits by inventory, and the inventory is known. */
bool saturation_limits_uses_stock(struct saturation *s, const struct sat_policy *policy);
/* Opens the cache of nodes when a limiter first needs it. False: the stock is not known. */
bool saturation_limits_knows_stock(struct saturation *s);
/* All nodes, and all pods of the cluster that have accelerators; in the arena of `g`. */
struct stock saturation_limits_stock(struct gathering *g);
/* How many replicas of a variant still fit on the nodes, now. */
struct stock_room saturation_limits_room(struct gathering *g, const struct stock *stock,
                                         const struct variant *v);

/* Reduces targets that exceed what is free; never below what a variant has. */
void saturation_limits_apply(struct gathering *g, struct decide_answers *answers);

/* Whether limits apply to a variant, and then the most replicas that it may have. */
bool saturation_limits_most(struct gathering *g, const struct variant *v, int *ret);

/* The condition ResourceConstrained; unknown for a variant that was never limited. */
struct sat_condition saturation_limits_condition(struct variant *v, const struct decide_answer *x);

/* All models in the order in which they get accelerators: by priority, while a limiter is on. The
 * array lives in the arena and has as many entries as there are models. */
struct sat_model **saturation_limits_order(struct saturation *s, struct arena *a);

/* Whether a first replica of a variant could start: accelerators are free (or not limited, or not
 * known), and no quota forbids it. */
struct limit_check {
    bool has_room, forbidden;
};
struct limit_check saturation_limits_check(struct gathering *g, const struct variant *v);

#endif
