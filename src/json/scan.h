/* Finding values in JSON text without building a tree: what selectors, watches and the garbage
 * collector ask of a stored object thousands of times a second.
 *
 * The text is compact JSON that this program wrote, but it may have been read back from a file that
 * somebody damaged: every step is bounded by the text's end, and nonsense is "not found". */
#ifndef FLYBALL_SCAN_H
#define FLYBALL_SCAN_H

#include "../base/arena.h"

/* The text of the value of `key` in the object that `object` starts with; .p NULL when there is none.
 * Keys with escapes are never found: ours have none. */
str scan_member(str object, str key);

/* The same along a dotted path, "spec.nodeName". */
str scan_path(str object, str path);

/* Iterates the members of an object or the elements of an array: `*rest` starts as the value's text. Keys
 * come without quotes (and with their escapes); elements have an empty key. */
bool scan_next(str *rest, str *ret_key, str *ret_value);

/* The key that scan_next() would give next, and where its value begins; 0: there is none. */
size_t scan_key(str rest, str *ret_key);

/* A string's text without quotes and escapes; a number or a word as it stands; "" for the rest. */
str scan_text(struct arena *a, str value);

#endif
