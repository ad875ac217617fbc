/* CPU and memory of a node, cleared side by side.
 *
 * Two clearings with the same weights and two prices. One level for both (Leontief) was rejected:
 * it ties a pod that is short of one resource to less of the other, which no other pod may need; on
 * 400 random nodes the mean throughput was 0.77 instead of 0.81. */
#ifndef FLYBALL_JOINT_CORE_H
#define FLYBALL_JOINT_CORE_H

#include "../base/arena.h"
#include "clear_core.h"

enum joint_resource { JOINT_NONE, JOINT_CPU, JOINT_MEMORY, JOINT_RESOURCE_N };
const char *joint_resource_name(enum joint_resource resource);

enum joint_plan {
    JOINT_KEEP,
    JOINT_CPU_ONLY,
    JOINT_MEMORY_ONLY,
    JOINT_TOGETHER, /* both shrink: one patch */
    JOINT_SEPARATE, /* something grows: two patches, the shrinking one first */
    JOINT_PLAN_N
};
const char *joint_plan_name(enum joint_plan plan);

struct joint_pod {
    double weight;
    int64_t cpu_floor_milli, cpu_max_milli;
    int64_t memory_safe_mib, memory_want_mib;
    int64_t cpu_now_milli, memory_now_mib; /* -1: unknown */

    int64_t cpu_milli, memory_mib; /* results */
    enum joint_plan plan;
};

struct joint_price {
    enum market_mode mode;
    double lambda; /* per core, per GiB */
};

struct joint_result {
    struct joint_price cpu, memory;
    enum joint_resource dominant; /* which one binds more */
};

struct joint_result joint_clear(int64_t cpu_milli, int64_t memory_mib, struct joint_pod *pods,
                                size_t n, struct clear_scratch *scratch, struct arena *a);

#endif
