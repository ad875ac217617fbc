/* Pods as a busy cluster has them, for benchmarks: 50 Deployments, 500 nodes, some 15 KB of JSON each, of
 * which 40 % is managedFields. The same index always gives the same pod; two whose indexes differ by PODS_SHAPES
 * differ in name and uid only. */
#ifndef FLYBALL_BENCH_PODS_H
#define FLYBALL_BENCH_PODS_H

#include "base/buf.h"

enum { PODS_SHAPES = 1000 };

void pods_write(struct buf *out, size_t index, uint64_t rv); /* one object, compact */
/* The same in protobuf, in two parts: the fields of its metadata, without version and annotations, and the fields behind
 * the metadata. */
void pods_write_protobuf(struct buf *metadata, struct buf *rest, size_t index);
void pods_list_begin(struct buf *out);
void pods_list_end(struct buf *out, uint64_t rv);

#endif
