/* JSON pointers (RFC 6901): "" is the document, "/spec/ports/0" a part of it; in a token "~1" is a
 * slash and "~0" a tilde. A pointer stays text: it is walked, never stored in another form. */
#ifndef FLYBALL_POINTER_H
#define FLYBALL_POINTER_H

#include "json.h"

/* What the pointer names, or NULL: nothing there, or not a pointer. */
struct json *pointer_get(const struct json *root, str pointer);

/* 0, or -EINVAL: it must be empty or start with "/", and "~" must be followed by "0" or "1". */
int pointer_check(str pointer, err_t *e);

/* Parts of a pointer that was checked. Takes the next token off; false at the end. */
bool pointer_next(str *rest, str *ret_token);
bool pointer_split(str pointer, str *ret_parent, str *ret_last); /* false for "" */
str pointer_unescape(struct arena *a, str token);
void pointer_put(struct buf *out, str key); /* appends "/" and the escaped key */

/* The member whose name is the (escaped) token. */
struct json *pointer_member(const struct json *obj, str token);

#endif
