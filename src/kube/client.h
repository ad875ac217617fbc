/* The API client: one request, one callback.
 *
 *     kube_send(k, &(struct kube_request){
 *         .verb = KUBE_MERGE_PATCH, .resource = &resource_hpas, .ns = ns, .name = name,
 *         .body = S("{\"spec\":{\"minReplicas\":5}}"), .done = patched, .context = me });
 *
 *     static void patched(void *context, const struct kube_reply *reply)
 *     {
 *         if (reply->failure) ...  // one sentence: `patch horizontalpodautoscalers default/web: ...`
 *         else json_int(json_at(reply->object, "spec", "minReplicas", NULL), 1)
 *     }
 *
 * Controllers rarely call this directly: reconcile_send() in controller.h does, and holds the key until the
 * reply arrives.
 *
 * Underneath:
 *   - as many requests in flight as the server takes without slowing down (limiter_core.h); a hard cap per second is
 *     optional
 *   - workloads before status before events, controllers and namespaces in turn (sendqueue.h)
 *   - merge patches of one object that wait at the same time are sent as one (join.c)
 *   - 429 and 5xx with Retry-After are retried up to 10 times, any verb, after that time plus up to 10 %
 *     (2 min at most; 500 ms and doubling if the header is not a number of seconds)
 *   - a broken connection is retried for reads only
 *   - a 401 makes the *next* request use a fresh token
 *   - requests other than watches time out after 60 s
 *   - the write gate (election.h) fails writes locally once leadership may be lost, and cancels those in
 *     flight */
#ifndef FLYBALL_KUBE_CLIENT_H
#define FLYBALL_KUBE_CLIENT_H

#include "../base/list.h"
#include "../base/metrics.h"
#include "../json/json.h"
#include "../net/loop.h"
#include "config.h"
#include "resource.h"

struct kube;
struct kube_call;
struct tracer;

struct kube_options {
    struct loop *loop;
    const struct kube_config *config; /* copied */
    str user_agent;                   /* empty: "flyball/VERSION" */
    double
        rate; /* at most so many requests per second; 0: no such cap; negative: no limit at all, also not in flight */
    double burst;            /* at once; 0: those of one second */
    int64_t timeout_ns;      /* default timeout of a request; 0: 60 s */
    struct metrics *metrics; /* registry to use; NULL: a private one */
    bool insecure_token;     /* allow tokens and passwords without TLS to other machines */
    struct tracer
        *tracer; /* of the controllers that use this client; must outlive it. NULL: none */
};

int kube_new(const struct kube_options *options, struct kube **ret, err_t *e);
void kube_free(struct kube *k); /* pending calls are cancelled */
struct loop *kube_loop(const struct kube *k);
str kube_host(const struct kube *k);      /* of the server: "10.0.0.1:6443" */
str kube_namespace(const struct kube *k); /* of the config */
struct metrics *kube_metrics(const struct kube *k);
struct tracer *kube_tracer(const struct kube *k);

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_WATCH,
    KUBE_CREATE,
    KUBE_UPDATE,          /* PUT */
    KUBE_JSON_PATCH,      /* RFC 6902 */
    KUBE_MERGE_PATCH,     /* RFC 7386: status, and everything on custom resources */
    KUBE_STRATEGIC_PATCH, /* built-in kinds only */
    KUBE_APPLY,           /* server-side apply, field manager "flyball", force */
    KUBE_DELETE,
    KUBE_VERB_N
};

/* Why the server refused, from the Status in its response; KUBE_OK on success. */
enum kube_reason {
    KUBE_OK,
    KUBE_BAD_REQUEST,
    KUBE_UNAUTHORIZED,
    KUBE_FORBIDDEN,
    KUBE_NOT_FOUND,
    KUBE_ALREADY_EXISTS,
    KUBE_CONFLICT,
    KUBE_GONE, /* Gone and Expired: list again */
    KUBE_INVALID,
    KUBE_TIMEOUT, /* Timeout, ServerTimeout */
    KUBE_TOO_MANY_REQUESTS,
    KUBE_VERSION_TOO_LARGE, /* Timeout with the cause ResourceVersionTooLarge */
    KUBE_UNAVAILABLE, /* ServiceUnavailable, InternalError, other 5xx, and 403 from a starting server */
    KUBE_REFUSED,     /* any other error response */
    KUBE_SUPERSEDED, /* not sent: `is_stale` returned true */
    KUBE_NO_ANSWER,  /* no connection, broken, timed out, or stopped by the write gate */
    KUBE_REASON_N
};

struct kube_reply {
    const char *failure;     /* NULL: success; else one sentence naming verb, object and reason */
    int code;                /* HTTP status; 0: no response */
    enum kube_reason reason; /* KUBE_OK on success */
    str message;             /* from the server's Status */
    str body;
    struct arena *arena; /* lives as long as the reply */
    struct json *object; /* the parsed body; NULL if it is not JSON. Use listwatch for lists
                            of unknown length */
};
/* Whether a failed streaming list means that the server does not support them. */
bool kube_reply_refuses_streaming(const struct kube_reply *reply);

typedef void kube_reply_fn(void *context, const struct kube_reply *reply);

struct kube_request {
    enum kube_verb verb;
    const struct resource *resource; /* or `path` */
    str path;                        /* "/version": for requests without a resource; GET only */
    str ns, name;
    const char *subresource; /* "status", "scale", "resize"; NULL: the object */
    str body;                /* JSON */
    str label_selector, field_selector;
    str query;          /* more parameters, encoded: "propagationPolicy=Background" */
    str field_manager;  /* empty: "flyball" */
    bool dry_run;       /* dryRun=All */
    bool text;          /* a success has a body of text, such as a log: `object` is NULL */
    bool metadata_only; /* a list or watch of PartialObjectMetadata, where the server knows it */
    bool protobuf;      /* a list or watch may come in protobuf: see kube_call_is_protobuf() */
    bool no_gate;       /* skip write gate and rate limit, send first: for the Lease */
    int64_t timeout_ns; /* 0: the client's */

    /* Which requests take turns: those of one owner, usually a controller, and of one namespace. Only compared. */
    const void *owner;
    /* Asked before a request is sent that had to wait: true ends it unsent. NULL: never. */
    bool (*is_stale)(void *context);
    bool replaces; /* one that ended in this way: it takes its place */
    /* Of a controller's turn: if the key is due again while the request waits, the next turn decides again, and this one
     * ends unsent with KUBE_SUPERSEDED. Status is always such a decision. */
    bool is_decision;

    kube_reply_fn *done; /* exactly once unless cancelled; may be NULL */
    void *context;
};

/* Everything is copied. The call is valid until `done` returns or it is cancelled. */
struct kube_call *kube_send(struct kube *k, const struct kube_request *request);
void kube_call_cancel(struct kube_call *call); /* NULL is fine */
/* Allows this many requests beyond the burst. For startup, where the number of requests is known and each
 * would only wait for the one before. */
void kube_add_burst(struct kube *k, size_t requests);
/* How many requests for workloads and status wait to be sent. In a storm (KUBE_STORM or more
 * waited, then still a tenth, or within ten seconds of that) at least KUBE_STORM: after the changes of many objects come their
 * reports, and in between nothing waits. */
enum { KUBE_STORM = 100 };
size_t kube_crowd(const struct kube *k);
/* Lets the data of a watch be delivered some milliseconds late, in batches. For a watch past its initial
 * events. */
void kube_call_allow_delay(struct kube_call *call);

/* ---- streams: lists and watches whose bodies are not collected (listwatch.h uses this) */

struct kube_stream {
    struct kube_request request;               /* LIST or WATCH; `done` is not used */
    void (*on_data)(void *context, str bytes); /* of a response with status 200 */
    /* The end: `reply->failure` is NULL if the response was complete. */
    kube_reply_fn *on_end;
};

struct kube_call *kube_stream(struct kube *k, const struct kube_stream *stream);
/* In on_data: is the body protobuf? Otherwise it is JSON. */
bool kube_call_is_protobuf(const struct kube_call *call);

/* ---- discovery: which resource is "kind X of group/version"? Results are cached. */

/* `resource` lives as long as the client. It is NULL on failure (unknown kind, or no response), with the
 * reason in `failure`. */
typedef void kube_discover_fn(void *context, const struct resource *resource, const char *failure);
void kube_discover(struct kube *k, str api_version, str kind, kube_discover_fn *done,
                   void *context);
void kube_discover_forget(struct kube *k, const void *context); /* `done` is not called */

/* ---- the write gate */

/* Writes are allowed until `mono_ns` of the loop's monotonic clock; INT64_MAX (initially): always; 0:
 * never. Writes in flight at that time are cancelled and end with KUBE_NO_ANSWER. */
void kube_gate(struct kube *k, int64_t mono_ns);

/* ---- recovery from an outage */

struct kube_recovery {
    struct list_item item;
    void (*recovered)(struct kube_recovery *me);
};

/* `recovered` is called when the server responds again after 5 s or more without a response, so that callers can
 * end their backoff early. The caller owns `me` and removes it before freeing it. */
void kube_on_recovery(struct kube *k, struct kube_recovery *me);
/* A list failed after this many bytes. Returns for how many ns no other one may be tried: see struct waste. */
int64_t kube_note_waste(struct kube *k, uint64_t bytes);
void kube_off_recovery(struct kube_recovery *me);

/* Was the request refused by a server that is away or overloaded, whatever it asked for? The same request may succeed
 * later. */
bool kube_is_server_failure(const struct kube_reply *reply);
/* Is the version that a list or watch asked for too old, or newer than the server's? */
bool kube_is_expired(enum kube_reason reason);
/* Is the server away (no response, or 502 to 504 from a proxy)? Then a small request is sent every second until it
 * responds, one for all callers, and `recovered` is called even if it was away for a second only. */
bool kube_probe(struct kube *k);

/* ---- small bodies */

/* {"status": ...}, for a merge patch of the status subresource. */
str kube_status_body(struct arena *a, struct json *status);
/* A merge patch that adds or removes one finalizer. It replaces the whole `list`, so it requires the version that the list
 * was read from. */
str kube_finalizer_body(struct arena *a, str rv, const struct json *list, str name, bool add);

struct kube_owner {
    const struct resource *resource;
    str name, uid;
    bool is_controller; /* and keeps the owner until this object is deleted */
};
/* metadata.ownerReferences with this one owner. */
struct json *kube_owners(struct arena *a, const struct kube_owner *owner);

const char *kube_reason_name(enum kube_reason reason); /* "NotFound", "NoAnswer", ... */

#endif
