/* What db.c (opening, loading) and db_commit.c (committing, maintenance) share. */
#ifndef FLYBALL_DB_PRIVATE_H
#define FLYBALL_DB_PRIVATE_H

#include "db.h"
#include "db_mark.h"

#include <sqlite3.h>

struct db {
    sqlite3 *sqlite;
    sqlite3_stmt *begin, *insert, *remove, *set_compacted, *commit;
    int64_t compacted;
    char *path, *mark_path, *reserve_path;
    struct mark *mark;                  /* NULL: the disk was too full to make one */
    struct mark_value marked, unmarked; /* its content; what could not be written to it */
    int64_t mark_synced_ns;
    bool mark_behind;     /* a transaction is not marked; nothing is committed until it is */
    int long_frames;      /* a log so long can be moved when idle; twice as long: must be */
    int log_frames;       /* how many SQLite has written since it began the log again */
    bool log_may_restart; /* the next commit may begin the log again, with another salt */
    bool has_reserve;
    bool closes_cleanly;   /* see db_set_checkpoint_on_close() */
    bool has_padding;      /* see grow_log() */
    bool last_tidy_failed; /* and nothing was committed since */
};

/* What a failed SQLite call means to a person. */
int db_explain(struct db *db, int code, err_t *e);
int64_t db_row_sum(const struct db_row *row);

/* Whether closing moves the log into the file and removes it. Not when the database was refused or has failed:
 * the files are then left as they are, for people to look at. */
void db_set_checkpoint_on_close(struct db *db, bool on);

int db_set_mark(struct db *db, struct mark_value value, bool sync); /* SQLite's result code */
/* Moves the log into the file. True: all of it, and the next commit begins the log again. */
bool db_move_log(struct db *db);
void db_make_reserve(struct db *db);

#endif
