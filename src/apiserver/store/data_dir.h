/* The data directory: state, keys and tokens, for one user and one server at a time. */
#ifndef FLYBALL_DATA_DIR_H
#define FLYBALL_DATA_DIR_H

#include "../../base/err.h"

/* Makes the directory when missing, locks it, and closes it and the files in it to other users. From here on no
 * other server reads or writes anything in it. The lock lasts until *ret_fd is closed. */
int data_dir_open(const char *path, int *ret_fd, err_t *e);

#endif
