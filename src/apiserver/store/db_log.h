/* Facts read from SQLite's write-ahead log. The log is read through SQLite's own file, never
 * written. Each time SQLite starts the log over it draws another salt, which every frame repeats: the salt
 * names a generation of the log. */
#ifndef FLYBALL_DB_LOG_H
#define FLYBALL_DB_LOG_H

#include "../../base/base.h"

#include <sqlite3.h>

struct db_log_state {
    uint64_t
        salt; /* its first half counts up by one when SQLite starts the log over; 0: there is no valid log */
    uint32_t frames;  /* valid ones, up to the end of the last transaction */
    uint32_t commits; /* transactions among them */
};

struct db_log_state db_log_scan(sqlite3 *db); /* reads all of it */
uint64_t db_log_salt(sqlite3 *db);            /* 0: the log is empty or cannot be read */
int64_t db_log_bytes(sqlite3 *db);            /* its length, what is to be overwritten included */
int64_t db_log_identity(
    sqlite3 *db);             /* of the file that has the log's name; 0: no log is open yet */
int db_log_sync(sqlite3 *db); /* SQLite's result code */

#endif
