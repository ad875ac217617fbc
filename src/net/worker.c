/* Worker threads: see loop.h.
 *
 *      loop  --jobs pipe-->  thread: work->run()  --results pipe-->  loop: work->done()
 *
 * Each message is a pointer to a struct work, which belongs to its owner. libuv's pool was tried
 * first, and its wakeups cost more than the work. A writer to a pipe hints to the kernel that it is
 * about to wait, so the reader continues on the writer's CPU; a condition variable and an eventfd
 * wake another CPU instead, which takes 50 us in each direction on virtual machines. */
#include "loop_internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { IN_FLIGHT_MAX = 4096 }; /* a pipe holds twice as many, so writing never blocks */

struct worker {
    struct loop *loop;
    pthread_t thread;
    int jobs[2], results[2]; /* pipes of pointers to struct work; -1: not open */
    struct fd_watch *watch;
    size_t in_flight;
};

static bool receive_work(int fd, struct work **ret)
{
    ssize_t n;
    while ((n = read(fd, ret, sizeof(struct work *))) < 0 && errno == EINTR)
        continue;
    return n == sizeof(struct work *); /* pipe writes of this size are atomic */
}

static void send_work(int fd, struct work *work)
{
    ssize_t n;
    while ((n = write(fd, &work, sizeof(struct work *))) < 0 && errno == EINTR)
        continue;
    assert(n == sizeof(struct work *));
    (void)n;
}

/* The thread: ends when the jobs pipe is closed. */
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

/* The thread blocks all signals: they are delivered to the loop's thread. */
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
    close(w->jobs[1]); /* the thread ends when it has read the rest */
    w->jobs[1] = -1;
    pthread_join(w->thread, NULL);
    on_results(w, FD_READ);
    free_worker(w);
}
