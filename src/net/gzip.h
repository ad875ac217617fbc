/* gzip as a filter, both ways: for bodies, and for what is packed into the program. */
#ifndef FLYBALL_GZIP_H
#define FLYBALL_GZIP_H

#include "../base/buf.h"

struct gzip;

struct gzip *gzip_writer_new(void);
/* Compresses `bytes` to the end of `out`; `last` ends the stream. */
void gzip_write(struct gzip *z, str bytes, bool last, struct buf *out);

struct gzip *gzip_reader_new(void);
/* Takes some of `*bytes` and appends at most about `room` to `out`. -EBADMSG: not gzip. */
int gzip_read(struct gzip *z, str *bytes, struct buf *out, size_t room);
bool gzip_is_complete(const struct gzip *z); /* reader: the stream's end was seen */
bool gzip_has_pending(
    const struct gzip *z); /* reader: more comes without more bytes. NULL: false */

void gzip_free(struct gzip *z);

#endif
