/* The event loop: one turn waits, fires timers, runs deferred calls and frees what has ended.
 * loop.h is the contract.
 *
 *      loop_turn():  begin_turn()        wait in libuv; callbacks of descriptors, signals, children
 *                    loop_fire_timers()  timer.c
 *                    run_deferred()      SOON -> COMMIT -> FLUSH, again while calls are added
 *                    free_garbage()      objects that ended in this turn
 *
 * libuv waits for descriptors, signals, children and its thread pool. Timers are our own (timer.c),
 * because libuv's know only the machine's clock, and tests and simulations need scaled and virtual
 * time. A single libuv timer wakes the loop for the earliest of ours.
 *
 * Invariants:
 *   - Time changes only in begin_turn() and in the first callback of a wait (loop_note_activity),
 *     so that everything in one turn sees the same time.
 *   - Every callback from libuv counts in `activity`. That is how virtual time knows that a poll
 *     found nothing, and may jump.
 *   - Objects whose callbacks may be on the stack are freed by free_garbage(), after everything
 *     else. */
#include "loop_internal.h"

#include <signal.h>
#include <unistd.h>

/* How often a turn runs the phases again before descriptors are polled. */
enum { ROUNDS_MAX = 16 };

static void on_keep(uv_async_t *keep UNUSED)
{
}

/* Converts the machine's monotonic clock to the loop's. */
static int64_t machine_to_loop(const struct loop *loop, int64_t real_ns)
{
    if (loop->time != LOOP_SCALED)
        return real_ns;
    return loop->real_start_ns + (int64_t)((double)(real_ns - loop->real_start_ns) * loop->speed);
}

/* mono_ns never goes back, even if the conversion of scaled time rounds down. */
static void read_clocks(struct loop *loop)
{
    if (loop->time != LOOP_VIRTUAL)
        loop->mono_ns = MAX(loop->mono_ns, machine_to_loop(loop, clock_mono_ns()));
    if (loop->time == LOOP_REAL)
        loop->wall_ns = clock_wall_ns();
    else
        loop->wall_ns = loop->wall_start_ns + (loop->mono_ns - loop->real_start_ns);
}

int loop_new(const struct loop_options *options, struct loop **ret_loop, err_t *e)
{
    if (options->time == LOOP_SCALED && !(options->speed > 0 && options->speed <= 1e6))
        return err_set(e, EINVAL, "loop speed is %g, but must be above 0 and at most 1000000",
                       options->speed);
    struct loop *loop = mem_zero(1, sizeof(*loop));
    loop->magic = LOOP_MAGIC;
    int r = uv_loop_init(&loop->uv);
    if (r < 0) {
        free(loop);
        return err_set(e, -r, "event loop: %s", uv_strerror(r));
    }
    uv_async_init(&loop->uv, &loop->keep, on_keep);
    uv_timer_init(&loop->uv, &loop->alarm);
    /* Writing to a closed connection or beyond a file size limit must fail, not kill the process.
     */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    loop->time = options->time;
    loop->speed = options->speed;
    loop->busy_poll_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? options->busy_poll_ns : 0;
    loop->last_wait_ns = INT64_MAX;
    loop->real_start_ns = loop->mono_ns = clock_mono_ns();
    if (loop->time == LOOP_VIRTUAL)
        loop->real_start_ns = loop->mono_ns = NS_PER_S; /* equal in every run */
    loop->wall_start_ns = options->start_wall_ns ? options->start_wall_ns : clock_wall_ns();
    for (size_t i = 0; i < LOOP_PHASE_N; i++)
        loop->phases[i].next = loop->phases[i].previous = &loop->phases[i];
    loop->garbage_end = &loop->garbage;
    read_clocks(loop);
    *ret_loop = loop;
    return 0;
}

void loop_free_later(struct loop *loop, struct loop_garbage *garbage,
                     void (*destroy)(struct loop_garbage *))
{
    *garbage = (struct loop_garbage){ .destroy = destroy };
    *loop->garbage_end = garbage;
    loop->garbage_end = &garbage->next;
}

static void free_garbage(struct loop *loop)
{
    while (loop->garbage) {
        struct loop_garbage *garbage = loop->garbage;
        loop->garbage = garbage->next;
        if (!loop->garbage)
            loop->garbage_end = &loop->garbage;
        garbage->destroy(garbage);
    }
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    CHECK(loop, LOOP_MAGIC);
    while (loop->jobs)
        uv_run(&loop->uv, UV_RUN_ONCE);
    free_garbage(loop);
    uv_close((uv_handle_t *)&loop->keep, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int r = uv_loop_close(&loop->uv);
    assert(r == 0); /* otherwise an object outlived its loop */
    (void)r;
    heap_done(&loop->timers);
    arena_done(&loop->scratch);
    exchange_free_requests(loop);
    loop->magic = 0;
    free(loop);
}

static bool loop_has_deferred(const struct loop *loop)
{
    for (size_t i = 0; i < LOOP_PHASE_N; i++)
        if (loop->phases[i].next != &loop->phases[i])
            return true;
    return false;
}

/* Virtual time: polls without waiting. If that finds nothing and nothing holds the loop, time jumps
 * to the next timer. Without a timer, waits for events from outside. */
static void poll_virtual(struct loop *loop)
{
    uint64_t before = loop->activity;
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    if (loop->activity != before || loop_has_deferred(loop))
        return;
    struct heap_node *next = heap_min(&loop->timers);
    if (loop->holds || !next)
        uv_run(&loop->uv, UV_RUN_ONCE);
    else
        loop->mono_ns = MAX(loop->mono_ns, next->key);
}

void loop_note_activity(struct loop *loop)
{
    loop->activity++;
    if (!loop->clocks_read)
        read_clocks(loop);
    loop->clocks_read = true;
}

/* Waking a sleeping CPU takes longer than most answers. So after a short wait the next one begins
 * with busy polling: a client that sends one request after the other finds the loop awake. One long
 * wait ends that, at the cost of one unsuccessful busy poll. While a worker has work, the CPU is
 * left to it. */
static void wait_for_events(struct loop *loop)
{
    int64_t begin = clock_mono_ns();
    uint64_t before = loop->activity;
    bool polls = loop->last_wait_ns < loop->busy_poll_ns && !loop->holds;
    while (polls && loop->activity == before && clock_mono_ns() - begin < loop->busy_poll_ns)
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    if (loop->activity == before) {
        loop_set_alarm(loop);
        uv_run(&loop->uv, UV_RUN_ONCE);
    }
    loop->last_wait_ns = clock_mono_ns() - begin;
}

/* Does not wait if deferred calls are left or a timer is due. */
static void begin_turn(struct loop *loop)
{
    loop->clocks_read = false;
    if (loop->time == LOOP_VIRTUAL) {
        poll_virtual(loop);
    } else if (loop_has_deferred(loop) || loop_has_due_timer(loop)) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    } else {
        wait_for_events(loop);
    }
    read_clocks(loop);
    loop->clocks_read = true; /* time does not change again in this turn */
}

/* Runs the calls of one phase. Calls that they add to the same phase wait for the next round. */
static bool run_phase(struct deferred *head)
{
    if (head->next == head)
        return false;
    struct deferred batch = { .next = head->next, .previous = head->previous };
    batch.next->previous = batch.previous->next = &batch;
    head->next = head->previous = head;
    while (batch.next != &batch) {
        struct deferred *call = batch.next;
        loop_cancel_deferred(call);
        call->run(call);
    }
    return true;
}

/* Runs all phases until nothing is deferred, at most ROUNDS_MAX times. */
static void run_deferred(struct loop *loop)
{
    bool ran = true;
    for (int round = 0; ran && round < ROUNDS_MAX; round++) {
        ran = false;
        for (size_t i = 0; i < LOOP_PHASE_N; i++)
            ran = run_phase(&loop->phases[i]) || ran;
    }
}

void loop_turn(struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    begin_turn(loop);
    loop_fire_timers(loop);
    run_deferred(loop);
    free_garbage(loop);
    arena_reset(&loop->scratch, (struct arena_mark){ 0 });
}

void loop_run(struct loop *loop)
{
    for (loop->stopping = false; !loop->stopping;)
        loop_turn(loop);
}

void loop_stop(struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    loop->stopping = true;
}

int64_t loop_mono_ns(const struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    return loop->mono_ns;
}

int64_t loop_exact_ns(const struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    if (loop->time == LOOP_VIRTUAL)
        return loop->mono_ns;
    return MAX(loop->mono_ns, machine_to_loop(loop, clock_mono_ns()));
}

int64_t loop_wall_ns(const struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    return loop->wall_ns;
}

str loop_http_date(struct loop *loop)
{
    time_t now = (time_t)(loop->wall_ns / NS_PER_S);
    if (!loop->date[0] || loop->date_s != now) {
        struct tm tm;
        gmtime_r(&now, &tm);
        strftime(loop->date, sizeof(loop->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        loop->date_s = now;
    }
    return str_c(loop->date);
}

struct arena *loop_scratch(struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    return &loop->scratch;
}

void loop_hold(struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    loop->holds++;
}

void loop_release(struct loop *loop)
{
    CHECK(loop, LOOP_MAGIC);
    assert(loop->holds > 0);
    loop->holds--;
    loop_note_activity(loop);
}

void loop_defer(struct loop *loop, enum loop_phase phase, struct deferred *call,
                void (*run)(struct deferred *))
{
    CHECK(loop, LOOP_MAGIC);
    if (call->next)
        return;
    struct deferred *head = &loop->phases[phase];
    *call = (struct deferred){ .next = head, .previous = head->previous, .run = run };
    head->previous->next = call;
    head->previous = call;
}

void loop_cancel_deferred(struct deferred *call)
{
    if (!call->next)
        return;
    call->next->previous = call->previous;
    call->previous->next = call->next;
    call->next = call->previous = NULL;
}
