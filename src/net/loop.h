/* The event loop: one per process; everything else runs on it.
 *
 *     struct loop *loop;
 *     loop_new(&(struct loop_options){ 0 }, &loop, &e);
 *     ... start servers, clients, timers ...
 *     loop_run(loop);                          until loop_stop() is called
 *     loop_free(loop);                         after everything on it was freed
 *
 * One turn: wait for events and run their callbacks; fire the timers that are due; run the deferred
 * calls, phase by phase, until none is left; reset the scratch arena. Time does not change within a
 * turn: loop_mono_ns() and loop_wall_ns() return the same values until the next one.
 *
 * Time has three modes.
 *   real      the machine's clocks.
 *   scaled    the same, `speed` times as fast (a day of schedule in a minute). Network timeouts
 *             keep their real length.
 *   virtual   starts at `start_wall_ns` and does not advance while anything can run. When a
 *             nonblocking poll finds nothing, no deferred call is left and nothing holds the loop
 *             (work on threads, name lookups, child processes and loop_hold() do), time jumps to
 *             the next timer. A client and a server on the same virtual loop are connected by
 *             socket pairs instead of TCP (which the kernel may delay, even on loopback), so that a
 *             run depends only on its inputs. Peers in other processes do not stop time: hold the
 *             loop for them. */
#ifndef FLYBALL_LOOP_H
#define FLYBALL_LOOP_H

#include "../base/arena.h"
#include "../base/clock.h"
#include "../base/heap.h"

struct loop;

enum loop_time { LOOP_REAL, LOOP_SCALED, LOOP_VIRTUAL };

struct loop_options {
    enum loop_time time;
    double speed;          /* scaled: loop seconds per real second, > 0 */
    int64_t start_wall_ns; /* scaled and virtual: the wall clock at the start; 0: the machine's */
    /* Real time, with more than one CPU: after a wait shorter than this, the next wait begins with
     * busy polling for this time. Requests are answered sooner; a timer may be late by as much. 0:
     * never. */
    int64_t busy_poll_ns;
};

int loop_new(const struct loop_options *options, struct loop **ret_loop, err_t *e);
/* Waits for name lookups that are still running, then frees. Servers, clients, watches, workers and
 * children must have been freed before. NULL is allowed, here and in every other _free. */
void loop_free(struct loop *loop);

void loop_run(struct loop *loop);  /* turns until loop_stop() */
void loop_stop(struct loop *loop); /* after the current turn */
/* One turn, waiting at most until the next timer. Tests: while (!done) loop_turn(loop). */
void loop_turn(struct loop *loop);

int64_t loop_mono_ns(const struct loop *loop); /* never goes back; the clock of timers */
/* The same clock read now, for measurements; loop_mono_ns() in virtual time. */
int64_t loop_exact_ns(const struct loop *loop);
int64_t loop_wall_ns(const struct loop *loop); /* since 1970-01-01T00:00:00Z */
/* A network timeout in real time, converted to the loop's clock. */
int64_t loop_scale_timeout(const struct loop *loop, int64_t timeout_ns);
struct arena *loop_scratch(struct loop *loop); /* emptied at the end of each turn */

/* Virtual time does not advance until every hold is released. No effect in the other modes. */
void loop_hold(struct loop *loop);
void loop_release(struct loop *loop);

/* --- timers: live inside their owner ---
 *
 *     struct lease { struct timer renew; ... };
 *     timer_set(loop, &lease->renew, loop_mono_ns(loop) + 2 * NS_PER_S, lease_renew);
 *
 * `fire` gets the timer: container_of() finds the owner. A timer fires once and is idle again
 * before `fire` runs. Timers of one instant fire in the order they were set. `{0}` is an idle
 * timer; stop it before its memory is freed. */
struct timer {
    struct heap_node node; /* private */
    struct loop *loop;     /* private; NULL: never set */
    void (*fire)(struct timer *);
};

void timer_set(struct loop *loop, struct timer *timer, int64_t mono_ns,
               void (*fire)(struct timer *)); /* starts or moves */
void timer_stop(struct timer *timer);         /* no effect when idle */

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->node.place != 0;
}

/* --- deferred calls: run at the end of this turn, once, however often they were requested ---
 *
 * Phases run in order. A call deferred to a phase that has already run makes the phases run again
 * in the same turn, up to a bound; the rest runs in the next turn, which then does not wait. So all
 * writes of one turn share one commit, and all answers of one commit share one flush. */
enum loop_phase {
    LOOP_SOON,   /* work caused by events: queues, reconciles */
    LOOP_COMMIT, /* after all of it: the store's group commit */
    LOOP_FLUSH,  /* net only: output is written */
    LOOP_PHASE_N
};

struct deferred {
    struct deferred *next, *previous; /* private; NULL: not deferred */
    void (*run)(struct deferred *);   /* private; set by loop_defer */
};

void loop_defer(struct loop *loop, enum loop_phase phase, struct deferred *call,
                void (*run)(struct deferred *));  /* no effect if already deferred */
void loop_cancel_deferred(struct deferred *call); /* no effect if not deferred */

/* --- threads ---
 *
 * A worker is one thread; `struct work` lives inside its owner. `run` is called on the thread, in
 * the order of submission, then `done` on the loop. `run` must not touch the loop or anything on
 * it. Work cannot be canceled: its owner must outlive it. */
struct work {
    void (*run)(struct work *);
    void (*done)(struct work *);
};

struct worker;
int worker_new(struct loop *loop, struct worker **ret, err_t *e);
void worker_submit(struct worker *w, struct work *work); /* at most 4,096 at a time */
void worker_free(struct worker *w); /* waits for submitted work; not from `done` */

/* --- signals, descriptors --- */

struct signal_watch;
int signal_watch_new(struct loop *loop, int signal_number, void (*fn)(void *context), void *context,
                     struct signal_watch **ret);
void signal_watch_free(struct signal_watch *w);

enum fd_events { FD_READ = 1, FD_WRITE = 2 };

/* Level-triggered readiness of a non-blocking descriptor that the caller owns; closing it comes
 * after fd_watch_free(). A new watch waits for no event. Errors and hangups are reported as the
 * events that were requested: the following read or write returns the error. */
struct fd_watch;
int fd_watch_new(struct loop *loop, int fd, void (*fn)(void *context, unsigned events),
                 void *context, struct fd_watch **ret);
void fd_watch_set(struct fd_watch *w, unsigned events); /* FD_READ | FD_WRITE; 0: nothing */
void fd_watch_free(struct fd_watch *w);

/* --- the wall clock being set ---
 *
 * Timers run on the monotonic clock, so a timer for a wall-clock time must be computed again when
 * the wall clock is set. If the system cannot report that, `fn` is never called. */
struct wall_watch;
struct wall_watch *wall_watch_new(struct loop *loop, void (*fn)(void *context), void *context);
void wall_watch_free(struct wall_watch *w);             /* not from inside `fn` of another watch */
void loop_set_wall(struct loop *loop, int64_t wall_ns); /* virtual time only */

/* --- child processes: credential plugins, helpers ---
 *
 * The child reads `input` from standard input (/dev/null if empty); its output is collected. It is
 * killed when the timeout passes or when it writes more than `output_max_bytes` to stdout or
 * stderr. on_exit is called exactly once, when the child has exited and all its output was read (a
 * grandchild that keeps a pipe open does not delay it beyond the timeout); then the child object is
 * freed. */
struct child;

struct child_result {
    int exit_status; /* if it exited normally */
    int signal;      /* that killed it, or 0 */
    bool timed_out, output_too_large;
    str out, errors; /* borrowed: valid in the callback */
};

struct child_options {
    const char *const *argv; /* NULL-ended; argv[0] is looked up in PATH */
    const char *const *env;  /* NULL-ended NAME=VALUE: the whole environment; NULL: ours */
    const char *dir;         /* NULL: ours */
    str input;
    size_t output_max_bytes; /* 0: 1 MiB */
    int64_t timeout_ns;      /* real time; 0: 60 s */
    void (*on_exit)(void *context, const struct child_result *result);
    void *context;
};

int child_start(struct loop *loop, const struct child_options *options, struct child **ret_child,
                err_t *e);
void child_kill(struct child *child); /* on_exit will not be called */

#endif
