/* What the files of net know of the loop beyond loop.h. Not for other folders. */
#ifndef FLYBALL_LOOP_INTERNAL_H
#define FLYBALL_LOOP_INTERNAL_H

#include "../base/list.h"
#include "loop.h"

#include <uv.h>

#define LOOP_MAGIC 0x100bcafeu

struct request;

/* What has ended but may still be held by a callback under way: freed when the turn is over.
 * Counting the callbacks instead was the first attempt; this is shorter and cannot be forgotten. */
struct loop_garbage {
    struct loop_garbage *next;
    void (*destroy)(struct loop_garbage *);
};

struct loop {
    unsigned magic;
    uv_loop_t uv;
    uv_async_t keep;  /* stays active, so that waiting without any other handle waits */
    uv_timer_t alarm; /* the earliest of `timers`, in real time */
    bool stopping;
    int64_t busy_poll_ns, last_wait_ns;

    enum loop_time time;
    double speed;
    int64_t real_start_ns; /* machine's mono clock when the loop was made */
    int64_t wall_start_ns; /* loop's wall clock at that moment (scaled, virtual) */
    int64_t mono_ns, wall_ns;
    int64_t date_s; /* the second that `date` shows */
    char date[32];

    struct heap timers;
    struct deferred phases[LOOP_PHASE_N]; /* heads of circular lists */
    struct arena scratch;
    struct loop_garbage *garbage; /* in order; */
    struct loop_garbage **garbage_end;

    uint64_t activity;             /* callbacks so far: tells whether a poll found something */
    bool clocks_read;              /* since this turn's wait */
    size_t holds;                  /* virtual time stands still while > 0 */
    size_t jobs;                   /* name lookups on libuv's pool */
    struct list listeners;         /* in this process: see link.h */
    struct list wall_watches;      /* wall_watch.c */
    struct request *kept_requests; /* exchange.c's: empty ones with their memory */
    size_t n_kept_requests;
};

/* Every callback of libuv begins with this: it counts, and the first after a wait reads the clocks,
 * as a deadline set from the time before the wait would have passed already. */
void loop_note_activity(struct loop *loop);
str loop_http_date(struct loop *loop); /* now, as a header says it; borrowed until the next call */
bool loop_has_due_timer(const struct loop *loop);
void loop_set_alarm(struct loop *loop);   /* timer.c: wake up for the earliest timer */
void loop_fire_timers(struct loop *loop); /* timer.c */
void loop_free_later(struct loop *loop, struct loop_garbage *garbage,
                     void (*destroy)(struct loop_garbage *));
bool loop_has_deferred(const struct loop *loop);
void exchange_free_requests(struct loop *loop); /* exchange.c */

#endif
