/* JSON pointers (RFC 6901): "" is the whole document, "/spec/ports/0" a part of it; in a token "~1"
 * is a slash and "~0" a tilde. A pointer is evaluated as text, without a parsed form. */
#ifndef FLYBALL_POINTER_H
#define FLYBALL_POINTER_H

#include "json.h"

/* The value at the pointer; NULL: not found, or not a pointer. */
struct json *pointer_get(const struct json *root, str pointer);

/* 0, or -EINVAL: it must be empty or start with "/", and "~" must be followed by "0" or "1". */
int pointer_check(str pointer, err_t *e);

/* For pointers that passed pointer_check(). Removes the next token; false at the end. */
bool pointer_next(str *rest, str *ret_token);
bool pointer_split(str pointer, str *ret_parent, str *ret_last); /* false for "" */
str pointer_unescape(struct arena *a, str token);
void pointer_put(struct buf *out, str key); /* appends "/" and the escaped key */

#endif
