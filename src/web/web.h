/* web: the live page, and the stream of live state behind it.
 *
 *   board_core    what the page shows now: one JSON text per object, in the order of the last change; and a
 *                 short history of its numbers. Pure.
 *   feed          from the caches and states that the controllers already have to the board
 *   models        the part of it that comes from the saturation engine
 *   health        the part of it that comes from the metrics registry
 *   detail        what the page requests when the user opens an object
 *   stream        the board as server-sent events
 *   sessions      who may see it
 *   request_core  cookies, credentials and event ids of a request. Pure.
 *   server        routes, headers, the embedded files of page/
 *
 * The page adds no watch and no request to the API server: it attaches handlers to the caches of the features
 * and an observer to their events. It is read-only: methods other than GET and HEAD are refused.
 *
 * Memory: struct web owns the board, the sessions and the server. Caches and states belong to the manager, which
 * must be freed after the page.
 *
 * Read first: board_put() in board_core.h, web_feed_start(), pull_stream() in stream.c. */
#ifndef FLYBALL_WEB_H
#define FLYBALL_WEB_H

#include "../kube/manager.h"
#include "../net/http_server.h"
#include "board_core.h"

struct web;

/* Calls `serve` if the user of the token may see the page; otherwise answers the exchange itself. The token is
 * borrowed. */
typedef void web_authorize_fn(void *context, str token, struct exchange *x,
                              void (*serve)(void *context, struct exchange *x),
                              void *serve_context);

struct web_options {
    struct manager *manager;
    const char *address; /* NULL: 127.0.0.1 */
    uint16_t port;       /* 0: any free one */
    struct tls *tls;     /* NULL: plain HTTP */
    /* A cluster: users log in with a token, which is authorized again whenever a stream begins. NULL: this
     * machine, where users log in with a one-time token that is kept in `data`. */
    web_authorize_fn *authorize;
    void *context;
    const char *data; /* directory; only without `authorize` */
    bool unserved;    /* no page, only the board, for another view */
};

/* Serves the page. The manager may be running already. */
int web_new(const struct web_options *options, struct web **ret, err_t *e);
uint16_t web_port(const struct web *w);
const char *web_login_url(
    const struct web *w); /* with the one-time token; only without `authorize` */
/* Another view of the same state, on a terminal: from the first call on, the board is updated once per second even if
 * no page is open. */
const struct board *web_view(struct web *w);
/* What /detail answers for an object: JSON. */
void web_detail_write(struct web *w, struct arena *a, const struct board_entry *e, struct buf *out);
/* Ends all streams and drains the server; `done` is called at the end. */
void web_stop(struct web *w, int64_t limit_ns, void (*done)(void *context), void *context);
void web_free(struct web *w); /* NULL is allowed */

#endif
