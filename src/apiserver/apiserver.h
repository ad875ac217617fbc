/* A Kubernetes API server in one process, for machines without a cluster.
 *
 *   schema/             types, structural schemas, OpenAPI
 *   kinds/kinds.h       kinds: defaults, validation, conversion, tables
 *   store/store.h       objects, history, and the database file
 *   http/call.h         one request and its answer
 *   http/server.h       the server: store, catalog, watches, controllers
 *   controllers/        garbage collection, namespaces, definitions, claims, roles
 *   apiserver.h         the server on a socket, with its credentials (this file)
 *
 * Everything runs on the given loop; only commits run on another thread. The server includes no client code:
 * client and server share nothing but the protocol. Webhooks are called with the HTTP client of net/.
 *
 *     struct apiserver *s;
 *     if (apiserver_new(loop, &(struct apiserver_options){ .data = "data" }, &s, &e) == 0)
 *         printf("%s %s\n", apiserver_url(s), apiserver_kubeconfig(s));
 *
 * Read first: server_handle() in http/server.c, verb_update_object() in http/verb_update.c, store/store.h. */
#ifndef FLYBALL_APISERVER_H
#define FLYBALL_APISERVER_H

#include "../net/loop.h"

struct apiserver;
struct exchange;

struct apiserver_options {
    const char *data;    /* directory for state, keys, tokens and kubeconfig; created if missing */
    const char *address; /* to listen on; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free port */
    bool in_memory;      /* write only keys, tokens and the kubeconfig */
    bool insecure_http;  /* no TLS; loopback only */
    bool allow_remote;   /* allow addresses other than loopback */
    const char *token_file;           /* more users; NULL: none */
    const char *cert_file, *key_file; /* of the server; NULL: made for each start */
    const char *client_ca_file;       /* also trusted for client certificates; NULL: none */
    bool
        no_accounts; /* no default service accounts; pods need none. Like kube-apiserver without its controller */
    bool allow_all;    /* authorize every request */
    bool no_anonymous; /* refuse requests without credentials */
    /* Where the services of webhooks are: "NAME.NS=ADDR[:PORT],..."; NULL: nowhere. */
    const char *service_addresses;
    bool log_requests;     /* log one line per request */
    size_t history_events; /* events that watches can go back; 0: the store's default */
    /* Sees each request first; returns true if it answered in place of the server. For tests that count
     * requests or make some fail. NULL: none. */
    bool (*intercept)(void *context, struct exchange *x);
    void *intercept_context;
};

int apiserver_new(struct loop *loop, const struct apiserver_options *options,
                  struct apiserver **ret, err_t *e);
const char *apiserver_url(const struct apiserver *s);        /* "https://127.0.0.1:6443" */
const char *apiserver_kubeconfig(const struct apiserver *s); /* path */
const char *apiserver_admin_token(const struct apiserver *s);

/* Ends watches, finishes running requests, then calls `done`, at the latest after limit_ns. */
void apiserver_drain(struct apiserver *s, int64_t limit_ns, void (*done)(void *context),
                     void *context);
/* Waits for a running commit. */
void apiserver_free(struct apiserver *s);

#endif
