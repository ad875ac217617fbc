/* What `flyball operator` and `flyball agent` have in common: flags, client, manager, the server for
 * /healthz /readyz /metrics, signals, and an orderly end. */
#ifndef FLYBALL_CMD_RUNTIME_H
#define FLYBALL_CMD_RUNTIME_H

#include "../kube/manager.h"

/* Everything a cluster's features are chosen from; NULL ends it. main.c lists them. */
extern const struct feature *const features[];

struct runtime_spec {
    const char *name;    /* of the command */
    const char *summary; /* first paragraph of its help */
    bool on_node;        /* the agent: features that run on a node, no election */
};

int runtime_run(const struct runtime_spec *spec, int argc, char **argv); /* the exit code */

#endif
