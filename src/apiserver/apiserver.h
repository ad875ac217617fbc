/* apiserver: a Kubernetes API server in one process, for machines without a cluster.
 *
 *   store.h       objects, history and the file they survive in     (db, tree, history, object, scan)
 *   kinds.h       what a kind is and how it is written               (schema, types/, table, openapi)
 *   call.h        a request and its answer                           (route, options, verb_*, status)
 *   server.h      all of it together, and the controllers            (gc, namespace, definition, watch)
 *   apiserver.h   the same on a socket, with its keys and tokens     (this file; credentials)
 *
 * Everything runs on the loop it was given; only commits run on another thread. The server never includes
 * the client: they meet on the wire.
 *
 *     struct apiserver *s;
 *     if (apiserver_new(loop, &(struct apiserver_options){ .data = "data" }, &s, &e) == 0)
 *         printf("%s %s\n", apiserver_url(s), apiserver_kubeconfig(s));
 *
 * Read first: server_handle() in server.c, write_update() in verb_update.c, store.h. */
#ifndef FLYBALL_APISERVER_H
#define FLYBALL_APISERVER_H

#include "../net/loop.h"

struct apiserver;
struct exchange;

struct apiserver_options {
    const char *data;       /* directory, made when missing: state, keys, tokens, kubeconfig */
    const char *address;    /* to listen on; NULL: 127.0.0.1 */
    uint16_t port;          /* 0: any free one */
    bool in_memory;         /* nothing but keys and tokens is written */
    bool insecure_http;     /* no TLS; loopback only */
    bool allow_remote;      /* may listen beyond loopback */
    const char *token_file; /* more users; NULL: none */
    bool log_requests;      /* one line a request */
    size_t history_events;  /* how far watches can go back; 0: the default */
    /* Sees every request first; true when it answered in the server's place. For tests that count
     * requests or let some fail. NULL: none. */
    bool (*intercept)(void *context, struct exchange *x);
    void *intercept_context;
};

int apiserver_new(struct loop *loop, const struct apiserver_options *options,
                  struct apiserver **ret, err_t *e);
const char *apiserver_url(const struct apiserver *s);        /* "https://127.0.0.1:6443" */
const char *apiserver_kubeconfig(const struct apiserver *s); /* path */
const char *apiserver_admin_token(const struct apiserver *s);
const char *apiserver_ca_file(const struct apiserver *s); /* path; NULL without TLS */

/* Ends watches, answers what is under way, then calls `done` (at the latest after limit_ns). */
void apiserver_drain(struct apiserver *s, int64_t limit_ns, void (*done)(void *context),
                     void *context);
/* Waits for a commit that is under way. */
void apiserver_free(struct apiserver *s);

#endif
