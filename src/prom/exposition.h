/* Our own metrics in the Prometheus text format, version 0.0.4. */
#ifndef FLYBALL_EXPOSITION_H
#define FLYBALL_EXPOSITION_H

#include "../base/buf.h"
#include "../base/metrics.h"

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Families by name, series by label values: two scrapes of the same state are the same bytes. */
void exposition_write(struct buf *out, struct metrics *m);

/* The same in parts, as metrics_read_next(): false when all is written. */
bool exposition_write_next(struct buf *out, struct metrics *m, struct metrics_place *at);

/* Text in the place of a label value, without the quotes: \ " and newline are escaped. */
void exposition_write_label(struct buf *out, str value);

#endif
