/* Reading and writing small files, and the limit on open files. */
#ifndef FLYBALL_FILE_H
#define FLYBALL_FILE_H

#include "buf.h"

/* Appends the file's bytes; -EFBIG if it has more than `max`. The error names the file. The path is
 * opened on every call, because the kubelet replaces mounted files by switching a symbolic link. */
int file_read(const char *path, size_t max, struct buf *out, err_t *e);

/* Replaces a file that only its owner can read. `lasting`: sync it before it becomes visible. */
int file_write_private(const char *path, str bytes, bool lasting, err_t *e);

/* Raises the soft limit on open files and sockets to the hard limit. The default soft limit is low
 * for the sake of programs that use select(). */
void file_raise_limit(void);

#endif
