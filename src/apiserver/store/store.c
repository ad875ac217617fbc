/* Memory is the database; the file is how it survives. No query ever runs against SQLite: at the start
 * its rows are read once, in order, and replayed.
 *
 * What the file must keep: the newest row of every key, every row in the history's window, and the row
 * that each of those replaced (a watch with a selector needs the old labels). When an event leaves the
 * window, the row it replaced is garbage, and so is its own if it is a tombstone: the store
 * remembers both and has them deleted, a slice at a time, in the transactions that come. The row with
 * the highest version is never garbage, which is what keeps versions from going back.
 *
 * (A background DELETE by query was rejected: it needs an index on key, doubling the write.) */
#include "store.h"

#include "../../base/clock.h"
#include "../../base/map.h"
#include "../../base/vec.h"
#include "db.h"

enum {
    HISTORY_EVENTS = 16384,
    HISTORY_BYTES = 16 << 20,
    GARBAGE_SLICE = 256, /* rows a transaction deletes beside its own work */
};

struct batch {
    struct store *store;
    VEC(struct object *) writes; /* owned references */
    VEC(struct db_row) rows;     /* the same, as db wants them; borrow `writes` */
    VEC(int64_t) garbage;
    int64_t compacted;
    struct store_waiter *waiters, **last_waiter;
    int result;
    err_t error;
    int64_t took_ns;
};

struct store {
    struct store_options options;
    struct db *db; /* NULL: memory only; not touched while a batch is out */
    struct tree tree;
    struct history history;
    struct map pending; /* key to its newest staged object (borrowed from its batch) */
    struct batch *gathering, *out;
    VEC(int64_t) garbage;
    int64_t rev, next_rev;
    bool broken;
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
static void apply(struct store *s, struct object *o)
{
    struct object *was =
        o->deleted ? tree_del(&s->tree, object_key(o)) : tree_put(&s->tree, object_ref(o));
    history_add(&s->history, (struct event){ object_ref(o), was }, remember_garbage, s);
    s->rev = o->rev;
}

/* ---- opening */

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
            apply(s, o);
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
    s->options.path = NULL; /* the caller's text; the file is open from here on */
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

struct object *store_latest(const struct store *s, str key)
{
    struct object *pending = map_get(&s->pending, key);
    if (pending)
        return pending->deleted ? NULL : pending;
    return tree_get(&s->tree, key);
}

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

static void publish(struct store *s, struct batch *b)
{
    for (size_t i = 0; i < b->writes.n; i++) {
        struct object *o = b->writes.at[i];
        apply(s, o);
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

void store_finish(struct store *s, struct batch *b)
{
    assert(s->out == b);
    s->out = NULL;
    struct batch *lost = NULL;
    if (b->result == 0) {
        publish(s, b);
    } else {
        s->broken = b->result != -ENOSPC;
        s->failure = b->error;
        lost = s->gathering; /* it was built on what has just been dropped */
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

void store_forget(struct store *s)
{
    while (s->history.first < s->history.next)
        history_drop(&s->history, remember_garbage, s);
    s->history.compacted = s->rev;
}
