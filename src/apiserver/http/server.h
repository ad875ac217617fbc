/* The server behind the sockets: the state that calls share, and the work that happens without a request.
 *
 *   store       objects, history, database file     catalog        built-in and custom kinds
 *   watches     open watches                        controllers    garbage collection, namespaces, ...
 *
 * Everything runs on the thread of the loop; only a batch that is being written is on another one.
 *
 * Read first: call.h (a request and its answer), server_handle() in server.c, then one verb (verb_create.c). */
#ifndef FLYBALL_SERVER_H
#define FLYBALL_SERVER_H

#include "../../base/list.h"
#include "../../base/random.h"
#include "../../base/rfc3339.h"
#include "../../base/set.h"
#include "call.h"
#include "catalog.h"

struct admission;
struct hook_config;
struct webhooks;
struct watch;
struct gc;
struct auth;
struct cert_pair;

struct server_options {
    const char *db_path;                                /* NULL: memory only */
    size_t history_events;                              /* 0: the store's default */
    const struct server_controller *const *controllers; /* NULL-ended; NULL: none */
    const struct cert_pair *issuer;                     /* signs certificates; NULL: none */
    bool no_accounts, allow_all, no_anonymous;          /* see apiserver.h */
    const char *service_addresses;                      /* see apiserver.h */
};

/* Work that happens without a request. A controller sees each event as it is published and only notes which
 * objects to check; it acts when the whole batch is published, through the same write path as requests
 * (write.h). All entries except on_event and reconcile may be NULL. */
struct server_controller {
    void (*start)(struct server *s); /* before the state is loaded */
    void (*stop)(struct server *s);
    /* Called for each object in the store at startup, as an event without a previous version. */
    void (*on_load)(struct server *s, const struct event *e);
    /* Creates the objects that every cluster has, if they are missing. */
    void (*seed)(struct server *s);
    void (*on_event)(struct server *s, const struct event *e);
    bool (*reconcile)(struct server *s); /* true: it did something, call it again */
};

struct server {
    struct loop *loop; /* NULL in tests, which call server_run_until_idle() instead */
    struct store *store;
    struct catalog catalog;
    struct auth *auth; /* NULL: every client is an administrator (tests) */
    const struct server_controller *const *controllers; /* NULL-ended */
    struct gc *gc;
    struct admission *admission; /* compiled policies; NULL until there are some */
    struct webhooks *webhooks;   /* calls to webhooks; NULL until there was one */
    struct hook_config *hook_configs;
    const char *service_addresses; /* see apiserver.h */
    int64_t run_now_ns;            /* wall clock of a call that runs again; 0: none runs */
    struct map watches;            /* "group/resource/" to the first of its linked watches */
    size_t n_watches;
    struct set conversions;     /* for watches; see convert.c */
    struct list streamed_lists; /* see verb_list.c */
    struct list holding, lost;  /* watches with references to objects; see watch.c */
    size_t lost_bytes;          /* of the objects that `lost` keeps alive */
    struct deferred commit, reconcile;
    struct timer ticker;           /* fires every minute: expires events */
    struct timer reconcile_timer;  /* see server_reconcile_later() */
    struct store_batch *in_flight; /* the batch that is being written; NULL: none */
    struct worker *writer;         /* the thread that writes it; NULL: memory only */
    struct work writing;
    struct timer idle_timer;   /* fires when nothing was written for a moment */
    int64_t commit_ns;         /* duration of a commit, smoothed */
    size_t calls;              /* number of calls since the last commit began */
    bool full_logged;          /* the log reports that the disk is full */
    int64_t full_logged_ns;    /* when it did, mono ns; 0: never */
    bool failure_logged;       /* the log reports that the store has failed */
    bool had_concurrent_calls; /* other calls arrived before the last commit */
    struct random random;
    int64_t time_s; /* the second that `time` shows; `time` points into time_text */
    str time;
    char time_text[RFC3339_TEXT_MAX];
    /* Queues of the controllers; all strings are owned. */
    VEC(char *) new_namespaces;         /* names: may lack their account and root certificate */
    VEC(char *) terminating_namespaces; /* names: being emptied */
    VEC(char *) changed_definitions;    /* names */
    VEC(char *) changed_claims;         /* keys */
    VEC(char *) changed_requests;       /* keys: certificates to sign */
    VEC(char *) counted_namespaces;     /* names: what their quotas use must be counted again */
    const struct cert_pair *issuer;     /* signs them; NULL: none (borrowed) */
    unsigned own_port;                  /* of the Service default/kubernetes; 0: none yet */
    bool services_changed;        /* that Service or conditions of APIServices must be set again */
    bool roles_changed;           /* aggregated cluster roles must be computed again */
    bool all_definitions_changed; /* a deleted definition freed its names: check all others */
    bool no_accounts;             /* namespaces get no service account, and pods need none */
    bool allow_all;               /* every request is authorized */
    bool no_anonymous;            /* requests without credentials get 401 */
    bool stopping;                /* calls are answered with 503 */
};

int server_new(struct loop *loop, const struct server_options *options, struct server **ret,
               err_t *e);
/* Ends all watches; further calls are answered with 503. */
void server_stop(struct server *s);
void server_free(struct server *s);          /* only while server_is_idle() */
bool server_is_idle(const struct server *s); /* no batch is being written */

/* The address that --service-address gives for a service; "": none (webhook_call.c). */
str server_service_address(const struct server *s, str ns, str name);

int64_t server_now_ns(const struct server *s); /* wall clock */
/* Commits staged writes at the end of the turn of the loop. */
void server_commit_soon(struct server *s);
/* Runs the controllers at the end of the turn, or after a quarter of a second if one waits for time to pass. */
void server_reconcile_soon(struct server *s);
void server_reconcile_later(struct server *s);
/* Sends a POST as the administrator. False: it was refused. */
bool server_post(struct server *s, str path, str body);
/* Commits and reconciles until nothing changes: at startup, and in tests without a loop. */
void server_run_until_idle(struct server *s);

str server_uid(struct server *s, struct arena *a);         /* a new UUID */
str server_time(struct server *s, struct arena *a);        /* now, as in creationTimestamp */
str server_name_suffix(struct server *s, struct arena *a); /* five letters and digits */

void server_expire_events(struct server *s); /* deletes core events older than an hour */

#endif
