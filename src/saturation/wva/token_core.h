/* Capacity in tokens (WVA's analyzer "saturation", version 2): how many tokens a replica can hold
 * before it saturates, learned from replicas that were saturated, and how many the load needs.
 * Variants with the lowest cost per token grow first; the most expensive ones shrink first.
 *
 * What was learned outlives a cycle: it is in struct sat_token_store, which the caller owns. */
#ifndef FLYBALL_TOKEN_CORE_H
#define FLYBALL_TOKEN_CORE_H

#include "../objects/vllm_args_core.h"

#include "../../base/map.h"

struct sat_token_store { /* `{0}` is empty */
    struct map records, histories;
};
void sat_token_store_done(struct sat_token_store *store);

struct sat_token_variant { /* the key of a record */
    str ns, model, name;
};

struct sat_token_hardware {
    str accelerator;
    int64_t gpus_per_replica;
};

/* Which version of WVA to follow. TOKEN_AUG2026 (the 0.9 line) knows roles, counts the instances
 * that report rather than replicas, and estimates replicas that do not report their cache size. */
enum sat_token_rules { TOKEN_FEB2026, TOKEN_AUG2026 };

/* Stores what the pod template implies, for the time before a replica reports. */
void sat_token_store_template(struct sat_token_store *store, struct sat_token_variant variant,
                              struct sat_token_hardware hardware, const struct sat_vllm_args *args);

/* Drops the record of a variant, when it is deleted or its template changed. */
void sat_token_store_forget(struct sat_token_store *store, struct sat_token_variant variant);

struct sat_token_replica {
    str variant, accelerator;
    double cost;
    double queue;                       /* requests */
    int64_t capacity, in_use;           /* tokens of the KV cache; capacity 0: unknown */
    double input_tokens, output_tokens; /* means per request */
    double hit_rate;                    /* of the prefix cache */
    double kv_usage;                    /* share of the KV cache; for TOKEN_AUG2026 */
};

struct sat_token_state {
    str variant;
    int64_t current, pending, gpus_per_replica;
    /* For TOKEN_AUG2026: */
    str role; /* "" or "both", "prefill", "decode" */
    /* Hardware and cost of the spec. WVA knows only what replicas report; without a replica both
     * are unknown to it, and the variant looks free. */
    bool has_spec;
    str accelerator;
    double cost;
};

struct sat_token_input {
    str ns, model;
    double kv_threshold, queue_threshold;
    double scale_up_at, scale_down_at; /* utilization; 0: 0.85 and 0.70 */
    const struct sat_token_replica *replicas;
    size_t replica_n;
    const struct sat_token_state *states;
    size_t state_n;
    double waiting_requests, waiting_bytes; /* in front of the scheduler; 0: none */
    enum sat_token_rules rules;
};

struct sat_token_capacity {
    str variant, accelerator; /* accelerator and cost as replicas report them */
    double cost;
    int64_t ready, pending, per_replica;
    double supply, demand, utilization; /* tokens; supply counts ready replicas only */
    str role;
    const char *label; /* where the capacity comes from: P1-obs, P2-hist, ...; no-data: unknown */
};

struct sat_token_role {
    str role;
    double supply, demand, anticipated;
    double required, spare;
};

struct sat_token_analysis {
    struct sat_token_capacity *variants; /* in the order of the states */
    size_t n;
    double supply, demand, utilization;
    double required, spare;       /* tokens */
    double anticipated;           /* supply when pending replicas are ready */
    struct sat_token_role *roles; /* sorted; empty unless a variant is for prefill or decode */
    size_t role_n;
};

struct sat_token_analysis sat_token_analyze(struct arena *a, struct sat_token_store *store,
                                            const struct sat_token_input *in);

struct sat_token_target {
    str variant;
    int64_t current, replicas;
    str reason;
};

/* One target per variant, in the order of the states. */
struct sat_token_target *sat_token_decide(struct arena *a,
                                          const struct sat_token_analysis *analysis,
                                          const struct sat_token_state *states);

#endif
