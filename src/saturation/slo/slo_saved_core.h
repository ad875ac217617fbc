/* What the slo policy has learned about a model, as JSON: for a restart, and for `flyball explain`.
 *
 *     {"itl": 0.06, "inTokens": 1150, ..., "variants": [{"id": "9f3c...", "th": [2.9, 3.6, 2.7], ...}]}
 *
 * About 400 bytes and 350 per variant. The loads of the last hour are no part of it: they are in
 * Prometheus, and 1,000 models of them would not fit a ConfigMap. Numbers that cannot be (not
 * finite, out of range) make a variant be ignored on reading: it learns again. */
#ifndef FLYBALL_SLO_SAVED_CORE_H
#define FLYBALL_SLO_SAVED_CORE_H

#include "../../json/json.h"
#include "slo_core.h"

/* Adds the learned part of the state to the object `to`. */
void slo_saved_write(struct arena *a, const struct slo_state *s, struct json *to);

/* Takes it over into an empty state. Returns the number of variants that were read. */
size_t slo_saved_read(struct slo_state *s, const struct json *from);

/* The id of a variant as it is in the text. */
enum { SLO_SAVED_ID = 17 };
str slo_saved_id(uint64_t id, char out[static SLO_SAVED_ID]);

#endif
