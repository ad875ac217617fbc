/* Pods as a busy cluster has them, for benchmarks: 50 Deployments, 500 nodes, some 15 KB of JSON each, of
 * which 40 % is managedFields. The same index always gives the same pod. */
#ifndef FLYBALL_BENCH_PODS_H
#define FLYBALL_BENCH_PODS_H

#include "base/buf.h"

void pods_write(struct buf *out, size_t index, uint64_t rv); /* one object, compact */
void pods_list_begin(struct buf *out);
void pods_list_end(struct buf *out, uint64_t rv);

#endif
