/* UTF-8, one code point at a time, and the little of Unicode that texts of users need. */
#ifndef FLYBALL_UTF8_H
#define FLYBALL_UTF8_H

#include "arena.h"
#include "buf.h"

/* Takes the next code point off `*rest`; a byte that begins none is U+FFFD and one byte. */
uint32_t utf8_next(str *rest);
void utf8_put(struct buf *out, uint32_t point);

uint32_t utf8_lower(uint32_t point); /* simple lower case: one code point for one */
bool utf8_is_space(uint32_t point);  /* White_Space, as Go's TrimSpace takes it */
str utf8_trim(str text);             /* such spaces at both ends */

/* The same text if it is UTF-8, else a copy with U+FFFD in place of each byte that is not. Text from paths,
 * queries, headers and certificates goes through here; parsers check bodies. */
str utf8_clean(struct arena *a, str text);

#endif
