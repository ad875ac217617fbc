/* What local.c and local_print.c share; nobody else includes this. */
#ifndef FLYBALL_MARKET_LOCAL_INTERNAL_H
#define FLYBALL_MARKET_LOCAL_INTERNAL_H

#include "local.h"

struct local_group {
    struct sampled sampled;
    struct local *local;
    int64_t original_milli; /* the quota we found; -1: none */
    int64_t pressure_usec;  /* at the last slow round; -1: not read */
    double pressure; /* share of the last slow window in which a task waited for CPU; -1: unknown */
    bool changed;    /* by us */
    bool seen;       /* during a scan */
    char name[];
};

struct local {
    struct local_options o;
    struct cgroup_tree tree;
    char *path; /* of the cgroup, below the root; "" for the root itself */
    struct sampler *sampler;
    VEC(struct local_group *) groups; /* owned, by name */
    struct round_report report;       /* of the last slow round */
    int64_t rounded_ns;               /* mono, of that */
    bool rounded;                     /* in this tick */
};

int64_t local_capacity(const struct local *l);

#endif
