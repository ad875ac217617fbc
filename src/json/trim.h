/* JSON text cut down to what a tree of fields can see, before it is parsed. Of a Pod's 17 KB a third of one is
 * left; stepping over the rest by its braces costs a seventh of parsing it. */
#ifndef FLYBALL_TRIM_H
#define FLYBALL_TRIM_H

#include "../base/buf.h"
#include "fieldtree.h"

/* Appends the value that `text` is, without the members that no path under `step` names. False when the text
 * is not whole or not as expected; then `out` holds anything, and the parser shall say what is wrong. What
 * is stepped over is not checked beyond its quotes and braces. */
bool trim_value(const struct field_step *step, str text, struct buf *out);

/* The same for a watch event: trims `object`, except of bookmarks and errors. */
bool trim_watch_line(const struct field_step *step, str line, struct buf *out);

#endif
