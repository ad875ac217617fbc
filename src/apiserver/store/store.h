/* The store: the current state in a tree, recent events in a history, both backed by a file.
 *
 * There are two views. Readers see the committed state: store_get(), store_tree(), store_history(). Writers
 * build on store_latest(), the state after the next commit, so that a precondition includes writes that are
 * not committed yet; store_stage() adds a write to the gathering batch.
 *
 *     during a turn     store_stage, store_wait      verbs stage writes and wait
 *     end of the turn   store_flush -> batch         NULL while another batch is in flight
 *     other thread      store_batch_write(batch)           one transaction and one fsync for the batch
 *     loop              store_finish(batch)          publishes or drops it, then calls the waiters
 *
 * store.c explains the design and the guarantees. */
#ifndef FLYBALL_STORE_H
#define FLYBALL_STORE_H

#include "history.h"

struct store;
struct store_batch;

struct store_options {
    const char *path;      /* database file; NULL: memory only */
    size_t history_events; /* 0: 16384 */
    size_t history_bytes;  /* 0: 16 MiB */
    int log_frames;        /* log length from which it is checkpointed when idle; 0: the default */
    /* Called for each committed write, in order, as it becomes visible. May stage writes. */
    void (*published)(void *context, const struct event *e, uint64_t sequence);
    void *context;
};

int store_open(const struct store_options *options, struct store **ret, err_t *e);
void store_close(struct store *s); /* drops staged writes; not while a batch is in flight */

/* ---- committed state, borrowed until the next store_finish() */

struct object *store_get(const struct store *s, str key);
const struct tree *store_tree(const struct store *s);
const struct history *store_history(const struct store *s);
int64_t store_rev(const struct store *s); /* of the last commit */
/* The version from which a watch can be resumed after a restart; newer than the history's on a full disk. */
int64_t store_kept_from(const struct store *s);

/* ---- writing */

/* The object that a write to the key would replace; NULL: none. Borrowed. */
struct object *store_latest(const struct store *s, str key);
/* Whether `is` (NULL: always) holds for any object under the prefix, counting staged writes. */
bool store_any_latest(const struct store *s, str prefix,
                      bool (*is)(void *context, struct object *o), void *context);
int64_t store_next_rev(const struct store *s); /* the version of the next staged object */
/* Takes the reference; its rev must be store_next_rev(). Tombstones delete. */
void store_stage(struct store *s, struct object *o);
/* -ENOSPC: the disk is full, and this write needs more room than what it replaces; not to be staged. */
int store_check_room(const struct store *s, const struct object *o, err_t *e);
bool store_is_full(const struct store *s); /* the disk: as of the last commit */
/* Why writes are refused; NULL: they are not. */
const err_t *store_failure(const struct store *s);

/* Waits until everything staged so far is committed (0) or has failed (-errno and a sentence). Called from
 * store_finish(), or at once if there is nothing to wait for. */
struct store_waiter {
    struct store_waiter *next; /* private */
    void (*done)(struct store_waiter *w, int result, const err_t *e);
};
void store_wait(struct store *s, struct store_waiter *w);

/* ---- committing */

struct store_batch *store_flush(struct store *s); /* NULL: nothing staged, or one is in flight */
void store_batch_write(struct store_batch *b);    /* blocks; any thread */
size_t store_batch_size(const struct store_batch *b);     /* number of writes */
int64_t store_batch_took_ns(const struct store_batch *b); /* duration of store_batch_write() */
bool store_is_durable(const struct store *s);             /* store_batch_write() waits for a disk */
void store_finish(struct store *s, struct store_batch *b);

/* A batch without writes, for maintenance that takes as long as many commits; store_batch_write() does a part of it.
 * NULL: a batch is in flight, there is nothing to do, or it can wait until the store is idle. */
struct store_batch *store_tidy(struct store *s, bool idle);
void store_commit(struct store *s); /* flush, write and finish: startup and tests */

/* Clears the history: what happened before (the initial objects of a new store) cannot be watched. */
void store_forget(struct store *s);

#endif
