/* Small files, whole. */
#ifndef FLYBALL_FILE_H
#define FLYBALL_FILE_H

#include "buf.h"

/* Appends the file's bytes. -EFBIG when it has more than `max`; a sentence naming the file. Opened
 * anew by path each time: files of the kubelet change behind a symbolic link. */
int file_read(const char *path, size_t max, struct buf *out, err_t *e);

/* Lets this process have as many files and sockets open as the system permits: programs are started with a
 * lower limit, for the sake of those that cannot bear many. */
void file_allow_many(void);

#endif
