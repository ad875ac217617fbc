/* The kernel cancels a timer on the wall clock when that clock is set: see schedule_wallclock.h. */
#include "schedule_wallclock.h"

#include <sys/timerfd.h>
#include <unistd.h>

struct schedule_wallclock {
    int fd; /* owned */
    struct fd_watch *watch;
    void (*on_set)(void *context);
    void *context;
};

static int arm(int fd)
{
    struct itimerspec far_away = { .it_value = { .tv_sec = INT32_MAX } };
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_away, NULL);
}

static void readable(void *context, unsigned events)
{
    struct schedule_wallclock *w = context;
    uint64_t expirations;
    (void)events;
    bool was_set = read(w->fd, &expirations, sizeof(expirations)) < 0 && errno == ECANCELED;
    if (arm(w->fd) < 0)
        fd_watch_set(w->watch, 0);
    if (was_set)
        w->on_set(w->context);
}

struct schedule_wallclock *schedule_wallclock_new(struct loop *loop, void (*on_set)(void *context),
                                                  void *context)
{
    auto_close int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || arm(fd) < 0)
        return NULL;
    struct schedule_wallclock *w = mem_zero(1, sizeof(*w));
    *w = (struct schedule_wallclock){ .fd = fd, .on_set = on_set, .context = context };
    if (fd_watch_new(loop, fd, readable, w, &w->watch) < 0) {
        free(w);
        return NULL;
    }
    fd_watch_set(w->watch, FD_READ);
    fd = -1;
    return w;
}

void schedule_wallclock_free(struct schedule_wallclock *w)
{
    if (!w)
        return;
    fd_watch_free(w->watch);
    fd_close_at(&w->fd);
    free(w);
}
