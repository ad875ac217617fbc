/* What db.c (opening, loading) and db_commit.c (committing, maintenance) share. */
#ifndef FLYBALL_DB_PRIVATE_H
#define FLYBALL_DB_PRIVATE_H

#include "db.h"
#include "db_mark.h"

#include <sqlite3.h>
#include <stdatomic.h>

struct db {
    sqlite3 *sqlite;
    sqlite3_stmt *begin, *insert, *remove, *set_compacted, *commit;
    sqlite3_stmt *count_pages;
    int version; /* of the data */
    int64_t compacted;
    char *path, *mark_path, *reserve_path;
    struct mark *mark;                     /* NULL: the disk was too full to make one */
    struct db_mark_value marked, unmarked; /* its content; what could not be written to it */
    int64_t mark_synced_ns;
    bool mark_behind;     /* a transaction is not marked; nothing is committed until it is */
    int long_frames;      /* a log so long can be moved when idle; twice as long: must be */
    int log_frames;       /* how many SQLite has written since it began the log again */
    int64_t log_identity; /* of the file that SQLite has open; 0: none yet */
    bool log_may_restart; /* the next commit may begin the log again, with another salt */
    bool unsealed;        /* see db_seal_log(); nothing else is appended to the log until it is */
    atomic_bool has_reserve; /* read by the loop during a commit */
    int64_t room;            /* see db_room() */
    bool closes_cleanly;     /* see db_set_checkpoint_on_close() */
    bool has_padding;        /* see grow_log() */
    bool last_tidy_failed;   /* and nothing was committed since */
};

/* What a failed SQLite call means to a person. */
int db_explain(struct db *db, int code, err_t *e);
int64_t db_row_sum(const struct db_row *row);

/* With data version 2, rows may have been replaced in place: `rev` is then the number of an older row of the key,
 * and `prev_rev` the version, negative. Such a version is at most `compacted`, so what it replaced is not needed. */
enum { DB_VERSION_APPENDED = 1, DB_VERSION_REPLACED = 2 };
void db_row_encode(struct db_row *row); /* as it is stored */

/* Whether closing moves the log into the file and removes it. Not when the database was refused or has failed:
 * the files are then left as they are, for people to look at. */
void db_set_checkpoint_on_close(struct db *db, bool on);

int db_set_mark(struct db *db, struct db_mark_value value, bool sync); /* SQLite's result code */
/* Moves the log into the file. True: all of it, and the next commit begins the log again. */
bool db_move_log(struct db *db);
/* Appends a transaction that no other resembles, so that whatever a crash left behind the end of the log can never
 * become valid again. Returns SQLite's result code. */
int db_seal_log(struct db *db);
/* The first number of the first row. -ENOENT: there is no row. */
int db_query_int(struct db *db, const char *sql, int64_t *ret, err_t *e);

/* ---- db_room.c */
enum { DB_PADDING_BYTES = 512 << 10 }; /* of the reserve, put into the files when it is released */
void db_make_reserve(struct db *db);
bool db_release_reserve(struct db *db); /* false: it is released already */
/* Whether the disk has room for a transaction; whether the free pages of the file have. */
bool db_may_grow(struct db *db, const struct db_transaction *t);
bool db_has_free_pages(struct db *db, const struct db_transaction *t);
/* Whether moving the log would make the file longer by more than a part of the reserve. */
bool db_is_growing(const struct db *db);
/* Finds out how much room there is, after a commit or when opening. */
void db_measure_room(struct db *db);
/* On a full disk there may be no room for another log at the next start. */
void db_keep_log_on_close(struct db *db);

#endif
