/* UTF-8, one code point at a time, and the few Unicode properties that user input requires. */
#ifndef FLYBALL_UTF8_H
#define FLYBALL_UTF8_H

#include "arena.h"
#include "buf.h"

/* Removes the next code point from `*rest`, which must not be empty; an invalid byte is U+FFFD. */
uint32_t utf8_next(str *rest);
void utf8_put(struct buf *out, uint32_t point);

uint32_t utf8_lower(uint32_t point); /* simple lower case: maps to one code point */
str utf8_trim(str text);             /* without such spaces at both ends */

bool utf8_valid(str text);

/* The same text if it is valid UTF-8, otherwise a copy with U+FFFD in place of each invalid byte.
 * Used for text from paths, queries, headers and certificates; parsers validate bodies. */
str utf8_clean(struct arena *a, str text);

#endif
