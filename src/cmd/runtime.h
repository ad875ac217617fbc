/* What `flyball operator` and `flyball agent` have in common: flags, client, manager, the server
 * for /healthz, /readyz and /metrics, signals, and a graceful shutdown. */
#ifndef FLYBALL_CMD_RUNTIME_H
#define FLYBALL_CMD_RUNTIME_H

#include "../kube/manager.h"

/* All features, for both commands; ends with NULL. Defined in main.c. */
extern const struct feature *const features[];

struct runtime_spec {
    const char *name;    /* of the command */
    const char *summary; /* first paragraph of its help */
    bool on_node;        /* the agent: features of a node, no leader election */
};

int runtime_run(const struct runtime_spec *spec, int argc, char **argv); /* the exit code */

/* A list of controllers, as in --controllers: is one of them in it, and do all of its names exist? */
bool runtime_list_has(const char *list, const char *controller);
int runtime_list_check(const char *list, bool on_node, err_t *e);

#endif
