/* The store: how objects are read, written, published and kept across restarts.
 *
 * The problem. An API server must answer a write only after it is on disk, and waiting for the disk takes far
 * longer than everything else. Reads must never see a write that may still fail, while the next write must build
 * on it, or its precondition would be checked against an old version.
 *
 * The design. Memory is the database; the file only makes it durable. No query ever runs against SQLite: at
 * startup its rows are read once, in order, and replayed. Writes are collected in batches, and there are two views
 * of the state:
 *
 *     store_stage() --> gathering batch --store_flush()--> batch in flight --batch_write()--> file
 *          |                                                     |              (other thread)
 *          v                                                     v
 *     pending: key -> newest staged object               store_finish(): publish or drop
 *          |                                                     |
 *          v                                                     v
 *     store_latest(): what the next write builds on      tree + history: what readers see
 *
 * Each write gets its version when it is staged. While one batch is written the next one gathers, so any number
 * of writers share one transaction and one fsync.
 *
 * Invariants:
 *
 *   - Versions increase by one per write, in the order of staging, and never go back, also across restarts.
 *   - A reader sees a write only after its batch is on disk. Batches are published whole, in order.
 *   - At most one batch is in flight; only the thread that runs batch_write() touches the database meanwhile.
 *   - store_latest() is the committed state plus all staged writes. If a batch fails, everything staged after it
 *     was built on writes that never happened, so it fails too and `pending` is cleared.
 *   - After a failure that leaves the contents of the file unknown (any error but a full disk), `broken` is set:
 *     reads go on, writes are refused until a restart.
 *
 * What the file must keep: the newest row of every key, every row in the window of the history, and the row
 * that each of those replaced (a watch with a selector needs the old labels). When an event leaves the window,
 * the row that it replaced is garbage, and so is its own row if it is a tombstone. The store collects the
 * versions of these rows and deletes up to GARBAGE_SLICE of them in each later transaction. The row with the
 * highest version is never garbage, so that versions cannot go back after a restart.
 *
 * Rejected: deleting garbage with a query in the background. It needs an index on the key, which doubles the
 * write.
 *
 * Memory. A batch owns a reference to each of its objects; the tree and the history take their own when it is
 * published. `pending` borrows from the batches. Waiters belong to the callers. */
#include "store.h"

#include "../../base/clock.h"
#include "../../base/map.h"
#include "../../base/vec.h"
#include "db.h"

enum {
    HISTORY_EVENTS = 16384,
    HISTORY_BYTES = 16 << 20,
    GARBAGE_SLICE = 256, /* garbage rows that one transaction deletes */
};

struct batch {
    struct store *store;
    VEC(struct object *) writes; /* owned references */
    VEC(struct db_row) rows;     /* the same for the database; they borrow from `writes` */
    VEC(int64_t) garbage;        /* versions of rows to delete */
    int64_t compacted;           /* of the history; written with the batch */
    struct store_waiter *waiters, **last_waiter;
    int result; /* of batch_write(), with `error` */
    err_t error;
    int64_t took_ns; /* duration of the commit */
};

struct store {
    struct store_options options;
    struct db *db; /* NULL: memory only; not touched while a batch is in flight */
    struct tree tree;
    struct history history;
    struct map pending; /* key to its newest staged object, borrowed from its batch */
    struct batch *gathering;
    struct batch *out;     /* in flight; NULL: none */
    VEC(int64_t) garbage;  /* versions of rows that are not needed any more */
    int64_t rev, next_rev; /* of the last published write; of the next staged one */
    bool broken;           /* writes are refused because of `failure` */
    err_t failure;
};

static struct batch *batch_new(struct store *s)
{
    struct batch *b = mem_zero(1, sizeof(*b));
    b->store = s;
    b->last_waiter = &b->waiters;
    return b;
}

static void batch_free(struct batch *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->writes.n; i++)
        object_unref(b->writes.at[i]);
    vec_done(&b->writes);
    vec_done(&b->rows);
    vec_done(&b->garbage);
    free(b);
}

/* ---- publishing */

/* An event leaves the history: the row that it replaced is garbage, and its own if it is a tombstone. */
static void remember_garbage(void *context, const struct event *e)
{
    struct store *s = context;
    if (!s->db)
        return;
    if (e->was)
        vec_push(&s->garbage, e->was->rev);
    if (e->now->deleted)
        vec_push(&s->garbage, e->now->rev);
}

/* Makes a write visible; takes a reference of its own. */
static void apply_object(struct store *s, struct object *o)
{
    struct object *was =
        o->deleted ? tree_del(&s->tree, object_key(o)) : tree_put(&s->tree, object_ref(o));
    history_add(&s->history, (struct event){ object_ref(o), was }, remember_garbage, s);
    s->rev = o->rev;
}

/* ---- opening */

/* Replays one row of the file. Rows above the compacted version rebuild the history and must link to the
 * version that they replaced; older ones only rebuild the tree. A row that does not fit means a damaged
 * file. */
static int load_row(void *context, const struct db_row *row, err_t *e)
{
    struct store *s = context;
    struct object *o;
    if (row->rev <= s->rev)
        return err_set(e, EUCLEAN, "it is out of order");
    if (object_new(row->key, row->value, row->rev, row->deleted, &o) < 0)
        return err_set(e, EUCLEAN, "its value is not an object of this store");
    struct object *was = tree_get(&s->tree, row->key);
    o->written_s = clock_wall_ns() / NS_PER_S;
    if (row->rev > s->history.compacted) {
        bool chained = (was ? was->rev : 0) == row->prev_rev;
        if (chained)
            apply_object(s, o);
        object_unref(o);
        return chained ? 0 : err_set(e, EUCLEAN, "it replaces a version that is not there");
    }
    if (was)
        vec_push(&s->garbage, was->rev);
    if (row->deleted) {
        vec_push(&s->garbage, row->rev);
        object_unref(tree_del(&s->tree, row->key));
        object_unref(o);
    } else {
        object_unref(tree_put(&s->tree, o));
    }
    s->rev = row->rev;
    return 0;
}

int store_open(const struct store_options *options, struct store **ret, err_t *e)
{
    struct store *s = mem_zero(1, sizeof(*s));
    s->options = *options;
    s->options.path = NULL; /* belongs to the caller; not needed once the file is open */
    int result = options->path ? db_open(options->path, options->log_frames, &s->db, e) : 0;
    if (result == 0) {
        history_init(&s->history,
                     options->history_events ? options->history_events : HISTORY_EVENTS,
                     options->history_bytes ? options->history_bytes : HISTORY_BYTES,
                     s->db ? db_compacted(s->db) : 0);
        if (s->db)
            result = db_load(s->db, load_row, s, e);
    }
    if (result == 0 && s->rev < s->history.compacted)
        result = err_set(e, EUCLEAN, "the database %s is damaged (its newest rows are missing)",
                         options->path);
    if (result < 0) {
        store_close(s);
        return result;
    }
    s->next_rev = s->rev + 1;
    s->gathering = batch_new(s);
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert(!s->out);
    batch_free(s->gathering);
    map_done(&s->pending);
    history_done(&s->history);
    tree_done(&s->tree);
    vec_done(&s->garbage);
    db_close(s->db);
    free(s);
}

/* ---- reading */

struct object *store_get(const struct store *s, str key)
{
    return tree_get(&s->tree, key);
}

const struct tree *store_tree(const struct store *s)
{
    return &s->tree;
}

const struct history *store_history(const struct store *s)
{
    return &s->history;
}

int64_t store_rev(const struct store *s)
{
    return s->rev;
}

/* ---- writing */

/* Pending tombstones hide the committed object. */
struct object *store_latest(const struct store *s, str key)
{
    struct object *pending = map_get(&s->pending, key);
    if (pending)
        return pending->deleted ? NULL : pending;
    return tree_get(&s->tree, key);
}

/* The definition controller uses this to find out whether a definition has objects left. */
bool store_any_latest(const struct store *s, str prefix)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->pending, slot));)
        if (str_starts(slot->key, prefix) && !((struct object *)slot->value)->deleted)
            return true;
    struct tree_cursor c = tree_seek(&s->tree, prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));) {
        struct object *pending = map_get(&s->pending, object_key(o));
        if (!pending || !pending->deleted)
            return true;
    }
    return false;
}

int64_t store_next_rev(const struct store *s)
{
    return s->next_rev;
}

void store_stage(struct store *s, struct object *o)
{
    assert(o->rev == s->next_rev);
    s->next_rev++;
    o->written_s = clock_wall_ns() / NS_PER_S;
    struct object *replaced = store_latest(s, object_key(o));
    struct db_row row = { .rev = o->rev,
                          .key = object_key(o),
                          .deleted = o->deleted,
                          .prev_rev = replaced ? replaced->rev : 0,
                          .value = object_json(o) };
    vec_push(&s->gathering->rows, row);
    vec_push(&s->gathering->writes, o);
    map_put(&s->pending, object_key(o), o);
}

const err_t *store_failure(const struct store *s)
{
    return s->broken ? &s->failure : NULL;
}

/* Waits for the gathering batch, else for the one in flight; with neither, the waiter is called at once. */
void store_wait(struct store *s, struct store_waiter *w)
{
    struct batch *b = s->gathering->writes.n ? s->gathering : s->out;
    if (!b) {
        w->done(w, 0, NULL);
        return;
    }
    w->next = NULL;
    *b->last_waiter = w;
    b->last_waiter = &w->next;
}

/* ---- committing */

/* The batch takes its share of the garbage with it; the list is only shortened once the batch has been
 * written. */
struct batch *store_flush(struct store *s)
{
    struct batch *b = s->gathering;
    if (s->out || !b->writes.n)
        return NULL;
    size_t n = MIN(s->garbage.n, (size_t)GARBAGE_SLICE);
    for (size_t i = 0; i < n; i++)
        vec_push(&b->garbage, s->garbage.at[i]);
    b->compacted = s->history.compacted;
    s->out = b;
    s->gathering = batch_new(s);
    return b;
}

struct batch *store_tidy(struct store *s, bool idle)
{
    if (s->out || !s->db || s->broken ||
        db_need(s->db) < (idle ? DB_NEEDS_A_MOMENT : DB_NEEDS_IT_NOW))
        return NULL;
    return s->out = batch_new(s);
}

void batch_write(struct batch *b)
{
    if (!b->writes.n) {
        db_tidy(b->store->db);
        return;
    }
    struct db_transaction t = { .rows = b->rows.at,
                                .n_rows = b->rows.n,
                                .garbage = b->garbage.at,
                                .n_garbage = b->garbage.n,
                                .compacted = b->compacted };
    int64_t begun = clock_mono_ns();
    b->result = b->store->db ? db_commit(b->store->db, &t, &b->error) : 0;
    b->took_ns = clock_mono_ns() - begun;
}

size_t batch_size(const struct batch *b)
{
    return b->writes.n;
}

int64_t batch_took_ns(const struct batch *b)
{
    return b->took_ns;
}

bool store_is_durable(const struct store *s)
{
    return s->db != NULL;
}

/* Makes the writes visible one by one, and calls `published` for each. */
static void publish_batch(struct store *s, struct batch *b)
{
    for (size_t i = 0; i < b->writes.n; i++) {
        struct object *o = b->writes.at[i];
        apply_object(s, o);
        if (map_get(&s->pending, object_key(o)) == o)
            map_del(&s->pending, object_key(o));
        uint64_t newest = s->history.next - 1;
        if (s->options.published)
            s->options.published(s->options.context, history_at(&s->history, newest), newest);
    }
    if (b->garbage.n) {
        s->garbage.n -= b->garbage.n;
        memmove(s->garbage.at, s->garbage.at + b->garbage.n, s->garbage.n * sizeof(int64_t));
    }
}

static void call_waiters(struct batch *b, int result, const err_t *e)
{
    for (struct store_waiter *w = b->waiters, *next; w; w = next) {
        next = w->next;
        w->done(w, result, e);
    }
}

/* Waiters are called last, when the store is consistent again: they may stage new writes. */
void store_finish(struct store *s, struct batch *b)
{
    assert(s->out == b);
    s->out = NULL;
    struct batch *lost = NULL;
    if (b->result == 0) {
        publish_batch(s, b);
    } else {
        s->broken = b->result != -ENOSPC;
        s->failure = b->error;
        lost = s->gathering; /* built on the writes that have just been dropped */
        s->gathering = batch_new(s);
        map_done(&s->pending);
    }
    call_waiters(b, b->result, &b->error);
    if (lost)
        call_waiters(lost, b->result, &b->error);
    batch_free(lost);
    batch_free(b);
}

void store_commit(struct store *s)
{
    for (struct batch *b; (b = store_tidy(s, false)) || (b = store_flush(s));) {
        batch_write(b);
        store_finish(s, b);
    }
}

/* Compacts the whole history, so that the initial objects of a new store cannot be watched. */
void store_forget(struct store *s)
{
    while (s->history.first < s->history.next)
        history_drop(&s->history, remember_garbage, s);
    s->history.compacted = s->rev;
}
