/* The store: current state in a tree, recent past in a history, both backed by a file.
 *
 * Two views. Readers see what is committed: store_get(), store_tree(), store_history(). Writers build on
 * what the next commit will find, store_latest(), so that a precondition counts writes that are still on
 * their way; store_stage() adds a write to the batch that gathers.
 *
 *     turn:    handlers stage writes and wait           store_stage, store_wait
 *     turn's end:  store_flush -> batch                 NULL while another one is being written
 *     pool:    batch_write(batch)                       one transaction, one fsync for all of it
 *     loop:    store_finish(batch)                      publishes, or drops; then calls the waiters
 *
 * While a batch is written the next one gathers, so any number of writers share a commit. When one
 * fails, everything staged since is built on sand and fails with it. After a failure that leaves the
 * file's contents unknown, reads go on and writes are refused until a restart.
 *
 * Versions count up by one a write and never go back, over restarts too. */
#ifndef FLYBALL_STORE_H
#define FLYBALL_STORE_H

#include "history.h"

struct store;
struct batch;

struct store_options {
    const char *path;      /* database file; NULL: memory only */
    size_t history_events; /* 0: 16384 */
    size_t history_bytes;  /* 0: 16 MiB */
    int log_frames;        /* a log so long is moved into the file when idle; 0: the default */
    /* Called for each committed write, in order, as it becomes visible. May stage. */
    void (*published)(void *context, const struct event *e, uint64_t sequence);
    void *context;
};

int store_open(const struct store_options *options, struct store **ret, err_t *e);
void store_close(struct store *s); /* drops what was staged; not while a batch is out */

/* ---- committed state, borrowed until the next store_finish() */

struct object *store_get(const struct store *s, str key);
const struct tree *store_tree(const struct store *s);
const struct history *store_history(const struct store *s);
int64_t store_rev(const struct store *s); /* of the last commit */

/* ---- writing */

/* What a write to key replaces; NULL when there is (or will be) nothing. Borrowed. */
struct object *store_latest(const struct store *s, str key);
/* Whether anything under prefix exists or is about to. */
bool store_any_latest(const struct store *s, str prefix);
int64_t store_next_rev(const struct store *s); /* for the next object staged */
/* Takes the reference; its rev must be store_next_rev(). Tombstones delete. */
void store_stage(struct store *s, struct object *o);
/* Why nothing can be written; NULL when all is well. */
const err_t *store_failure(const struct store *s);

/* Waits for the fate of everything staged so far (0, or -errno with a sentence). Called from
 * store_finish(), or at once when there is nothing to wait for. */
struct store_waiter {
    struct store_waiter *next; /* private */
    void (*done)(struct store_waiter *w, int result, const err_t *e);
};
void store_wait(struct store *s, struct store_waiter *w);

/* ---- committing */

struct batch *store_flush(struct store *s);   /* NULL: nothing staged, or a batch is out */
void batch_write(struct batch *b);            /* blocks; any thread */
size_t batch_size(const struct batch *b);     /* writes in it */
int64_t batch_took_ns(const struct batch *b); /* how long batch_write() took */
bool store_is_durable(const struct store *s); /* batch_write() waits for a disk */
void store_finish(struct store *s, struct batch *b);

/* A batch without writes, for what takes the file as long as many commits: batch_write() does a part of it.
 * NULL: a batch is out, there is nothing to do, or it can wait until the store is idle. */
struct batch *store_tidy(struct store *s, bool idle);
void store_commit(struct store *s); /* all of the above, at once: start-up and tests */

/* History begins now: what came before (the seed of a new store) cannot be watched. */
void store_forget(struct store *s);

#endif
