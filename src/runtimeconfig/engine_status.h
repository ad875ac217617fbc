/* The status engine in a turn: the components of an object become the conditions and the word of its status. For the kinds that
 * the newer generation of AIM added (engine_core.h). */
#ifndef FLYBALL_ENGINE_STATUS_H
#define FLYBALL_ENGINE_STATUS_H

#include "consumer.h"
#include "engine_core.h"

/* From the components and the previous status; writes nothing. `extra` are conditions that are set as they are. */
struct aim_engine_answer aim_engine_turn(struct aim_turn *t,
                                         const struct aim_engine_component *components, size_t n,
                                         const struct aim_engine_condition *extra, size_t extra_n);
/* Sets the word and all conditions; those of components that are gone are removed. */
void aim_engine_set_status(struct aim_turn *t, const struct aim_engine_answer *answer);
/* A failed write of the turn as the error of a component. */
void aim_engine_put_write_failure(const struct aim_turn *t, struct aim_engine_component *c);
/* The configuration, as a component: one that is named must exist. */
struct aim_engine_component aim_engine_config(const struct aim_turn *t);

#endif
