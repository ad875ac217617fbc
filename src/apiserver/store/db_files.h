/* The few things the database does to files that SQLite's own file layer cannot do: rename, the length and
 * the mode of a file, a reserve of disk space. Everything else goes through SQLite's VFS. Both can be replaced
 * together: the power-loss tests put a simulated disk here and under SQLite. */
#ifndef FLYBALL_DB_FILES_H
#define FLYBALL_DB_FILES_H

#include "../../base/err.h"

/* They return 0 or a negative errno, unless stated otherwise. */
struct db_files {
    int (*size)(const char *path, int64_t *ret_bytes); /* -ELOOP: a symbolic link */
    int64_t (*identity)(const char *path);             /* of the file that has this name now */
    int (*create)(const char *path);                   /* empty, mode 0600; replaces */
    int (*remove)(const char *path);                   /* 0 when there is none */
    int (*rename)(const char *from, const char *to);
    int (*sync)(const char *path);           /* a file's contents */
    int (*sync_directory)(const char *path); /* of the file at `path`: its name */
    int64_t (*free_bytes)(const char *path); /* by which it may grow; -1: unknown */
    /* A file of so many bytes for which the disk has room, mode 0600. -ENOSPC: it has not; none is left. */
    int (*reserve)(const char *path, int64_t bytes);
};

/* Makes SQLite take a quota and a limit of the file size for a full disk, which they are to its users. */
void db_files_map_limits(void);

extern const struct db_files db_files_real;
extern const struct db_files *db_files; /* &db_files_real, unless a test changed it */

#endif
