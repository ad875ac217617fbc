/* What SQLite's write-ahead log says about itself. The log is read through SQLite's own file, never
 * written. Each time SQLite begins the log anew it draws another salt, which every frame repeats: the salt
 * names a generation of the log. */
#ifndef FLYBALL_DB_LOG_H
#define FLYBALL_DB_LOG_H

#include "../../base/base.h"

#include <sqlite3.h>

int64_t log_bytes(sqlite3 *db); /* its length, what is to be overwritten included */
uint64_t log_salt(sqlite3 *db); /* 0: the log is empty or cannot be read */
/* How many valid transactions it holds, counted up to `most`. */
int log_commits(sqlite3 *db, int most);
int log_sync(sqlite3 *db); /* SQLite's result code */

#endif
