/* The loop: three kinds of time, timers, deferred calls, threads, children, descriptors. */
#include "base/buf.h"
#include "net/loop.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct loop *make(struct loop_options o)
{
    err_t e;
    struct loop *loop = NULL;
    OK_CALL(loop_new(&o, &loop, &e), &e);
    return loop;
}

static struct loop *virtual_loop(void)
{
    return make((struct loop_options){ .time = LOOP_VIRTUAL, .start_wall_ns = 1000 * NS_PER_S });
}

static struct buf trace;

static void note(const char *text)
{
    buf_put(&trace, str_c(text));
}

struct tick {
    struct timer timer;
    struct loop *loop;
    const char *name;
    int64_t fired_at;
    int again;
};

static void on_tick(struct timer *timer)
{
    struct tick *t = container_of(timer, struct tick, timer);
    t->fired_at = loop_mono_ns(t->loop);
    note(t->name);
    if (t->again-- > 0)
        timer_set(t->loop, timer, t->fired_at + NS_PER_S, on_tick);
}

static void timers_fire_in_order(void)
{
    struct loop *loop = virtual_loop();
    int64_t start = loop_mono_ns(loop);
    struct tick a = { .loop = loop, .name = "a" }, b = a, c = a, d = a;
    b.name = "b", c.name = "c", d.name = "d";
    buf_clear(&trace);
    timer_set(loop, &a.timer, start + 3 * NS_PER_S, on_tick);
    timer_set(loop, &b.timer, start + 1 * NS_PER_S, on_tick);
    timer_set(loop, &c.timer, start + 1 * NS_PER_S, on_tick);
    timer_set(loop, &d.timer, start + 2 * NS_PER_S, on_tick);
    timer_stop(&d.timer);
    OK(!timer_is_set(&d.timer));
    while (!a.fired_at)
        loop_turn(loop);
    EQ_STR(buf_str(&trace), S("bca"));
    EQ_INT(a.fired_at, start + 3 * NS_PER_S);
    EQ_INT(loop_wall_ns(loop), 1003 * NS_PER_S);
    loop_free(loop);
}

/* A year of seconds passes in no time, and time stands still while a timer re-arms itself. */
static void virtual_time_jumps(void)
{
    struct loop *loop = virtual_loop();
    struct tick t = { .loop = loop, .name = "", .again = 100000 };
    timer_set(loop, &t.timer, loop_mono_ns(loop) + NS_PER_S, on_tick);
    while (timer_is_set(&t.timer))
        loop_turn(loop);
    EQ_INT(loop_wall_ns(loop), (1000 + 100001) * NS_PER_S);
    loop_free(loop);
}

static void scaled_time_runs_faster(void)
{
    struct loop *loop = make(
        (struct loop_options){ .time = LOOP_SCALED, .speed = 1000, .start_wall_ns = NS_PER_S });
    struct tick t = { .loop = loop, .name = "" };
    int64_t real = clock_mono_ns();
    timer_set(loop, &t.timer, loop_mono_ns(loop) + 20 * NS_PER_S, on_tick);
    while (!t.fired_at)
        loop_turn(loop);
    OK(clock_mono_ns() - real < 5 * NS_PER_S);
    OK(loop_wall_ns(loop) >= 21 * NS_PER_S);
    loop_free(loop);
    err_t e;
    OK(loop_new(&(struct loop_options){ .time = LOOP_SCALED, .speed = 0 }, &loop, &e) == -EINVAL);
}

struct call {
    struct deferred deferred;
    struct loop *loop;
    const char *name;
    struct call *then; /* deferred from inside */
    enum loop_phase then_phase;
};

static void on_call(struct deferred *d)
{
    struct call *c = container_of(d, struct call, deferred);
    note(c->name);
    if (c->then)
        loop_defer(c->loop, c->then_phase, &c->then->deferred, on_call);
}

static void deferred_calls_run_by_phase(void)
{
    struct loop *loop = virtual_loop();
    struct call late = { .loop = loop, .name = "L" };
    struct call flush = { .loop = loop, .name = "f" };
    struct call commit = { .loop = loop, .name = "c", .then = &late, .then_phase = LOOP_SOON };
    struct call soon = { .loop = loop, .name = "s" };
    struct call never = { .loop = loop, .name = "X" };
    buf_clear(&trace);
    loop_defer(loop, LOOP_FLUSH, &flush.deferred, on_call);
    loop_defer(loop, LOOP_COMMIT, &commit.deferred, on_call);
    loop_defer(loop, LOOP_SOON, &soon.deferred, on_call);
    loop_defer(loop, LOOP_SOON, &soon.deferred, on_call); /* runs once */
    loop_defer(loop, LOOP_SOON, &never.deferred, on_call);
    loop_cancel_deferred(&never.deferred);
    loop_turn(loop);
    EQ_STR(buf_str(&trace), S("scfL"));
    loop_free(loop);
}

static void deferring_for_ever_does_not_starve(void)
{
    struct loop *loop = virtual_loop();
    struct call c = { .loop = loop, .name = "", .then_phase = LOOP_SOON };
    c.then = &c;
    struct tick t = { .loop = loop, .name = "" };
    loop_defer(loop, LOOP_SOON, &c.deferred, on_call);
    timer_set(loop, &t.timer, loop_mono_ns(loop), on_tick);
    loop_turn(loop);
    OK(t.fired_at != 0);
    loop_cancel_deferred(&c.deferred);
    loop_free(loop);
}

struct job {
    struct work work;
    struct loop *loop;
    int result;
    bool done;
    int64_t done_at;
    int64_t behind_ns; /* how far the loop's clock was behind the machine's */
};

static void job_run(struct work *work)
{
    struct job *j = container_of(work, struct job, work);
    usleep(200000); /* simulates work; time must not jump meanwhile */
    j->result = 42;
}

static void job_done(struct work *work)
{
    struct job *j = container_of(work, struct job, work);
    j->done = true;
    j->done_at = loop_mono_ns(j->loop);
    j->behind_ns = clock_mono_ns() - loop_mono_ns(j->loop);
}

static struct worker *worker(struct loop *loop)
{
    struct worker *w = NULL;
    err_t e;
    OK_CALL(worker_new(loop, &w, &e), &e);
    return w;
}

static void work_holds_virtual_time(void)
{
    struct loop *loop = virtual_loop();
    struct worker *w = worker(loop);
    struct job j = { .work = { job_run, job_done }, .loop = loop };
    struct tick t = { .loop = loop, .name = "" };
    int64_t start = loop_mono_ns(loop);
    timer_set(loop, &t.timer, start + NS_PER_S, on_tick);
    worker_submit(w, &j.work);
    while (!t.fired_at)
        loop_turn(loop);
    OK(j.done);
    EQ_INT(j.result, 42);
    EQ_INT(j.done_at, start);
    worker_free(w);
    loop_free(loop);
}

static void freeing_waits_for_work(void)
{
    struct loop *loop = virtual_loop();
    struct worker *w = worker(loop);
    struct job j[3] = { 0 };
    for (size_t i = 0; i < countof(j); i++) {
        j[i] = (struct job){ .work = { job_run, job_done }, .loop = loop };
        worker_submit(w, &j[i].work);
    }
    worker_free(w);
    for (size_t i = 0; i < countof(j); i++)
        OK(j[i].done && j[i].result == 42);
    loop_free(loop);
}

/* A deadline set in the first callback after a long wait must not have passed already. */
static void callbacks_see_the_time_after_the_wait(void)
{
    struct job j = { .work = { job_run, job_done }, .loop = make((struct loop_options){ 0 }) };
    struct worker *w = worker(j.loop);
    worker_submit(w, &j.work);
    while (!j.done)
        loop_turn(j.loop);
    OK(j.behind_ns < 150 * NS_PER_MS);
    worker_free(w);
    loop_free(j.loop);
}

static int64_t awake_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void nap(struct work *work)
{
    (void)work;
    usleep(20000);
}

static void nothing(struct timer *timer)
{
    (void)timer;
}

/* How long the thread is awake in the second of two short waits. */
static int64_t awake_in_wait(struct loop_options options, bool working)
{
    struct loop *loop = make(options);
    struct worker *w = worker(loop);
    struct job j = { .work = { nap, job_done }, .loop = loop };
    struct timer t = { 0 };
    timer_set(loop, &t, loop_mono_ns(loop) + NS_PER_MS, nothing);
    loop_turn(loop);
    if (working)
        worker_submit(w, &j.work);
    else
        timer_set(loop, &t, loop_mono_ns(loop) + 20 * NS_PER_MS, nothing);
    int64_t before = awake_ns();
    loop_turn(loop);
    int64_t awake = awake_ns() - before;
    worker_free(w);
    timer_stop(&t);
    loop_free(loop);
    return awake;
}

static void a_short_wait_is_spent_awake(void)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        SKIP("one processor is not to be kept from others");
    struct loop_options lingering = { .busy_poll_ns = 20 * NS_PER_MS };
    OK(awake_in_wait(lingering, false) > NS_PER_MS);
    OK(awake_in_wait(lingering, true) < NS_PER_MS); /* the CPU is left to the worker */
    OK(awake_in_wait((struct loop_options){ 0 }, false) < NS_PER_MS);
}

static void on_signal(void *context)
{
    (*(int *)context)++;
}

static void signals_arrive(void)
{
    struct loop *loop = make((struct loop_options){ 0 });
    int count = 0;
    struct signal_watch *w = NULL;
    OK(signal_watch_new(loop, SIGUSR1, on_signal, &count, &w) == 0);
    kill(getpid(), SIGUSR1);
    while (!count)
        loop_turn(loop);
    signal_watch_free(w);
    OK(signal_watch_new(loop, 4711, on_signal, &count, &w) < 0);
    loop_free(loop);
}

static unsigned seen;

static void on_fd(void *context, unsigned events)
{
    char byte;
    seen |= events;
    if (events & FD_READ)
        EQ_INT(read(*(int *)context, &byte, 1), 1);
}

static void descriptors_are_watched(void)
{
    struct loop *loop = virtual_loop();
    int pipes[2];
    OK(pipe2(pipes, O_NONBLOCK | O_CLOEXEC) == 0);
    struct fd_watch *w = NULL, *out = NULL;
    OK(fd_watch_new(loop, pipes[0], on_fd, &pipes[0], &w) == 0);
    OK(fd_watch_new(loop, pipes[1], on_fd, &pipes[1], &out) == 0);
    fd_watch_set(w, FD_READ);
    seen = 0;
    EQ_INT(write(pipes[1], "x", 1), 1);
    loop_turn(loop);
    EQ_INT(seen, FD_READ);
    fd_watch_set(out, FD_WRITE);
    loop_turn(loop);
    EQ_INT(seen, FD_READ | FD_WRITE);
    fd_watch_free(w);
    fd_watch_free(out);
    close(pipes[0]);
    close(pipes[1]);
    loop_free(loop);
}

struct ended {
    bool done;
    struct child_result result;
    char out[100], errors[100];
};

static void on_exit_of(void *context, const struct child_result *r)
{
    struct ended *end = context;
    end->done = true;
    end->result = *r;
    snprintf(end->out, sizeof(end->out), STR_FMT, STR_ARG(r->out));
    snprintf(end->errors, sizeof(end->errors), STR_FMT, STR_ARG(r->errors));
}

static struct ended run_child(const char *script, struct child_options o)
{
    struct loop *loop = virtual_loop();
    struct ended end = { 0 };
    struct child *child;
    err_t e;
    const char *argv[] = { "sh", "-c", script, NULL };
    o.argv = argv;
    o.on_exit = on_exit_of;
    o.context = &end;
    OK_CALL(child_start(loop, &o, &child, &e), &e);
    while (!end.done)
        loop_turn(loop);
    loop_free(loop);
    return end;
}

static void children_report_their_end(void)
{
    struct ended end = run_child("echo out; echo err >&2; exit 3", (struct child_options){ 0 });
    EQ_INT(end.result.exit_status, 3);
    EQ_STR(str_c(end.out), S("out\n"));
    EQ_STR(str_c(end.errors), S("err\n"));

    const char *const env[] = { "PATH=/bin:/usr/bin", "COLOUR=green", NULL };
    end = run_child("cat; echo $COLOUR; pwd",
                    (struct child_options){ .input = S("in "), .env = env, .dir = "/" });
    EQ_STR(str_c(end.out), S("in green\n/\n"));
    EQ_INT(end.result.exit_status, 0);
}

static void children_are_bounded(void)
{
    struct ended end =
        run_child("sleep 60", (struct child_options){ .timeout_ns = 50 * NS_PER_MS });
    OK(end.result.timed_out);
    EQ_INT(end.result.signal, SIGKILL);
    end = run_child("yes", (struct child_options){ .output_max_bytes = 10000 });
    OK(end.result.output_too_large);

    struct loop *loop = virtual_loop();
    struct child *child;
    err_t e;
    struct child_options o = { .argv = (const char *[]){ "/no/such/program", NULL } };
    EQ_INT(child_start(loop, &o, &child, &e), -ENOENT);
    OK(strstr(e.text, "/no/such/program"));
    o.argv = (const char *[]){ "sleep", "60", NULL };
    OK_CALL(child_start(loop, &o, &child, &e), &e);
    child_kill(child);
    loop_free(loop);
}

static void scratch_lives_one_turn(void)
{
    struct loop *loop = virtual_loop();
    struct tick t = { .loop = loop, .name = "", .again = 10 };
    timer_set(loop, &t.timer, loop_mono_ns(loop), on_tick);
    for (int i = 0; i < 10; i++) {
        OK(arena_alloc(loop_scratch(loop), 2000) != NULL);
        loop_turn(loop);
    }
    OK(arena_bytes(loop_scratch(loop)) <= 8192);
    timer_stop(&t.timer);
    loop_free(loop);
}

/* The seconds until a timer on the wall clock fires, of the timerfd with the longest time; -1: there is none. */
static long long armed_seconds(void)
{
    long long most = -1;
    for (int fd = 0; fd < 256; fd++) {
        char path[64], line[200];
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        FILE *info = fopen(path, "re");
        bool wall = false;
        while (info && fgets(line, sizeof(line), info)) {
            long long seconds;
            wall |= !strcmp(line, "clockid: 0\n");
            if (wall && sscanf(line, "it_value: (%lld", &seconds) == 1)
                most = MAX(most, seconds);
        }
        if (info)
            fclose(info);
    }
    return most;
}

static void on_wall_set(void *context)
{
    (void)context;
}

/* A time that comes (it was January 2038) would end in a loop that spins. */
static void clock_steps_are_awaited_for_ever(void)
{
    struct loop *loop = make((struct loop_options){ 0 });
    struct wall_watch *w = wall_watch_new(loop, on_wall_set, NULL);
    OK(armed_seconds() > INT64_C(200) * 365 * 86400);
    wall_watch_free(w);
    loop_free(loop);
}

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(timers_fire_in_order),
                                              TAP(virtual_time_jumps),
                                              TAP(scaled_time_runs_faster),
                                              TAP(deferred_calls_run_by_phase),
                                              TAP(deferring_for_ever_does_not_starve),
                                              TAP(work_holds_virtual_time),
                                              TAP(freeing_waits_for_work),
                                              TAP(callbacks_see_the_time_after_the_wait),
                                              TAP(a_short_wait_is_spent_awake),
                                              TAP(signals_arrive),
                                              TAP(descriptors_are_watched),
                                              TAP(children_report_their_end),
                                              TAP(children_are_bounded),
                                              TAP(scratch_lives_one_turn),
                                              TAP(clock_steps_are_awaited_for_ever),
                                              { 0 } });
    buf_done(&trace);
    return result;
}
