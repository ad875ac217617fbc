/* What the token analyzer knows of a variant besides its samples: the flags in the pod template, and
 * what was measured before a restart. Private to the engine. */
#ifndef FLYBALL_SATURATION_CAPACITY_H
#define FLYBALL_SATURATION_CAPACITY_H

#include "saturation_gather.h"

/* Before an analysis: reads templates that are new or changed, and what the last leader measured. */
void saturation_capacity_learn(struct gathering *g);
/* After it: saves what was measured, if it moved. */
void saturation_capacity_save(struct gathering *g);
/* With the variant. */
void saturation_capacity_forget(struct saturation *s, const struct variant *v);

/* Whether the pods of the workload run SGLang, by its template. */
bool saturation_capacity_is_sglang(const struct workload_record *w);

#endif
