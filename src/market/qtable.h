/* What an agent learnt, as text that fits a ConfigMap.
 *
 * Base64 of: a version byte (1), exploration in hundredths, a bit for each of the 81 values that is known,
 * then the known values in thousandths, 32 bits each, little end first. A full table is 452 bytes, so that
 * 2,000 workloads fit into one ConfigMap; and as values are rounded, a table whose text is unchanged has not
 * changed by what matters.
 *
 * The original's JSON, {"low:none:adequate":{"normal":3.2}}, can be read too. */
#ifndef FLYBALL_QTABLE_H
#define FLYBALL_QTABLE_H

#include "../base/buf.h"
#include "agent_core.h"

void qtable_write(const struct agent *agent, struct buf *out);

/* Either form. Values that are not finite are skipped; nothing is changed on failure. */
int qtable_read(str text, struct agent *agent, err_t *e);

#endif
