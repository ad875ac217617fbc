/* What client.c, call.c, reply.c and discovery.c share; private to them. */
#ifndef FLYBALL_KUBE_CLIENT_INTERNAL_H
#define FLYBALL_KUBE_CLIENT_INTERNAL_H

#include "../base/map.h"
#include "../base/random.h"
#include "../net/http_client.h"
#include "client.h"
#include "credentials.h"

/* The connections made with one client certificate: replaced as a whole when a plugin returns another one,
 * and freed after the last call. */
struct kube_link {
    struct http_client *http;
    size_t calls;
    bool retired;
};

struct kube_call {
    struct kube *k;
    struct list_item item;    /* of all calls */
    struct list_item waiting; /* for credentials or for the rate limit */

    /* the request */
    struct arena arena; /* texts of the request, and the reply's JSON tree */
    enum kube_verb verb;
    str method, target, content_type, accept, body;
    str subject;         /* "patch deployments default/web", for error messages */
    int64_t deadline_ns; /* mono; 0: none */
    bool gated, urgent, is_stream, allow_delay;
    bool paid; /* already took its rate limit token */
    void (*on_data)(void *context, str bytes);
    kube_reply_fn *done;
    void *context;

    /* the current attempt */
    struct kube_link *link;
    struct http_call *http;
    struct timer pause;
    int attempts;
    int64_t sent_ns;
    int status, retry_after_s; /* -1: no Retry-After */
    bool streamed;             /* on_data was called: no second attempt */
    struct buf answer;
};

struct kube {
    struct loop *loop;
    struct kube_config *config; /* owned */
    struct kube_link *link;
    struct credentials *credentials;
    str user_agent;      /* in the config's arena */
    str host;            /* "10.0.0.1:6443", in the config's arena */
    struct list calls;   /* all */
    struct list waiting; /* in order of arrival */
    struct deferred pump;
    struct timer pump_later;
    double rate, burst, tokens;
    int64_t timeout_ns;
    struct random random; /* jitter of pauses */
    size_t granted;       /* extra requests that need no token */
    int64_t tokens_ns;
    int64_t gate_ns;
    struct timer gate;
    struct metrics *metrics,
        *own_metrics; /* own_metrics is owned; NULL if the caller gave a registry */
    struct metric_family *requests, *durations;
    int64_t away_ns;             /* mono: unreachable since then; 0: reachable */
    int64_t starting_ns;         /* mono: first response after the outage; 0: none */
    struct list recoveries;      /* struct kube_recovery: called after an outage */
    struct kube_lookup *lookups; /* of discovery.c, pending */
    struct map discovered; /* "apps/v1 Deployment" to struct resource, in the config's arena */
};

/* call.c */
struct kube_call *kube_call_new(struct kube *k, const struct kube_request *request);
void kube_call_run(struct kube_call *call);                   /* sends the next attempt */
void kube_call_fail(struct kube_call *call, const char *why); /* no response; frees the call */
void kube_call_free(struct kube_call *call);
void kube_call_wait(struct kube_call *call); /* queues it for sending */

/* reply.c: interprets the response. Texts live in the call's arena. */
void kube_reply_read(struct kube_call *call, struct kube_reply *ret);
void kube_reply_none(struct kube_call *call, const char *why, struct kube_reply *ret);

/* discovery.c */
void kube_lookups_free(struct kube *k);

/* client.c */
void kube_pump(struct kube *k);
void kube_link_release(struct kube_link *link);
void kube_note_status(struct kube *k, int status); /* 0: no response */

/* Did the server recover a moment ago? An API server that is starting returns 403 for everything until it
 * has loaded its RBAC roles. */
bool kube_may_be_starting(const struct kube *k);

#endif
