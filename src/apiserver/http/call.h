/* A request on its way through the server, and the answer it gets. Knows nothing of sockets: the HTTP
 * edge (serve.c) and tests make a call, hand it to server_handle() and are told through `finished`.
 *
 *   route.c       what the path names, and the verb           auth.c        who asks, and may they
 *   negotiate.c   what the answer may look like               options.c     what the query says
 *   verb_*.c      one file a verb                             status.c      how a request fails
 *
 * Memory: a call and everything it points to lives in its arena; the answer's body is a buffer that
 * whoever sends it takes over. */
#ifndef FLYBALL_CALL_H
#define FLYBALL_CALL_H

#include "../../base/vec.h"
#include "../../net/http_server.h"
#include "../kinds/kinds.h"
#include "../store/store.h"
#include "selector.h"

struct server;
struct kind_set;

enum verb {
    VERB_NONE, /* not a resource: discovery, health, documents */
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
    size_t n_groups;          /* those given; system:authenticated follows from `known` */
    const struct json *extra; /* what else is known; NULL: nothing */
    bool admin, reader;
    bool known; /* showed who it is */
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
    const struct stream_source *stream; /* instead of a body */
};

struct call {
    struct server *server;
    struct arena *arena;
    const struct request *request;
    void (*finished)(struct call *c); /* the answer is ready; sent once */
    void *context;                    /* of whoever made the call */

    struct user user;
    enum verb verb;
    str group, version, resource, ns, name, subresource; /* decoded; "" where absent */
    bool deprecated_watch;                               /* /watch/ in the path */
    const struct kind *kind;                             /* NULL: not a resource */
    struct kind_set *set;                                /* of kind, when custom */
    enum kind_sub sub;

    enum answer_form form;
    enum answer_text text;
    bool form_v1beta1; /* Table and friends of meta.k8s.io/v1beta1 */
    bool pretty;

    bool writes;        /* the answer waits for the store */
    bool apply_settled; /* managed fields of a create were settled by apply */
    struct store_waiter waiter;
    struct answer answer;
    int64_t started_ns;
};

/* Does all there is to do; `finished` may be called before it returns. */
void server_handle(struct server *s, struct call *c);

/* ---- route.c */
bool call_route(struct call *c); /* false: answered */

/* ---- negotiate.c */
bool call_negotiate(struct call *c); /* false: answered with 406 */
/* Does the request accept aggregated discovery ("v2", "v2beta1")? NULL: it wants the plain one. */
const char *call_wants_aggregated(const struct call *c);
str call_header(const struct call *c, const char *name); /* "" when absent */
/* The media type of the body without parameters, in lower case; "" when there is none. */
str call_content_type(const struct call *c);

/* ---- options.c: what the query says */
str call_query(const struct call *c, const char *name); /* decoded; .p NULL when absent */
bool call_query_true(const struct call *c, const char *name);

struct write_options {
    bool dry_run, strict, warn; /* fieldValidation; neither: ignore */
    bool force;
    str manager; /* fieldManager, else the beginning of User-Agent */
    bool manager_given;
};
bool call_write_options(struct call *c, const char *kind,
                        struct write_options *ret); /* false: 4xx */

enum version_match { MATCH_ANY, MATCH_NOT_OLDER, MATCH_EXACT };

struct list_options {
    struct label_selector labels;
    struct field_selector fields;
    int64_t limit; /* 0: none */
    str continue_token;
    int64_t rev; /* 0: none */
    bool rev_given;
    enum version_match match;
    bool bookmarks, initial_events;
    int64_t timeout_s; /* of a watch; 0: not said */
};
bool call_list_options(struct call *c, struct list_options *ret); /* false: 4xx */
void call_bad_version(struct call *c, str version); /* 500, as the real server has it */

/* ---- body.c */
void call_wrong_kind(struct call *c, const struct kind *k,
                     const struct json *tree); /* 422, of a custom resource */
/* The body as a tree of the expected kind, decoded; unknown fields warned of or refused. */
struct json *call_body_object(struct call *c, const struct kind *k, const struct write_options *o);
/* The body as any tree: DeleteOptions, patches. NULL: answered. */
struct json *call_body_tree(struct call *c);
/* Tells of unknown and duplicate fields; false: refused as strict (`patched`: 422 instead of 400). */
bool call_field_validation(struct call *c, const struct kind *k, const struct write_options *o,
                           const struct schema_unknown *unknown, const struct schema_unknown *twice,
                           bool patched);

/* ---- auth.c */
bool call_authenticate(struct call *c); /* false: answered with 401 */
bool call_authorize(struct call *c);    /* false: answered with 403 */
/* For PUT and apply that turn out to create: those need `create` too. False: answered with 403. */
bool call_may_create(struct call *c);

/* ---- review.c */
void answer_review(struct call *c, struct json *review); /* may I? may they? who is this? */

/* ---- answers */
void call_warn(struct call *c, str text); /* Warning: 299 - "text" */
void call_add_header(struct call *c, const char *name, str value);
void call_text(struct call *c, int status, const char *content_type, str body);
void call_json(struct call *c, int status, const struct json *body);
/* An object (in the version of the call) as the client wants to see it. */
void call_object(struct call *c, int status, const struct kind *k, struct json *object);

/* ---- status.c: failures; each fills in the answer */
struct status {
    int code;
    const char *reason; /* NULL: none */
    str message;
    str name, group, kind, uid; /* details */
    struct json *causes;
    int retry_after_s;
    bool empty_details; /* "details": {} */
};
struct json *status_tree(struct arena *a, const struct status *s);
void call_status(struct call *c, const struct status *s);
void call_bad_request(struct call *c, const char *format, ...) PRINTF_LIKE(2, 3);
void call_not_found(struct call *c, const struct kind *k, str name);
void call_no_resource(struct call *c); /* 404 of a path below a known group */
void call_no_page(struct call *c);     /* 404 of a path that nobody knows */
void call_method_not_allowed(struct call *c);
void call_exists(struct call *c, const struct kind *k, str name, bool deleting);
void call_conflict(struct call *c, const struct kind *k, str name, str why);
void call_forbidden(struct call *c, const struct kind *k, str name, const char *format, ...)
    PRINTF_LIKE(4, 5);
void call_invalid(struct call *c, str kind, str group, str name, const struct field_errors *errors);
void call_fault(struct call *c, const struct kind *k, str name, const struct kind_fault *fault);
void call_expired(struct call *c, const char *message);

#endif
