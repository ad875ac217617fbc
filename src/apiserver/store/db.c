/* Write-ahead log with synchronous=FULL: COMMIT returns when the log is on disk. The file is locked
 * for as long as it is open, which also spares the shared-memory file.
 *
 * Only SQLite writes SQLite's files. The log is kept and reused: once all of it has been moved into the file,
 * SQLite writes it again from its beginning, so a commit mostly overwrites and the disk has no new length to
 * record beside the data. A log that is still short is grown in idle moments, by transactions that
 * rewrite a row which nobody reads.
 *
 * Files beside the database:
 *
 *     state.db-wal       SQLite's log; removed by an orderly close
 *     state.db-mark      high-water mark (db_mark.h), checked when opening
 *     state.db-reserve   room on the disk, given up when it is full so that objects can still be deleted
 *
 * The mark is synced when the log begins anew, every MARK_SYNC_NS, when idle and when closing. So a
 * log of another generation than the mark's can hold one transaction at most, and a power failure leaves
 * writes of the last second covered by the log's own checksums alone.
 *
 * A new database is made under another name and renamed when complete: so a file that is empty or lacks
 * its table was cut off by somebody else, and is reported instead of filled. Each row carries a
 * checksum, because SQLite finds a damaged page structure but not a flipped bit inside a value. */
#include "db.h"

#include "../../base/buf.h"
#include "../../base/clock.h"
#include "../../base/log.h"
#include "../../base/sum.h"
#include "db_files.h"
#include "db_log.h"
#include "db_mark.h"

#include <sqlite3.h>
#include <stdio.h>

enum {
    DATA_VERSION = 1,
    APPLICATION_ID = 0x666c7962, /* "flyb" */
    LONG_FRAMES = 1000,
    RESERVE_BYTES = 4 << 20,
};

static const int64_t MARK_SYNC_NS = NS_PER_S;

#define WHAT_TO_DO "; restore the data directory from a copy, or move state.db* away to start empty"

struct db {
    sqlite3 *sqlite;
    sqlite3_stmt *begin, *insert, *remove, *set_compacted, *commit;
    int64_t compacted;
    char *path, *mark_path, *reserve_path;
    struct mark *mark; /* NULL: the disk was too full to make one */
    struct mark_value marked;
    int64_t mark_synced_ns;
    int long_frames;      /* a log so long can be moved when idle; twice as long: must be */
    int log_frames;       /* how many SQLite has written since it began the log anew */
    bool log_may_restart; /* the next commit may begin the log anew, with another salt */
    bool has_reserve;
    bool last_tidy_failed; /* and nothing was committed since */
};

static int damaged(struct db *db, err_t *e, const char *why)
{
    return err_set(e, EUCLEAN, "the database %s is damaged (%s)%s", db->path, why, WHAT_TO_DO);
}

/* What a failed SQLite call means to a person. */
static int explain(struct db *db, int code, err_t *e)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set(
            e, ENOSPC,
            "the disk of %s is full: nothing was changed; objects can be read, and a few "
            "deleted, until there is room on it",
            db->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, EBUSY, "the database %s is in use by another process", db->path);
    case SQLITE_NOTADB:
        return damaged(db, e, "it is not a database");
    case SQLITE_CORRUPT:
        return damaged(db, e, sqlite3_errmsg(db->sqlite));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return err_set(e, EACCES, "the database %s cannot be opened for writing: %s", db->path,
                       sqlite3_errmsg(db->sqlite));
    default:
        return err_set(e, EIO, "the database %s failed: %s", db->path, sqlite3_errmsg(db->sqlite));
    }
}

static int run(struct db *db, const char *sql, err_t *e)
{
    int code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : explain(db, code, e);
}

static int prepare(struct db *db, const char *sql, sqlite3_stmt **ret, err_t *e)
{
    int code = sqlite3_prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return code == SQLITE_OK ? 0 : explain(db, code, e);
}

static int query_int(struct db *db, const char *sql, int64_t *ret, err_t *e)
{
    sqlite3_stmt *s;
    int result = prepare(db, sql, &s, e);
    if (result < 0)
        return result;
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW ? 0 : code == SQLITE_DONE ? -ENOENT : explain(db, code, e);
}

void db_close(struct db *db)
{
    if (!db)
        return;
    sqlite3_stmt *all[] = { db->begin, db->insert, db->remove, db->set_compacted, db->commit };
    for (size_t i = 0; i < countof(all); i++)
        sqlite3_finalize(all[i]);
    if (db->mark && !mark_is_synced(db->mark))
        (void)mark_sync(db->mark); /* an older mark is true as well */
    mark_close(db->mark);
    sqlite3_close(db->sqlite);
    free(db->path);
    free(db->mark_path);
    free(db->reserve_path);
    free(db);
}

/* Whether closing moves the log into the file and removes it. Not when the database was refused or has failed:
 * the files are then left as they are, for people to look at. */
static void set_checkpoint_on_close(struct db *db, bool on)
{
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, NULL);
}

/* Called by SQLite after each commit, in place of its own that would checkpoint there and then. */
static int committed(void *context, sqlite3 *sqlite UNUSED, const char *name UNUSED, int frames)
{
    struct db *db = context;
    db->log_frames = frames;
    return SQLITE_OK;
}

static char *path_with(const char *path, const char *suffix)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "%s%s", path, suffix);
    return buf_take(&text);
}

static int open_file(const char *path, bool create, struct db **ret, err_t *e)
{
    struct db *db = mem_zero(1, sizeof(*db));
    db->path = mem_dup(path, strlen(path));
    db->mark_path = path_with(path, "-mark");
    db->reserve_path = path_with(path, "-reserve");
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    int code = sqlite3_open_v2(path, &db->sqlite, flags, NULL);
    int result = code == SQLITE_OK ? 0 : explain(db, code, e);
    if (result == 0) {
        sqlite3_extended_result_codes(db->sqlite, 1);
        set_checkpoint_on_close(db, create);
        /* before anything else: the first look into the file takes the lock */
        result = run(db, "PRAGMA locking_mode=EXCLUSIVE", e);
    }
    if (result == 0)
        result = run(db, create ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL", e);
    if (result == 0)
        result =
            run(db, "PRAGMA journal_mode=WAL; PRAGMA cache_size=-512; PRAGMA temp_store=MEMORY;",
                e);
    if (result < 0) {
        db_close(db);
        return result;
    }
    sqlite3_wal_hook(db->sqlite, committed, db);
    *ret = db;
    return 0;
}

static int make_schema(struct db *db, err_t *e)
{
    char sql[600];
    snprintf(
        sql, sizeof(sql),
        "BEGIN EXCLUSIVE; PRAGMA application_id=%d; PRAGMA user_version=%d;"
        "CREATE TABLE log(rev INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL,"
        " prev_rev INTEGER NOT NULL, value TEXT NOT NULL, sum INTEGER NOT NULL);"
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
        "INSERT INTO meta VALUES('compacted', 0); COMMIT;",
        APPLICATION_ID, DATA_VERSION);
    return run(db, sql, e);
}

/* A log or a mark without its database: somebody took the database away. */
static int check_no_leftovers(const char *path, err_t *e)
{
    static const char *const suffixes[] = { "-wal", "-mark" };
    for (size_t i = 0; i < countof(suffixes); i++) {
        auto_free char *other = path_with(path, suffixes[i]);
        int64_t bytes;
        if (db_files->size(other, &bytes) == 0)
            return err_set(e, EUCLEAN, "the database %s is missing although %s is there%s", path,
                           other, WHAT_TO_DO);
    }
    return 0;
}

/* Complete or not at all: see the head of this file. So it is synced once, when complete. */
static int create_file(const char *path, err_t *e)
{
    auto_free char *fresh = path_with(path, ".new"), *wal = path_with(fresh, "-wal");
    int result = check_no_leftovers(path, e);
    if (result < 0)
        return result;
    if ((result = db_files->remove(wal)) < 0 || (result = db_files->create(fresh)) < 0)
        return err_set(e, -result, "the database %s cannot be created: %s", fresh,
                       strerror(-result));
    struct db *db;
    result = open_file(fresh, true, &db, e);
    if (result < 0)
        return result;
    result = make_schema(db, e);
    db_close(db); /* moves the log into the file */
    if (result < 0)
        return result;
    if ((result = db_files->sync(fresh)) < 0 || (result = db_files->rename(fresh, path)) < 0 ||
        (result = db_files->sync_directory(path)) < 0)
        return err_set(e, -result, "the database %s cannot be put in place: %s", path,
                       strerror(-result));
    return 0;
}

static int check_version(struct db *db, err_t *e)
{
    int64_t application = 0, version = 0;
    int result = query_int(db, "PRAGMA application_id", &application, e);
    if (result == 0)
        result = query_int(db, "PRAGMA user_version", &version, e);
    if (result < 0)
        return result;
    if (application != APPLICATION_ID)
        return damaged(db, e, "it was not written by flyball");
    if (version != DATA_VERSION)
        return err_set(
            e, ENOTSUP,
            "the database %s has data version %lld, but this flyball reads version %d: use "
            "the flyball that wrote it, or move the file away to start empty",
            db->path, (long long)version, DATA_VERSION);
    return 0;
}

static int check_pages(struct db *db, err_t *e)
{
    sqlite3_stmt *s;
    int result = prepare(db, "PRAGMA quick_check(1)", &s, e);
    if (result < 0)
        return result;
    int code = sqlite3_step(s);
    const char *answer = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (code != SQLITE_ROW)
        result = explain(db, code, e);
    else if (!answer || strcmp(answer, "ok") != 0)
        result = damaged(db, e, answer ? answer : "it cannot be checked");
    sqlite3_finalize(s);
    return result;
}

static int prepare_all(struct db *db, err_t *e)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } all[] = {
        { &db->begin, "BEGIN IMMEDIATE" },
        { &db->insert, "INSERT INTO log VALUES(?1, ?2, ?3, ?4, ?5, ?6)" },
        { &db->remove, "DELETE FROM log WHERE rev = ?1" },
        { &db->set_compacted, "UPDATE meta SET value = ?1 WHERE name = 'compacted'" },
        { &db->commit, "COMMIT" },
    };
    for (size_t i = 0; i < countof(all); i++) {
        int result = prepare(db, all[i].sql, all[i].statement, e);
        if (result < 0)
            return result;
    }
    int result =
        query_int(db, "SELECT value FROM meta WHERE name = 'compacted'", &db->compacted, e);
    return result == -ENOENT ? damaged(db, e, "its table meta lacks a row") : result;
}

/* ---- high-water mark */

static int check_mark(struct db *db, int64_t rev, err_t *e)
{
    if (rev < db->marked.rev)
        return err_set(e, EUCLEAN,
                       "the database %s ends at revision %lld, but revision %lld was acknowledged: "
                       "its log %s-wal is missing, damaged or older; restore the data directory "
                       "from a copy, or, to accept the loss, remove %s",
                       db->path, (long long)rev, (long long)db->marked.rev, db->path,
                       db->mark_path);
    uint64_t salt = log_salt(db->sqlite);
    if (salt && salt != db->marked.log_salt && log_commits(db->sqlite, 2) > 1)
        return err_set(e, EUCLEAN,
                       "the log %s-wal does not continue the database %s: it is older or belongs "
                       "to another one; restore the data directory from a copy, or, to accept it, "
                       "remove %s",
                       db->path, db->path, db->mark_path);
    return 0;
}

static int set_mark(struct db *db, int64_t rev, bool sync)
{
    db->marked.rev = rev;
    int code = mark_write(db->mark, db->marked);
    if (code == SQLITE_OK && sync)
        code = mark_sync(db->mark);
    if (code == SQLITE_OK && sync)
        db->mark_synced_ns = clock_mono_ns();
    return code;
}

/* Databases of earlier versions have no mark yet. -ENOSPC is no failure to open: see db_commit(). */
static int make_mark(struct db *db, int64_t rev, err_t *e)
{
    db->marked = (struct mark_value){ .rev = rev, .log_salt = log_salt(db->sqlite) };
    int result = mark_create(db->mark_path, db->marked, &db->mark, e);
    if (result == 0 && rev)
        log_warn("database had no high-water mark; created one", KV_C("database", db->path),
                 KV_INT("revision", rev));
    return result;
}

/* Checks that nothing is missing, and makes what is there last: after the death of a process the log may hold
 * transactions that were never synced, and readers are about to see them. */
static int open_mark(struct db *db, err_t *e)
{
    int64_t rev = 0;
    int result = query_int(db, "SELECT coalesce(max(rev), 0) FROM log", &rev, e);
    if (result == 0)
        result = mark_open(db->mark_path, &db->mark, &db->marked, e);
    if (result == 0)
        result = check_mark(db, rev, e);
    else if (result == -ENOENT && (result = make_mark(db, rev, e)) == -ENOSPC)
        result = 0;
    if (result < 0)
        return result;
    int code = log_sync(db->sqlite);
    db->marked.log_salt = log_salt(db->sqlite);
    db->log_may_restart = true;
    if (code == SQLITE_OK && db->mark)
        code = set_mark(db, rev, true);
    return code == SQLITE_OK ? 0 : explain(db, code, e);
}

int db_open(const char *path, int log_frames, struct db **ret, err_t *e)
{
    int64_t bytes;
    int result = db_files->size(path, &bytes);
    if (result == -ENOENT)
        result = create_file(path, e);
    else if (result == -ELOOP)
        result = err_set(e, ELOOP,
                         "the database %s is a symbolic link; use the directory of the file itself",
                         path);
    else if (result < 0)
        result = err_set(e, -result, "the database %s: %s", path, strerror(-result));
    else if (bytes == 0)
        result =
            err_set(e, EUCLEAN, "the database %s is damaged (it is empty)%s", path, WHAT_TO_DO);
    struct db *db;
    if (result < 0 || (result = open_file(path, false, &db, e)) < 0)
        return result;
    if ((result = check_version(db, e)) < 0 || (result = check_pages(db, e)) < 0 ||
        (result = prepare_all(db, e)) < 0 || (result = open_mark(db, e)) < 0) {
        db_close(db);
        return result;
    }
    set_checkpoint_on_close(db, true);
    db->long_frames = log_frames ? log_frames : LONG_FRAMES;
    db->has_reserve = db_files->reserve(db->reserve_path, RESERVE_BYTES) == 0;
    *ret = db;
    return 0;
}

int64_t db_compacted(const struct db *db)
{
    return db->compacted;
}

static int64_t row_sum(const struct db_row *row)
{
    const int64_t numbers[] = { row->rev, row->prev_rev, row->deleted };
    uint64_t sum = sum64((str){ (const char *)numbers, sizeof(numbers) }, 0);
    sum = sum64(row->value, sum64(row->key, sum));
    int64_t kept;
    memcpy(&kept, &sum, sizeof(kept));
    return kept;
}

static str column_text(sqlite3_stmt *s, int column)
{
    const char *p = (const char *)sqlite3_column_blob(s, column);
    return (str){ p ? p : "", (size_t)sqlite3_column_bytes(s, column) };
}

int db_load(struct db *db, int (*row)(void *context, const struct db_row *row, err_t *e),
            void *context, err_t *e)
{
    sqlite3_stmt *s;
    int result =
        prepare(db, "SELECT rev, key, deleted, prev_rev, value, sum FROM log ORDER BY rev", &s, e);
    if (result < 0)
        return result;
    int code;
    while (result == 0 && (code = sqlite3_step(s)) != SQLITE_DONE) {
        if (code != SQLITE_ROW) {
            result = explain(db, code, e);
            break;
        }
        struct db_row r = { .rev = sqlite3_column_int64(s, 0),
                            .key = column_text(s, 1),
                            .deleted = sqlite3_column_int64(s, 2) != 0,
                            .prev_rev = sqlite3_column_int64(s, 3),
                            .value = column_text(s, 4) };
        err_t why = { 0 };
        char text[600];
        if (row_sum(&r) != sqlite3_column_int64(s, 5)) {
            snprintf(text, sizeof(text), "row %lld has a wrong checksum", (long long)r.rev);
            result = damaged(db, e, text);
        } else if (row(context, &r, &why) < 0) {
            snprintf(text, sizeof(text), "row %lld: %s", (long long)r.rev, why.text);
            result = damaged(db, e, text);
        }
    }
    sqlite3_finalize(s);
    return result;
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
    sqlite3_bind_int64(s, 6, row_sum(row));
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

/* ---- maintenance */

/* Moves the log into the file. True: all of it, and the next commit begins the log anew. */
static bool move_log(struct db *db)
{
    int frames = 0, moved = -1;
    db->log_may_restart = true;
    int code =
        sqlite3_wal_checkpoint_v2(db->sqlite, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    if (code != SQLITE_OK || frames != moved)
        return false;
    db->log_frames = 0;
    return true;
}

enum db_need db_need(const struct db *db)
{
    if (db->last_tidy_failed)
        return DB_NEEDS_NOTHING;
    if (db->log_frames >= 2 * db->long_frames)
        return DB_NEEDS_IT_NOW;
    bool unsynced = db->mark && !mark_is_synced(db->mark);
    return db->log_frames >= db->long_frames || unsynced ? DB_NEEDS_A_MOMENT : DB_NEEDS_NOTHING;
}

void db_tidy(struct db *db)
{
    if (db->log_frames >= db->long_frames)
        db->last_tidy_failed = !move_log(db);
    else if (db->mark && !mark_is_synced(db->mark))
        db->last_tidy_failed = mark_sync(db->mark) != SQLITE_OK;
}

/* ---- committing */

static bool only_removes(const struct db_transaction *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (!t->rows[i].deleted)
            return false;
    return true;
}

/* A full disk, by any name: a quota and a limit on the size of files are told as other failures. */
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

/* Where the log begins anew, there may be room in it. */
static int transact_in_room(struct db *db, const struct db_transaction *t)
{
    int code = transact(db, t);
    return code == SQLITE_FULL && db->log_frames && move_log(db) ? transact(db, t) : code;
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

/* A full disk takes deletions, at the expense of the reserve, and nothing else until that is back. */
static int transact_or_full(struct db *db, const struct db_transaction *t)
{
    bool removes = only_removes(t);
    if (!db->mark && make_mark(db, db->marked.rev, NULL) < 0)
        return SQLITE_FULL;
    if (!removes && !db->has_reserve)
        db->has_reserve = db_files->reserve(db->reserve_path, RESERVE_BYTES) == 0;
    if (!removes && !db->has_reserve)
        return SQLITE_FULL;
    int code = transact_in_room(db, t);
    if (code == SQLITE_FULL && removes && release_reserve(db))
        code = transact_in_room(db, t);
    return code;
}

/* After a commit, before anybody learns of it: see the head of this file. */
static int mark_commit(struct db *db, const struct db_transaction *t)
{
    uint64_t before = db->marked.log_salt;
    if (db->log_may_restart)
        db->marked.log_salt = log_salt(db->sqlite);
    db->log_may_restart = false;
    bool sync =
        db->marked.log_salt != before || clock_mono_ns() - db->mark_synced_ns >= MARK_SYNC_NS;
    int64_t rev = t->rows[t->n_rows - 1].rev;
    int code = set_mark(db, rev, sync);
    /* there are file systems that need room to overwrite */
    return code == SQLITE_FULL && release_reserve(db) ? set_mark(db, rev, true) : code;
}

int db_commit(struct db *db, const struct db_transaction *t, err_t *e)
{
    assert(t->n_rows);
    db->last_tidy_failed = false;
    int code = transact_or_full(db, t);
    if (code == SQLITE_OK && (code = mark_commit(db, t)) != SQLITE_OK)
        code = SQLITE_IOERR; /* it is there, but a loss of it would not be noticed */
    if (code == SQLITE_OK)
        return 0;
    int result = explain(db, code, e);
    if (result != -ENOSPC)
        set_checkpoint_on_close(db, false);
    return result;
}
