/* Commits, and the maintenance between them. See the head of db.c for the invariants. */
#include "db_private.h"

#include "../../base/clock.h"
#include "db_files.h"
#include "db_log.h"

#include <stdio.h>

enum {
    RESERVE_BYTES = 4 << 20,
    FRAME_BYTES = 4096 + 24, /* a page and its head in the log; a guess will do */
};

static const int64_t MARK_SYNC_NS = NS_PER_S;

int db_set_mark(struct db *db, struct mark_value value, bool sync)
{
    sync |= value.log_salt != db->marked.log_salt ||
            clock_mono_ns() - db->mark_synced_ns >= MARK_SYNC_NS;
    int code = mark_write(db->mark, value);
    if (code == SQLITE_OK && sync)
        code = mark_sync(db->mark);
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
static int step(sqlite3_stmt *s)
{
    int code = sqlite3_step(s);
    int reset = sqlite3_reset(s);
    return code == SQLITE_DONE ? reset : code;
}

static int write_row(struct db *db, const struct db_row *row)
{
    sqlite3_stmt *s = db->insert;
    if (row->value.n > INT32_MAX || row->key.n > INT32_MAX)
        return SQLITE_TOOBIG;
    sqlite3_bind_int64(s, 1, row->rev);
    sqlite3_bind_text(s, 2, row->key.p, (int)row->key.n, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, row->deleted);
    sqlite3_bind_int64(s, 4, row->prev_rev);
    sqlite3_bind_text(s, 5, row->value.p, (int)row->value.n, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, db_row_sum(row));
    return step(s);
}

static int write_all(struct db *db, const struct db_transaction *t)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < t->n_rows && code == SQLITE_OK; i++)
        code = write_row(db, &t->rows[i]);
    for (size_t i = 0; i < t->n_garbage && code == SQLITE_OK; i++) {
        sqlite3_bind_int64(db->remove, 1, t->garbage[i]);
        code = step(db->remove);
    }
    if (code == SQLITE_OK && t->n_garbage) {
        sqlite3_bind_int64(db->set_compacted, 1, t->compacted);
        code = step(db->set_compacted);
    }
    return code;
}

/* ---- reserve and mark */

void db_make_reserve(struct db *db)
{
    int result = db_files->reserve(db->reserve_path, RESERVE_BYTES);
    /* a file system that cannot reserve is not full */
    db->has_reserve = result != -ENOSPC && result != -EDQUOT;
}

/* Gives up the room kept for this moment. False: it is given up already. */
static bool release_reserve(struct db *db)
{
    if (!db->has_reserve)
        return false;
    (void)db_files->remove(db->reserve_path);
    db->has_reserve = false;
    return true;
}

/* Runs after each commit and before its acknowledgement. From here on the log does not start over until it has
 * been moved again. */
static int mark_commit(struct db *db, int64_t rev)
{
    struct mark_value value = {
        .rev = rev,
        .log_salt = db->log_may_restart ? log_salt(db->sqlite) : db->marked.log_salt,
        .log_frames = (uint32_t)db->log_frames,
    };
    int code = db_set_mark(db, value, false);
    if (code == SQLITE_FULL && release_reserve(db)) /* some file systems need room to overwrite */
        code = db_set_mark(db, value, true);
    if (code == SQLITE_OK)
        db->log_may_restart = false;
    return code;
}

/* ---- maintenance */

bool db_move_log(struct db *db)
{
    int frames = 0, moved = -1;
    db->log_may_restart = true;
    int code =
        sqlite3_wal_checkpoint_v2(db->sqlite, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    if (code != SQLITE_OK || frames != moved)
        return false;
    db->log_frames = 0;
    struct mark_value value = db->marked;
    value.log_moved = true;
    return !db->mark || db_set_mark(db, value, true) == SQLITE_OK;
}

/* As long as it gets before it must be moved. */
static int64_t whole_log_bytes(const struct db *db)
{
    return 2 * (int64_t)db->long_frames * FRAME_BYTES;
}

static bool is_short(const struct db *db)
{
    return log_bytes(db->sqlite) < whole_log_bytes(db);
}

enum db_need db_need(const struct db *db)
{
    if (db->last_tidy_failed || !db->mark)
        return DB_NEEDS_NOTHING;
    if (db->log_frames >= 2 * db->long_frames)
        return DB_NEEDS_IT_NOW;
    bool waits = db->log_frames >= db->long_frames || db->has_padding || is_short(db) ||
                 !mark_is_synced(db->mark);
    return waits ? DB_NEEDS_A_MOMENT : DB_NEEDS_NOTHING;
}

/* A transaction of no consequence, for its effect on the files. */
static bool run_padding(struct db *db, const char *sql)
{
    bool done = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK;
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

static bool tidy_once(struct db *db)
{
    if (db->log_frames >= 2 * db->long_frames)
        return db_move_log(db);
    if (is_short(db) && grow_log(db))
        return true;
    if (db->has_padding) {
        db->has_padding = false;
        return run_padding(db, "DELETE FROM meta WHERE name = 'padding'");
    }
    if (db->log_frames >= db->long_frames)
        return db_move_log(db);
    return !mark_is_synced(db->mark) && mark_sync(db->mark) == SQLITE_OK;
}

void db_tidy(struct db *db)
{
    if (!db->mark_behind)
        db->last_tidy_failed = !tidy_once(db);
}

/* ---- committing */

static bool only_removes(const struct db_transaction *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (!t->rows[i].deleted)
            return false;
    return true;
}

/* A full disk, by any name: SQLite reports a quota and a file size limit as other failures. */
static int full_if_full(struct db *db, int code)
{
    int system = sqlite3_system_errno(db->sqlite);
    bool full = code == SQLITE_IOERR_WRITE && (system == EDQUOT || system == EFBIG);
    return full ? SQLITE_FULL : code;
}

/* One attempt; a failed one leaves nothing, or it returns SQLITE_IOERR. */
static int transact(struct db *db, const struct db_transaction *t)
{
    int code = step(db->begin);
    if (code == SQLITE_OK)
        code = write_all(db, t);
    if (code == SQLITE_OK)
        code = step(db->commit);
    if (code == SQLITE_OK)
        return code;
    code = full_if_full(db, code);
    if (!sqlite3_get_autocommit(db->sqlite) &&
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        return SQLITE_IOERR;
    return code;
}

/* When the log starts over, there may be room in it. */
static int transact_in_room(struct db *db, const struct db_transaction *t)
{
    int code = transact(db, t);
    return code == SQLITE_FULL && db->log_frames && db_move_log(db) ? transact(db, t) : code;
}

/* A full disk takes deletions, at the expense of the reserve, and nothing else until that is back. */
static int transact_or_full(struct db *db, const struct db_transaction *t)
{
    bool removes = only_removes(t);
    if (!db->mark && mark_create(db->mark_path, db->marked, &db->mark, NULL) < 0)
        return SQLITE_FULL;
    if (!removes && !db->has_reserve)
        db_make_reserve(db);
    if (!removes && !db->has_reserve)
        return SQLITE_FULL;
    int code = transact_in_room(db, t);
    if (code == SQLITE_FULL && removes && release_reserve(db))
        code = transact_in_room(db, t);
    return code;
}

int db_commit(struct db *db, const struct db_transaction *t, err_t *e)
{
    assert(t->n_rows);
    db->last_tidy_failed = false;
    int code = db->mark_behind ? db_set_mark(db, db->unmarked, true) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = transact_or_full(db, t);
    if (code == SQLITE_OK && mark_commit(db, t->rows[t->n_rows - 1].rev) != SQLITE_OK)
        code = SQLITE_IOERR; /* it is there, but a loss of it would not be noticed */
    if (code == SQLITE_OK)
        return 0;
    int result = db_explain(db, code, e);
    if (result != -ENOSPC)
        db_set_checkpoint_on_close(db, false);
    return result;
}
