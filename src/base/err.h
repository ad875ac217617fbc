/* Failure as a value: a code for the program and one sentence for the person.
 *
 *     int token_read(const char *path, char **ret_token, err_t *e)
 *     {
 *         auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
 *         if (fd < 0)
 *             return err_set(e, errno, "token %s: %s", path, strerror(errno));
 *
 * Functions return 0 or a negative errno and fill `e` only on failure. `e` may be NULL where the
 * caller does not care for the words. */
#ifndef FLYBALL_ERR_H
#define FLYBALL_ERR_H

#include "base.h"

typedef struct err {
    int code;       /* positive errno */
    char text[500]; /* one sentence, no final full stop, cut with "..." when too long */
} err_t;

/* Fills `e` and returns -code, so that failing is one line. The sign of a code does not matter; 0 is
 * taken as EINVAL. */
int err_set(err_t *e, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts context before the sentence ("context: sentence") and returns -e->code. */
int err_wrap(err_t *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* Tells compilers and analyzers, who see one file at a time, that a failure is never 0. */
static inline int err_negative(int result)
{
    if (result >= 0)
        __builtin_unreachable();
    return result;
}
#define err_set(...) err_negative(err_set(__VA_ARGS__))
#define err_wrap(...) err_negative(err_wrap(__VA_ARGS__))

#endif
