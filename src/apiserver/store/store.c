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
 *     store_stage() --> gathering batch --store_flush()--> batch in flight --store_batch_write()--> file
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
 *   - At most one batch is in flight; only the thread that runs store_batch_write() touches the database meanwhile.
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
 * On a full disk (db_room.c) a write is only accepted if it needs no more room than what it replaces, and it is put in
 * the place of that row: the file is then compacted up to this write, and a watch from before cannot be resumed
 * after a restart. The history in memory, which running watches read, is not affected. `kept_from` is the version up to
 * which the file is compacted.
 *
 *   - Versions do not count as growth, or every object would grow when they get another digit. Other small growth (a
 *     generation of 10 after 9) is accepted as well, up to SLACK_BYTES in total.
 *   - Batches are small, so that a short log is enough for each: there may be several, in a queue.
 *   - A batch that failed because of a write that needs room is staged once more, without it. Until that is done, no such
 *     write is accepted (is_retrying): it would take the others down with it again.
 *
 * Rejected: deleting garbage with a query in the background. It needs an index on the key, which doubles the
 * write.
 *
 * Memory. A batch owns a reference to each of its objects; the tree and the history take their own when it is
 * published. `pending` borrows from the batches. Waiters belong to the callers. */
#include "store.h"

#include "../../base/arena.h"
#include "../../base/clock.h"
#include "../../base/map.h"
#include "../../base/vec.h"
#include "db.h"

enum {
    HISTORY_EVENTS = 16384,
    HISTORY_BYTES = 16 << 20,
    GARBAGE_SLICE = 256, /* garbage rows that one transaction deletes */
    MARK_BYTES = 2048,   /* by which an object may grow on a full disk while it is being deleted */
    ROW_BYTES = 16384,   /* what a row takes beside its text: pages, tree, log */
    SLACK_BYTES = 64 << 10,       /* see above */
    SMALL_GROWTH_BYTES = 8,       /* of one object */
    FULL_BATCH_BYTES = 256 << 10, /* in whole pages */
    PAGE_BYTES = 4096,
};

struct store_batch {
    struct store *store;
    struct store_batch *next;    /* staged after this one */
    size_t bytes;                /* about what it takes in the log */
    VEC(struct object *) writes; /* owned references */
    VEC(struct db_row) rows;     /* the same for the database; they borrow from `writes` */
    VEC(int64_t) garbage; /* numbers of rows to delete; first those that the writes replace */
    size_t n_replaced;    /* of these, on a full disk */
    struct arena texts;   /* of tombstones on a full disk */
    size_t n_deleted;     /* of the garbage: how much was deleted */
    int64_t compacted;    /* version up to which the file is compacted by this batch */
    bool compacts;        /* up to its own last write: the disk is full */
    int64_t room;         /* db_room() after the commit */
    struct store_waiter *waiters, **last_waiter;
    int result; /* of store_batch_write(), with `error` */
    err_t error;
    int64_t took_ns; /* duration of the commit */
};

struct store {
    struct store_options options;
    struct db *db; /* NULL: memory only; not touched while a batch is in flight */
    struct tree tree;
    struct history history;
    struct map pending;            /* key to its newest staged object, borrowed from its batch */
    struct store_batch *first;     /* of the queue that ends with `gathering` */
    struct store_batch *gathering; /* what is staged now is added to it */
    struct store_batch *out;       /* in flight; NULL: none */
    VEC(int64_t) garbage;          /* numbers of rows that are not needed any more */
    int64_t rev, next_rev;         /* of the last published write; of the next staged one */
    int64_t kept_from; /* the file is compacted up to this version; at least as the history */
    int64_t room;      /* for writes that need some; INT64_MAX: the disk is not full */
    int64_t slack;     /* what is left of SLACK_BYTES */
    int64_t retried;   /* the last version staged again after a full disk; see above */
    bool broken;       /* writes are refused because of `failure` */
    err_t failure;
};

static struct store_batch *batch_new(struct store *s)
{
    struct store_batch *b = mem_zero(1, sizeof(*b));
    b->store = s;
    b->last_waiter = &b->waiters;
    return b;
}

static void batch_free(struct store_batch *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->writes.n; i++)
        object_unref(b->writes.at[i]);
    vec_done(&b->writes);
    vec_done(&b->rows);
    vec_done(&b->garbage);
    arena_done(&b->texts);
    free(b);
}

static void queue_free(struct store_batch *b)
{
    for (struct store_batch *next; b; b = next) {
        next = b->next;
        batch_free(b);
    }
}

/* ---- publishing */

static int64_t row_of(const struct object *o)
{
    return o->place ? o->place : o->rev;
}

/* An event leaves the history, or the file is compacted beyond it: the row that it replaced is garbage, and its own if
 * it is a tombstone. */
static void remember_garbage(void *context, const struct event *e)
{
    struct store *s = context;
    if (!s->db || e->now->rev <= s->kept_from)
        return;
    if (e->was)
        vec_push(&s->garbage, row_of(e->was));
    if (e->now->deleted)
        vec_push(&s->garbage, row_of(e->now));
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
 * version that they replaced; older ones only rebuild the tree, and those that were replaced in place come in the order
 * of their first versions. A row that does not fit means a damaged file. */
static int load_row(void *context, const struct db_row *row, err_t *e)
{
    struct store *s = context;
    struct object *o;
    if (row->place ? row->rev > s->history.compacted
                   : row->rev <= s->rev && row->rev > s->history.compacted)
        return err_set(e, EUCLEAN, "it is out of order");
    if (object_new(row->key, row->value, row->rev, row->deleted, &o) < 0)
        return err_set(e, EUCLEAN, "its value is not an object of this store");
    struct object *was = tree_get(&s->tree, row->key);
    o->written_s = clock_wall_ns() / NS_PER_S;
    o->place = row->place;
    if (row->rev > s->history.compacted) {
        bool chained = (was ? was->rev : 0) == row->prev_rev;
        if (chained)
            apply_object(s, o);
        object_unref(o);
        return chained ? 0 : err_set(e, EUCLEAN, "it replaces a version that is not there");
    }
    if (was)
        vec_push(&s->garbage, row_of(was));
    if (row->deleted) {
        vec_push(&s->garbage, row_of(o));
        object_unref(tree_del(&s->tree, row->key));
        object_unref(o);
    } else {
        object_unref(tree_put(&s->tree, o));
    }
    s->rev = MAX(s->rev, row->rev);
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
        s->kept_from = s->history.compacted;
        if (s->db)
            result = db_load(s->db, load_row, s, e);
    }
    if (result == 0 && s->rev < s->history.compacted)
        result = err_set(e, EUCLEAN, "the database %s is damaged (its newest rows are missing)",
                         options->path);
    if (result == 0 && s->db)
        result = db_begin(s->db, e);
    if (result < 0) {
        store_close(s);
        return result;
    }
    s->room = s->db ? db_room(s->db) : INT64_MAX;
    s->next_rev = s->rev + 1;
    s->slack = SLACK_BYTES;
    s->first = s->gathering = batch_new(s);
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert(!s->out);
    queue_free(s->first);
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

int64_t store_kept_from(const struct store *s)
{
    return MAX(s->kept_from, s->history.compacted);
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

bool store_any_latest(const struct store *s, str prefix,
                      bool (*is)(void *context, struct object *o), void *context)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->pending, slot));) {
        struct object *o = slot->value;
        if (str_starts(slot->key, prefix) && !o->deleted && (!is || is(context, o)))
            return true;
    }
    struct tree_cursor c = tree_seek(&s->tree, prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        if (!map_get(&s->pending, object_key(o)) && (!is || is(context, o)))
            return true;
    return false;
}

int64_t store_next_rev(const struct store *s)
{
    return s->next_rev;
}

/* By how much the object is longer than what it replaces, without the version. */
static int64_t growth_of(const struct object *o, const struct object *replaced)
{
    return (int64_t)(o->json_n - o->rv.n) - (int64_t)(replaced->json_n - replaced->rv.n);
}

static bool needs_room(const struct store *s, const struct object *o, const struct object *replaced)
{
    if (o->deleted || !replaced)
        return !o->deleted;
    int64_t allowed = o->deleting && !replaced->deleting
                          ? MARK_BYTES
                          : MIN(s->slack, (int64_t)SMALL_GROWTH_BYTES);
    return growth_of(o, replaced) > allowed;
}

static int64_t room_of(const struct object *o)
{
    return ROW_BYTES + (int64_t)o->json_n;
}

static bool is_retrying(const struct store *s)
{
    return s->rev < s->retried;
}

int store_check_room(const struct store *s, const struct object *o, err_t *e)
{
    if (s->room == INT64_MAX || !needs_room(s, o, store_latest(s, object_key(o))))
        return 0;
    if (!is_retrying(s) && (room_of(o) <= s->room || db_disk_has_room(s->db, room_of(o))))
        return 0;
    return db_report_full(s->db, e);
}

/* Begins another batch when this one is as large as the log of a full disk may allow. */
static void take_room(struct store *s, const struct object *o, const struct object *replaced,
                      bool needs_room)
{
    size_t bytes = o->json_n + 2 * (size_t)PAGE_BYTES;
    if (s->room != INT64_MAX) {
        if (needs_room)
            s->room = MAX(s->room - room_of(o), (int64_t)0);
        else if (replaced && !o->deleted && !o->deleting)
            s->slack -= MAX(growth_of(o, replaced), (int64_t)0);
        if (s->gathering->writes.n && s->gathering->bytes + bytes > FULL_BATCH_BYTES)
            s->gathering = s->gathering->next = batch_new(s);
    }
    s->gathering->bytes += bytes;
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
                          .value = object_json(o),
                          .needs_room = needs_room(s, o, replaced) };
    take_room(s, o, replaced, row.needs_room);
    vec_push(&s->gathering->rows, row);
    vec_push(&s->gathering->writes, o);
    map_put(&s->pending, object_key(o), o);
}

bool store_is_full(const struct store *s)
{
    return s->room != INT64_MAX;
}

const err_t *store_failure(const struct store *s)
{
    return s->broken ? &s->failure : NULL;
}

/* Waits for the gathering batch, else for the one in flight; with neither, the waiter is called at once. */
void store_wait(struct store *s, struct store_waiter *w)
{
    struct store_batch *b = s->gathering->writes.n ? s->gathering : s->out;
    if (!b) {
        w->done(w, 0, NULL);
        return;
    }
    w->next = NULL;
    *b->last_waiter = w;
    b->last_waiter = &w->next;
}

/* ---- committing */

/* A tombstone is written without its object, which may be large: it is never shown. */
static void strip_tombstone(struct store_batch *b, struct db_row *row)
{
    row->value = arena_printf(&b->texts,
                              "{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                              "\"metadata\":{\"resourceVersion\":\"%lld\"}}",
                              (long long)row->rev);
}

/* Full disk: only the newest row of each key is written, in the place of the one that it replaces, which is garbage of this
 * batch. A tombstone is needed as long as older rows of its key are: it becomes garbage after them. */
static void compact_batch(struct store *s, struct store_batch *b)
{
    size_t n = 0;
    struct map newest = { 0 };
    b->compacted = b->rows.at[b->rows.n - 1].rev;
    b->compacts = true;
    for (size_t i = 0; i < b->rows.n; i++)
        map_put(&newest, b->rows.at[i].key, b->writes.at[i]);
    for (size_t i = 0; i < b->rows.n; i++) {
        struct db_row row = b->rows.at[i];
        if (map_get(&newest, row.key) != b->writes.at[i])
            continue;
        struct object *replaced = tree_get(&s->tree, row.key);
        if (replaced) {
            row.place = b->writes.at[i]->place = row_of(replaced);
            vec_push(&b->garbage, row.place);
        }
        if (row.deleted)
            strip_tombstone(b, &row);
        b->rows.at[n++] = row;
    }
    map_done(&newest);
    b->rows.n = n;
    b->n_replaced = b->garbage.n;
}

/* Gives up the part of the history that is only kept for a restart. */
static void compact_file(struct store *s)
{
    for (uint64_t at = s->history.first; at < s->history.next; at++) {
        const struct event *e = history_at(&s->history, at);
        assert(e);
        remember_garbage(s, e);
    }
    s->kept_from = s->rev;
}

/* The batch takes its share of the garbage with it; the list is only shortened once the batch has been
 * written. */
struct store_batch *store_flush(struct store *s)
{
    struct store_batch *b = s->first;
    if (s->out || !b->writes.n)
        return NULL;
    b->compacted = MAX(s->history.compacted, s->kept_from);
    if (s->room != INT64_MAX) {
        compact_file(s);
        compact_batch(s, b);
    }
    size_t n = MIN(s->garbage.n, (size_t)GARBAGE_SLICE);
    for (size_t i = 0; i < n; i++)
        vec_push(&b->garbage, s->garbage.at[i]);
    s->out = b;
    s->first = b->next ? b->next : (s->gathering = batch_new(s));
    b->next = NULL;
    return b;
}

struct store_batch *store_tidy(struct store *s, bool idle)
{
    if (s->out || !s->db || s->broken ||
        db_need(s->db) < (idle ? DB_NEEDS_A_MOMENT : DB_NEEDS_IT_NOW))
        return NULL;
    return s->out = batch_new(s);
}

void store_batch_write(struct store_batch *b)
{
    if (!b->writes.n) {
        db_tidy(b->store->db);
        return;
    }
    struct db_transaction t = { .rows = b->rows.at,
                                .n_rows = b->rows.n,
                                .garbage = b->garbage.at,
                                .n_garbage = b->garbage.n,
                                .n_replaced = b->n_replaced,
                                .compacted = b->compacted,
                                .compacts = b->compacts };
    int64_t begun = clock_mono_ns();
    struct db *db = b->store->db;
    b->result = db ? db_commit(db, &t, &b->n_deleted, &b->error) : 0;
    b->room = db ? db_room(db) : INT64_MAX;
    b->took_ns = clock_mono_ns() - begun;
}

size_t store_batch_size(const struct store_batch *b)
{
    return b->writes.n;
}

int64_t store_batch_took_ns(const struct store_batch *b)
{
    return b->took_ns;
}

bool store_is_durable(const struct store *s)
{
    return s->db != NULL;
}

/* Makes the writes visible one by one, and calls `published` for each. */
static void publish_batch(struct store *s, struct store_batch *b)
{
    if (b->compacts)
        s->kept_from = b->compacted; /* first: what was replaced in place is not garbage */
    for (size_t i = 0; i < b->writes.n; i++) {
        struct object *o = b->writes.at[i];
        apply_object(s, o);
        if (map_get(&s->pending, object_key(o)) == o)
            map_del(&s->pending, object_key(o));
        uint64_t newest = s->history.next - 1;
        if (s->options.published)
            s->options.published(s->options.context, history_at(&s->history, newest), newest);
    }
    size_t done = b->n_deleted > b->n_replaced ? b->n_deleted - b->n_replaced : 0;
    if (done) {
        s->garbage.n -= done;
        memmove(s->garbage.at, s->garbage.at + done, s->garbage.n * sizeof(int64_t));
    }
    for (size_t i = 0; b->compacts && i < b->rows.n; i++) {
        const struct db_row *row = &b->rows.at[i];
        if (row->deleted)
            vec_push(&s->garbage, row->place ? row->place : row->rev);
    }
}

static void take_outcome(struct store *s, const struct store_batch *b)
{
    s->room = b->room;
    if (b->result == -ENOSPC)
        s->retried = INT64_MAX; /* until the waiters have staged what they want */
    if (s->room == INT64_MAX)
        s->slack = SLACK_BYTES;
}

static void call_waiters(const struct store_batch *b, int result, const err_t *e)
{
    for (struct store_waiter *w = b->waiters, *next; w; w = next) {
        next = w->next;
        w->done(w, result, e);
    }
}

/* Waiters are called last, when the store is consistent again: they may stage new writes. */
void store_finish(struct store *s, struct store_batch *b)
{
    assert(s->out == b);
    s->out = NULL;
    struct store_batch *lost = NULL;
    if (b->writes.n)
        take_outcome(s, b);
    if (b->result == 0) {
        publish_batch(s, b);
    } else {
        s->broken = b->result != -ENOSPC;
        s->failure = b->error;
        lost = s->first; /* built on the writes that have just been dropped */
        s->first = s->gathering = batch_new(s);
        map_done(&s->pending);
    }
    call_waiters(b, b->result, &b->error);
    for (const struct store_batch *other = lost; other; other = other->next)
        call_waiters(other, b->result, &b->error);
    if (s->retried == INT64_MAX)
        s->retried = s->gathering->writes.n ? s->next_rev - 1 : 0;
    queue_free(lost);
    batch_free(b);
}

void store_commit(struct store *s)
{
    for (struct store_batch *b; (b = store_tidy(s, false)) || (b = store_flush(s));) {
        store_batch_write(b);
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
