/* The CPUs of simulated nodes: see cpu.h for the files they produce and curve.h for demand.
 *
 * One call of cpu_advance() moves all pods to the same moment, in slices of at most a second:
 *
 *     for each node:   demand of its containers at the slice's start (curves; shared ones divided by the pods)
 *                      -> cfs_share: what the node grants each of them
 *                      -> cfs_run:   usage and throttling below the container's own quota
 *                      -> count_stall: pressure averages, as the kernel's PSI computes them
 *     for each pod:    usage is the sum over its containers
 *     at the end:      the 15 s window of the metrics server, and the files that changed
 *
 * Invariant: usage never exceeds the grant of the node nor the quota, and counters only grow.
 *
 * A slice takes demand as constant, so a tick longer than a second gives the same result as several shorter
 * ones. A gap of more than 10 minutes (the machine was suspended) is skipped, not simulated.
 *
 * struct cpu_sim owns its pods, each pod its containers and strings. Pods are few, so they are found
 * by linear search and nodes by their first pod; there is no index to keep consistent. */
#include "cpu.h"

#include "../base/clock.h"

#include <math.h>
#include <stdio.h>

static const int64_t window_ns = 15 * NS_PER_S;
static const int64_t slice_ns = NS_PER_S; /* of a curve that counts as constant */

static char *copy_text(str text)
{
    return mem_dup(text.p ? text.p : "", text.n);
}

static void container_done(struct cpu_container *container)
{
    free(container->name);
    free(container->group.dir);
    curve_done(&container->demand);
    curve_done(&container->memory);
}

static void pod_free(struct cpu_pod *pod)
{
    if (pod->group.dir)
        cpu_files_remove(pod->group.dir);
    for (size_t i = 0; i < pod->containers.n; i++)
        container_done(&pod->containers.at[i]);
    vec_done(&pod->containers);
    curve_done(&pod->shared);
    free(pod->group.dir);
    free(pod->ns);
    free(pod->name);
    free(pod->node);
    free(pod->workload);
    free(pod);
}

static struct cpu_pod *find_pod(const struct cpu_sim *s, str ns, str name, size_t *ret_at)
{
    for (size_t i = 0; i < s->pods.n; i++)
        if (str_eqc(name, s->pods.at[i]->name) && str_eqc(ns, s->pods.at[i]->ns)) {
            *ret_at = i;
            return s->pods.at[i];
        }
    return NULL;
}

/* ---- pods come, change and go */

/* The path that the kubelet's cgroupfs driver gives a pod; Guaranteed pods have no directory of a QoS class. */
static char *pod_dir(const struct cpu_sim *s, const struct cpu_pod_spec *spec)
{
    const char *qos = str_eqc(spec->qos, "Guaranteed")   ? ""
                      : str_eqc(spec->qos, "BestEffort") ? "besteffort/"
                                                         : "burstable/";
    struct buf path = { 0 };
    buf_printf(&path, "%s/" STR_FMT "/kubepods/%spod" STR_FMT, s->root, STR_ARG(spec->node), qos,
               STR_ARG(spec->uid));
    return buf_take(&path);
}

/* Adds a container to the pod, also on failure: pod_free() then releases what was made of it. */
static int make_container(const struct cpu_sim *s, struct cpu_pod *pod, str node,
                          const struct cpu_container_spec *spec, err_t *e)
{
    struct cpu_container container = { .name = copy_text(spec->name), .group.written_usec = -1 };
    int r = spec->demand.n ? curve_parse(spec->demand, &container.demand, e) : 0;
    if (r == 0 && spec->memory.n)
        r = curve_parse(spec->memory, &container.memory, e);
    container.memory_ns = pod->origin_ns;
    if (r == 0 && pod->group.dir) {
        struct buf path = { 0 };
        buf_printf(&path, "%s/" STR_FMT, pod->group.dir, STR_ARG(spec->id));
        container.group.dir = buf_take(&path);
        r = cpu_files_make(s->root, node, container.group.dir, e);
    }
    vec_push(&pod->containers, container);
    return r;
}

/* Makes a pod with its directories, or nothing. Its usage window begins at `now_ns`. */
static int make_pod(struct cpu_sim *s, const struct cpu_pod_spec *spec, struct cpu_pod **ret,
                    err_t *e)
{
    struct cpu_pod *pod = mem_zero(1, sizeof(*pod));
    pod->ns = copy_text(spec->ns);
    pod->name = copy_text(spec->name);
    pod->node = copy_text(spec->node);
    pod->workload = copy_text(spec->workload);
    pod->origin_ns = spec->origin_ns;
    pod->shared_origin_ns = spec->shared_origin_ns;
    pod->window_ns = spec->now_ns;
    pod->mean_milli = NAN;
    pod->group.written_usec = -1;
    if (s->root && *s->root)
        pod->group.dir = pod_dir(s, spec);
    int r = spec->shared.n ? curve_parse(spec->shared, &pod->shared, e) : 0;
    for (size_t i = 0; r == 0 && i < spec->container_n; i++)
        r = make_container(s, pod, spec->node, &spec->containers[i], e);
    if (r < 0) {
        pod_free(pod);
        return r;
    }
    vec_push(&s->pods, pod);
    *ret = pod;
    return 0;
}

/* Writes the files only when a value changed, or for the first time. */
static void set_limits(struct cpu_group *group, int64_t request, int64_t limit)
{
    bool first = group->written_usec < 0;
    if (!first && group->cfs.request_milli == request && group->cfs.limit_milli == limit)
        return;
    group->cfs.request_milli = request;
    group->cfs.limit_milli = limit;
    cpu_files_limits(group);
    cpu_files_counters(group);
}

int cpu_put(struct cpu_sim *s, const struct cpu_pod_spec *spec, err_t *e)
{
    size_t at;
    struct cpu_pod *pod = find_pod(s, spec->ns, spec->name, &at);
    int r = pod ? 0 : make_pod(s, spec, &pod, e);
    if (r < 0)
        return r;
    int64_t request = 0, limit = 0;
    bool limited = true; /* a pod has a quota when all of its containers have one */
    for (size_t i = 0; i < MIN(spec->container_n, pod->containers.n); i++) {
        const struct cpu_container_spec *c = &spec->containers[i];
        set_limits(&pod->containers.at[i].group, c->request_milli, c->limit_milli);
        pod->containers.at[i].memory_limit = c->memory_limit;
        request += c->request_milli;
        limit += c->limit_milli;
        limited &= c->limit_milli > 0;
    }
    set_limits(&pod->group, request, limited ? limit : 0);
    return 0;
}

void cpu_remove(struct cpu_sim *s, str ns, str name)
{
    size_t at;
    struct cpu_pod *pod = find_pod(s, ns, name, &at);
    if (!pod)
        return;
    vec_remove(&s->pods, at);
    pod_free(pod);
}

void cpu_done(struct cpu_sim *s)
{
    for (size_t i = 0; i < s->pods.n; i++)
        pod_free(s->pods.at[i]);
    vec_done(&s->pods);
}

/* ---- time */

/* The pod's even part of the demand of its workload, in cores; a pod without a workload bears all of it. */
static double shared_demand_cores(const struct cpu_sim *s, const struct cpu_pod *pod,
                                  int64_t now_ns)
{
    size_t sharers = 0;
    if (!pod->shared.points.n)
        return 0;
    for (size_t i = 0; i < s->pods.n; i++)
        sharers += s->pods.at[i] == pod ||
                   (*pod->workload && !strcmp(s->pods.at[i]->workload, pod->workload));
    return curve_at(&pod->shared, now_ns - pod->shared_origin_ns) / (double)sharers;
}

/* Demand of one container in millicores; at least 1, because even an idle process uses a little. */
static double demand_milli(const struct cpu_sim *s, const struct cpu_pod *pod, size_t container,
                           int64_t now_ns)
{
    static const double idle_milli = 1;
    const struct cpu_container *c = &pod->containers.at[container];
    double cores = curve_at(&c->demand, now_ns - pod->origin_ns);
    if (container == 0)
        cores += shared_demand_cores(s, pod, now_ns);
    return fmax(cores * 1000, idle_milli);
}

struct turn { /* one container in one slice */
    struct cpu_group *group;
    double demand_milli;
};

/* Pressure: the share of demand that was not served, with the kernel's exponential averages over 10, 60 and
 * 300 s. */
static void count_stall(struct cpu_group *g, int64_t ns)
{
    double used = g->cfs.usage_usec - g->seen_usec, wanted = g->cfs.wanted_usec - g->seen_wanted;
    double share = wanted > used ? 1 - used / wanted : 0, s = (double)ns / 1e9;
    g->stalled_usec += share * s * 1e6;
    g->avg10 += (share * 100 - g->avg10) * (1 - exp(-s / 10));
    g->avg60 += (share * 100 - g->avg60) * (1 - exp(-s / 60));
    g->avg300 += (share * 100 - g->avg300) * (1 - exp(-s / 300));
    g->seen_usec = g->cfs.usage_usec;
    g->seen_wanted = g->cfs.wanted_usec;
}

static void sum_pod_usage(struct cpu_pod *pod, int64_t ns)
{
    struct cfs_group *sum = &pod->group.cfs;
    sum->usage_usec = sum->wanted_usec = 0;
    for (size_t i = 0; i < pod->containers.n; i++) {
        const struct cfs_group *c = &pod->containers.at[i].group.cfs;
        sum->usage_usec += c->usage_usec;
        sum->wanted_usec += c->wanted_usec;
        sum->nr_periods = MAX(sum->nr_periods, c->nr_periods);
    }
    count_stall(&pod->group, ns);
}

/* Lets `ns` pass on one node: gathers demand, shares the node's cores, runs each container in its grant. */
static void run_node(struct cpu_sim *s, const char *node, int64_t ns)
{
    VEC(struct cfs_claim) claims = { 0 };
    VEC(struct turn) turns = { 0 };
    for (size_t i = 0; i < s->pods.n; i++) {
        struct cpu_pod *pod = s->pods.at[i];
        for (size_t k = 0; k < pod->containers.n && !strcmp(pod->node, node); k++) {
            struct cpu_group *group = &pod->containers.at[k].group;
            double demand = demand_milli(s, pod, k, s->now_ns);
            double most = group->cfs.limit_milli > 0 ? (double)group->cfs.limit_milli : demand;
            vec_push(&turns, ((struct turn){ group, demand }));
            vec_push(&claims, ((struct cfs_claim){ fmin(demand, most),
                                                   (double)group->cfs.request_milli, 0 }));
        }
    }
    double capacity = s->capacity ? s->capacity(s->context, str_c(node)) : INFINITY;
    cfs_share(capacity, claims.at, claims.n);
    for (size_t i = 0; i < turns.n; i++) {
        /* A container that gets all it asked of the node may burst above its limit until the quota is used up. */
        bool held_back = claims.at[i].grant_milli < claims.at[i].demand_milli - 1e-9;
        double grant = held_back ? claims.at[i].grant_milli : turns.at[i].demand_milli;
        cfs_run(&turns.at[i].group->cfs, turns.at[i].demand_milli, grant, ns);
        count_stall(turns.at[i].group, ns);
    }
    vec_done(&claims);
    vec_done(&turns);
}

/* True for one pod per node: nodes are visited by way of their pods. */
static bool is_first_of_node(const struct cpu_sim *s, size_t pod)
{
    for (size_t i = 0; i < pod; i++)
        if (!strcmp(s->pods.at[i]->node, s->pods.at[pod]->node))
            return false;
    return true;
}

static void run_slice(struct cpu_sim *s, int64_t ns)
{
    for (size_t i = 0; i < s->pods.n; i++)
        if (is_first_of_node(s, i))
            run_node(s, s->pods.at[i]->node, ns);
    for (size_t i = 0; i < s->pods.n; i++)
        sum_pod_usage(s->pods.at[i], ns);
    s->now_ns += ns;
}

/* Closes a window of the metrics server: mean usage in millicores since the last one. */
static void end_window(struct cpu_pod *pod, int64_t now_ns)
{
    int64_t passed = now_ns - pod->window_ns;
    if (passed < window_ns)
        return;
    pod->mean_milli = (pod->group.cfs.usage_usec - pod->window_usec) / ((double)passed / 1e6);
    pod->window_usec = pod->group.cfs.usage_usec;
    pod->window_ns = now_ns;
}

/* Follows the curve; above its limit, the container is killed and begins again. */
static void advance_memory(struct cpu_sim *s, struct cpu_pod *pod, struct cpu_container *c)
{
    if (!c->memory.points.n)
        return;
    c->working_set = (int64_t)curve_at(&c->memory, s->now_ns - c->memory_ns);
    if (c->memory_limit > 0 && c->working_set > c->memory_limit) {
        c->memory_ns = s->now_ns;
        c->working_set = (int64_t)curve_at(&c->memory, 0);
        c->kills++;
        c->new_kills++;
        if (s->on_kill)
            s->on_kill(s->context, str_c(pod->ns), str_c(pod->name));
    }
    cpu_files_memory(c);
}

bool cpu_has_kills(const struct cpu_sim *s, str ns, str name)
{
    size_t at;
    const struct cpu_pod *pod = find_pod(s, ns, name, &at);
    for (size_t i = 0; pod && i < pod->containers.n; i++)
        if (pod->containers.at[i].new_kills)
            return true;
    return false;
}

int cpu_take_kills(struct cpu_sim *s, str ns, str name, str container)
{
    size_t at;
    struct cpu_pod *pod = find_pod(s, ns, name, &at);
    for (size_t i = 0; pod && i < pod->containers.n; i++)
        if (str_eqc(container, pod->containers.at[i].name)) {
            int kills = pod->containers.at[i].new_kills;
            pod->containers.at[i].new_kills = 0;
            return kills;
        }
    return 0;
}

void cpu_advance(struct cpu_sim *s, int64_t now_ns)
{
    if (!s->now_ns || now_ns - s->now_ns > 600 * NS_PER_S)
        s->now_ns = now_ns; /* the beginning, or the machine slept */
    while (s->now_ns < now_ns)
        run_slice(s, MIN(now_ns - s->now_ns, slice_ns));
    for (size_t i = 0; i < s->pods.n; i++) {
        struct cpu_pod *pod = s->pods.at[i];
        end_window(pod, now_ns);
        cpu_files_counters(&pod->group);
        for (size_t k = 0; k < pod->containers.n; k++) {
            cpu_files_counters(&pod->containers.at[k].group);
            advance_memory(s, pod, &pod->containers.at[k]);
        }
    }
}

double cpu_mean_milli(const struct cpu_sim *s, str ns, str name)
{
    size_t at;
    const struct cpu_pod *pod = find_pod(s, ns, name, &at);
    return pod ? pod->mean_milli : NAN;
}
