/* The Q-table of an agent, as text for a ConfigMap.
 *
 *      byte 0      version (1)
 *      byte 1      epsilon in hundredths
 *      bytes 2-12  one bit for each of the 81 values: is it known?
 *      then        the known values in thousandths, 32 bits each, little endian
 *
 * The whole is encoded as base64. A full table takes 452 characters, so 2,000 workloads fit into
 * one ConfigMap. Values are rounded, so a table without a relevant change has the same text.
 *
 * MBCAS' JSON, {"low:none:adequate":{"normal":3.2}}, can be read too. */
#ifndef FLYBALL_QTABLE_H
#define FLYBALL_QTABLE_H

#include "../base/buf.h"
#include "agent_core.h"

void qtable_write(const struct agent *agent, struct buf *out);

/* Reads either format. Values that are not finite are skipped; on failure the agent is
 * unchanged. */
int qtable_read(str text, struct agent *agent, err_t *e);

#endif
