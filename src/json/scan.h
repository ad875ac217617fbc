/* Finds values in JSON text without building a tree, for selectors, watches and the garbage
 * collector, which read stored objects thousands of times a second.
 *
 * The text is compact JSON that this program wrote, but possibly read from a damaged file: every
 * step is bounded by the end of the text, and in invalid text nothing is found. */
#ifndef FLYBALL_SCAN_H
#define FLYBALL_SCAN_H

#include "../base/arena.h"

/* The text of the value of `key` in the object at the start of `object`; .p is NULL if there is
 * none. Keys with escapes are never found: ours have none. */
str scan_member(str object, str key);

/* The same along a dotted path, "spec.nodeName". */
str scan_path(str object, str path);

/* Iterates over the members of an object or the elements of an array: `*rest` starts as the text of
 * the value. Keys have no quotes but keep their escapes; elements have an empty key. */
bool scan_next(str *rest, str *ret_key, str *ret_value);

/* The next key of scan_next(); returns the offset of its value, 0: there is none. */
size_t scan_key(str rest, str *ret_key);

/* A string without quotes and escapes; a number or literal as written; "" for anything else. */
str scan_text(struct arena *a, str value);

#endif
