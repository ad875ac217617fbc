/* What client.c, call.c, reply.c and discovery.c share; nobody else includes this. */
#ifndef FLYBALL_KUBE_CLIENT_INTERNAL_H
#define FLYBALL_KUBE_CLIENT_INTERNAL_H

#include "../base/map.h"
#include "../base/random.h"
#include "../net/http_client.h"
#include "client.h"
#include "credentials.h"

/* One server identity: replaced as a whole when a plugin gives another client certificate, and freed
 * when its last call is over. */
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
    struct arena arena; /* texts, and the reply's tree */
    enum kube_verb verb;
    str method, target, content_type, accept, body;
    str subject;         /* "patch deployments default/web", for sentences */
    int64_t deadline_ns; /* mono; 0: none */
    bool gated, urgent, is_stream, allow_delay;
    bool paid; /* has passed the rate limit */
    void (*on_data)(void *context, str bytes);
    kube_reply_fn *done;
    void *context;

    /* the attempt under way */
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
    str host;            /* "10.0.0.1:6443", likewise */
    struct list calls;   /* all */
    struct list waiting; /* in the order they came */
    struct deferred pump;
    struct timer pump_later;
    double rate, burst, tokens;
    int64_t timeout_ns;
    struct random random; /* of pauses */
    size_t granted;       /* requests that take no token */
    int64_t tokens_ns;
    int64_t gate_ns;
    struct timer gate;
    struct metrics *metrics, *own_metrics; /* the second is ours to free */
    struct metric_family *requests, *durations;
    int64_t away_ns;     /* mono: since then the server does not answer; 0: it does */
    int64_t starting_ns; /* mono: its first answer after that; 0: none yet, or it never was away */
    struct list recoveries;      /* struct kube_recovery: to be told when it does again */
    struct kube_lookup *lookups; /* discovery.c's, open */
    struct map discovered; /* "apps/v1 Deployment" to struct resource, in the config's arena */
};

/* call.c */
struct kube_call *kube_call_new(struct kube *k, const struct kube_request *request);
void kube_call_run(struct kube_call *call); /* on the wire */
void kube_call_fail(struct kube_call *call,
                    const char *why); /* no answer; the call is gone after */
void kube_call_free(struct kube_call *call);
void kube_call_wait(struct kube_call *call); /* into the waiting list */

/* reply.c: what the answer means. Texts live in the call's arena. */
void kube_reply_read(struct kube_call *call, struct kube_reply *ret);
void kube_reply_none(struct kube_call *call, const char *why, struct kube_reply *ret);

/* discovery.c */
void kube_lookups_free(struct kube *k);

/* client.c */
void kube_pump(struct kube *k);
void kube_link_release(struct kube_link *link);
void kube_note_status(struct kube *k, int status); /* 0: nothing */

/* It was away a moment ago. Until it has read its roles a server that is starting forbids everything. */
bool kube_may_be_starting(const struct kube *k);

#endif
