/* gzip as a filter in both directions: for HTTP bodies and for data embedded in the binary. */
#ifndef FLYBALL_GZIP_H
#define FLYBALL_GZIP_H

#include "../base/buf.h"

struct gzip;

struct gzip *gzip_writer_new(void);
/* Compresses `bytes` to the end of `out`; `last` ends the stream. */
void gzip_write(struct gzip *z, str bytes, bool last, struct buf *out);

struct gzip *gzip_reader_new(void);
/* Consumes some of `*bytes` and appends at most about `room` bytes to `out`. -EBADMSG: not gzip. */
int gzip_read(struct gzip *z, str *bytes, struct buf *out, size_t room);
bool gzip_is_complete(const struct gzip *z); /* reader: the end of the stream was decoded */
bool gzip_has_pending(
    const struct gzip *z); /* reader: more output without more input; false for NULL */

void gzip_free(struct gzip *z);

#endif
