/* A call: one request on its way through the server, and its answer. A call knows nothing about sockets:
 * apiserver.c and the tests create one, pass it to server_handle() and get it back through `finished`.
 *
 *   auth.c        authentication, authorization               route.c       path and method to kind and verb
 *   negotiate.c   format of the answer (Accept)               options.c     query parameters
 *   body.c        request bodies                              verb_*.c      one file per verb
 *   answer.c      successful answers                          status.c      failures
 *
 * All functions on a call have the prefix call_. Those that return bool return false after they have filled
 * in the answer themselves, so that a verb reads `if (!call_...(c)) return;`.
 *
 * Memory: a call and everything it points to lives in its arena. The answer's body is a buffer that belongs
 * to the sender once `finished` was called. */
#ifndef FLYBALL_CALL_H
#define FLYBALL_CALL_H

#include "../../base/vec.h"
#include "../../net/http_server.h"
#include "../kinds/kinds.h"
#include "../store/store.h"
#include "selector.h"

struct server;
struct catalog_set;
struct call_wait;

enum verb {
    VERB_NONE, /* not a resource: discovery, OpenAPI, health, version */
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,
    VERB_PATCH,
    VERB_DELETE,
    VERB_DELETECOLLECTION,
    VERB_N,
};

enum answer_form { FORM_OBJECT, FORM_TABLE, FORM_PARTIAL, FORM_PARTIAL_LIST };
enum answer_text { TEXT_JSON, TEXT_YAML };

struct user {
    str name, uid;
    const str *groups;
    size_t n_groups;          /* without system:authenticated, which `authenticated` implies */
    const struct json *extra; /* key to list of strings, as in a UserInfo; NULL: none */
    bool admin, reader;       /* member of AUTH_ADMINS, AUTH_READERS */
    bool authenticated;       /* by a token or a client certificate */
};

struct request {
    str method, path, query, body; /* path and query still percent-encoded */
    struct http_headers headers;
    const struct tls_peer *peer; /* NULL: no client certificate */
};

struct answer {
    int status;
    const char *content_type;
    struct buf body;
    VEC(struct http_header) headers;
    const struct stream_source *stream; /* instead of a body; NULL: none */
    /* Gives the stream its exchange, before it begins. May be NULL. */
    void (*attach)(const struct stream_source *stream, struct exchange *x);
};

struct call {
    struct server *server;
    struct arena *arena;
    const struct request *request;
    void (*finished)(struct call *c); /* called once, when the answer is complete */
    void *context;                    /* for `finished` */

    struct user user;
    enum verb verb;
    str group, version, resource, ns, name, subresource; /* decoded; "" where absent */
    bool deprecated_watch;                               /* the path begins with watch/ */
    const struct kind *kind;                             /* NULL: not a resource */
    struct catalog_set *set;                             /* borrowed; NULL for built-in kinds */
    enum kind_sub sub;

    enum answer_form form;
    enum answer_text text;
    bool form_v1beta1; /* tables and metadata in meta.k8s.io/v1beta1 instead of v1 */
    bool pretty;

    struct json *quotas;    /* with what they use after this write; NULL: none changes */
    bool managed_by_apply;  /* apply has already set the managedFields of the object to create */
    bool ran_again;         /* the disk was found to be full when the call first ran */
    struct call_wait *wait; /* what it keeps between runs; NULL: it needs no webhook (webhook.h) */
    struct store_waiter waiter;
    struct answer answer;
    int64_t started_ns;
    struct warning *warnings; /* what call_warn() was given, in the arena */
    size_t n_warnings;        /* of these */
    size_t warning_runes;     /* in the headers so far */
    bool cuts_warnings;       /* there is too much text: each is cut */
};

/* Runs the call. Reads finish before this returns; writes finish when their batch is on disk. What needs the answer of
 * a webhook finishes after that. */
void server_handle(struct server *s, struct call *c);
/* Runs it again from the start: a webhook has answered, or the disk was found to be full. */
void server_resume(struct call *c);
/* The answer is complete: frees what the call kept for webhooks, and reports it. */
void server_finish(struct call *c);

/* ---- route.c */
bool call_route(struct call *c); /* false: answered */

/* ---- negotiate.c */
bool call_negotiate(struct call *c); /* false: answered with 406 */
/* The version of aggregated discovery that the client accepts ("v2", "v2beta1"). NULL: the plain form. */
const char *call_aggregated_version(const struct call *c);
str call_header(const struct call *c, const char *name); /* "" when absent */
/* The media type of the body without parameters, in lower case; "" when there is none. */
str call_content_type(const struct call *c);

/* ---- options.c: query parameters */
str call_query(const struct call *c, const char *name); /* decoded; .p NULL when absent */
bool call_query_true(const struct call *c, const char *name);

struct write_options {
    bool dry_run;
    bool strict, warn; /* fieldValidation; neither: Ignore */
    bool force;
    str manager;        /* fieldManager; default: User-Agent up to the first slash */
    bool manager_given; /* fieldManager is set */
};
bool call_write_options(struct call *c, const char *kind,
                        struct write_options *ret); /* false: 4xx */

enum version_match { MATCH_ANY, MATCH_NOT_OLDER, MATCH_EXACT };

struct list_options {
    struct label_selector labels;
    struct field_selector fields;
    int64_t limit; /* 0: unlimited */
    str continue_token;
    int64_t rev; /* resourceVersion; 0: unset or "0" */
    enum version_match match;
    bool bookmarks, initial_events;
    int64_t timeout_s; /* of a watch; 0: unset */
};
bool call_list_options(struct call *c, struct list_options *ret); /* false: 4xx */
void call_bad_version(struct call *c, str version); /* 500, as kube-apiserver answers */

/* ---- body.c */
void call_wrong_kind(struct call *c, const struct kind *k,
                     const struct json *tree); /* 422, of a custom resource */
/* The decoded body, an object of kind k. Unknown fields cause a warning or a refusal. NULL: answered. */
struct json *call_body_object(struct call *c, const struct kind *k, const struct write_options *o);
/* The body as a tree of any kind (DeleteOptions). NULL: answered. */
struct json *call_body_tree(struct call *c);
/* Warns about unknown and duplicate fields. False: refused, because validation is strict
 * (`patched`: with 422 instead of 400). */
bool call_validate_fields(struct call *c, const struct kind *k, const struct write_options *o,
                          const struct schema_unknown *unknown,
                          const struct schema_unknown *duplicates, bool patched);

/* ---- auth.c */
bool call_authenticate(struct call *c); /* false: answered with 401 */
bool call_authorize(struct call *c);    /* false: answered with 403 */
/* A PUT or apply that creates its object also needs the verb `create`. False: answered with 403. */
bool call_authorize_create(struct call *c);

/* ---- review.c */
void review_answer(struct call *c, struct json *review); /* SubjectAccessReview, TokenReview, ... */

/* ---- answer.c */

/* A temporary arena for a part of the work of a call, so that a call that waits, or that has many objects, keeps nothing
 * of it. What was added to the answer meanwhile is copied to the arena of the call. */
struct call_scratch {
    struct arena arena, *outer;
    size_t headers, warnings; /* how many there were at the beginning */
};
void call_enter_scratch(struct call *c, struct call_scratch *s);
void call_leave_scratch(struct call *c, struct call_scratch *s);
void call_discard_answer(struct call *c); /* there is none yet: the call runs again, or ends */
void call_warn(struct call *c, str text); /* Warning: 299 - "text" */
void call_add_header(struct call *c, const char *name, str value);
void call_text(struct call *c, int status, const char *content_type, str body);
void call_json(struct call *c, int status, const struct json *body);
/* An object in the version of the call, in the form the client asked for. */
void call_object(struct call *c, int status, const struct kind *k, struct json *object);

/* ---- status.c: failures; each fills in the answer */
struct status {
    int code;
    const char *reason; /* NULL: none */
    str message;
    str name, group, kind, uid; /* details */
    struct json *causes;
    int retry_after_s;
    bool empty_details; /* write "details": {} when there is nothing in it */
};
struct json *status_tree(struct arena *a, const struct status *s);
void call_status(struct call *c, const struct status *s);
void call_bad_request(struct call *c, const char *format, ...) PRINTF_LIKE(2, 3);
void call_not_found(struct call *c, const struct kind *k, str name);
void call_no_resource(struct call *c); /* 404 of a path below a known group */
void call_no_page(struct call *c);     /* 404 of any other path, as plain text */
void call_method_not_allowed(struct call *c);
void call_already_exists(struct call *c, const struct kind *k, str name, bool deleting);
void call_conflict(struct call *c, const struct kind *k, str name, str why);
void call_forbidden(struct call *c, const struct kind *k, str name, const char *format, ...)
    PRINTF_LIKE(4, 5);
void call_invalid(struct call *c, str kind, str group, str name, const struct field_errors *errors);
void call_fault(struct call *c, const struct kind *k, str name, const struct kind_fault *fault);
void call_expired(struct call *c, const char *message);

#endif
