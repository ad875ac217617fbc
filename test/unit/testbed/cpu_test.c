/* Simulated CPUs, read back with the reader that the node agent uses. */
#include "tap.h"

#include "testbed/cpu.h"

#include "base/clock.h"
#include "market/cgroup_memory.h"
#include "market/cgroup_reader.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

struct world {
    struct cpu_sim sim;
    char root[64];
    struct cgroup_tree tree;
    double cores;
};

static double capacity(void *context, str node)
{
    (void)node;
    return ((struct world *)context)->cores * 1000;
}

static void world_start(struct world *w, double cores)
{
    *w = (struct world){ .cores = cores };
    snprintf(w->root, sizeof(w->root), "/tmp/flyball-cpu-XXXXXX");
    OK(mkdtemp(w->root));
    w->sim = (struct cpu_sim){ .root = w->root, .capacity = capacity, .context = w };
    cpu_advance(&w->sim, NS_PER_S);
}

static void world_stop(struct world *w)
{
    err_t e;
    cgroup_tree_done(&w->tree);
    cpu_done(&w->sim);
    OK_CALL(cpu_files_clear(w->root, &e), &e);
    OK(access(w->root, F_OK) < 0);
}

static void put(struct world *w, const char *name, const char *demand, int64_t request,
                int64_t limit)
{
    err_t e;
    char uid[64];
    snprintf(uid, sizeof(uid), "0000-%s", name);
    struct cpu_container_spec c = { .name = S("main"),
                                    .id = S("c0ffee"),
                                    .demand = str_c(demand),
                                    .request_milli = request,
                                    .limit_milli = limit };
    struct cpu_pod_spec spec = { .ns = S("shop"),
                                 .name = str_c(name),
                                 .uid = str_c(uid),
                                 .node = S("node-1"),
                                 .qos = S("Burstable"),
                                 .origin_ns = NS_PER_S,
                                 .now_ns = NS_PER_S,
                                 .containers = &c,
                                 .container_n = 1 };
    OK_CALL(cpu_put(&w->sim, &spec, &e), &e);
}

static void run(struct world *w, double seconds)
{
    for (double done = 0; done < seconds - 1e-9; done += 0.2)
        cpu_advance(&w->sim, w->sim.now_ns + NS_PER_S / 5);
}

static struct cgroup *group_of(struct world *w, const char *uid)
{
    char base[128];
    err_t e;
    auto_buf struct buf path = { 0 };
    struct cgroup *g = NULL;
    snprintf(base, sizeof(base), "%s/node-1", w->root);
    if (!w->tree.cpu)
        OK_CALL(cgroup_tree_init(&w->tree, base, S(""), &e), &e);
    OK_CALL(cgroup_tree_find(&w->tree, str_c(uid), &path, &e), &e);
    OK_CALL(cgroup_open(&w->tree, buf_str(&path), &g, &e), &e);
    return g;
}

static struct demand_cpu_stat read_stat(struct cgroup *g, struct demand_cpu_stat stat)
{
    err_t e;
    OK_CALL(cgroup_read(g, &stat, &e), &e);
    return stat;
}

struct seen {
    struct cgroup_memory memory;
    int n;
};

static void see_memory(void *context, str id, const struct cgroup_memory *memory)
{
    struct seen *seen = context;
    EQ_STR(id, S("c0ffee"));
    seen->memory = *memory;
    seen->n++;
}

/* The agent's reader finds the working set and the kill. */
static void memory_grows_until_the_limit_kills(void)
{
    struct world w;
    err_t e;
    world_start(&w, 4);
    struct cpu_container_spec c = { .name = S("main"),
                                    .id = S("c0ffee"),
                                    .memory = S("0s=100Mi 100s=200Mi"),
                                    .memory_limit = 150 << 20 };
    struct cpu_pod_spec spec = { .ns = S("shop"),
                                 .name = S("a"),
                                 .uid = S("0000-a"),
                                 .node = S("node-1"),
                                 .qos = S("Burstable"),
                                 .origin_ns = NS_PER_S,
                                 .now_ns = NS_PER_S,
                                 .containers = &c,
                                 .container_n = 1 };
    OK_CALL(cpu_put(&w.sim, &spec, &e), &e);
    run(&w, 40);
    struct cgroup *g = group_of(&w, "0000-a");
    struct seen seen = { 0 };
    cgroup_memory_each(&w.tree, cgroup_path(g), see_memory, &seen);
    EQ_INT(seen.n, 1);
    OK(llabs(seen.memory.working_set - (140 << 20)) < 2 << 20);
    EQ_INT(seen.memory.oom_kills, 0);
    run(&w, 20);
    cgroup_memory_each(&w.tree, cgroup_path(g), see_memory, &seen);
    EQ_INT(seen.memory.oom_kills, 1);
    OK(seen.memory.working_set < 120 << 20);
    OK(cpu_has_kills(&w.sim, S("shop"), S("a")));
    EQ_INT(cpu_take_kills(&w.sim, S("shop"), S("a"), S("main")), 1);
    OK(!cpu_has_kills(&w.sim, S("shop"), S("a")));
    cgroup_close(g);
    world_stop(&w);
}

static void a_throttled_pod_shows_it(void)
{
    struct world w;
    err_t e;
    int64_t limit = 0, before, after;
    world_start(&w, 4);
    put(&w, "a", "1", 100, 200);
    run(&w, 1);
    struct cgroup *g = group_of(&w, "0000-a");
    EQ_INT(cgroup_level_count(g), 2);
    OK_CALL(cgroup_read_limit(g, &limit, &e), &e);
    EQ_INT(limit, 200);
    OK_CALL(cgroup_read_pressure(g, &before), NULL);
    struct demand_cpu_stat first = read_stat(g, (struct demand_cpu_stat){ 0 });
    run(&w, 10);
    struct demand_cpu_stat second = read_stat(g, first);
    OK_CALL(cgroup_read_pressure(g, &after), NULL);
    OK(llabs(second.usage_usec - first.usage_usec - 2000000) < 30000);
    OK(llabs(second.throttled_usec - first.throttled_usec - 8000000) < 100000);
    EQ_INT(second.nr_throttled - first.nr_throttled, 100);
    OK(llabs(after - before - 8000000) < 100000);

    put(&w, "a", "1", 100, 1500); /* resized */
    OK_CALL(cgroup_read_limit(g, &limit, &e), &e);
    EQ_INT(limit, 1500);
    first = read_stat(g, second);
    run(&w, 10);
    second = read_stat(g, first);
    OK(llabs(second.usage_usec - first.usage_usec - 10000000) < 30000);
    EQ_INT(second.nr_throttled - first.nr_throttled, 0);
    cgroup_close(g);
    world_stop(&w);
}

static void a_full_node_is_shared_by_request(void)
{
    struct world w;
    world_start(&w, 1);
    put(&w, "a", "2", 100, 0);
    put(&w, "b", "2", 300, 0);
    run(&w, 31); /* two windows of the metrics server */
    double a = cpu_mean_milli(&w.sim, S("shop"), S("a")),
           b = cpu_mean_milli(&w.sim, S("shop"), S("b"));
    OK(fabs(a - 250) < 5);
    OK(fabs(b - 750) < 5);
    OK(isnan(cpu_mean_milli(&w.sim, S("shop"), S("nobody"))));
    world_stop(&w);
}

static void what_goes_takes_its_files(void)
{
    struct world w;
    char path[200];
    world_start(&w, 4);
    put(&w, "a", "100m", 100, 200);
    snprintf(path, sizeof(path), "%s/node-1/kubepods/burstable/pod0000-a/c0ffee/cpu.stat", w.root);
    OK(access(path, R_OK) == 0);
    cpu_remove(&w.sim, S("shop"), S("a"));
    OK(access(path, R_OK) < 0);
    err_t e;
    struct cpu_container_spec bad = { .name = S("x"), .id = S("y"), .demand = S("lots") };
    OK(cpu_put(&w.sim,
               &(struct cpu_pod_spec){ .name = S("b"), .containers = &bad, .container_n = 1 },
               &e) < 0);
    OK(strstr(e.text, "lots"));
    EQ_INT(w.sim.pods.n, 0);
    world_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_throttled_pod_shows_it),
                                        TAP(memory_grows_until_the_limit_kills),
                                        TAP(a_full_node_is_shared_by_request),
                                        TAP(what_goes_takes_its_files),
                                        { 0 } });
}
