/* Who sizes the pods of a plant: our own market and what it is compared with. */
#ifndef FLYBALL_MARKET_POLICIES_H
#define FLYBALL_MARKET_POLICIES_H

#include "market_plant.h"

struct market_policy {
    const char *name, *about;
    /* Returns the policy's state. `seed` is for its own random choices. */
    void *(*start)(struct plant *p, int seconds, uint64_t seed);
    void (*on_second)(void *state, struct plant *p); /* after each second */
    void (*stop)(void *state);
};

const struct market_policy *plant_policy_at(size_t i);   /* in the order of the table; NULL: end */
const struct market_policy *plant_policy_find(str name); /* NULL: unknown */

/* market_policies_peers.c */
extern const struct market_policy market_policy_static, market_policy_unlimited, market_policy_vpa,
    market_policy_autopilot, market_policy_mbcas;

/* Runs a workload under a policy and scores it. */
struct market_workload;
struct plant_score plant_simulate(const struct market_workload *workload,
                                  const struct market_policy *policy, uint64_t seed, double system);

#endif
