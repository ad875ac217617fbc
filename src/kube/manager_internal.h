/* What manager.c and manager_metrics.c share; private to them. */
#ifndef FLYBALL_KUBE_MANAGER_INTERNAL_H
#define FLYBALL_KUBE_MANAGER_INTERNAL_H

#include "../base/random.h"
#include "../base/vec.h"
#include "kinds.h"
#include "listwatch.h"
#include "manager.h"

enum { MANAGER_CACHE_FAMILIES = 5 };

struct manager_cache {
    struct manager *m;
    struct cache *cache;             /* owned */
    struct listwatch *listwatch;     /* owned; NULL: not started */
    struct listwatch_stats reported; /* as last added to the metrics */
    char *trouble;                   /* owned; the last failure; NULL: none */
    int64_t logged_ns;               /* mono: when `trouble` was logged */
    uint64_t suppressed;             /* repetitions since then */
    uint64_t progress_then;          /* count_progress() at that time */
    struct manager_cache *next;
};

struct manager_feature {
    const struct feature *feature;
    void *state;         /* the feature's */
    const char *failure; /* why it could not start; NULL: it did */
};

struct manager {
    struct manager_options o;
    struct arena arena; /* texts of the options */
    struct loop *loop;
    struct projector *projector;
    struct events *events;
    struct election *election;
    struct manager_cache *caches;
    struct kinds *kinds;                  /* owned; NULL: no kind was ever absent */
    VEC(struct controller *) controllers; /* owned */
    VEC(struct manager_feature) features;
    struct random random;
    struct metric_family *cache_families[MANAGER_CACHE_FAMILIES];
    struct metric *leads; /* NULL: no election */
    bool running, controllers_started,
        stopping;            /* controllers_started: the controllers were started */
    bool waits_to_stop;      /* for running turns and last writes */
    struct timer stop_timer; /* the end of this wait */
    struct deferred stop_resumed;
    int64_t stop_by_ns;
    void (*stopped)(void *context);
    void *stopped_context;
};

void manager_metrics_init(struct manager *m);

#endif
