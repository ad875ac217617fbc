/* The head, body and trailers of an HTTP/2 answer, as nghttp2 takes them: see h2_answer.h.
 *
 * The head is submitted at once and copied by nghttp2. The body follows when the connection has room: nghttp2 calls
 * read_body(), which takes what the exchange has (exchange_read()), defers the stream while there is nothing, and
 * resets it if the answer was cut off. Names become lower case, which HTTP/2 requires, and headers that the server
 * sets itself are dropped. */
#include "h2_answer.h"

#include "http.h"

enum { HEADERS_MAX = 64, TRAILERS_MAX = 4 }; /* per answer; further ones are dropped */

/* Submits the headers after the body, which end the stream instead of the last DATA frame. */
static void submit_trailers(nghttp2_session *ng, const struct exchange *x, uint32_t *flags)
{
    nghttp2_nv block[TRAILERS_MAX];
    size_t n = 0;
    for (const struct exchange_trailer *t = x->trailers; t && n < TRAILERS_MAX; t = t->next)
        block[n++] = (nghttp2_nv){ (uint8_t *)(uintptr_t)t->name.p,
                                   (uint8_t *)(uintptr_t)t->value.p, t->name.n, t->value.n, 0 };
    if (n && nghttp2_submit_trailer(ng, x->stream_id, block, n) == 0)
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
}

/* NOLINTNEXTLINE(readability-function-size): nghttp2 decides the parameters */
static ssize_t read_body(nghttp2_session *ng, int32_t stream_id UNUSED, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *data UNUSED)
{
    enum stream_more more;
    size_t n = exchange_read(source->ptr, (char *)to, room, &more);
    if (more == STREAM_END) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        submit_trailers(ng, source->ptr, flags);
    } else if (n == 0 && more == STREAM_CUT)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    else if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)n;
}

struct header_block {
    nghttp2_nv at[HEADERS_MAX];
    size_t n;
    struct arena *arena;
};

static void put_header(struct header_block *b, str name, str value)
{
    if (b->n == HEADERS_MAX)
        return;
    str lower = arena_lower(b->arena, name); /* HTTP/2 requires it */
    b->at[b->n++] = (nghttp2_nv){ (uint8_t *)(uintptr_t)lower.p, (uint8_t *)(uintptr_t)value.p,
                                  lower.n, value.n, 0 };
}

static void put_headers(struct header_block *b, struct http_headers headers)
{
    for (size_t i = 0; i < headers.n; i++)
        if (http_header_is_valid(headers.at[i]) && !session_sets_header(headers.at[i].name))
            put_header(b, headers.at[i].name, headers.at[i].value);
}

void h2_answer_submit(nghttp2_session *ng, struct exchange *x, const struct answer_head *head,
                      str date)
{
    struct header_block block = { .arena = &x->request->arena };
    char status[STR_I64_ROOM], length[STR_I64_ROOM];
    put_header(&block, S(":status"), str_of_i64(head->status, status));
    put_header(&block, S("date"), date);
    if (head->gzip) {
        put_header(&block, S("content-encoding"), S("gzip"));
        put_header(&block, S("vary"), S("accept-encoding"));
    }
    if (head->length >= 0 && head->status != 204 && head->status != 304)
        put_header(&block, S("content-length"), str_of_i64(head->length, length));
    put_headers(&block, head->added);
    put_headers(&block, head->headers);
    nghttp2_data_provider body = { .source.ptr = x, .read_callback = read_body };
    bool empty = x->head_only || (x->ended && !x->pending.n);
    if (nghttp2_submit_response(ng, x->stream_id, block.at, block.n, empty ? NULL : &body) < 0)
        nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, x->stream_id, NGHTTP2_INTERNAL_ERROR);
}
