/* Threads: pool work that comes back as a message, and wake-ups from other threads. See loop.h. */
#include "loop_internal.h"

struct job {
    uv_work_t request;
    struct loop *loop;
    void (*run)(void *context);
    void (*done)(void *context);
    void *context;
};

static void on_pool(uv_work_t *request)
{
    struct job *job = request->data;
    job->run(job->context);
}

static void on_back(uv_work_t *request, int status UNUSED) /* never cancelled */
{
    struct job *job = request->data;
    job->loop->jobs--;
    loop_release(job->loop);
    if (job->done)
        job->done(job->context);
    free(job);
}

void loop_work(struct loop *loop, void (*run)(void *context), void (*done)(void *context),
               void *context)
{
    CHECK(loop, LOOP_MAGIC);
    struct job *job = mem_zero(1, sizeof(*job));
    *job = (struct job){ .loop = loop, .run = run, .done = done, .context = context };
    job->request.data = job;
    loop->jobs++;
    loop_hold(loop);
    int r = uv_queue_work(&loop->uv, &job->request, on_pool, on_back);
    assert(r == 0); /* fails only without a function to run */
    (void)r;
}

struct wakeup {
    uv_async_t handle;
    struct loop *loop;
    void (*fn)(void *context);
    void *context;
};

static void on_wakeup(uv_async_t *handle)
{
    struct wakeup *w = handle->data;
    loop_woken(w->loop);
    w->fn(w->context);
}

struct wakeup *wakeup_new(struct loop *loop, void (*fn)(void *context), void *context)
{
    CHECK(loop, LOOP_MAGIC);
    struct wakeup *w = mem_zero(1, sizeof(*w));
    *w = (struct wakeup){ .loop = loop, .fn = fn, .context = context };
    w->handle.data = w;
    uv_async_init(&loop->uv, &w->handle, on_wakeup); /* its pipe exists since loop_new */
    return w;
}

void wakeup_send(struct wakeup *w)
{
    uv_async_send(&w->handle);
}

static void on_wakeup_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void wakeup_free(struct wakeup *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->handle, on_wakeup_closed);
}
