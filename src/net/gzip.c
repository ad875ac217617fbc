/* gzip on zlib: see gzip.h. The writer uses level 1, as kube-apiserver does: lists shrink to a
 * tenth with it, and a higher level would hold up the event loop for little gain. Memory is only
 * allocated by zlib when a stream begins; running out of it aborts, as everywhere. */
#include "gzip.h"

#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16, /* zlib: the largest window, with gzip instead of zlib framing */
    STEP = 16 * 1024,      /* bytes of output per call of zlib */
};

struct gzip {
    z_stream stream;
    bool writer;   /* compresses; otherwise decompresses */
    bool complete; /* reader: the end of the stream was decoded */
    bool pending;  /* reader: zlib holds output that did not fit */
};

struct gzip *gzip_writer_new(void)
{
    struct gzip *z = mem_zero(1, sizeof(*z));
    z->writer = true;
    if (deflateInit2(&z->stream, 1, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* out of memory is the only cause */
    return z;
}

struct gzip *gzip_reader_new(void)
{
    struct gzip *z = mem_zero(1, sizeof(*z));
    if (inflateInit2(&z->stream, GZIP_WINDOW) != Z_OK)
        abort();
    return z;
}

void gzip_free(struct gzip *z)
{
    if (!z)
        return;
    if (z->writer)
        deflateEnd(&z->stream);
    else
        inflateEnd(&z->stream);
    free(z);
}

/* Runs zlib once, with STEP bytes of room at the end of `out`. Returns how many bytes it appended.
 */
static size_t run_step(struct gzip *z, int (*work)(z_stream *, int), int flush, struct buf *out,
                       int *ret_code)
{
    z->stream.next_out = (Bytef *)buf_reserve(out, STEP);
    z->stream.avail_out = STEP;
    *ret_code = work(&z->stream, flush);
    size_t n = STEP - z->stream.avail_out;
    out->n += n;
    return n;
}

void gzip_write(struct gzip *z, str bytes, bool last, struct buf *out)
{
    while (bytes.n || last) {
        size_t part = MIN(bytes.n, (size_t)INT32_MAX);
        bool final = last && part == bytes.n;
        z->stream.next_in = (Bytef *)(uintptr_t)bytes.p;
        z->stream.avail_in = (uInt)part;
        int code;
        do
            run_step(z, deflate, final ? Z_FINISH : Z_NO_FLUSH, out, &code);
        while (z->stream.avail_out == 0);
        bytes = str_from(bytes, part);
        if (final)
            return;
    }
}

int gzip_read(struct gzip *z, str *bytes, struct buf *out, size_t room)
{
    z->stream.next_in = (Bytef *)(uintptr_t)bytes->p;
    z->stream.avail_in = (uInt)MIN(bytes->n, (size_t)INT32_MAX);
    int code = Z_OK;
    for (size_t got = 0; !z->complete && got < room;) {
        size_t n = run_step(z, inflate, Z_NO_FLUSH, out, &code);
        got += n;
        z->complete = code == Z_STREAM_END;
        z->pending = !z->complete && z->stream.avail_out == 0;
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return -EBADMSG;
        if (n == 0 || (z->stream.avail_in == 0 && z->stream.avail_out > 0))
            break;
    }
    size_t left = z->stream.avail_in;
    *bytes = z->complete ? (str){ bytes->p + bytes->n, 0 } /* bytes after the end are ignored */
                         : str_from(*bytes, bytes->n - left);
    return 0;
}

bool gzip_is_complete(const struct gzip *z)
{
    return z->complete;
}

bool gzip_has_pending(const struct gzip *z)
{
    return z && z->pending;
}
