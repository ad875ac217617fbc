/* What token_core.c remembers between cycles. */
#ifndef FLYBALL_TOKEN_STORE_H
#define FLYBALL_TOKEN_STORE_H

#include "token_core.h"

struct token_record {
    struct arena texts; /* owned: every str below */
    str key, model, accelerator;
    int64_t gpus_per_replica;
    int64_t effective; /* tokens a replica holds; only of a live record */
    bool live;         /* a replica reported it; otherwise it comes from a template */
    bool has_args;
    struct vllm_args args;
};

enum { TOKEN_HISTORY_MAX = 10 };

struct token_history { /* tokens in use at the moments of saturation */
    int64_t values[TOKEN_HISTORY_MAX];
    size_t n, next;
    char key[]; /* NUL-terminated */
};

struct token_record *token_record(const struct token_store *store, struct token_variant variant);
void token_store_live(struct token_store *store, struct token_variant variant,
                      struct token_hardware hardware, int64_t effective);

/* Another live record of the same model on the same hardware with the same settings, or NULL. */
const struct token_record *token_record_alike(const struct token_store *store,
                                              const struct token_record *record);

/* Histories are kept by model, accelerator and how long answers are. */
struct token_history *token_history(struct token_store *store, str model, str accelerator,
                                    double output_tokens);
void token_history_add(struct token_history *history, int64_t in_use);
double token_history_mean(const struct token_history *history); /* 0 when empty */

#endif
