/* Shared by the families that end in an answer of the status engine. */
#ifndef FLYBALL_GOLDEN_AIM_ENGINE_H
#define FLYBALL_GOLDEN_AIM_ENGINE_H

#include "golden.h"
#include "runtimeconfig/engine_core.h"

/* An error as the vectors write it: {kind, reason?, message?}; class OK for NULL. */
struct aim_engine_error golden_engine_error(struct golden *g, const struct json *given);
/* `extra` are conditions that are set as they are. Evaluates the components and compares conditions, apply and retryWithBackoff; the caller compares the word. */
struct aim_engine_answer golden_engine_check(struct golden *g,
                                             const struct aim_engine_component *components,
                                             size_t n, const struct aim_engine_condition *extra,
                                             size_t extra_n, const struct json *old,
                                             const struct json *want);

#endif
