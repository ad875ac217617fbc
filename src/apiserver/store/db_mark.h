/* The high-water mark: a small file beside the database that holds the least revision it must contain. The
 * database alone cannot detect that its log has lost its end, was removed or is an older copy: SQLite takes the
 * valid part of a log for all of it.
 *
 * The mark is written after the commit and before the acknowledgement, so it never claims a revision that is
 * not on disk (no false alarm), and the operating system has it when a client learns of the revision: after
 * the death of the process, every acknowledged write is covered. After a power failure the mark may be
 * as old as its last sync (see db.c), which weakens the check and nothing else. */
#ifndef FLYBALL_DB_MARK_H
#define FLYBALL_DB_MARK_H

#include "../../base/err.h"

struct mark;

struct db_mark_value {
    int64_t rev; /* the database holds this revision */
    uint64_t
        log_salt; /* which generation of the write-ahead log it was written to (db_log.h); without frames:
                            the number in the first transaction of the next log, or 0 */
    uint32_t log_frames; /* so much of the log was valid */
    bool log_moved;      /* all of it is in the database file as well */
};

/* -ENOENT: there is none. -ENODATA: it is blank, as when its creation was cut off. -EUCLEAN: it is damaged. */
int db_mark_open(const char *path, struct mark **ret, struct db_mark_value *ret_value, err_t *e);
/* Durable when it returns 0. */
int db_mark_create(const char *path, struct db_mark_value value, struct mark **ret, err_t *e);
/* SQLite's result codes, as they come from its file layer. */
int db_mark_write(struct mark *m, struct db_mark_value value);
int db_mark_sync(struct mark *m);
bool db_mark_is_synced(const struct mark *m);
void db_mark_close(struct mark *m);

#endif
