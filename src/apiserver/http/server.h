/* The server behind the sockets: everything a call touches, and what goes on without one.
 *
 *   store       state, past, file             registry    kinds, built in and custom
 *   watches     clients that follow a list    controllers    what happens without a request
 *
 * One thread. */
#ifndef FLYBALL_SERVER_H
#define FLYBALL_SERVER_H

#include "../../base/random.h"
#include "../../base/rfc3339.h"
#include "call.h"
#include "registry.h"

struct watch;
struct gc;
struct auth;

struct server_options {
    const char *db_path;   /* NULL: memory only */
    size_t history_events; /* 0: the store's default */
    bool log_requests;
    const struct controller *const *controllers; /* NULL-ended; NULL: none */
};

/* What happens without a request: garbage collection, namespaces, definitions, claims, roles. A controller sees
 * each event as it is published, notes what to look at, and acts when the batch is done, through the same
 * write path as requests (write.h). Any entry but on_event and reconcile may be NULL. */
struct controller {
    void (*start)(struct server *s); /* before state is loaded */
    void (*stop)(struct server *s);
    /* Each object found in the store at the start, as an event without a past. */
    void (*on_load)(struct server *s, const struct event *e);
    void (*seed)(struct server *s, bool fresh); /* what every cluster has; fresh: the first start */
    void (*on_event)(struct server *s, const struct event *e);
    bool (*reconcile)(struct server *s); /* true: it changed something */
};

struct server {
    struct loop *loop; /* NULL in tests without one: commits are then made at once */
    struct store *store;
    struct registry registry;
    struct auth *auth;                           /* NULL: everybody is admin (tests) */
    const struct controller *const *controllers; /* NULL-ended */
    struct gc *gc;
    struct map watches; /* "group/resource/" to the first watch of a list */
    size_t n_watches;
    struct deferred commit, reconcile;
    struct timer ticker;          /* every minute */
    struct timer reconcile_timer; /* server_reconcile_later */
    struct batch *out;            /* being written... */
    struct worker *writer;        /* ...by this thread; NULL: there is no file */
    struct work writing;
    struct timer idle_timer; /* fires when nothing was written for a moment */
    int64_t commit_ns;       /* what a commit takes, smoothed */
    size_t calls;            /* since the last commit began */
    bool crowded;            /* it was for more than one call */
    struct random random;
    int64_t time_s; /* the second of `time`, which is in time_text */
    str time;
    char time_text[RFC3339_TEXT_MAX];
    VEC(char *) newborn;  /* names of namespaces that need a service account */
    VEC(char *) draining; /* names of namespaces being emptied */
    VEC(char *) crds;     /* names of definitions to look at */
    VEC(char *) claims;   /* keys of claims to look at */
    bool roles_changed;   /* cluster roles to add up again */
    bool crds_all;        /* names changed hands: look at every definition */
    bool log_requests, stopping;
    uint64_t discovery_generation;
};

int server_new(struct loop *loop, const struct server_options *options, struct server **ret,
               err_t *e);
/* Ends watches; further calls get 503. */
void server_stop(struct server *s);
void server_free(struct server *s); /* not while a batch is out: see server_idle */
bool server_idle(const struct server *s);

int64_t server_now_ns(const struct server *s); /* wall clock */
/* There are staged writes: commit them at the end of the turn. */
void server_commit_soon(struct server *s);
/* There is work for a controller: do it at the end of the turn. */
void server_reconcile_soon(struct server *s);
void server_reconcile_later(struct server *s); /* in a moment: something waits for time to pass */
/* A POST of our own, as the administrator. False: it was refused. */
bool server_post(struct server *s, str path, str body);
/* Without a loop: commits and tends until nothing is left to do. */
void server_settle(struct server *s);

str server_uid(struct server *s, struct arena *a);         /* a new UUID */
str server_time(struct server *s, struct arena *a);        /* now, as metadata writes it */
str server_name_suffix(struct server *s, struct arena *a); /* five letters and digits */

void server_expire_events(struct server *s); /* core events older than an hour */

#endif
