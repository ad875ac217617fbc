/* The slo policy: how many replicas of each variant keep a model's latency targets?
 *
 * In one sentence: provide for what the load will weigh when a replica that is started now is ready,
 * plus a headroom learned from the policy's own forecast errors, with a capacity per replica that is learned
 * from how its token speed falls with its load.
 *
 *     struct slo_state state;                  one per model, kept from cycle to cycle
 *     slo_state_init(&state);
 *     every cycle:
 *         struct slo_input in = { .now = ..., .arrival = ..., .variant_n = 2, .variants = { ... } };
 *         slo_step(&state, &config, &in, &out);
 *         out.targets[i] are the replicas of in.variants[i], out.reason is the sentence with the numbers
 *
 * Pure: no clock, no allocation, no I/O. What is not known is NaN in the input; a negative, infinite or
 * absurd number counts as not known. An unknown input never changes a target by itself: without the load
 * the policy holds, without latencies it learns nothing and stays careful.
 *
 * Laws (slo_test.c checks each on random sequences): targets stay within [min, max] unless the replicas
 * were outside before; the order of the variants changes nothing; more load at equal state never asks for
 * fewer replicas. */
#ifndef FLYBALL_SATURATION_SLO_CORE_H
#define FLYBALL_SATURATION_SLO_CORE_H

#include "../base/base.h"

enum {
    SLO_VARIANTS_MAX = 16, /* of one model; more cannot be planned with this policy */
    SLO_RING = 320,        /* cycles of load kept: an hour of forecasts, and the longest horizon */
    SLO_REASON_ROOM = 256,
};

struct slo_config {
    double ttft, itl;        /* targets in seconds: time to first token, between tokens; both > 0 */
    double goal;             /* share of requests that are to be within both targets, in (0, 1) */
    double cycle;            /* seconds between steps */
    double reserve;          /* share of the need to hold free on top of it; 0: none */
    double reserve_replicas; /* replicas of the reference variant to hold free; 0: none */
    double caution; /* how strongly a spent error budget raises the headroom: 1 (or 0) to 3 */
};

/* One variant in this cycle. Rates, latency and cache use are means over the replicas that report. */
struct slo_variant {
    uint64_t id;   /* the same in every cycle, and no other variant's; 0: its position */
    int current;   /* replicas asked for so far */
    int ready;     /* of which serve */
    int reporting; /* of which have fresh samples */
    int min, max;  /* max <= 0: not usable */
    int stuck;     /* of which cannot become ready */
    bool hinted;   /* slo_state_hint() was called for it: usable before it was seen */
    double cost;   /* of a replica, in any unit */
    double itl;    /* s between tokens */
    double prompt_rate, gen_rate; /* tokens/s of a replica */
    double running, running_low,
        running_high;   /* requests in a replica: mean, least, most of a minute */
    double kv;          /* share of the KV cache in use */
    double kv_tokens;   /* that the KV cache of a replica holds */
    double max_seqs;    /* requests that a replica runs at once */
    double start_delay; /* s from creation to ready, if one became ready */
};

struct slo_input {
    double now;                   /* s, of any clock that does not jump */
    double arrival;               /* requests/s, mean of a minute */
    double arrival_now;           /* requests/s, of the last scrape interval */
    double in_tokens, out_tokens; /* mean prompt and answer of a request */
    double in_tail;         /* tokens of a prompt as long as `goal` of them are not exceeding */
    double waiting, queued; /* requests that wait anywhere; of which in the gateway */
    double ok, finished; /* since the last cycle: share within both targets, of so many requests */
    double season;       /* load expected at the horizon, divided by the load now */
    size_t variant_n;    /* at most SLO_VARIANTS_MAX; more are ignored */
    struct slo_variant variants[SLO_VARIANTS_MAX];
};

/* How a variant fits the targets; a variant of a lower class is preferred. */
enum slo_fit { SLO_FITS, SLO_UNSEEN, SLO_UNFIT };

/* The amounts are in busy replicas of the reference variant: the seconds of work that a second brings. */
struct slo_output {
    size_t variant_n;
    int targets[SLO_VARIANTS_MAX]; /* in the order of the input */
    enum slo_fit fit[SLO_VARIANTS_MAX];
    double capacity[SLO_VARIANTS_MAX]; /* that a replica carries within the targets */
    double demand;                     /* now */
    double forecast;                   /* at the horizon */
    double horizon;                    /* s */
    double need;                       /* with headroom, reserve and backlog */
    double have;                       /* what the current replicas carry */
    double hold;                       /* the most until the horizon: what is left must carry it */
    double margin;                     /* share of the targets that is planned with */
    double quantile;                   /* of the forecast errors that the headroom covers */
    double used, spent; /* error budget: within plan, of everything; 1: just as the goal allows */
    bool additive;      /* the headroom is an amount, not a factor */
    char reason[SLO_REASON_ROOM];
};

/* ---- state: 8 KB per model. It never needs a migration: an empty one learns anew. */

/* What a replica of a variant can do; slo_learn_core.c has the model. */
struct slo_speed {
    uint64_t id;          /* of the variant; 0: free */
    double th[3];         /* idle speed, and what prompt and attended tokens take from it */
    double a[3][3], b[3]; /* the samples: normal equations of the fit */
    double best;          /* largest speed seen */
    double context;       /* tokens of KV cache that a running request holds; NaN: not seen */
    double seen;          /* largest share of busy time at which it was observed */
    double start;         /* s from creation to ready */
    double added;         /* when a replica was last added; 0: never */
    uint32_t samples;
    bool unfit; /* was SLO_UNFIT in the last cycle */
};

struct slo_load {
    float rate, in, out; /* requests/s and their mean tokens */
};

/* Loads are kept as they came, not weighed: the weights are still being learned, so every cycle weighs
 * the whole history anew. */
struct slo_state {
    double itl; /* the target that the speeds are relative to; 0: none yet */
    uint32_t n; /* cycles with a known load; cycle k is entry k modulo SLO_RING of the rings */
    struct slo_load load[SLO_RING];
    double removed;    /* when replicas were last removed; 0: never */
    double dispersion; /* of arrivals: variance over mean of their counts; 1: Poisson */
    double miss, seen; /* requests, decaying: beyond a target, all; only while within plan */
    double all_miss, all_seen;    /* the same of every cycle */
    double in_tokens, out_tokens; /* last known; 0: never */
    double context_factor;        /* KV tokens that a request holds, divided by in + out/2 */
    uint32_t reference;           /* index into `speeds` */
    struct slo_speed speeds[SLO_VARIANTS_MAX];
};
_Static_assert(sizeof(struct slo_state) <= 24 * 1024, "budget of a model's state");

void slo_state_init(struct slo_state *s);

/* What is known of a variant before it was observed, as the coefficients of its model (slo_learn_core.c).
 * Without effect once it was observed. */
void slo_state_hint(struct slo_state *s, uint64_t id, const double th[3]);

/* The same from a performance profile: seconds of an iteration, of each sequence in it and of each prompt token,
 * measured with requests of so many tokens (NaN or 0: 500 and 250). */
struct slo_profile {
    uint64_t id;
    double base, per_sequence, per_prompt_token;
    double in_tokens, out_tokens;
};
void slo_state_hint_profile(struct slo_state *s, const struct slo_config *c,
                            const struct slo_profile *profile);

/* s that an otherwise idle replica takes for a prompt. */
double slo_prefill_seconds(const struct slo_speed *x, double tokens);

void slo_step(struct slo_state *s, const struct slo_config *c, const struct slo_input *in,
              struct slo_output *out);

#endif
