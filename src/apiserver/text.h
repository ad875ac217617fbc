/* Text from places that need not be UTF-8 (paths, queries, headers, certificates): whatever goes into an
 * answer or an object goes through here first. Bodies are checked by their parsers. */
#ifndef FLYBALL_TEXT_H
#define FLYBALL_TEXT_H

#include "../base/arena.h"

/* The same text when it is UTF-8, else a copy with U+FFFD in place of what is not. */
str text_clean(struct arena *a, str text);

#endif
