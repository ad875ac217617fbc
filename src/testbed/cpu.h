/* The CPUs of simulated nodes: what each container wants, gets and is denied, as cgroup v2 files.
 *
 * A container's demand is a curve (curve.h) in cores. Every tick each node's cores are shared (cfs_share),
 * each container runs in its share and below its limit (cfs_run), and its counters are written where the
 * kubelet's cgroupfs driver would have them:
 *
 *     ROOT/NODE/cgroup.controllers
 *     ROOT/NODE/kubepods/burstable/pod<uid>/{cpu.stat,cpu.max,cpu.weight,cpu.pressure}
 *     ROOT/NODE/kubepods/burstable/pod<uid>/<container id>/{the same, and memory.*}
 *
 * so that the real node agent reads them as it reads a kernel's. Guaranteed pods are directly below
 * kubepods. Throttling is counted where the quota is, at the container; usage also at the pod.
 *
 * struct cpu_sim owns everything here; strings passed in are copied. Only counters are not in the API: after a
 * restart of the testbed they begin at 0, as after a reboot. */
#ifndef FLYBALL_CPU_H
#define FLYBALL_CPU_H

#include "../base/buf.h"
#include "cfs_model.h"
#include "curve.h"

struct cpu_group { /* one directory */
    char *dir;     /* NULL: no files */
    struct cfs_group cfs;
    double stalled_usec;           /* total of cpu.pressure */
    double avg10, avg60, avg300;   /* averages of cpu.pressure, percent */
    double seen_usec, seen_wanted; /* usage and demand at the last tick */
    double written_usec;           /* usage in the file; -1: nothing was written */
};

struct cpu_container {
    char *name;
    struct cpu_group group;
    struct curve demand; /* of its own, from `origin_ns` of the pod on */
    struct curve memory; /* working set in bytes, from `memory_ns` on; no points: not simulated */
    int64_t memory_ns;   /* when its process started */
    int64_t memory_limit, working_set;
    int kills, new_kills; /* for lack of memory: all, and those that were not taken yet */
};

struct cpu_pod {
    char *ns, *name, *node, *workload;
    struct cpu_group group;
    VEC(struct cpu_container) containers;
    struct curve
        shared; /* demand of the whole workload, in the first container of each of its pods */
    int64_t origin_ns, shared_origin_ns; /* time 0 of the curves */
    double window_usec;                  /* usage when the current window began */
    int64_t window_ns;                   /* when it began */
    double mean_milli; /* of the last whole window: what a metrics server would report */
};

struct cpu_sim {
    const char *root; /* "" or NULL: no files */
    VEC(struct cpu_pod *) pods;
    int64_t now_ns;
    double (*capacity)(void *context, str node);      /* cores, in millicores */
    void (*on_kill)(void *context, str ns, str name); /* a container exceeded its memory; or NULL */
    void *context;
};

struct cpu_container_spec {
    str name, id;
    str demand, memory;                 /* curves; "": none of its own */
    int64_t memory_limit;               /* bytes; 0: none */
    int64_t request_milli, limit_milli; /* limit 0: none */
};

struct cpu_pod_spec {
    str ns, name, uid, node;
    str qos;      /* Guaranteed, Burstable, BestEffort */
    str workload; /* uid of its owner, "" without */
    str shared;   /* curve, or "" */
    int64_t origin_ns, shared_origin_ns, now_ns;
    const struct cpu_container_spec *containers;
    size_t container_n;
};

/* Starts a pod, or gives its containers new requests and limits. */
int cpu_put(struct cpu_sim *s, const struct cpu_pod_spec *spec, err_t *e);
void cpu_remove(struct cpu_sim *s, str ns,
                str name); /* with its files; no effect if there is none */
void cpu_done(struct cpu_sim *s);

void cpu_advance(struct cpu_sim *s, int64_t now_ns);
bool cpu_has_kills(const struct cpu_sim *s, str ns, str name); /* not taken yet */
/* How often the container was killed for lack of memory since the last call. */
int cpu_take_kills(struct cpu_sim *s, str ns, str name, str container);
/* Mean use over the last window of 15 s, NaN while nothing is known. */
double cpu_mean_milli(const struct cpu_sim *s, str ns, str name);

/* cpu_files.c: the directories of a node and a group. */
int cpu_files_clear(const char *root, err_t *e); /* of an earlier run */
int cpu_files_make(const char *root, str node, const char *dir, err_t *e);
void cpu_files_limits(const struct cpu_group *group); /* cpu.max, cpu.weight */
void cpu_files_counters(struct cpu_group *group);     /* cpu.stat, cpu.pressure */
void cpu_files_memory(const struct cpu_container *container);
void cpu_files_remove(const char *dir);

#endif
