/* See pages.h. */
#include "pages.h"

#define TEXT HTTP_HEADERS({ S("Content-Type"), S("text/plain") })

struct pages pages;

enum stream_more pages_pull_event(void *context UNUSED, struct buf *out, size_t room UNUSED)
{
    if (pages.event[0]) {
        buf_printf(out, "%s\n", pages.event);
        pages.event[0] = '\0';
    }
    return pages.watch_ends ? STREAM_END : STREAM_WAIT;
}

/* /big: `context` bytes, as fast as they are taken. */
static enum stream_more big_pull(void *context, struct buf *out, size_t room)
{
    int64_t *left = context;
    size_t n = MIN(room, (size_t)*left);
    memset(buf_reserve(out, n), 'x', n);
    out->n += n;
    pages.pulled += n;
    *left -= (int64_t)n;
    return *left ? STREAM_MORE : STREAM_END;
}

static enum stream_more cut_pull(void *context UNUSED, struct buf *out, size_t room UNUSED)
{
    static int part;
    if (part++ % 2 == 0) {
        buf_put(out, S("half"));
        return STREAM_MORE;
    }
    return STREAM_CUT;
}

static void stream_closed(void *context, bool complete)
{
    pages.open--;
    pages.closed++;
    pages.complete += complete;
    if (context == &pages.watching)
        pages.watching = NULL;
    else
        free(context);
}

void pages_open_stream(struct exchange *x, struct stream_source source)
{
    pages.open++;
    source.closed = stream_closed;
    exchange_stream(x, 200, TEXT, &source);
}

static void answer_identity(struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    auto_buf struct buf b = { 0 };
    buf_put(&b, peer ? peer->user : S("anonymous"));
    for (size_t i = 0; peer && i < peer->group_count; i++)
        buf_printf(&b, "," STR_FMT, STR_ARG(peer->groups[i]));
    exchange_answer_buf(x, 200, TEXT, &b);
}

void pages_serve(void *context UNUSED, struct exchange *x)
{
    str path = exchange_path(x);
    pages.requests++;
    if (str_eq(path, S("/hello"))) {
        exchange_add_header(x, S("Warning"), S("299 - \"mind the gap\""));
        exchange_answer(x, 200, TEXT, S("hello"));
    } else if (str_eq(path, S("/echo"))) {
        exchange_answer(x, 201, TEXT, exchange_body(x));
    } else if (str_eq(path, S("/query"))) {
        exchange_answer(x, 200, TEXT, exchange_query(x));
    } else if (str_eq(path, S("/header"))) {
        exchange_answer(x, 200, TEXT, exchange_header(x, S("Authorization")));
    } else if (str_eq(path, S("/identity"))) {
        answer_identity(x);
    } else if (str_eq(path, S("/hold"))) {
        pages.held = x;
    } else if (str_eq(path, S("/none"))) {
        exchange_answer(x, 204, (struct http_headers){ 0 }, S(""));
    } else if (str_eq(path, S("/abort"))) {
        exchange_abort(x);
    } else if (str_eq(path, S("/watch"))) {
        pages.watching = x;
        pages_open_stream(x, (struct stream_source){ pages_pull_event, .context = &pages.watching,
                                                     .length = -1 });
    } else if (str_eq(path, S("/big"))) {
        int64_t *left = mem_zero(1, sizeof(*left));
        str size;
        uri_query_get(exchange_arena(x), exchange_query(x), S("n"), &size);
        str_to_i64(size, left);
        bool zip = str_find(exchange_query(x), S("zip")) != SIZE_MAX;
        pages_open_stream(x, (struct stream_source){ big_pull, .context = left, .length = -1,
                                                     .compress = zip });
    } else if (str_eq(path, S("/cut"))) {
        pages_open_stream(x, (struct stream_source){ cut_pull, .length = -1 });
    } else if (str_eq(path, S("/short"))) { /* announces 10 bytes, sends 4 */
        pages_open_stream(x, (struct stream_source){ cut_pull, .length = 10 });
    } else {
        exchange_answer(x, 404, TEXT, S("no such page"));
    }
}
