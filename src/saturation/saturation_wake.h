/* To and from zero, in the running feature.
 *
 *   saturation_wake          which models sleep, when they may, and which variant starts for waiting
 *                            requests (wake_core.h)
 *   saturation_wake_signal   whether requests wait: the queue of the gateway, by Prometheus or read
 *                            from its endpoint picker
 *
 * Private to the feature. */
#ifndef FLYBALL_SATURATION_WAKE_H
#define FLYBALL_SATURATION_WAKE_H

#include "saturation_gather.h"
#include "zero/wake_core.h"

/* ---- for the engine */

/* Whether the model may scale to zero: by its entry, else by the scale-to-zero ConfigMap. */
bool saturation_wake_is_allowed(const struct saturation *s, const struct sat_model *m,
                                const struct zero_table *zero);
/* Notes whether the model sleeps, and ends starts that have done their work. After gathering. */
void saturation_wake_note(struct gathering *g);
/* Whether a count of 0 requests may put the model to sleep: nothing else shows that it is needed. */
bool saturation_wake_allows_sleep(struct gathering *g);
/* Why a variant that was started keeps its replicas. */
str saturation_wake_reason(struct arena *a, const struct variant *v);
/* The condition Active; unknown for a model that never slept. */
struct sat_condition saturation_wake_condition(const struct variant *v);

/* ---- for the controller of variants */

/* Writes the first replicas of a variant that is started, unless its autoscaler does. */
void saturation_wake_write(struct reconcile *r, struct variant *v, const struct workload_record *w);
/* The annotation flyball.dev/wake of a variant; 0: none. */
void saturation_wake_ask(struct saturation *s, str ns, str name, str time);

/* ---- between the two files */

/* A successful look at the queue. `source` is a literal. */
void saturation_wake_take(struct saturation *s, struct sat_model *m, enum wake_demand demand,
                          const char *source);

void saturation_wake_start(struct saturation *s);
void saturation_wake_stop(struct saturation *s);
/* Polls while a model is watched. */
void saturation_wake_poll(struct saturation *s);
/* Whether there is a queue to look at. */
bool saturation_wake_has_signal(const struct saturation *s, const struct sat_model *m);

#endif
