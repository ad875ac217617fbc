/* Signals as events of the loop, on uv_signal: see loop.h. */
#include "loop_internal.h"

struct signal_watch {
    uv_signal_t handle;
    struct loop *loop;
    void (*fn)(void *context);
    void *context;
};

static void on_signal(uv_signal_t *handle, int signal_number UNUSED)
{
    struct signal_watch *w = handle->data;
    loop_note_activity(w->loop);
    w->fn(w->context);
}

static void on_signal_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void signal_watch_free(struct signal_watch *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->handle, on_signal_closed);
}

int signal_watch_new(struct loop *loop, int signal_number, void (*fn)(void *context), void *context,
                     struct signal_watch **ret)
{
    CHECK(loop, LOOP_MAGIC);
    struct signal_watch *w = mem_zero(1, sizeof(*w));
    *w = (struct signal_watch){ .loop = loop, .fn = fn, .context = context };
    int r = uv_signal_init(&loop->uv, &w->handle);
    if (r < 0) {
        free(w);
        return r;
    }
    w->handle.data = w;
    r = uv_signal_start(&w->handle, on_signal, signal_number);
    if (r < 0) {
        signal_watch_free(w);
        return r;
    }
    *ret = w;
    return 0;
}
