/* What client.c, call.c, send.c, reply.c and discovery.c share; private to them. */
#ifndef FLYBALL_KUBE_CLIENT_INTERNAL_H
#define FLYBALL_KUBE_CLIENT_INTERNAL_H

#include "../base/map.h"
#include "../base/random.h"
#include "../net/http_client.h"
#include "client.h"
#include "credentials.h"
#include "limiter_core.h"
#include "pause_core.h"
#include "sendqueue.h"

/* The connections made with one client certificate: replaced as a whole when a plugin returns another one,
 * and freed after the last call. */
struct kube_link {
    struct http_client *http;
    size_t calls;
    bool retired;
};

struct kube_call {
    struct kube *k;
    struct list_item item;         /* of all calls */
    struct sendqueue_item waiting; /* to be sent */

    /* the request */
    struct arena arena; /* texts of the request, and the reply's JSON tree */
    enum kube_verb verb;
    bool text; /* a success is not JSON */
    str method, target, content_type, accept, body;
    str subject;         /* "patch deployments default/web", for error messages */
    int64_t deadline_ns; /* mono; 0: none */
    bool gated, is_stream, allow_delay;
    enum send_class class;
    const void *owner; /* whose turn it takes in its class; only compared */
    uint64_t flow;     /* hash of the namespace */
    bool (*is_stale)(void *context);
    struct list riders;     /* struct kube_call: sent as part of this one; see join.c */
    struct list_item rider; /* of the call that it is sent with */
    str joined;             /* the body of all of them; empty: no riders */
    bool alone;             /* such a request was refused: not joined again */
    bool paid;              /* already took its rate limit token */
    void (*on_data)(void *context, str bytes);
    kube_reply_fn *done;
    void *context;

    /* the current attempt */
    struct kube_link *link;
    struct http_call *http;
    struct timer pause;
    int attempts;
    int64_t sent_ns;
    int64_t flight_ns;         /* mono, exact: when it was sent */
    int64_t latency_ns;        /* until the response began; -1: it did not */
    struct list_item flight;   /* of the calls that the limiter counts */
    int status, retry_after_s; /* -1: no Retry-After */
    bool streamed;             /* on_data was called: no second attempt */
    bool protobuf;             /* the content type of the response */
    struct buf answer;
};

struct kube {
    struct loop *loop;
    struct kube_config *config; /* owned */
    struct kube_link *link;
    struct credentials *credentials;
    str user_agent;    /* in the config's arena */
    str host;          /* "10.0.0.1:6443", in the config's arena */
    struct list calls; /* all */
    struct sendqueue waiting;
    int64_t storm_until_ns; /* see kube_crowd() */
    struct limiter limiter;
    struct list flights; /* struct kube_call: counted by it, the oldest first */
    struct deferred pump;
    struct timer pump_later;
    double rate, burst, tokens;
    int64_t timeout_ns;
    struct random random; /* jitter of pauses */
    struct waste waste;
    size_t granted; /* extra requests that need no token */
    int64_t tokens_ns;
    int64_t gate_ns;
    struct timer gate;
    struct tracer *tracer; /* the caller's; NULL: none */
    struct metrics *metrics,
        *own_metrics; /* own_metrics is owned; NULL if the caller gave a registry */
    struct metric_family *requests, *durations;
    int64_t away_ns;              /* mono: unreachable since then; 0: reachable */
    int64_t starting_ns;          /* mono: first response after the outage; 0: none */
    struct list recoveries;       /* struct kube_recovery: called after an outage */
    struct timer probe;           /* the next probe of a server that is away */
    struct kube_call *probe_call; /* in flight; NULL: none */
    struct list lookups;          /* of discovery.c, pending */
    struct map discovered; /* "apps/v1 Deployment" to struct resource, in the config's arena */
};

/* call.c */
struct kube_call *kube_call_new(struct kube *k, const struct kube_request *request);
void kube_call_run(struct kube_call *call);                   /* sends the next attempt */
void kube_call_fail(struct kube_call *call, const char *why); /* no response; frees the call */
void kube_call_free(struct kube_call *call);
void kube_call_restart(struct kube_call *call); /* waits to be sent as if it were new */
void kube_call_supersede(
    struct kube_call *call); /* ends it unsent, with KUBE_SUPERSEDED; frees the call */

/* reply.c: interprets the response. Texts live in the call's arena. */
void kube_reply_read(struct kube_call *call, struct kube_reply *ret);
void kube_reply_none(struct kube_call *call, const char *why, struct kube_reply *ret);

/* discovery.c */
void kube_lookups_free(struct kube *k);

/* join.c */
void kube_join_waiting(struct kube_call *call); /* before it is sent: takes others along */
/* True: the answer refuses several requests that were sent as one, and each is sent again by itself. */
bool kube_join_refused(struct kube_call *call, const struct kube_reply *reply);
void kube_join_dissolve(struct kube_call *call); /* its riders wait for another one */

/* send.c */
void kube_call_wait(struct kube_call *call); /* queues it for sending */
void kube_pump(struct kube *k);
void kube_pump_soon(struct kube *k);
void kube_flight_started(struct kube_call *call);
void kube_flight_ended(struct kube_call *call); /* nothing happens if it is over */

/* client.c */
void kube_link_release(struct kube_link *link);
void kube_note_status(struct kube *k, int status); /* 0: no response */

/* Did the server recover a moment ago? An API server that is starting returns 403 for everything until it
 * has loaded its RBAC roles. */
bool kube_may_be_starting(const struct kube *k);

#endif
