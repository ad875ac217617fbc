/* Keeps the Q-tables of the agents in ConfigMaps: read once at startup, written when something
 * changed, and at shutdown.
 *
 * mbcas-qtable-<node> holds one table per workload; above 900 kB the rest goes to
 * mbcas-qtable-<node>-1 and so on. Tables of workloads without a pod on the node are kept while
 * there is room. Nothing is written before the old tables were read: an outage at startup must
 * not overwrite them. */
#ifndef FLYBALL_QTABLE_STORE_H
#define FLYBALL_QTABLE_STORE_H

#include "../kube/client.h"
#include "agent_core.h"

struct qtable_store;

struct qtable_store_options {
    struct kube *kube;
    str ns, node;
    void (*on_loaded)(void *context); /* qtable_store_get() can be called */
    /* Must call qtable_store_put() for every agent. */
    void (*collect)(void *context);
    void (*on_saved)(void *context); /* no write is pending any more, whether it failed or not */
    void *context;
};

struct qtable_store *qtable_store_new(const struct qtable_store_options *options);
void qtable_store_free(struct qtable_store *s);

bool qtable_store_is_loaded(const struct qtable_store *s);

/* Reads the table of the workload, or of the pod, as MBCAS stored it; false: there is none. */
bool qtable_store_get(const struct qtable_store *s, str workload, str pod_uid, struct agent *agent);
void qtable_store_put(struct qtable_store *s, str workload, const struct agent *agent);

/* At shutdown: writes if anything changed; true while a write is pending. Call it again at on_saved(). */
bool qtable_store_flush(struct qtable_store *s);

#endif
