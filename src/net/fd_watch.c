/* Readiness of descriptors, on uv_poll: see loop.h. */
#include "loop_internal.h"

struct fd_watch {
    uv_poll_t handle;
    struct loop *loop;
    unsigned events; /* requested: FD_READ | FD_WRITE */
    void (*fn)(void *context, unsigned events);
    void *context;
};

static void on_ready(uv_poll_t *handle, int status, int got);

static void start_poll(struct fd_watch *w)
{
    int wanted = (w->events & FD_READ ? UV_READABLE : 0) | (w->events & FD_WRITE ? UV_WRITABLE : 0);
    uv_poll_start(&w->handle, wanted, on_ready);
}

/* An error is reported as all requested events: the read or write that follows returns it. */
static void on_ready(uv_poll_t *handle, int status, int got)
{
    struct fd_watch *w = handle->data;
    unsigned events = w->events;
    if (status == 0)
        events &= (got & (UV_READABLE | UV_DISCONNECT) ? FD_READ : 0u) |
                  (got & UV_WRITABLE ? FD_WRITE : 0u);
    else /* libuv stops polling at an error, but earlier bytes may still be readable */
        start_poll(w);
    loop_note_activity(w->loop);
    if (events)
        w->fn(w->context, events);
}

int fd_watch_new(struct loop *loop, int fd, void (*fn)(void *context, unsigned events),
                 void *context, struct fd_watch **ret)
{
    CHECK(loop, LOOP_MAGIC);
    struct fd_watch *w = mem_zero(1, sizeof(*w));
    *w = (struct fd_watch){ .loop = loop, .fn = fn, .context = context };
    int r = uv_poll_init(&loop->uv, &w->handle, fd);
    if (r < 0) {
        free(w);
        return r;
    }
    w->handle.data = w;
    *ret = w;
    return 0;
}

void fd_watch_set(struct fd_watch *w, unsigned events)
{
    if (events == w->events)
        return;
    w->events = events;
    if (!events) {
        uv_poll_stop(&w->handle);
        return;
    }
    start_poll(w);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void fd_watch_free(struct fd_watch *w)
{
    if (!w)
        return;
    uv_poll_stop(&w->handle);
    uv_close((uv_handle_t *)&w->handle, on_watch_closed);
}
