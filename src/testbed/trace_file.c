/* Reads a trace from a file or from standard input, plain or gzip-compressed: see trace.h. Both sizes are
 * limited, so that a small compressed file cannot exhaust memory. */
#include "trace.h"

#include "../base/file.h"
#include "../net/gzip.h"

#include <stdio.h>

static const size_t file_bytes_max = (size_t)1 << 30, text_bytes_max = (size_t)4 << 30;

static bool is_gzip(str bytes)
{
    return bytes.n > 2 && (unsigned char)bytes.p[0] == 0x1f && (unsigned char)bytes.p[1] == 0x8b;
}

/* Appends the text to `out` in steps of 1 MiB, so that the limit is checked in time. */
static int unpack_gzip(const char *path, str bytes, struct buf *out, err_t *e)
{
    enum { STEP = 1 << 20 };
    struct gzip *z = gzip_reader_new();
    int r = 0;
    while (r == 0 && !gzip_is_complete(z) && (bytes.n || gzip_has_pending(z)) &&
           out->n <= text_bytes_max)
        r = gzip_read(z, &bytes, out, STEP);
    bool whole = gzip_is_complete(z);
    gzip_free(z);
    if (r < 0)
        return err_set(e, EBADMSG, "%s: the gzip data is damaged", path);
    if (out->n > text_bytes_max)
        return err_set(e, EFBIG, "%s: decompresses to more than %zu bytes", path, text_bytes_max);
    return whole ? 0
                 : err_set(e, EBADMSG, "%s: the gzip data ends early; the file is truncated", path);
}

int trace_load(const char *path, struct trace *ret, err_t *e)
{
    auto_buf struct buf file = { 0 }, text = { 0 };
    if (file_read(strcmp(path, "-") ? path : "/dev/stdin", file_bytes_max, &file, e) < 0)
        return -e->code;
    bool packed = is_gzip(buf_str(&file));
    if (packed && unpack_gzip(path, buf_str(&file), &text, e) < 0)
        return -e->code;
    if (trace_parse_unordered(buf_str(packed ? &text : &file), ret, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}
