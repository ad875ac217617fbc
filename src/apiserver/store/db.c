/* The file under the store: opening, checking and reading it. Commits and maintenance are in db_commit.c.
 *
 * The problem. An acknowledged write must survive a kill, a power failure and a full disk. SQLite's write-ahead log
 * does that, but it takes the valid part of a log for all of it: if the log lost its end, was removed, or is an older
 * copy, SQLite opens the file and acknowledged writes are gone, without an error. And a transaction that a power
 * failure cut off can come back later, when another one happens to write the page that it lacked.
 *
 *     db_commit (db_commit.c)                     db_open: refuse rather than repair
 *        |                                           |
 *        |  rows, COMMIT (synchronous=FULL)          |  create_file   a new one is renamed when complete
 *        v                                           |  check_version, check_pages
 *     state.db-wal -- db_move_log, idle --> state.db |  open_mark     is the newest row at least the mark?
 *        |                                           v
 *        |  then the revision                     db_load: every row once, in order, with its checksum
 *        v
 *     state.db-mark  --> acknowledged
 *
 *     state.db-wal       SQLite's log; removed by an orderly close, unless the disk is full
 *     state.db-mark      high-water mark (db_mark.h), checked when opening
 *     state.db-reserve   room on the disk, given up when it is full so that objects can still be deleted
 *                        (db_room.c)
 *
 * Invariants:
 *
 *   - COMMIT returns when the log is on disk, and a write is acknowledged after its mark is written. So the mark never
 *     claims a revision that is not on disk, and after the death of the process it covers every acknowledged write.
 *   - Only SQLite writes SQLite's files. The file is locked for as long as it is open, which also spares the
 *     shared-memory file.
 *   - The first commit after a start or a refusal seals the log (db_seal_log()): pages that a power failure or a full
 *     disk left behind the end of the log can then never become valid. Page 1 is such a page, when two transactions
 *     both add a page to the file.
 *   - A new database is made under another name: a file that is empty or lacks its table was truncated by another
 *     program, and is reported instead of filled.
 *   - Each row carries a checksum, because SQLite finds a damaged page structure but not a flipped bit inside a value.
 *
 * The log is kept and reused: once all of it has been moved into the file, SQLite writes it again from its beginning,
 * so a commit mostly overwrites, and the disk has no new length to record beside the data. A log that is still short
 * is grown in idle moments, by transactions that rewrite a padding row.
 *
 * The mark is synced when the log has been moved into the file or starts over, every second, when idle and when
 * closing. So a log of another generation than the mark's is its successor and holds one transaction at most, and
 * a power failure leaves writes of the last second covered by the log's own checksums alone. While there is no log the
 * mark announces a number, and the first transaction of the next log holds it: an older log has another one.
 *
 * Rejected: syncing the mark with every commit; each write then took 1.25 to 1.74 times as long. Rejected too:
 * preallocating the log by writing zeros into it, which miscounted by its header and destroyed acknowledged writes.
 * That is why only SQLite writes its files. */
#include "db_private.h"

#include "../../base/buf.h"
#include "../../base/log.h"
#include "../../base/sum.h"
#include "db_files.h"
#include "db_log.h"

#include <stdio.h>

enum {
    APPLICATION_ID = 0x666c7962, /* "flyb" */
    LONG_FRAMES = 1000,
};

#define WHAT_TO_DO "; restore the data directory from a copy, or move state.db* away to start empty"

/* Nothing is repaired: what a repair would leave out may have been acknowledged. */
static int set_damaged(struct db *db, err_t *e, const char *why)
{
    return err_set(e, EUCLEAN, "the database %s is damaged (%s)%s", db->path, why, WHAT_TO_DO);
}

/* What a failed SQLite call means to a person. */
int db_explain(struct db *db, int code, err_t *e)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return db_report_full(db, e);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, EBUSY, "the database %s is in use by another process", db->path);
    case SQLITE_NOTADB:
        return set_damaged(db, e, "it is not a database");
    case SQLITE_CORRUPT:
        return set_damaged(db, e, sqlite3_errmsg(db->sqlite));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return err_set(e, EACCES, "the database %s cannot be opened for writing: %s", db->path,
                       sqlite3_errmsg(db->sqlite));
    default:
        return err_set(e, EIO, "the database %s failed: %s", db->path, sqlite3_errmsg(db->sqlite));
    }
}

static int run_sql(struct db *db, const char *sql, err_t *e)
{
    int code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : db_explain(db, code, e);
}

static int prepare(struct db *db, const char *sql, sqlite3_stmt **ret, err_t *e)
{
    int code = sqlite3_prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return code == SQLITE_OK ? 0 : db_explain(db, code, e);
}

int db_query_int(struct db *db, const char *sql, int64_t *ret, err_t *e)
{
    sqlite3_stmt *s;
    int result = prepare(db, sql, &s, e);
    if (result < 0)
        return result;
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW ? 0 : code == SQLITE_DONE ? -ENOENT : db_explain(db, code, e);
}

void db_close(struct db *db)
{
    if (!db)
        return;
    sqlite3_stmt *all[] = { db->begin,         db->insert, db->remove,
                            db->set_compacted, db->commit, db->count_pages };
    for (size_t i = 0; i < countof(all); i++)
        sqlite3_finalize(all[i]);
    if (db->mark && db->closes_cleanly && !db_move_log(db))
        db_set_checkpoint_on_close(db, false); /* the mark still requires the log */
    if (db->room != INT64_MAX)
        db_keep_log_on_close(db);
    if (db->mark && !db_mark_is_synced(db->mark))
        (void)db_mark_sync(db->mark); /* an older mark is true as well */
    db_mark_close(db->mark);
    sqlite3_close(db->sqlite);
    free(db->path);
    free(db->mark_path);
    free(db->reserve_path);
    free(db);
}

void db_set_checkpoint_on_close(struct db *db, bool on)
{
    db->closes_cleanly = on;
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, NULL);
}

/* Called by SQLite after each commit, in place of its own that would checkpoint there and then. */
static int on_commit(void *context, sqlite3 *sqlite UNUSED, const char *name UNUSED, int frames)
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
    db->room = INT64_MAX; /* not known to be full */
    db_files_map_limits();
    db->path = mem_dup(path, strlen(path));
    db->mark_path = path_with(path, "-mark");
    db->reserve_path = path_with(path, "-reserve");
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    int code = sqlite3_open_v2(path, &db->sqlite, flags, NULL);
    int result = code == SQLITE_OK ? 0 : db_explain(db, code, e);
    if (result == 0) {
        sqlite3_extended_result_codes(db->sqlite, 1);
        db_set_checkpoint_on_close(db, create);
        /* before anything else: the first look into the file takes the lock */
        result = run_sql(db, "PRAGMA locking_mode=EXCLUSIVE", e);
    }
    if (result == 0)
        result = run_sql(db, create ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL", e);
    if (result == 0)
        result = run_sql(
            db,
            "PRAGMA journal_mode=WAL; PRAGMA cache_size=-512; PRAGMA temp_store=MEMORY;"
            "PRAGMA secure_delete=FAST;", /* zeroing free pages would make deletions need room */
            e);
    if (result < 0) {
        db_close(db);
        return result;
    }
    sqlite3_wal_hook(db->sqlite, on_commit, db);
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
        APPLICATION_ID, DB_VERSION_APPENDED);
    return run_sql(db, sql, e);
}

/* A log or a mark without its database: the database was removed. */
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
    int result = db_query_int(db, "PRAGMA application_id", &application, e);
    if (result == 0)
        result = db_query_int(db, "PRAGMA user_version", &version, e);
    if (result < 0)
        return result;
    if (application != APPLICATION_ID)
        return set_damaged(db, e, "it was not written by flyball");
    if (version != DB_VERSION_APPENDED && version != DB_VERSION_REPLACED)
        return err_set(
            e, ENOTSUP,
            "the database %s has data version %lld, but this flyball reads versions up to %d: use "
            "the flyball that wrote it, or move the file away to start empty",
            db->path, (long long)version, DB_VERSION_REPLACED);
    db->version = (int)version;
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
        result = db_explain(db, code, e);
    else if (!answer || strcmp(answer, "ok") != 0)
        result = set_damaged(db, e, answer ? answer : "it cannot be checked");
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
        { &db->count_pages, "PRAGMA page_count" },
    };
    for (size_t i = 0; i < countof(all); i++) {
        int result = prepare(db, all[i].sql, all[i].statement, e);
        if (result < 0)
            return result;
    }
    int result =
        db_query_int(db, "SELECT value FROM meta WHERE name = 'compacted'", &db->compacted, e);
    if (result == -ENOENT)
        return set_damaged(db, e, "its table meta lacks a row");
    int64_t padding = 0;
    if (result == 0)
        result = db_query_int(db, "SELECT count(*) FROM meta WHERE name = 'padding'", &padding, e);
    db->has_padding = padding > 0;
    return result;
}

/* ---- high-water mark */

/* A log that the mark does not know yet: its only transaction must be the seal that the mark announced. Marks of earlier
 * versions announce none. */
static bool log_is_announced(struct db *db, const struct db_log_state *log)
{
    int64_t seal = 0;
    if (log->commits != 1 || !db->marked.log_salt)
        return log->commits <= 1;
    return db_query_int(db, "SELECT value FROM meta WHERE name = 'seal'", &seal, NULL) == 0 &&
           (uint64_t)seal == db->marked.log_salt;
}

/* Whether the log is the one that the mark was made for, with all that it held then, or its successor. A part of
 * a log, or an older one, would put old pages in the place of newer ones. */
static bool log_continues(struct db *db, const struct db_log_state *log)
{
    const struct db_mark_value *m = &db->marked;
    if (!log->salt)
        return m->log_moved || !m->log_frames;
    if (!m->log_frames)
        return log_is_announced(db, log);
    if (log->salt == m->log_salt)
        return log->frames >= m->log_frames;
    /* begun after the mark: its first transaction is marked before there is a second */
    bool next = (uint32_t)(log->salt >> 32) == (uint32_t)((m->log_salt >> 32) + 1);
    return next && log->commits <= 1;
}

static int check_mark(struct db *db, int64_t rev, const struct db_log_state *log, err_t *e)
{
    if (rev < db->marked.rev)
        return err_set(e, EUCLEAN,
                       "the database %s ends at revision %lld, but revision %lld was acknowledged: "
                       "its log %s-wal is missing, damaged or older; restore the data directory "
                       "from a copy, or, to accept the loss, remove %s",
                       db->path, (long long)rev, (long long)db->marked.rev, db->path,
                       db->mark_path);
    if (!log_continues(db, log))
        return err_set(e, EUCLEAN,
                       "the log %s-wal does not continue the database %s: it is missing, damaged, "
                       "older or another one's; restore the data directory from a copy, or, to "
                       "accept it, remove %s",
                       db->path, db->path, db->mark_path);
    return 0;
}

/* Databases of earlier versions have no mark yet. A full disk is no failure to open: see db_commit(). */
static int add_mark(struct db *db, struct db_mark_value value, err_t *e)
{
    int result = db_mark_create(db->mark_path, value, &db->mark, e);
    if (result == 0 && value.rev)
        log_warn("database had no high-water mark; created one", KV_C("database", db->path),
                 KV_INT("revision", value.rev));
    return result == -ENOSPC ? 0 : result;
}

/* Announces the first transaction of the next log, if there is none to continue. */
static uint64_t announce_seal(void)
{
    uint64_t number;
    sqlite3_randomness(sizeof(number), &number);
    return number | 1; /* 0: nothing is announced */
}

/* Checks that nothing is missing. Nothing is written yet: see db_begin(). */
static int open_mark(struct db *db, err_t *e)
{
    int64_t rev = 0;
    struct db_log_state log = db_log_scan(db->sqlite);
    int result = db_query_int(db, "SELECT coalesce(max(rev), 0) FROM log", &rev, e);
    rev = MAX(rev, db->compacted); /* a row that was replaced in place has an older number */
    if (result == 0)
        result = db_mark_open(db->mark_path, &db->mark, &db->marked, e);
    if (result == 0)
        result = check_mark(db, rev, &log, e);
    else if (result == -ENODATA && rev > 0)
        result = err_set(e, EUCLEAN,
                         "the high-water mark %s is empty, but the database has revision %lld; "
                         "restore the data directory from a copy, or, to accept the database as "
                         "it is, remove the file",
                         db->mark_path, (long long)rev);
    else if (result == -ENODATA || result == -ENOENT)
        result = 0;
    db->unmarked = (struct db_mark_value){ .rev = rev,
                                           .log_salt = log.frames ? log.salt : announce_seal(),
                                           .log_frames = log.frames };
    return result;
}

/* Makes what is there last: after the death of a process the log may hold transactions that were never synced, and
 * readers are about to see them. */
static int begin_mark(struct db *db, err_t *e)
{
    struct db_mark_value value = db->unmarked;
    int result = db->mark ? 0 : add_mark(db, value, e);
    if (result < 0)
        return result;
    int code = db_log_sync(db->sqlite);
    db->log_may_restart = true;
    db->marked = value;
    if (code == SQLITE_OK && db->mark)
        code = db_set_mark(db, value, true);
    db->unsealed = true;
    if (code == SQLITE_OK && db->mark && db_log_bytes(db->sqlite) > 0)
        code = db_seal_log(db); /* otherwise the first commit does, or an idle moment */
    /* a full disk serves reads; the first commit tries again */
    return code == SQLITE_OK || code == SQLITE_FULL ? 0 : db_explain(db, code, e);
}

int db_begin(struct db *db, err_t *e)
{
    int result = begin_mark(db, e);
    if (result < 0)
        return result;
    db_set_checkpoint_on_close(db, true);
    db_make_reserve(db);
    db_measure_room(db);
    db->log_identity = MAX(db_log_identity(db->sqlite), 0);
    return 0;
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
    db->long_frames = log_frames ? log_frames : LONG_FRAMES;
    *ret = db;
    return 0;
}

int64_t db_compacted(const struct db *db)
{
    return db->compacted;
}

int64_t db_row_sum(const struct db_row *row)
{
    const int64_t numbers[] = { row->rev, row->prev_rev, row->deleted };
    uint64_t sum = sum64((str){ (const char *)numbers, sizeof(numbers) }, 0);
    sum = sum64(row->value, sum64(row->key, sum));
    int64_t kept;
    memcpy(&kept, &sum, sizeof(kept));
    return kept;
}

void db_row_encode(struct db_row *row)
{
    if (!row->place)
        return;
    row->prev_rev = -row->rev;
    row->rev = row->place;
}

/* The reverse, when loading. */
static void db_row_decode(struct db_row *row)
{
    if (row->prev_rev >= 0 || row->prev_rev == INT64_MIN)
        return;
    row->place = row->rev;
    row->rev = -row->prev_rev;
    row->prev_rev = 0;
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
            result = db_explain(db, code, e);
            break;
        }
        struct db_row r = { .rev = sqlite3_column_int64(s, 0),
                            .key = column_text(s, 1),
                            .deleted = sqlite3_column_int64(s, 2) != 0,
                            .prev_rev = sqlite3_column_int64(s, 3),
                            .value = column_text(s, 4) };
        err_t why = { 0 };
        char text[600];
        if (db_row_sum(&r) != sqlite3_column_int64(s, 5)) {
            snprintf(text, sizeof(text), "row %lld has a wrong checksum", (long long)r.rev);
            result = set_damaged(db, e, text);
            break;
        }
        db_row_decode(&r);
        if (row(context, &r, &why) < 0) {
            snprintf(text, sizeof(text), "row %lld: %s", (long long)r.rev, why.text);
            result = set_damaged(db, e, text);
        }
    }
    sqlite3_finalize(s);
    return result;
}
