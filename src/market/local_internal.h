/* What local.c and local_print.c share; nobody else includes this. */
#ifndef FLYBALL_MARKET_LOCAL_INTERNAL_H
#define FLYBALL_MARKET_LOCAL_INTERNAL_H

#include "local.h"

struct local_group {
    struct sampled sampled;
    struct local *local;
    int64_t original_milli; /* the quota we found; -1: none */
    bool changed;           /* by us */
    bool seen;              /* during a scan */
    char name[];
};

struct local {
    struct local_options o;
    struct cgroup_tree tree;
    char *path; /* of the cgroup, below the root; "" for the root itself */
    struct sampler *sampler;
    VEC(struct local_group *) groups; /* owned, by name */
    struct round_report report;       /* of the last slow round */
    bool rounded;                     /* in this tick */
};

int64_t local_capacity(const struct local *l);

#endif
