/* The data directory: state, keys and tokens, for one user and one server at a time. */
#ifndef FLYBALL_DATA_DIR_H
#define FLYBALL_DATA_DIR_H

#include "../../base/err.h"

/* Creates the directory if it is missing, locks it, and removes other users' access to it and to our files in
 * it. No other server uses the directory until *ret_fd is closed. */
int data_dir_open(const char *path, int *ret_fd, err_t *e);

#endif
