/* The market on plain cgroups of this machine, without Kubernetes: the cgroups directly in one are the pods,
 * and limits are written into their quotas. The loops are those of the node agent. */
#ifndef FLYBALL_MARKET_LOCAL_H
#define FLYBALL_MARKET_LOCAL_H

#include "sampler.h"

struct local_options {
    struct loop *loop;
    const char *root;   /* "/sys/fs/cgroup" */
    const char *cgroup; /* whose children take part: a path below the root, with or without it */
    struct market_config config;
    int64_t
        capacity_milli; /* for all of them; 0: the cgroup's own quota, else the machine less reserve */
    bool dry_run;       /* look and decide, but write nothing */
    bool keep;          /* leave the limits at the end; else those of the beginning come back */
    uint64_t seed;
    void (*ticked)(void *context,
                   bool rounded); /* after every tick; `rounded`: with a slow round */
    void *context;
};

struct local;

int local_new(const struct local_options *options, struct local **ret, err_t *e);
void local_free(struct local *l);

/* The live table: usage, throttling, limit, price; at most `rows` cgroups, by name. */
void local_print(const struct local *l, struct buf *out, size_t rows);

#endif
