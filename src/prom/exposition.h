/* Our own metrics in the Prometheus text format, version 0.0.4. */
#ifndef FLYBALL_EXPOSITION_H
#define FLYBALL_EXPOSITION_H

#include "../base/buf.h"
#include "../base/metrics.h"

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Sorted by family name and label values: two scrapes of the same state are equal byte for byte. */
void exposition_write(struct buf *out, struct metrics *m);

/* The same in parts, like metrics_read_next(): false when everything is written. */
bool exposition_write_next(struct buf *out, struct metrics *m, struct metrics_place *at);

/* A label value without its quotes: \ " and newline are escaped. */
void exposition_write_label(struct buf *out, str value);

#endif
