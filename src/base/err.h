/* Failure as a value: a code for the program and one sentence for people.
 *
 *     int token_read(const char *path, char **ret_token, err_t *e)
 *     {
 *         auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
 *         if (fd < 0)
 *             return err_set(e, errno, "token %s: %s", path, strerror(errno));
 *
 * Functions return 0 or a negative errno and fill `e` only on failure. `e` may be NULL if the
 * caller does not need the text. */
#ifndef FLYBALL_ERR_H
#define FLYBALL_ERR_H

#include "base.h"

typedef struct err {
    int code;       /* positive errno */
    char text[500]; /* one sentence without a final period, truncated with "..." */
} err_t;

/* Fills `e` and returns -code, so that failing takes one line. The sign of `code` does not matter;
 * 0 means EINVAL. */
int err_set(err_t *e, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Prepends context ("context: sentence") and returns -e->code. */
int err_wrap(err_t *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* Lets compilers and analyzers, which see one file at a time, assume that a failure is never 0. */
static inline int err_negative(int result)
{
    if (result >= 0)
        __builtin_unreachable();
    return result;
}
#define err_set(...) err_negative(err_set(__VA_ARGS__))
#define err_wrap(...) err_negative(err_wrap(__VA_ARGS__))

#endif
