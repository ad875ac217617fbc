/* All of it together: a client, caches, controllers, events, a leader, and the features that use them.
 *
 * Order of a start: features declare caches and controllers; caches list and watch; when all are
 * synced /readyz says so; when leadership is won the controllers begin. A follower has warm
 * caches, so taking over costs nothing. Stop is the reverse: no new turns, writes under way
 * answered (or 5 s passed), Lease given back. */
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
    const char *value; /* of who says nothing; NULL: none */
    const char *help;  /* one line */
};

/* What a feature is to the rest of the program: one constant, listed in main.c's table. */
struct feature {
    const char *name;    /* of --controllers */
    const char *summary; /* one line of --help */
    bool on_node;        /* runs in the agent instead of the operator */
    const struct feature_setting *settings;
    /* Declares caches and controllers. `*ret_state` is given to stop, also after a failure. */
    int (*start)(struct manager *m, void **ret_state, err_t *e);
    /* May the program begin? Until all say so it stands for no election and is not ready; `why_not` says
     * what is waited for. Who said no calls manager_recheck() when that has changed. NULL: it may. */
    bool (*ready)(void *state, struct buf *why_not);
    /* Asked to end: begins the last writes. Called again until it answers false, 5 s at most. May be
     * NULL. */
    bool (*flush)(void *state);
    void (*stop)(void *state); /* caches and controllers are the manager's: free only your own */
};

struct manager_options {
    struct kube *kube;
    str watch_namespace; /* empty: all */
    str identity;        /* of logs, events and the Lease */
    uint64_t seed;
    size_t cache_bytes_max; /* of all caches; 0: half the memory limit of the process's cgroup */
    bool elect;             /* else the controllers begin as soon as the caches are synced */
    struct election_options election; /* lease name, namespace and timings */
    /* Values for features' settings: NULL for "not given". */
    const char *(*setting)(void *context, const char *name);
    void *context;
    void (*on_lost)(void *context); /* leadership is gone, or hope: the program should end */
};

int manager_new(const struct manager_options *options, struct manager **ret, err_t *e);
int manager_add(struct manager *m, const struct feature *feature, err_t *e); /* calls its start */
int manager_run(struct manager *m, err_t *e); /* starts caches and election; returns at once */
void manager_stop(struct manager *m, void (*done)(void *context), void *context);
void manager_free(struct manager *m); /* features' stop is called */

bool manager_ready(const struct manager *m, struct buf *why_not); /* caches and features are */
bool manager_leads(const struct manager *m);

/* ---- for features, in start() and later */

struct loop *manager_loop(const struct manager *m);
struct metrics *manager_metrics(const struct manager *m); /* to count in */
struct kube *manager_kube(const struct manager *m);
struct events *manager_events(const struct manager *m);
str manager_identity(const struct manager *m);
str manager_watch_namespace(const struct manager *m);
const char *manager_setting(const struct manager *m, const char *name); /* or its default */

void manager_recheck(struct manager *m); /* a feature that was not ready may be so now */
void manager_fail(struct manager *m, const char *why); /* the program cannot do its work */

/* A cache that the manager fills and owns. --watch-namespace applies to namespaced kinds. */
int manager_cache(struct manager *m, const struct cache_spec *spec, struct cache **ret, err_t *e);
/* A controller that the manager runs and owns, while it leads. */
struct controller *manager_controller(struct manager *m, const struct controller_spec *spec);

#endif
