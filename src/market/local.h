/* The market on plain cgroups of this machine, without Kubernetes: the children of one cgroup
 * take the place of pods, and limits are written to their quotas. The loops are those of the
 * node agent. */
#ifndef FLYBALL_MARKET_LOCAL_H
#define FLYBALL_MARKET_LOCAL_H

#include "sampler.h"

struct local_options {
    struct loop *loop;
    const char *root;   /* "/sys/fs/cgroup" */
    const char *cgroup; /* whose children take part; a path with or without the root */
    struct market_config config;
    int64_t capacity_milli; /* for all; 0: quota of the cgroup, else the machine minus reserve */
    bool dry_run;           /* read and decide, but write nothing */
    bool keep;              /* do not restore the original limits at the end */
    uint64_t seed;
    void (*on_tick)(void *context, bool after_round); /* at the end of every tick */
    void *context;
};

struct local;

int local_new(const struct local_options *options, struct local **ret, err_t *e);
void local_free(struct local *l);

/* Appends the live table: usage, throttling, limit, price; at most `rows` cgroups, by name. */
void local_print(const struct local *l, struct buf *out, size_t rows);

#endif
