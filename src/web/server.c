/* The server of the page: routes, headers and the embedded files.
 *
 *     /  /page.css  /page.js   the page, without any data
 *     /login                   begins a session
 *     /events                  the stream
 *     /detail  /series         one object
 *
 * Everything but the first line needs a session. Answers are never cached. The content security policy allows no
 * inline script or style, no frame and no other host, so a name that contains HTML cannot do anything even if the
 * page failed to treat it as text. */
#include "../base/log.h"
#include "../net/gzip.h"
#include "web_internal.h"

#include <math.h>
#include <stdio.h>

enum { CONNECTIONS_MAX = 512 };

/* ---- JSON */

static void put_key(struct buf *out, const char *key)
{
    if (key)
        buf_printf(out, "\"%s\":", key);
}

void web_put_text(struct buf *out, const char *key, str value)
{
    put_key(out, key);
    json_write_text(out, value);
    buf_putc(out, ',');
}

void web_put_raw(struct buf *out, const char *key, str json)
{
    put_key(out, key);
    buf_put(out, json.n ? json : S("null"));
    buf_putc(out, ',');
}

void web_put_real(struct buf *out, const char *key, double value)
{
    put_key(out, key);
    if (isfinite(value))
        json_write_real(out, value);
    else
        buf_put(out, S("null"));
    buf_putc(out, ',');
}

void web_put_int(struct buf *out, const char *key, int64_t value)
{
    web_put_real(out, key, value < 0 ? NAN : (double)value);
}

/* ---- answers */

static void add_headers(struct exchange *x)
{
    static const struct http_header headers[] = {
        { STR_INIT("content-security-policy"),
          STR_INIT("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                   "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'") },
        { STR_INIT("x-content-type-options"), STR_INIT("nosniff") },
        { STR_INIT("cache-control"), STR_INIT("no-store") },
        { STR_INIT("referrer-policy"), STR_INIT("no-referrer") },
        { STR_INIT("cross-origin-resource-policy"), STR_INIT("same-origin") },
        { STR_INIT("cross-origin-opener-policy"), STR_INIT("same-origin") },
    };
    for (size_t i = 0; i < countof(headers); i++)
        exchange_add_header(x, headers[i].name, headers[i].value);
}

void web_answer(struct exchange *x, int status, const char *type, str body)
{
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), str_c(type) }), body);
}

/* Browsers take the file as it is embedded. */
static void answer_file(struct exchange *x, const struct web_file *f)
{
    str packed = { (const char *)f->packed, f->packed_bytes };
    const char *type = strstr(f->name, ".css")  ? "text/css; charset=utf-8"
                       : strstr(f->name, ".js") ? "text/javascript; charset=utf-8"
                                                : "text/html; charset=utf-8";
    exchange_add_header(x, S("vary"), S("accept-encoding"));
    if (http_value_has_token(exchange_header(x, S("accept-encoding")), S("gzip"))) {
        exchange_add_header(x, S("content-encoding"), S("gzip"));
        web_answer(x, 200, type, packed);
        return;
    }
    auto_buf struct buf text = { 0 };
    struct gzip *z = gzip_reader_new();
    while (!gzip_is_complete(z))
        if (gzip_read(z, &packed, &text, SIZE_MAX) < 0)
            abort(); /* packed at build time: cannot fail */
    gzip_free(z);
    web_answer(x, 200, type, buf_str(&text));
}

static const struct web_file *find_file(str path)
{
    str name = path.n == 1 ? S("page.html") : str_from(path, 1);
    const struct web_file *f = web_files;
    while (f->name && !str_eqc(name, f->name))
        f++;
    return f->name ? f : NULL;
}

/* ---- requests */

/* The session is valid, at once or after the API server was asked: the page may be stopping by now. */
static void serve_data(void *context, struct exchange *x)
{
    struct web *w = context;
    str path = exchange_path(x);
    if (w->stopping)
        web_answer(x, 503, "text/plain", S("stopping\n"));
    else if (str_eq(path, S("/events")))
        web_stream_start(w, x);
    else if (str_eq(path, S("/detail")))
        web_detail_answer(w, x);
    else if (str_eq(path, S("/series")))
        web_series_answer(w, x);
    else
        web_answer(x, 404, "text/plain", S("not found\n"));
}

static void on_request(void *context, struct exchange *x)
{
    struct web *w = context;
    str path = exchange_path(x), method = exchange_method(x);
    const struct web_file *f = find_file(path);
    add_headers(x);
    bool login = str_eq(path, S("/login"));
    /* HEAD must not use the link up */
    if (!str_eq(method, S("GET")) && (login || !str_eq(method, S("HEAD")))) {
        exchange_add_header(x, S("allow"), S("GET, HEAD"));
        web_answer(x, 405, "text/plain", S("only GET is supported\n"));
    } else if (f) {
        answer_file(x, f);
    } else if (login) {
        web_sessions_login(w, x);
    } else {
        web_sessions_pass(w, x, serve_data);
    }
}

/* ---- start and stop */

int web_new(const struct web_options *options, struct web **ret, err_t *e)
{
    struct web *w = mem_zero(1, sizeof(*w));
    uint32_t epoch;
    w->o = *options;
    w->loop = manager_loop(options->manager);
    tls_random(&epoch, sizeof(epoch));
    snprintf(w->epoch, sizeof(w->epoch), "%08x", epoch);
    struct http_server_options o = { .address = options->address,
                                     .port = options->port,
                                     .tls = options->tls,
                                     .on_request = on_request,
                                     .context = w,
                                     .max_connections = CONNECTIONS_MAX,
                                     .max_body_bytes = 4096,
                                     .max_unread_bytes = 4 << 20,
                                     .write_timeout_ns = 15 * NS_PER_S };
    int r = options->unserved ? 0 : http_server_new(w->loop, &o, &w->server, e);
    r = r < 0 || options->unserved ? r : web_sessions_init(w, e);
    if (r < 0) {
        http_server_free(w->server);
        free(w);
        return r;
    }
    web_feed_start(w);
    *ret = w;
    return 0;
}

uint16_t web_port(const struct web *w)
{
    return http_server_port(w->server);
}

const struct board *web_view(struct web *w)
{
    w->viewed = true;
    return &w->board;
}

const char *web_login_url(const struct web *w)
{
    return w->sessions.url;
}

void web_stop(struct web *w, int64_t limit_ns, void (*done)(void *context), void *context)
{
    w->stopping = true;
    web_stream_end_all(w);
    if (w->o.unserved)
        done(context);
    else
        http_server_drain(w->server, limit_ns, done, context);
}

void web_free(struct web *w)
{
    if (!w)
        return;
    w->stopping = true;
    web_feed_stop(w);
    http_server_free(w->server); /* streams are closed, which needs the clients' list */
    web_sessions_done(w);
    board_done(&w->board);
    free(w);
}
