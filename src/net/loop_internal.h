/* The loop's internals, for the files of net only. */
#ifndef FLYBALL_LOOP_INTERNAL_H
#define FLYBALL_LOOP_INTERNAL_H

#include "../base/list.h"
#include "loop.h"

#include <uv.h>

#define LOOP_MAGIC 0x100bcafeu

struct exchange_request;

/* An object that has ended while its callbacks may still be on the stack: freed at the end of the
 * turn. Counting the active callbacks of each object was tried first; this is shorter and cannot be
 * forgotten in one of them. */
struct loop_garbage {
    struct loop_garbage *next;
    void (*destroy)(struct loop_garbage *);
};

struct loop {
    unsigned magic;
    uv_loop_t uv;
    uv_async_t keep;  /* always active: without any handle, uv_run() would not wait */
    uv_timer_t alarm; /* the earliest of `timers`, in real time */
    bool stopping;
    int64_t busy_poll_ns, last_wait_ns; /* see wait_for_events() */

    enum loop_time time;
    double speed;
    int64_t real_start_ns; /* the machine's mono clock at loop_new() */
    int64_t wall_start_ns; /* the loop's wall clock at that time (scaled, virtual) */
    int64_t mono_ns, wall_ns;
    int64_t date_s; /* the second that `date` was made for */
    char date[32];

    struct heap timers;
    struct deferred phases[LOOP_PHASE_N]; /* heads of circular lists */
    struct arena scratch;
    struct loop_garbage *garbage; /* in order of loop_free_later() */
    struct loop_garbage **garbage_end;

    uint64_t activity;        /* callbacks so far: shows whether a poll found something */
    bool clocks_read;         /* since this turn began to wait */
    size_t holds;             /* virtual time does not advance while > 0 */
    size_t jobs;              /* name lookups on libuv's pool */
    struct list listeners;    /* in this process: see link.h */
    struct list wall_watches; /* wall_watch.c */
    struct exchange_request *kept_requests; /* exchange.c: empty, kept for their memory */
    size_t n_kept_requests;
};

/* Every callback from libuv calls this first. It counts, and the first one after a wait reads the
 * clocks, because a deadline based on the time before the wait might already have passed. */
void loop_note_activity(struct loop *loop);
str loop_http_date(struct loop *loop); /* for the Date header; borrowed until the next call */
bool loop_has_due_timer(const struct loop *loop);
void loop_set_alarm(struct loop *loop);   /* timer.c: wakes uv_run() for the earliest timer */
void loop_fire_timers(struct loop *loop); /* timer.c */
void loop_free_later(struct loop *loop, struct loop_garbage *garbage,
                     void (*destroy)(struct loop_garbage *));
void exchange_free_requests(struct loop *loop); /* exchange.c */

#endif
