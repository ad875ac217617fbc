/* Who may see the page.
 *
 *     this machine   flyball up prints /login?token=T once. T is replaced when it was used, and the next link is in
 *                    page.url of the data directory. The session is in page.session, so that a browser that is
 *                    logged in stays logged in across a restart.
 *     a cluster      the page sends the user's token to /login. A session keeps it in memory, and every request
 *                    authorizes it again (TokenReview and SubjectAccessReview, cached for a minute), so a user who
 *                    loses the permission loses the page.
 *
 * In both cases the browser has only a random session id, in a cookie that scripts cannot read and that is not sent
 * with requests from other sites. */
#include "../base/file.h"
#include "request_core.h"
#include "web_internal.h"

#include <stdio.h>

/* 128 random bits: too many to guess, so failed logins need no limit. */
static void make_token(char hex[static WEB_TOKEN_HEX + 1])
{
    unsigned char bytes[WEB_TOKEN_HEX / 2];
    tls_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

static bool is_token(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("0123456789abcdef", text.p[i]))
            return false;
    return text.n == WEB_TOKEN_HEX;
}

/* ---- this machine */

static void make_path(struct buf *out, const struct web *w, const char *name)
{
    buf_clear(out);
    buf_printf(out, "%s/%s", w->o.data, name);
}

/* A new one-time token, and the file with its link. */
static int renew_login(struct web *w, err_t *e)
{
    auto_buf struct buf path = { 0 }, line = { 0 };
    make_token(w->sessions.login);
    const char *address = w->o.address ? w->o.address : "127.0.0.1";
    bool v6 = strchr(address, ':');
    snprintf(w->sessions.url, sizeof(w->sessions.url), "http://%s%s%s:%u/login?token=%s",
             v6 ? "[" : "", address, v6 ? "]" : "", http_server_port(w->server), w->sessions.login);
    make_path(&path, w, "page.url");
    buf_printf(&line, "%s\n", w->sessions.url);
    return file_write_private(path.p, buf_str(&line), false, e);
}

/* The session of a former process, or a new one. All browsers of this machine's user share it. */
static int restore_session(struct web *w, err_t *e)
{
    auto_buf struct buf path = { 0 }, text = { 0 };
    struct web_session *s = &w->sessions.at[0];
    make_path(&path, w, "page.session");
    if (file_read(path.p, WEB_TOKEN_HEX + 1, &text, NULL) == 0 && is_token(buf_str(&text))) {
        memcpy(s->id, text.p, WEB_TOKEN_HEX + 1);
        return 0;
    }
    make_token(s->id);
    return file_write_private(path.p, str_c(s->id), false, e);
}

int web_sessions_init(struct web *w, err_t *e)
{
    snprintf(w->sessions.cookie, sizeof(w->sessions.cookie), "flyball-%u",
             http_server_port(w->server));
    if (w->o.authorize)
        return 0;
    int r = restore_session(w, e);
    return r < 0 ? r : renew_login(w, e);
}

void web_sessions_done(struct web *w)
{
    for (size_t i = 0; i < WEB_SESSIONS_MAX; i++)
        free(w->sessions.at[i].bearer);
}

/* ---- the cookie */

/* The session id of the request; "": none. */
static str read_cookie(const struct web *w, struct exchange *x)
{
    struct http_headers headers = exchange_headers(x);
    str id = S("");
    for (size_t i = 0; i < headers.n && !id.n; i++) /* HTTP/2 may send several headers */
        if (str_eq(headers.at[i].name, S("cookie")))
            id = web_request_cookie(headers.at[i].value, str_c(w->sessions.cookie));
    return id;
}

static void set_cookie(const struct web *w, struct exchange *x, const char *id)
{
    auto_buf struct buf value = { 0 };
    buf_printf(&value, "%s=%s; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict%s",
               w->sessions.cookie, id, w->o.tls ? "; Secure" : "");
    exchange_add_header(x, S("set-cookie"), buf_str(&value));
}

/* Compares all ids in constant time. */
static struct web_session *find_session(struct web *w, str id)
{
    struct web_session *found = NULL;
    for (size_t i = 0; i < WEB_SESSIONS_MAX; i++)
        if (w->sessions.at[i].id[0] && tls_secrets_equal(str_c(w->sessions.at[i].id), id))
            found = &w->sessions.at[i];
    return found;
}

void web_sessions_pass(struct web *w, struct exchange *x,
                       void (*serve)(void *context, struct exchange *x))
{
    str id = read_cookie(w, x);
    struct web_session *s = id.n == WEB_TOKEN_HEX ? find_session(w, id) : NULL;
    if (!s) {
        web_answer(x, 401, "text/plain",
                   w->o.authorize ? S("log in with a token\n")
                                  : S("log in with the link that \"flyball up\" prints\n"));
        return;
    }
    s->used_ns = loop_mono_ns(w->loop);
    if (s->bearer)
        w->o.authorize(w->o.context, str_c(s->bearer), x, serve, w);
    else
        serve(w, x);
}

/* ---- login */

static str bearer_of(struct exchange *x)
{
    return web_request_bearer(exchange_header(x, S("authorization")));
}

/* The token was authorized: a new session, instead of the one that was not used for the longest time. */
static void start_session(void *context, struct exchange *x)
{
    struct web *w = context;
    struct web_session *s = &w->sessions.at[0];
    str bearer = bearer_of(x);
    for (size_t i = 1; i < WEB_SESSIONS_MAX && s->id[0]; i++)
        if (!w->sessions.at[i].id[0] || w->sessions.at[i].used_ns < s->used_ns)
            s = &w->sessions.at[i];
    free(s->bearer);
    s->bearer = mem_dup(bearer.p, bearer.n);
    s->used_ns = loop_mono_ns(w->loop);
    make_token(s->id);
    set_cookie(w, x, s->id);
    web_answer(x, 200, "text/plain", S("ok\n"));
}

/* The token is replaced before the answer, so a link that leaked into a history is of no use. */
static void login_here(struct web *w, struct exchange *x)
{
    str token = S("");
    err_t e;
    if (uri_query_get(exchange_arena(x), exchange_query(x), S("token"), &token) != 1 ||
        !tls_secrets_equal(token, str_c(w->sessions.login))) {
        web_answer(x, 403, "text/plain",
                   S("this link was used already or is not valid; the current one is in the file "
                     "page.url of the data directory\n"));
        return;
    }
    if (renew_login(w, &e) < 0) {
        web_answer(x, 500, "text/plain", str_c(e.text));
        return;
    }
    set_cookie(w, x, w->sessions.at[0].id);
    exchange_add_header(x, S("location"), S("/"));
    web_answer(x, 303, "text/plain", S(""));
}

void web_sessions_login(struct web *w, struct exchange *x)
{
    str bearer = bearer_of(x);
    if (!w->o.authorize)
        login_here(w, x);
    else if (!bearer.n || bearer.n > WEB_BEARER_MAX)
        web_answer(x, 401, "text/plain", S("a bearer token is required\n"));
    else
        w->o.authorize(w->o.context, bearer, x, start_session, w);
}
