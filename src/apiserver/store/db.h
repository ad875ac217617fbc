/* The file under the store: one SQLite table, a row for each write, the row number being the
 * resourceVersion, unless the row was replaced in place on a full disk (db_room.c). Only db.c sees SQLite.
 *
 *     sqlite3 state.db "select rev, key, deleted from log order by rev desc limit 10"
 *
 * A connection belongs to one thread at a time; the store hands it to another for a batch and gets it back
 * with the result. */
#ifndef FLYBALL_DB_H
#define FLYBALL_DB_H

#include "../../base/str.h"

struct db;

struct db_row {
    int64_t rev;
    str key;
    bool deleted;
    int64_t prev_rev; /* the version that this one replaced; 0: none */
    int64_t place;    /* number of the row, an older rev of the key; 0: `rev` */
    str value;        /* JSON */
    bool needs_room;  /* more than what it replaces, which is garbage of the same transaction */
};

/* Opens or creates. A file that is damaged, foreign, of another data version, older than its high-water
 * mark (db_mark.h) or in use is an error with the remedy in its text; nothing is changed then.
 * `log_frames`: from what length on the log is moved into the file when idle, and at twice that at once; 0: the
 * default. */
int db_open(const char *path, int log_frames, struct db **ret, err_t *e);
/* The rows were loaded and are complete: from here on the files are written. Before, a close leaves them as they are, so that
 * a database that is refused can still be mended. */
int db_begin(struct db *db, err_t *e);
void db_close(struct db *db);

/* Calls `row` for every row in order of rev, checking each one's checksum; stops when it fails. */
int db_load(struct db *db, int (*row)(void *context, const struct db_row *row, err_t *e),
            void *context, err_t *e);
int64_t db_compacted(const struct db *db); /* as of the opening */

struct db_transaction {
    const struct db_row *rows;
    size_t n_rows;
    const int64_t
        *garbage; /* numbers of rows to delete before the rows are added: they take that room */
    size_t n_garbage;
    size_t n_replaced; /* of the garbage, at its beginning: must be deleted; the rest can wait */
    int64_t compacted; /* stored when there is garbage, and when `compacts` */
    bool compacts;     /* rows that were replaced within the transaction are left out */
};

/* One durable transaction: all of it or nothing. -ENOSPC: the disk is full and nothing was kept; -EIO: it is
 * not known what the file holds, and it must not be written again. `*ret_garbage`: how much of it was deleted. */
int db_commit(struct db *db, const struct db_transaction *t, size_t *ret_garbage, err_t *e);

/* ---- full disk: see db_room.c */

/* How many bytes rows that need room may take; INT64_MAX: the disk is not known to be full. */
int64_t db_room(const struct db *db);
/* Whether the disk has room for so many bytes, in the log and in the file, beside the reserve. Any thread, also during a commit. */
bool db_disk_has_room(const struct db *db, int64_t bytes);
int db_report_full(const struct db *db, err_t *e); /* -ENOSPC; any thread */

/* Maintenance, which takes as long as many commits and is done between them: moving the write-ahead log into the
 * file, syncing the high-water mark, growing a log that is still short. It can wait for an idle moment, but not
 * until the log is so long that a start after a crash would read it for long. */
enum db_need { DB_NEEDS_NOTHING, DB_NEEDS_A_MOMENT, DB_NEEDS_IT_NOW };
enum db_need db_need(const struct db *db);
/* A part of it; blocks. Nothing is lost when it fails. */
void db_tidy(struct db *db);

#endif
