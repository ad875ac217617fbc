/* Keeps what agents learnt in ConfigMaps: read once at the start, written when something changed, and at
 * the end.
 *
 * mbcas-qtable-<node> holds one table a workload; above 900 kB the rest goes to mbcas-qtable-<node>-1 and so
 * on. Tables of workloads that are not here now are kept while there is room. Nothing is written before
 * the old tables were read: an outage at the start must not cost what was learnt. */
#ifndef FLYBALL_QTABLE_STORE_H
#define FLYBALL_QTABLE_STORE_H

#include "../kube/client.h"
#include "agent_core.h"

struct qtable_store;

struct qtable_store_options {
    struct kube *kube;
    str ns, node;
    void (*loaded)(void *context); /* the old tables can be asked for */
    /* Tells every agent by qtable_store_put(). */
    void (*collect)(void *context);
    void *context;
};

struct qtable_store *qtable_store_new(const struct qtable_store_options *options);
void qtable_store_free(struct qtable_store *s);

bool qtable_store_is_loaded(const struct qtable_store *s);

/* The table of a workload, or else of the pod as the original kept it; false: there is none. */
bool qtable_store_get(const struct qtable_store *s, str workload, str pod_uid, struct agent *agent);
void qtable_store_put(struct qtable_store *s, str workload, const struct agent *agent);

/* Writes now if anything changed; true while a write is under way. Before the end: until false. */
bool qtable_store_flush(struct qtable_store *s);

#endif
