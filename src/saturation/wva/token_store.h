/* What token_core.c remembers between cycles. Private to it. */
#ifndef FLYBALL_TOKEN_STORE_H
#define FLYBALL_TOKEN_STORE_H

#include "token_core.h"

struct sat_token_record {
    struct arena texts; /* owned: every str below */
    str key, model, accelerator;
    int64_t gpus_per_replica;
    int64_t effective; /* tokens that a replica holds; valid if `live` */
    bool live;         /* measured; else from a template */
    bool has_args;
    struct sat_vllm_args args;
};

enum { TOKEN_HISTORY_MAX = 10 };

struct sat_token_history { /* ring of tokens in use at saturation */
    int64_t values[TOKEN_HISTORY_MAX];
    size_t n, next;
    char key[]; /* NUL-terminated */
};

struct sat_token_record *sat_token_find(const struct sat_token_store *store,
                                        struct sat_token_variant variant);
void sat_token_store_measured(struct sat_token_store *store, struct sat_token_variant variant,
                              struct sat_token_hardware hardware, int64_t effective);

/* Another measured record of the same model on the same hardware with equivalent arguments, or
 * NULL. */
const struct sat_token_record *sat_token_find_alike(const struct sat_token_store *store,
                                                    const struct sat_token_record *record);

/* The history for a model on some hardware and a class of answer lengths; created if needed. A
 * negative number of GPUs: of any. */
struct sat_token_history *sat_token_get_history(struct sat_token_store *store, str model,
                                                struct sat_token_hardware hardware,
                                                double output_tokens);
void sat_token_history_add(struct sat_token_history *history, int64_t in_use);
double sat_token_history_mean(const struct sat_token_history *history); /* 0: empty */

/* ---- what both versions of the analysis share */

struct sat_token_means { /* per request, over the replicas that served some */
    double in, out, hit;
};
struct sat_token_means sat_token_model_means(const struct sat_token_input *in);
/* Tokens in use when a batch is as full as the command line allows; 0: unknown. */
int64_t sat_token_derived(const struct sat_vllm_args *args, double in, double out);
int64_t sat_token_usable(double tokens, double threshold);
int64_t sat_token_median(int64_t *values, size_t n); /* sorts them */

/* The analysis of TOKEN_AUG2026. */
struct sat_token_analysis sat_token_analyze_roles(struct arena *a, struct sat_token_store *store,
                                                  const struct sat_token_input *in);

#endif
