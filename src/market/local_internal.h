/* Shared by local.c and local_print.c only. */
#ifndef FLYBALL_MARKET_LOCAL_INTERNAL_H
#define FLYBALL_MARKET_LOCAL_INTERNAL_H

#include "local.h"

struct local_group {
    struct sampled sampled;
    struct local *local;
    int64_t original_milli; /* the quota when the group appeared; -1: none */
    bool changed;           /* we wrote its quota */
    bool seen;              /* found by the current scan */
    char name[];
};

struct local {
    struct local_options o;
    struct cgroup_tree tree;
    char *path; /* owned; of the cgroup, relative to the root; "": the root itself */
    struct sampler *sampler;
    VEC(struct local_group *) groups; /* owned, sorted by name */
    struct round_report report;       /* of the last slow round */
    bool rounded;                     /* a slow round ran in this tick */
};

int64_t local_capacity(const struct local *l);

#endif
