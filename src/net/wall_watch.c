/* Notifies when the wall clock is set: see loop.h. The kernel cancels a timerfd on that clock when
 * it is set (TFD_TIMER_CANCEL_ON_SET), which makes it readable with ECANCELED. In virtual time
 * loop_set_wall() sets the clock and notifies the watches itself. */
#include "loop_internal.h"

#include <sys/timerfd.h>
#include <unistd.h>

struct wall_watch {
    struct loop *loop;
    struct list_item item; /* of loop->wall_watches */
    int fd;                /* owned timerfd; -1: none */
    struct fd_watch *watch;
    void (*fn)(void *context);
    void *context;
};

/* As far in the future as the kernel counts (the year 2262): only the cancellation matters, and a time that has
 * passed would make the descriptor readable again each time it is armed. */
static int arm_timerfd(int fd)
{
    struct itimerspec far_away = { .it_value = { .tv_sec = INT64_MAX / NS_PER_S } };
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_away, NULL);
}

static void on_timerfd_readable(void *context, unsigned events UNUSED)
{
    struct wall_watch *w = context;
    uint64_t expirations;
    bool was_set = read(w->fd, &expirations, sizeof(expirations)) < 0 && errno == ECANCELED;
    if (arm_timerfd(w->fd) < 0)
        fd_watch_set(w->watch, 0);
    if (was_set)
        w->fn(w->context);
}

/* Without a timerfd the watch exists but never fires. */
static void watch_system_clock(struct wall_watch *w)
{
    w->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->fd < 0 || arm_timerfd(w->fd) < 0 ||
        fd_watch_new(w->loop, w->fd, on_timerfd_readable, w, &w->watch) < 0)
        file_close_at(&w->fd);
    else
        fd_watch_set(w->watch, FD_READ);
}

struct wall_watch *wall_watch_new(struct loop *loop, void (*fn)(void *context), void *context)
{
    CHECK(loop, LOOP_MAGIC);
    struct wall_watch *w = mem_zero(1, sizeof(*w));
    *w = (struct wall_watch){ .loop = loop, .fd = -1, .fn = fn, .context = context };
    list_prepend(&loop->wall_watches, &w->item);
    if (loop->time == LOOP_REAL)
        watch_system_clock(w);
    return w;
}

void wall_watch_free(struct wall_watch *w)
{
    if (!w)
        return;
    list_remove(&w->item);
    fd_watch_free(w->watch);
    file_close_at(&w->fd);
    free(w);
}

void loop_set_wall(struct loop *loop, int64_t wall_ns)
{
    CHECK(loop, LOOP_MAGIC);
    assert(loop->time == LOOP_VIRTUAL);
    loop->wall_start_ns += wall_ns - loop->wall_ns;
    loop->wall_ns = wall_ns;
    for (struct list_item *item = loop->wall_watches.first, *next; item; item = next) {
        struct wall_watch *w = container_of(item, struct wall_watch, item);
        next = item->next;
        w->fn(w->context);
    }
}
