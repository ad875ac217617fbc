/* Removes the members that no declared field needs from JSON text, before it is parsed. Of the 17
 * KB of a Pod about 0.3 KB are left; skipping the rest by its brackets costs a seventh of parsing
 * it. */
#ifndef FLYBALL_TRIM_H
#define FLYBALL_TRIM_H

#include "../base/buf.h"
#include "fieldtree.h"

/* Appends the value in `text` without the members that no path needs. False if the
 * text is incomplete or malformed; then the content of `out` is undefined, and the caller lets the
 * parser report the error. Skipped values are not checked except for their quotes and brackets. */
bool trim_value(const struct kept *keep, str text, struct buf *out);

/* The same for a watch event: trims its `object`, except in bookmarks and errors. */
bool trim_watch_line(const struct kept *keep, str line, struct buf *out);

#endif
