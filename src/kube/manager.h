/* The manager: a client, caches, controllers, events, leader election, and the features that use them.
 *
 * Startup: features declare caches and controllers; caches list and watch; once all are synced, /readyz
 * succeeds; once the lease is acquired, the controllers start. A follower has warm caches, so a failover
 * needs no list. Shutdown is the reverse: no new turns, pending writes answered (5 s at most), lease
 * released. */
#ifndef FLYBALL_KUBE_MANAGER_H
#define FLYBALL_KUBE_MANAGER_H

#include "cache.h"
#include "client.h"
#include "controller.h"
#include "election.h"
#include "events.h"

struct manager;

/* A flag that a feature adds to `flyball operator` or `flyball agent`: --NAME VALUE. */
struct feature_setting {
    const char *name;  /* NULL ends the table */
    const char *value; /* default; NULL: none */
    const char *help;  /* one line */
};

/* A feature as the rest of the program sees it: one constant, listed in the table of main.c. */
struct feature {
    const char *name;    /* as in --controllers */
    const char *summary; /* one line for --help */
    bool on_node;        /* runs in the agent instead of the operator */
    const struct feature_setting *settings;
    /* Declares caches and controllers. `*ret_state` is passed to stop, even after a failure. */
    int (*start)(struct manager *m, void **ret_state, err_t *e);
    /* Is the feature ready? Until all are, the process joins no election and is not ready; `why_not` gets
     * the reason. A feature that returned false calls manager_recheck() when that changes. NULL: always
     * ready. */
    bool (*ready)(void *state, struct buf *why_not);
    /* Shutdown: starts the last writes and returns whether any is pending. Called again at each
     * manager_flushed() until it returns false, for 5 s at most; so a write that failed must not be
     * pending for ever. May be NULL. */
    bool (*flush)(void *state);
    void (*stop)(void *state); /* frees its own state; the manager owns caches and controllers */
};

struct manager_options {
    struct kube *kube;
    str watch_namespace; /* empty: all */
    str identity;        /* in logs, events and the Lease */
    uint64_t seed;
    size_t cache_bytes_max; /* of all caches; 0: three eighths of the cgroup's memory limit */
    bool elect;             /* false: controllers start as soon as the caches are synced */
    struct election_options election; /* lease name, namespace and timings */
    /* Value of a feature's setting; NULL: not set. */
    const char *(*setting)(void *context, const char *name);
    void *context;
    void (*on_lost)(void *context); /* leadership lost or unrecoverable failure: exit */
};

int manager_new(const struct manager_options *options, struct manager **ret, err_t *e);
/* Calls its start. -ECANCELED: it cannot start, and is left out; the others can run. Any other failure is final. */
int manager_add(struct manager *m, const struct feature *feature, err_t *e);
bool manager_has_features(const struct manager *m); /* that did not fail */
int manager_run(struct manager *m, err_t *e); /* starts caches and election; returns at once */
void manager_stop(struct manager *m, void (*done)(void *context), void *context);
void manager_free(struct manager *m); /* features' stop is called */

bool manager_ready(const struct manager *m, struct buf *why_not); /* caches and features */
bool manager_leads(const struct manager *m);

/* ---- for features, in start() and later */

struct loop *manager_loop(const struct manager *m);
struct metrics *manager_metrics(const struct manager *m); /* the registry */
struct kube *manager_kube(const struct manager *m);
struct events *manager_events(const struct manager *m);
str manager_identity(const struct manager *m);
str manager_watch_namespace(const struct manager *m);
const char *manager_setting(const struct manager *m, const char *name); /* or its default */
int manager_setting_bool(const struct manager *m, const char *name, bool *ret, err_t *e);

void manager_recheck(struct manager *m); /* a feature may have become ready */
void manager_flushed(struct manager *m); /* a write of a feature was answered: see flush() */
void manager_fail(struct manager *m, const char *why); /* unrecoverable: on_lost is called */

/* A cache that the manager owns and fills. --watch-namespace applies to namespaced resources. */
int manager_cache(struct manager *m, const struct cache_spec *spec, struct cache **ret, err_t *e);
/* A controller that the manager owns, and runs while this process leads. */
struct controller *manager_controller(struct manager *m, const struct controller_spec *spec);

/* ---- for the page (src/web), which shows what the features know */

/* The cache that a feature declared with these fields of this resource; NULL: none did. */
struct cache *manager_find_cache(const struct manager *m, const struct cache_spec *spec);
/* The state of a feature; NULL: it does not run. */
void *manager_find_state(const struct manager *m, const struct feature *feature);

#endif
