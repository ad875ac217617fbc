/* Write-ahead log with synchronous=FULL: COMMIT returns when the log is on disk. The file is locked
 * for as long as it is open, which also spares the shared-memory file.
 *
 * The log is filled with zeros ahead of what SQLite appends: so a commit overwrites, and the disk has no
 * new length to record beside the data (a third of the wait). That and moving the log into the file are done
 * when nobody writes, if there is such a moment in time. The zeros are also the reserve of a full disk: when
 * no more can be laid up, what is there serves deletions alone.
 *
 * A new database is made under another name and renamed when complete: so a file that is empty or lacks
 * its table was cut off by somebody else, and is reported instead of filled. Each row carries a
 * checksum, because SQLite finds a damaged page structure but not a flipped bit inside a value. */
#include "db.h"

#include "../../base/buf.h"
#include "../../base/sum.h"

#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    DATA_VERSION = 1,
    APPLICATION_ID = 0x666c7962, /* "flyb" */
    LONG_FRAMES = 1000,
    TOO_LONG_FRAMES = 2000,
    FRAME_BYTES = 4096 + 24, /* a page of SQLite's and its head in the log; a guess will do */
    RESERVE_BYTES = 128 << 10,
    AHEAD_BYTES = 1 << 20, /* at most; laid up when less than the reserve is left */
    LOG_BYTES = TOO_LONG_FRAMES * FRAME_BYTES + 2 * RESERVE_BYTES, /* laid up in idle moments */
};

#define WHAT_TO_DO "; restore the data directory from a copy, or move the file away to start empty"

struct db {
    sqlite3 *sqlite;
    sqlite3_stmt *begin, *insert, *remove, *set_compacted, *commit;
    int64_t compacted;
    char *path;
    sqlite3_file *log;       /* borrowed from sqlite */
    sqlite3_int64 log_bytes; /* its length, zeros included */
    int log_frames;          /* how many SQLite has written since it began the log anew */
    bool in_vain; /* the last db_tidy() could do nothing, and nothing was committed since */
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
    sqlite3_close(db->sqlite);
    free(db->path);
    free(db);
}

/* Called by SQLite after each commit, in place of its own that would checkpoint there and then. */
static int committed(void *context, sqlite3 *sqlite UNUSED, const char *name UNUSED, int frames)
{
    struct db *db = context;
    db->log_frames = frames;
    return SQLITE_OK;
}

static int open_file(const char *path, bool create, struct db **ret, err_t *e)
{
    struct db *db = mem_zero(1, sizeof(*db));
    db->path = mem_dup(path, strlen(path));
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(path, &db->sqlite, flags, NULL);
    int result = code == SQLITE_OK ? 0 : explain(db, code, e);
    if (result == 0) /* before anything else: the first look into the file takes the lock */
        result = run(db, "PRAGMA locking_mode=EXCLUSIVE", e);
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

static int sync_path(const char *path, err_t *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_set(e, errno, "%s cannot be synced: %s", path, strerror(errno));
    return 0;
}

/* Complete or not at all: see the head of this file. So it is synced once, when complete. */
static int create_file(const char *path, err_t *e)
{
    auto_buf struct buf fresh = { 0 }, wal = { 0 };
    buf_printf(&wal, "%s-wal", path);
    if (access(wal.p, F_OK) == 0)
        return err_set(e, EUCLEAN, "the database %s is missing although its log %s is there%s",
                       path, wal.p, WHAT_TO_DO);
    buf_printf(&fresh, "%s.new", path);
    buf_clear(&wal);
    buf_printf(&wal, "%s-wal", fresh.p);
    (void)unlink(fresh.p);
    (void)unlink(wal.p);
    struct db *db;
    int result = open_file(fresh.p, true, &db, e);
    if (result < 0)
        return result;
    result = make_schema(db, e);
    db_close(db); /* moves the log into the file */
    if (result < 0 || (result = sync_path(fresh.p, e)) < 0)
        return result;
    if (rename(fresh.p, path) < 0)
        return err_set(e, errno, "the database %s cannot be put in place: %s", path,
                       strerror(errno));
    auto_free char *copy = mem_dup(path, strlen(path));
    return sync_path(dirname(copy), e);
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

static int find_log(struct db *db, err_t *e)
{
    int code = sqlite3_file_control(db->sqlite, "main", SQLITE_FCNTL_JOURNAL_POINTER, &db->log);
    if (code == SQLITE_OK)
        code = db->log->pMethods->xFileSize(db->log, &db->log_bytes);
    return code == SQLITE_OK ? 0 : explain(db, code, e);
}

int db_open(const char *path, struct db **ret, err_t *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        int result = errno == ENOENT
                         ? create_file(path, e)
                         : err_set(e, errno, "the database %s: %s", path, strerror(errno));
        if (result < 0)
            return result;
    } else if (st.st_size == 0) {
        return err_set(e, EUCLEAN, "the database %s is damaged (it is empty)%s", path, WHAT_TO_DO);
    }
    struct db *db;
    int result = open_file(path, false, &db, e);
    if (result < 0)
        return result;
    if ((result = check_version(db, e)) < 0 || (result = check_pages(db, e)) < 0 ||
        (result = prepare_all(db, e)) < 0 || (result = find_log(db, e)) < 0) {
        db_close(db);
        return result;
    }
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

/* Zeros ahead of the log's end, a piece at a time. */
static int lay_until(struct db *db, sqlite3_int64 until)
{
    static char zeros[16 << 10];
    int code = SQLITE_OK;
    while (code == SQLITE_OK && db->log_bytes < until) {
        code = db->log->pMethods->xWrite(db->log, zeros, sizeof(zeros), db->log_bytes);
        if (code == SQLITE_OK)
            db->log_bytes += (sqlite3_int64)sizeof(zeros);
    }
    return code;
}

/* Before a commit. Only a full disk is a failure: the commit itself tells of any other. */
static int lay_up(struct db *db)
{
    sqlite3_int64 end = (sqlite3_int64)db->log_frames * FRAME_BYTES;
    db->log_bytes = MAX(db->log_bytes, end);
    if (db->log_bytes - end >= RESERVE_BYTES)
        return SQLITE_OK;
    sqlite3_int64 more = MIN(MAX(end, RESERVE_BYTES), AHEAD_BYTES);
    int code = lay_until(db, end + RESERVE_BYTES + more);
    return code == SQLITE_FULL ? code : SQLITE_OK;
}

static bool move_log(struct db *db)
{
    int frames = 0, moved = -1;
    int code =
        sqlite3_wal_checkpoint_v2(db->sqlite, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    if (code != SQLITE_OK || frames != moved)
        return false;
    db->log_frames = 0; /* the next commit begins it anew */
    return true;
}

enum db_need db_need(const struct db *db)
{
    if (db->in_vain)
        return DB_NEEDS_NOTHING;
    bool all_laid = db->log_bytes >= LOG_BYTES;
    if (db->log_frames >= (all_laid ? TOO_LONG_FRAMES : LONG_FRAMES))
        return DB_NEEDS_IT_NOW;
    return db->log_frames >= LONG_FRAMES || !all_laid ? DB_NEEDS_A_MOMENT : DB_NEEDS_NOTHING;
}

/* On a small disk the file needs the room that the log would take. */
static bool has_room(const struct db *db)
{
    struct statvfs disk;
    return statvfs(db->path, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize / 16 > (uint64_t)LOG_BYTES;
}

void db_tidy(struct db *db)
{
    if (db->log_frames >= LONG_FRAMES) {
        db->in_vain = !move_log(db);
        return;
    }
    int code = SQLITE_FULL;
    if (has_room(db))
        code = lay_until(db, MIN(db->log_bytes + AHEAD_BYTES, (sqlite3_int64)LOG_BYTES));
    if (code == SQLITE_OK)
        code = db->log->pMethods->xSync(db->log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    db->in_vain = code != SQLITE_OK;
}

static bool only_removes(const struct db_transaction *t)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (!t->rows[i].deleted)
            return false;
    return true;
}

int db_commit(struct db *db, const struct db_transaction *t, err_t *e)
{
    db->in_vain = false;
    int code = lay_up(db);
    if (code == SQLITE_FULL && db->log_frames >= LONG_FRAMES && move_log(db))
        code = lay_up(db); /* the log begins anew, where there is room */
    if (code == SQLITE_OK || only_removes(t))
        code = step(db->begin);
    if (code == SQLITE_OK)
        code = write_all(db, t);
    if (code == SQLITE_OK)
        code = step(db->commit);
    if (code == SQLITE_OK)
        return 0;
    int result = explain(db, code, e);
    if (!sqlite3_get_autocommit(db->sqlite) &&
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        return err_set(e, EIO, "the database %s failed and could not be rolled back: %s", db->path,
                       sqlite3_errmsg(db->sqlite));
    return result;
}
