/* Work on a thread: see loop.h.
 *
 * Jobs go jobs and come results through pipes. libuv's pool was the first attempt, and its wake-ups cost more than the
 * work: who writes to a pipe tells the kernel that it is about to wait, so the reader goes on where the writer was; a
 * condition and an eventfd wake another processor instead, which on virtual machines takes 50 us each way. */
#include "loop_internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { IN_FLIGHT_MAX = 4096 }; /* a pipe holds twice as many: writing to one never blocks */

struct worker {
    struct loop *loop;
    pthread_t thread;
    int jobs[2], results[2]; /* a pointer to struct work each time */
    struct fd_watch *watch;
    size_t in_flight;
};

static bool receive_work(int fd, struct work **ret)
{
    ssize_t n;
    while ((n = read(fd, ret, sizeof(struct work *))) < 0 && errno == EINTR)
        continue;
    return n == sizeof(struct work *); /* a pipe never splits so few bytes */
}

static void send_work(int fd, struct work *work)
{
    ssize_t n;
    while ((n = write(fd, &work, sizeof(struct work *))) < 0 && errno == EINTR)
        continue;
    assert(n == sizeof(struct work *));
    (void)n;
}

static void *run_jobs(void *context)
{
    struct worker *w = context;
    for (struct work *work; receive_work(w->jobs[0], &work);) {
        work->run(work);
        send_work(w->results[1], work);
    }
    return NULL;
}

static void on_results(void *context, unsigned events)
{
    struct worker *w = context;
    (void)events;
    for (struct work *work; receive_work(w->results[0], &work);) {
        w->in_flight--;
        loop_release(w->loop);
        work->done(work);
    }
}

/* Signals are the loop's. */
static int start_worker_thread(struct worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&w->thread, NULL, run_jobs, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

static void free_worker(struct worker *w)
{
    int all[] = { w->jobs[0], w->jobs[1], w->results[0], w->results[1] };
    fd_watch_free(w->watch);
    for (size_t i = 0; i < countof(all); i++)
        if (all[i] >= 0)
            close(all[i]);
    free(w);
}

int worker_new(struct loop *loop, struct worker **ret, err_t *e)
{
    CHECK(loop, LOOP_MAGIC);
    struct worker *w = mem_zero(1, sizeof(*w));
    *w = (struct worker){ .loop = loop, .jobs = { -1, -1 }, .results = { -1, -1 } };
    int result = 0;
    if (pipe2(w->jobs, O_CLOEXEC) < 0 || pipe2(w->results, O_CLOEXEC) < 0 ||
        fcntl(w->results[0], F_SETFL, O_NONBLOCK) < 0)
        result = -errno;
    if (result == 0)
        result = fd_watch_new(loop, w->results[0], on_results, w, &w->watch);
    if (result == 0)
        result = start_worker_thread(w);
    if (result < 0) {
        free_worker(w);
        return err_set(e, -result, "cannot start a thread: %s", strerror(-result));
    }
    fd_watch_set(w->watch, FD_READ);
    *ret = w;
    return 0;
}

void worker_submit(struct worker *w, struct work *work)
{
    assert(w->in_flight < IN_FLIGHT_MAX);
    w->in_flight++;
    loop_hold(w->loop);
    send_work(w->jobs[1], work);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    close(w->jobs[1]); /* it ends when it has read what is left */
    w->jobs[1] = -1;
    pthread_join(w->thread, NULL);
    on_results(w, FD_READ);
    free_worker(w);
}
