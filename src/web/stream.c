/* The board as server-sent events.
 *
 *     id: 5f3a9c01-1042
 *     data: [["pod","market/a",{...}],["model","llm/chat",{...}],["pod","market/b",null]]
 *
 * An id is the epoch of the process and the sequence number of the last change in the message; null means that the
 * object is gone. A client that reconnects sends the id back (Last-Event-ID) and continues there. If that is not
 * possible, because the process is another one or the markers of removed objects were dropped, the stream begins
 * with the event "reset", and everything follows.
 *
 * A client is a cursor. Its messages are made when its connection has room, so a slow client gets fewer and larger
 * changes and holds no memory; one that reads nothing for the server's write timeout is disconnected. New changes
 * wake clients at most four times per second (feed.c). A stream ends after ten minutes, so that the session is
 * authorized again. */
#include "../base/clock.h"
#include "request_core.h"
#include "web_internal.h"

static const int64_t stream_ns = 600 * NS_PER_S;

struct web_client {
    struct list_item item; /* of web->clients */
    struct web *web;
    struct exchange *x;
    uint64_t cursor;
    int64_t until_ns; /* mono */
    bool greeted, reset;
};

/* JSON has no line breaks, which would end the data of an event. */
static void put_change(struct buf *out, const struct board_entry *e)
{
    buf_printf(out, "[\"%s\",", board_kind_name((enum board_kind)e->kind));
    json_write_text(out, board_key(e));
    buf_putc(out, ',');
    buf_put(out, e->gone ? S("null") : board_json(e));
    buf_putc(out, ']');
}

/* One message with all changes that fit. */
static enum stream_more pull_stream(void *context, struct buf *out, size_t room)
{
    struct web_client *c = context;
    const struct board *b = &c->web->board;
    size_t end = out->n + MAX(room, (size_t)1);
    if (!c->greeted)
        buf_printf(out, "retry: 1000\n%s\n", c->reset ? "event: reset\ndata: 1\n" : "");
    c->greeted = true;
    const struct board_entry *e = board_next(b, &c->cursor);
    if (!e)
        return STREAM_WAIT;
    buf_put(out, S("data: ["));
    put_change(out, e);
    while (out->n < end && (e = board_next(b, &c->cursor))) {
        buf_putc(out, ',');
        put_change(out, e);
    }
    buf_printf(out, "]\nid: %s-%llu\n\n", c->web->epoch, (unsigned long long)c->cursor);
    return c->cursor < b->seq ? STREAM_MORE : STREAM_WAIT;
}

static void on_stream_closed(void *context, bool complete)
{
    struct web_client *c = context;
    (void)complete;
    list_remove(&c->item);
    free(c);
}

void web_stream_start(struct web *w, struct exchange *x)
{
    struct web_client *c = mem_zero(1, sizeof(*c));
    c->web = w;
    c->x = x;
    c->until_ns = loop_mono_ns(w->loop) + loop_scale_timeout(w->loop, stream_ns);
    if (!web_request_event_id(exchange_header(x, S("last-event-id")), w->epoch, &c->cursor) ||
        !board_can_resume(&w->board, c->cursor)) {
        c->reset = true;
        c->cursor = 0;
    }
    list_append(&w->clients, &c->item);
    exchange_stream(x, 200, HTTP_HEADERS({ S("content-type"), S("text/event-stream") }),
                    &(struct stream_source){ .pull = pull_stream,
                                             .closed = on_stream_closed,
                                             .context = c,
                                             .length = -1 });
}

void web_stream_wake(struct web *w)
{
    int64_t now = loop_mono_ns(w->loop);
    list_each(struct web_client, c, &w->clients, item)
        if (now >= c->until_ns)
            exchange_end_stream(c->x, false);
        else if (c->cursor < w->board.seq)
            exchange_wake_stream(c->x);
}

void web_stream_end_all(struct web *w)
{
    list_each(struct web_client, c, &w->clients, item)
        exchange_end_stream(c->x, false);
}
