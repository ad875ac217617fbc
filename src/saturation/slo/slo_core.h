/* The slo policy: how many replicas of each variant does a model need to attain its latency
 * targets?
 *
 * In one sentence: provide for the load expected at the time when a replica that is started now is
 * ready, plus a headroom moved by the error budget, with a capacity per replica
 * that is learned from how its token speed falls with its load.
 *
 *     struct slo_state state;                  one per model, kept from cycle to cycle
 *     slo_state_init(&state);
 *     every cycle:
 *         struct slo_input in = { .now = ..., .arrival = ..., .variant_n = 2, .variants = { ... } };
 *         slo_step(&state, &config, &in, &out);
 *         out.targets[i] are the replicas of in.variants[i], out.reason is the sentence with the numbers
 *
 * Pure: no clock, no allocation, no I/O. Unknown numbers are NaN in the input; a negative, infinite
 * or absurd number counts as unknown. An unknown input never changes a target by itself: without
 * the load the policy holds, without latencies it learns nothing and stays careful.
 *
 * Laws (slo_test.c checks each on random sequences): targets stay within [min, max] unless the
 * replicas were outside before; the order of the variants changes nothing; with the same state,
 * more load never asks for fewer replicas. */
#ifndef FLYBALL_SATURATION_SLO_CORE_H
#define FLYBALL_SATURATION_SLO_CORE_H

#include "../../base/base.h"

enum {
    SLO_VARIANTS_MAX = 16, /* per model; a model with more cannot use this policy */
    SLO_RING = 320,        /* cycles of load kept: an hour of forecasts, and the longest horizon */
    SLO_REASON_ROOM = 256,
};

struct slo_config {
    double ttft, itl;        /* targets in seconds: time to first token, between tokens; both > 0 */
    double goal;             /* share of requests that should be within both targets, in (0, 1) */
    double cycle;            /* seconds between steps */
    double reserve;          /* additional free capacity, as a share of the need; 0: none */
    double reserve_replicas; /* additional free replicas of the reference variant; 0: none */
    double caution; /* how strongly a spent error budget raises the headroom: 1 (or 0) to 3 */
};

/* One variant in this cycle. Rates, latency and cache use are means over the replicas that report.
 */
struct slo_variant {
    uint64_t id;                  /* unique and the same in every cycle; 0: use the position */
    int current;                  /* replicas requested so far */
    int ready;                    /* of these, serving */
    int reporting;                /* of these, with fresh samples */
    int min, max;                 /* max <= 0: not usable */
    int stuck;                    /* of these, unable to become ready */
    bool hinted;                  /* slo_state_hint() was called: usable before it was observed */
    double cost;                  /* per replica, in any unit */
    double itl;                   /* s between tokens */
    double prompt_rate, gen_rate; /* tokens/s per replica */
    double running, running_low,
        running_high;   /* requests per replica: mean, minimum, maximum of a minute */
    double kv;          /* share of the KV cache in use */
    double kv_tokens;   /* capacity of the KV cache per replica */
    double max_seqs;    /* requests that a replica runs concurrently */
    double start_delay; /* s from creation to ready, if one became ready */
};

struct slo_input {
    double now;                   /* s, of any clock that does not jump */
    double arrival;               /* requests/s, mean of a minute */
    double arrival_now;           /* requests/s, of the last scrape interval */
    double in_tokens, out_tokens; /* mean prompt and answer length */
    double in_tail;         /* tokens of a long prompt: the quantile `goal` of prompt lengths */
    double waiting, queued; /* requests waiting anywhere; of these, in the gateway */
    double ok, finished; /* since the last cycle: share within both targets; number of requests */
    double season;       /* load expected at the horizon, divided by the load now */
    size_t variant_n;    /* at most SLO_VARIANTS_MAX; more are ignored */
    struct slo_variant variants[SLO_VARIANTS_MAX];
};

/* Whether a variant can attain the targets; a lower value is preferred. */
enum slo_fit { SLO_FITS, SLO_UNSEEN, SLO_UNFIT };

/* Amounts are in busy replicas of the reference variant: seconds of work per second. */
struct slo_output {
    size_t variant_n;
    int targets[SLO_VARIANTS_MAX]; /* in the order of the input */
    enum slo_fit fit[SLO_VARIANTS_MAX];
    double capacity[SLO_VARIANTS_MAX]; /* of a replica within the targets */
    double demand;                     /* now */
    double forecast;                   /* at the horizon */
    double horizon;                    /* s */
    double need;                       /* including headroom, reserve and backlog */
    double have;                       /* capacity of the current replicas */
    double headroom;                   /* factor on the forecast */
    double level;       /* capacity to hold whatever the load is now; 0: the load is followed */
    double hold;        /* highest need of the last start delay; removals must leave this */
    double margin;      /* share of the targets that is planned with */
    double used, spent; /* error budget within plan, and overall; 1: exactly as the goal allows */
    char reason[SLO_REASON_ROOM];
};

/* ---- state: 8 KB per model. It never needs a migration: an empty one learns again. */

/* Learned speed of a variant; slo_learn_core.c explains the model. */
struct slo_speed {
    uint64_t id;          /* of the variant; 0: free */
    double th[3];         /* idle speed, and how much prompt and attended tokens reduce it */
    double a[3][3], b[3]; /* the samples: normal equations of the fit */
    double best;          /* largest speed seen */
    double context;       /* KV cache tokens per running request; NaN: not observed */
    double seen;          /* largest share of busy time at which it was observed */
    double start;         /* s from creation to ready */
    double added;         /* when a replica was last added; 0: never */
    uint32_t samples;
    int reporting, steady; /* replicas in the last cycle; cycles since this number rose */
    bool settled;          /* has samples of a whole minute */
    bool unfit;            /* was SLO_UNFIT in the last cycle */
};

struct slo_load {
    float rate, in, out; /* requests/s and their mean tokens */
    float need;          /* need of that cycle, divided by its demand; NaN: not known */
};

/* Loads are stored as measured, not weighed: the weights are still being learned, so every cycle
 * weighs the whole history again. */
struct slo_state {
    double itl; /* the target that the speeds are relative to; 0: none yet */
    uint32_t n; /* cycles with a known load; cycle k is entry k modulo SLO_RING of the rings */
    struct slo_load load[SLO_RING];
    double removed;    /* when replicas were last removed; 0: never */
    double caught_up;  /* 1: once, what was ready was enough; 0: a cold start is not over */
    double dispersion; /* of arrivals: variance over mean of their counts; 1: Poisson */
    double miss, seen; /* requests, decaying: missed, total; only while the load was within plan */
    double
        overloaded; /* when the load was last beyond plan; 0: never; infinite: perhaps just now */
    double all_miss, all_seen;    /* the same for every cycle */
    double in_tokens, out_tokens; /* last known; 0: never */
    double context_factor;        /* KV tokens that a request holds, divided by in + out/2 */
    uint32_t reference;           /* index into `speeds` */
    struct slo_speed speeds[SLO_VARIANTS_MAX];
};
_Static_assert(sizeof(struct slo_state) <= 24 * 1024, "budget of a model's state");

void slo_state_init(struct slo_state *s);

/* Puts `n` past loads, oldest first, before those of the state, as far as there is room. Their `need`
 * is not used. */
void slo_state_replay(struct slo_state *s, const struct slo_load *loads, size_t n);

/* Learns token means and speeds from a past cycle, and nothing else. Oldest first. */
void slo_state_learn(struct slo_state *s, const struct slo_config *c, const struct slo_input *past);

/* Sets the coefficients of a variant (slo_learn_core.c) before it was observed. No effect
 * afterwards. */
void slo_state_hint(struct slo_state *s, uint64_t id, const double th[3]);

/* The same from a performance profile: seconds per iteration, per sequence in it and per prompt
 * token, measured with requests of `in_tokens` and `out_tokens` (NaN or 0: 500 and 250). */
struct slo_profile {
    uint64_t id;
    double base, per_sequence, per_prompt_token;
    double in_tokens, out_tokens;
};
void slo_state_hint_profile(struct slo_state *s, const struct slo_config *c,
                            const struct slo_profile *profile);

/* Seconds that an otherwise idle replica needs for a prompt. */
double slo_prefill_seconds(const struct slo_speed *x, double tokens);

void slo_step(struct slo_state *s, const struct slo_config *c, const struct slo_input *in,
              struct slo_output *out);

#endif
