/* Shared by the files of web only. */
#ifndef FLYBALL_WEB_INTERNAL_H
#define FLYBALL_WEB_INTERNAL_H

#include "../base/list.h"
#include "../base/map.h"
#include "../json/json.h"
#include "board_core.h"
#include "web.h"

struct web_file { /* embedded, by deploy/embed.py */
    const char *name;
    const unsigned char *packed; /* gzip */
    size_t packed_bytes;
};
extern const struct web_file web_files[]; /* ends with a NULL name */

enum { WEB_SESSIONS_MAX = 256, WEB_TOKEN_HEX = 32, WEB_BEARER_MAX = 16 << 10 };

struct web_session {
    char id[WEB_TOKEN_HEX + 1]; /* "": free */
    char *bearer;               /* owned; authorized again on each request; NULL: this machine */
    int64_t used_ns;            /* mono: the least recently used one is replaced */
};

struct web_sessions {
    struct web_session at[WEB_SESSIONS_MAX];
    char login[WEB_TOKEN_HEX + 1]; /* the one-time token; "": users log in with a bearer token */
    char cookie[32];               /* its name: cookies are shared by all ports of a host */
    char url[128];
};

struct web {
    struct web_options o;
    struct loop *loop;
    struct board board;
    char epoch[9]; /* of this process, in event ids: a number of another process means nothing */
    struct web_sessions sessions;
    struct http_server *server;
    struct list clients; /* struct web_client */
    struct timer tick;   /* wakes clients that have something to read */
    struct timer slow;   /* numbers without an event: models, nodes, health, samples */
    struct cache *schedules, *allocations, *services, *configs, *cluster_configs; /* NULL: none */
    void *saturation, *scheduler; /* states of features; NULL: they do not run */
    struct map nodes;             /* struct web_node, owned: by name */
    uint64_t round;               /* of the slow timer */
    bool viewed;                  /* by another view than the page */
    bool stopping;
};

/* feed.c: attaches to caches, events and states */
void web_feed_start(struct web *w);
void web_feed_stop(struct web *w);
/* Changes are sent with the next tick; call it after each change of the board. */
void web_feed_announce(struct web *w);

/* models.c */
void web_models_update(struct web *w, bool thorough); /* thorough: look for removed ones too */
void web_models_detail(struct web *w, struct arena *a, str ns, str name, struct buf *out);

/* market.c */
void web_market_put(struct web *w, const struct record *old, const struct record *now);
void web_market_update_nodes(struct web *w);
void web_market_done(struct web *w);

/* health.c */
void web_health_update(struct web *w);

/* detail.c */
void web_detail_answer(struct web *w, struct exchange *x);
void web_series_answer(struct web *w, struct exchange *x);

/* stream.c */
void web_stream_start(struct web *w, struct exchange *x);
void web_stream_wake(struct web *w);
void web_stream_end_all(struct web *w);

/* sessions.c */
int web_sessions_init(struct web *w, err_t *e);
void web_sessions_done(struct web *w);
/* Calls `serve` if the request has a session that may see the page; otherwise answers it. */
void web_sessions_pass(struct web *w, struct exchange *x,
                       void (*serve)(void *context, struct exchange *x));
void web_sessions_login(struct web *w, struct exchange *x);

/* server.c */
void web_answer(struct exchange *x, int status, const char *type, str body);
static inline void web_answer_json(struct exchange *x, struct buf *body)
{
    web_answer(x, 200, "application/json", buf_str(body));
}

/* `"key":value,` parts of a JSON object, or `value,` of an array if the key is NULL. A number that is not finite is null. */
void web_put_text(struct buf *out, const char *key, str value);
void web_put_real(struct buf *out, const char *key, double value);
void web_put_int(struct buf *out, const char *key, int64_t value); /* negative: null */
void web_put_raw(struct buf *out, const char *key, str json);      /* "": null */

#endif
