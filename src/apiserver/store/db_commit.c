/* Commits, and the maintenance between them. The head of db.c has the invariants; this file keeps them.
 *
 *   db_commit    seal a damaged end of the log -> BEGIN, rows, COMMIT -> mark -> acknowledge
 *   db_tidy      one small step of maintenance, when the store is idle or the log is too long
 *
 * Three files take part. SQLite's database and its log hold the rows. The mark, a few bytes of our own, holds
 * the last acknowledged revision, so that a start can notice a lost or older log. The reserve is empty space
 * that is given up when the disk is full, so that deletions still work and can make room.
 *
 * A commit is acknowledged only after its mark is written. The mark is synced at most once per MARK_SYNC_NS:
 * after a power failure it may lag behind the log, which is harmless, but it is never ahead of it.
 *
 * After a failed attempt, pages of the refused transaction may be behind the end of the log, and a later crash
 * could bring them back. `unsealed` remembers this; the next step first commits a random value (db_seal_log),
 * which overwrites the place where they would have to continue. */
#include "db_private.h"

#include "../../base/clock.h"
#include "db_files.h"
#include "db_log.h"

#include <stdio.h>

enum {
    FRAME_BYTES = 4096 + 24, /* a page and its head in the log; a guess will do */
};

#define DELETE_PADDING "DELETE FROM meta WHERE name = 'padding'"

static const int64_t MARK_SYNC_NS = NS_PER_S;

/* Writes the mark; syncs it if asked, if the log started over, or if the last sync is too old. A failure is
 * remembered in mark_behind, and no commit is accepted until the mark is written. */
int db_set_mark(struct db *db, struct db_mark_value value, bool sync)
{
    sync |= value.log_salt != db->marked.log_salt ||
            clock_mono_ns() - db->mark_synced_ns >= MARK_SYNC_NS;
    int code = db_mark_write(db->mark, value);
    if (code == SQLITE_OK && sync)
        code = db_mark_sync(db->mark);
    db->mark_behind = code != SQLITE_OK;
    db->unmarked = value;
    if (code != SQLITE_OK)
        return code;
    db->marked = value;
    if (sync)
        db->mark_synced_ns = clock_mono_ns();
    return code;
}

/* Runs a statement that answers nothing, and makes it ready for the next time. */
static int run_statement(sqlite3_stmt *s)
{
    int code = sqlite3_step(s);
    int reset = sqlite3_reset(s);
    return code == SQLITE_DONE ? reset : code;
}

static int write_row(struct db *db, const struct db_row *given)
{
    sqlite3_stmt *s = db->insert;
    struct db_row copy = *given, *row = &copy;
    db_row_encode(row);
    if (row->value.n > INT32_MAX || row->key.n > INT32_MAX)
        return SQLITE_TOOBIG;
    sqlite3_bind_int64(s, 1, row->rev);
    sqlite3_bind_text(s, 2, row->key.p, (int)row->key.n, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, row->deleted);
    sqlite3_bind_int64(s, 4, row->prev_rev);
    sqlite3_bind_text(s, 5, row->value.p, (int)row->value.n, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, db_row_sum(row));
    return run_statement(s);
}

static bool replaces_in_place(const struct db_transaction *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].place)
            return true;
    return false;
}

/* Garbage first: SQLite then puts the rows into the pages that this frees. */
static int write_all(struct db *db, const struct db_transaction *t)
{
    int code = SQLITE_OK;
    if (db->version < DB_VERSION_REPLACED && replaces_in_place(t)) {
        char sql[60];
        snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", DB_VERSION_REPLACED);
        code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    }
    for (size_t i = 0; i < t->n_garbage && code == SQLITE_OK; i++) {
        sqlite3_bind_int64(db->remove, 1, t->garbage[i]);
        code = run_statement(db->remove);
    }
    for (size_t i = 0; i < t->n_rows && code == SQLITE_OK; i++)
        code = write_row(db, &t->rows[i]);
    if (code == SQLITE_OK && (t->n_garbage || t->compacts)) {
        sqlite3_bind_int64(db->set_compacted, 1, t->compacted);
        code = run_statement(db->set_compacted);
    }
    return code;
}

/* ---- mark */

/* Runs after each commit and before its acknowledgement. From here on the log does not start over until it has
 * been moved again. */
static int mark_commit(struct db *db, int64_t rev)
{
    struct db_mark_value value = {
        .rev = rev,
        .log_salt = db->log_may_restart ? db_log_salt(db->sqlite) : db->marked.log_salt,
        .log_frames = (uint32_t)db->log_frames,
    };
    int code = db_set_mark(db, value, false);
    if (code == SQLITE_FULL &&
        db_release_reserve(db)) /* some file systems need room to overwrite */
        code = db_set_mark(db, value, true);
    if (code == SQLITE_OK)
        db->log_may_restart = false;
    return code;
}

/* ---- maintenance */

/* Moves the log into the database (a checkpoint). True: all of it, so that the log starts over with the next
 * commit. */
bool db_move_log(struct db *db)
{
    int frames = 0, moved = -1;
    db->log_may_restart = true;
    int code =
        sqlite3_wal_checkpoint_v2(db->sqlite, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    if (code != SQLITE_OK || frames != moved)
        return false;
    db->log_frames = 0;
    struct db_mark_value value = db->marked;
    value.log_moved = true;
    return !db->mark || db_set_mark(db, value, true) == SQLITE_OK;
}

int db_seal_log(struct db *db)
{
    char sql[100];
    uint64_t unique = db->marked.log_salt; /* announced, if there was no log */
    if (db->marked.log_frames)
        sqlite3_randomness(sizeof(unique), &unique);
    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES('seal', %lld)",
             (long long)unique);
    int code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    db->unsealed = code != SQLITE_OK;
    return code == SQLITE_OK ? mark_commit(db, db->marked.rev) : code;
}

/* As long as it gets before it must be moved. */
static int64_t whole_log_bytes(const struct db *db)
{
    return 2 * (int64_t)db->long_frames * FRAME_BYTES;
}

static bool is_short(const struct db *db)
{
    return db_log_bytes(db->sqlite) < whole_log_bytes(db);
}

static bool must_move_log(const struct db *db)
{
    return db->log_frames >= 2 * db->long_frames || db_is_growing(db);
}

enum db_need db_need(const struct db *db)
{
    if (db->last_tidy_failed || !db->mark)
        return DB_NEEDS_NOTHING;
    if (must_move_log(db))
        return DB_NEEDS_IT_NOW;
    bool waits = db->unsealed || db->log_frames >= db->long_frames || db->has_padding ||
                 is_short(db) || !db_mark_is_synced(db->mark);
    return waits ? DB_NEEDS_A_MOMENT : DB_NEEDS_NOTHING;
}

/* A transaction of no consequence, for its effect on the files. */
static bool run_padding(struct db *db, const char *sql)
{
    bool done = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK;
    db->unsealed |= !done;
    return done && mark_commit(db, db->marked.rev) == SQLITE_OK;
}

/* Makes a short log longer by a padding row: commits will then overwrite instead of append, which spares
 * the disk a third of the work. Not on a small disk, where the file needs the room. */
static bool grow_log(struct db *db)
{
    char sql[100];
    if (db_files->free_bytes(db->path) / 16 < whole_log_bytes(db))
        return false;
    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES('padding', zeroblob(%d))",
             db->long_frames * 1024);
    db->has_padding = true;
    return run_padding(db, sql);
}

/* The most urgent step only: each one blocks the commit thread, and a commit may arrive between two. */
static bool tidy_once(struct db *db)
{
    if (db->unsealed)
        return db_seal_log(db) == SQLITE_OK;
    if (must_move_log(db))
        return db_move_log(db);
    if (is_short(db) && grow_log(db))
        return true;
    if (db->has_padding) {
        db->has_padding = false;
        return run_padding(db, DELETE_PADDING);
    }
    if (db->log_frames >= db->long_frames)
        return db_move_log(db);
    return !db_mark_is_synced(db->mark) && db_mark_sync(db->mark) == SQLITE_OK;
}

void db_tidy(struct db *db)
{
    /* Nothing is appended to a log whose last transaction is not marked. If the mark still cannot be written, the next
     * commit tries again: a step that achieves nothing must not be asked for again at once. */
    bool is_marked = !db->mark_behind || db_set_mark(db, db->unmarked, true) == SQLITE_OK;
    db->last_tidy_failed = !is_marked || !tidy_once(db);
}

/* ---- committing */

/* One attempt; a failed one leaves nothing, or it returns SQLITE_IOERR. */
static int commit_batch(struct db *db, const struct db_transaction *t)
{
    int code = run_statement(db->begin);
    if (code == SQLITE_OK)
        code = write_all(db, t);
    if (code == SQLITE_OK)
        code = run_statement(db->commit);
    if (code == SQLITE_OK) {
        db->version = replaces_in_place(t) ? DB_VERSION_REPLACED : db->version;
        return code;
    }
    db->unsealed = true; /* its pages are behind the end of the log */
    if (!sqlite3_get_autocommit(db->sqlite) &&
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        return SQLITE_IOERR;
    return code;
}

/* Once all of the log is in the file, SQLite writes it again from its beginning, where there is room, and with another
 * salt: what a refused transaction left behind its end cannot become valid, so it need not be sealed. A seal that the mark has
 * announced is owed all the same. */
static bool restart_log(struct db *db)
{
    bool moved = db_move_log(db);
    db->unsealed &= !moved || !db->marked.log_frames;
    return moved;
}

static int seal_in_room(struct db *db)
{
    int code = db->unsealed ? db_seal_log(db) : SQLITE_OK;
    return code == SQLITE_FULL && restart_log(db) && !db->unsealed ? SQLITE_OK : code;
}

static int transact_in_room(struct db *db, const struct db_transaction *t)
{
    int code = seal_in_room(db);
    if (code == SQLITE_OK)
        code = commit_batch(db, t);
    return code == SQLITE_FULL && restart_log(db) ? commit_batch(db, t) : code;
}

/* With little room the garbage that can wait does: its pages have to be written to the log as well. */
static int transact_least(struct db *db, struct db_transaction *t)
{
    int code = transact_in_room(db, t);
    if (code != SQLITE_FULL || t->n_garbage == t->n_replaced)
        return code;
    t->n_garbage = t->n_replaced;
    return transact_in_room(db, t);
}

static bool needs_room(const struct db_transaction *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].needs_room)
            return true;
    return false;
}

/* Releases the reserve, and puts a part of it into SQLite's files before another process takes it: the file gets what is in
 * the log, the log gets longer, and the file gets free pages. False: it is released already. */
static bool use_reserve(struct db *db)
{
    char sql[100];
    if (!db_release_reserve(db))
        return false;
    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES('padding', zeroblob(%d))",
             DB_PADDING_BYTES);
    (void)restart_log(db);
    if (seal_in_room(db) == SQLITE_OK && run_padding(db, sql)) {
        (void)restart_log(db);
        db->has_padding = !run_padding(db, DELETE_PADDING);
    }
    return true;
}

/* A full disk takes what needs no more room than it frees, if necessary at the expense of the reserve. */
static int transact_or_full(struct db *db, struct db_transaction *t)
{
    bool grows = needs_room(t);
    if (!db->mark && db_mark_create(db->mark_path, db->marked, &db->mark, NULL) < 0 &&
        (grows || !db_release_reserve(db) ||
         db_mark_create(db->mark_path, db->marked, &db->mark, NULL) < 0))
        return SQLITE_FULL;
    if (grows && !db_may_grow(db, t)) {
        if (!db_has_free_pages(db, t))
            return SQLITE_FULL;
        grows = false; /* it takes pages that are there */
    }
    int code = transact_least(db, t);
    if (code == SQLITE_FULL && !grows && use_reserve(db))
        code = transact_least(db, t);
    return code;
}

/* Whether the next start would not find what is written now: someone removed, moved or replaced the database or its
 * log. The files are open, so writing to them still succeeds. SQLite itself looks after the database only. */
static bool is_removed(struct db *db)
{
    int moved = 0;
    (void)sqlite3_file_control(db->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    int64_t log = db_log_identity(db->sqlite);
    if (!db->log_identity && log > 0)
        db->log_identity = log;
    return moved || log == -ENOENT || (log > 0 && log != db->log_identity);
}

int db_commit(struct db *db, const struct db_transaction *given, size_t *ret_garbage, err_t *e)
{
    struct db_transaction t = *given;
    assert(t.n_rows);
    db->last_tidy_failed = false;
    if (is_removed(db)) {
        db_set_checkpoint_on_close(db, false);
        return err_set(
            e, EIO,
            "the database %s or its log was removed or moved while in use; restore it and "
            "start again",
            db->path);
    }
    int code = db->mark_behind ? db_set_mark(db, db->unmarked, true) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = transact_or_full(db, &t);
    if (code == SQLITE_OK && mark_commit(db, t.rows[t.n_rows - 1].rev) != SQLITE_OK) {
        db_set_checkpoint_on_close(db, false);
        return err_set(
            e, EIO,
            "the high-water mark %s cannot be written: the write is in the database, but "
            "its loss would not be noticed",
            db->mark_path);
    }
    if (code == SQLITE_FULL)
        db->room = 0;
    else if (code == SQLITE_OK)
        db_measure_room(db);
    if (code == SQLITE_OK) {
        *ret_garbage = t.n_garbage;
        return 0;
    }
    int result = db_explain(db, code, e);
    if (result != -ENOSPC)
        db_set_checkpoint_on_close(db, false);
    return result;
}
