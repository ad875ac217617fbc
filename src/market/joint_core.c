/* CPU and memory together: see joint_core.h. */
#include "joint_core.h"

#include <math.h>

const char *joint_resource_name(enum joint_resource resource)
{
    static const char *const names[JOINT_RESOURCE_N] = { "none", "cpu", "memory" };
    return names[resource];
}

const char *joint_plan_name(enum joint_plan plan)
{
    static const char *const names[JOINT_PLAN_N] = { "none", "cpu", "memory", "together",
                                                     "separate" };
    return names[plan];
}

/* Clears one resource. `unit` is how many of its units make the one that lambda is for. */
static struct joint_price clear_resource(int64_t capacity, const struct bid *bids, size_t n,
                                         double unit, struct clear_scratch *scratch, int64_t *x)
{
    int64_t least = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        least += bids[i].min_milli;
        most += MAX(bids[i].min_milli, bids[i].max_milli);
    }
    struct clearing c = market_clear(capacity, bids, n, scratch, x);
    struct joint_price p = { .lambda = c.lambda * unit };
    p.mode = least > capacity  ? MARKET_OVERLOADED
             : most > capacity ? MARKET_CONGESTED
                               : MARKET_UNCONGESTED;
    if (p.mode == MARKET_OVERLOADED)
        p.lambda = INFINITY;
    return p;
}

/* How a pod gets from what it has to what it was given. Growth of one resource never shares a patch
 * with a change of the other: the kubelet admits a resize whole or not at all. */
static enum joint_plan plan_patches(const struct joint_pod *pod)
{
    int64_t cpu = pod->cpu_now_milli < 0 ? 0 : pod->cpu_milli - pod->cpu_now_milli;
    int64_t memory = pod->memory_now_mib < 0 ? 0 : pod->memory_mib - pod->memory_now_mib;
    if (!cpu && !memory)
        return JOINT_KEEP;
    if (!cpu || !memory)
        return cpu ? JOINT_CPU_ONLY : JOINT_MEMORY_ONLY;
    return cpu < 0 && memory < 0 ? JOINT_TOGETHER : JOINT_SEPARATE;
}

/* Prices of different units are compared by what the whole node would cost. */
static double scarcity(double lambda, double capacity)
{
    return isinf(lambda) ? INFINITY : lambda * capacity;
}

static enum joint_resource find_dominant(double cpu, double memory)
{
    if (!(cpu > 0) && !(memory > 0))
        return JOINT_NONE;
    return cpu > memory ? JOINT_CPU : JOINT_MEMORY;
}

struct joint_result joint_clear(int64_t cpu_milli, int64_t memory_mib, struct joint_pod *pods,
                                size_t n, struct clear_scratch *scratch, struct arena *a)
{
    struct bid *cpu = arena_array(a, n, sizeof(*cpu)), *memory = arena_array(a, n, sizeof(*memory));
    int64_t *x = arena_array(a, n, sizeof(*x)), *y = arena_array(a, n, sizeof(*y));
    struct joint_result r = { 0 };
    for (size_t i = 0; i < n; i++) {
        const struct joint_pod *p = &pods[i];
        cpu[i] = (struct bid){ .min_milli = p->cpu_floor_milli,
                               .max_milli = p->cpu_max_milli,
                               .weight = p->weight };
        memory[i] = (struct bid){ .min_milli = p->memory_safe_mib,
                                  .max_milli = p->memory_want_mib,
                                  .weight = p->weight };
    }
    r.cpu = clear_resource(cpu_milli, cpu, n, 1000, scratch, x);
    r.memory = clear_resource(memory_mib, memory, n, 1024, scratch, y);
    for (size_t i = 0; i < n; i++) {
        pods[i].cpu_milli = x[i];
        /* memory in use cannot be taken away: overload is reported, not shared */
        pods[i].memory_mib = r.memory.mode == MARKET_OVERLOADED ? pods[i].memory_safe_mib : y[i];
        pods[i].plan = plan_patches(&pods[i]);
    }
    r.dominant = find_dominant(scarcity(r.cpu.lambda, (double)cpu_milli / 1000),
                               scarcity(r.memory.lambda, (double)memory_mib / 1024));
    return r;
}
