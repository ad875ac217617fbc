/* The token analyzer in the engine: for models whose entry selects it (`analyzerName: saturation` or
 * `analyzers`). Private to the engine. */
#ifndef FLYBALL_SATURATION_TOKENS_H
#define FLYBALL_SATURATION_TOKENS_H

#include "saturation_gather.h"
#include "wva/token_core.h"
#include "wva/vote_core.h"

/* What the analyzer found about one model in one cycle. */
struct sat_token_turn {
    struct sat_resolved resolved;
    struct sat_token_analysis analysis;
    struct vote_model vote;
    const struct vote_target
        *wanted; /* without a limit on accelerators; NULL: no voter is binding */
    const struct vote_target *granted; /* with one; NULL: not shared */
};

/* The reason while no analyzer of the model's entry exists and votes. */
#define SAT_TOKENS_NO_VOTE "V2: no analyzer votes (NoAnalyzer); the last target holds"

/* NULL: another rule decides about the model. The result is in the arena of `g`. Learns from the samples, so it
 * is called once per model and cycle. */
struct sat_token_turn *saturation_tokens_prepare(struct gathering *g);

/* Targets of the variants, sorted by name; false: another rule decides about the model. */
bool saturation_tokens_decide(struct gathering *g, struct sat_targets *ret);

#endif
