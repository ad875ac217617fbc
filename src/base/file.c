/* Files: see file.h. A file is read to its end instead of by its size: files in /proc report a size
 * of 0. */
#include "file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_BYTES = 4096 };

int file_read(const char *path, size_t max, struct buf *out, err_t *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open %s: %s", path, strerror(errno));
    size_t before = out->n;
    for (;;) {
        ssize_t n = read(fd, buf_reserve(out, STEP_BYTES), STEP_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            out->n = before;
            return err_set(e, errno, "cannot read %s: %s", path, strerror(errno));
        }
        out->n += (size_t)n;
        out->p[out->n] = '\0';
        if (out->n - before > max) {
            out->n = before;
            return err_set(e, EFBIG, "%s is larger than %zu bytes", path, max);
        }
        if (!n)
            return 0;
    }
}

int file_write_private(const char *path, str bytes, bool lasting, err_t *e)
{
    auto_buf struct buf temporary = { 0 };
    buf_printf(&temporary, "%s.new", path);
    (void)unlink(temporary.p);
    auto_close int fd = open(temporary.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, 0600) < 0) /* the umask may have removed bits */
        return err_set(e, errno, "cannot create %s: %s", temporary.p, strerror(errno));
    for (size_t at = 0; at < bytes.n;) {
        ssize_t n = write(fd, bytes.p + at, bytes.n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int code = errno;
            (void)unlink(temporary.p); /* frees its blocks if the disk is full */
            return err_set(e, code, "cannot write %s: %s", temporary.p, strerror(code));
        }
        at += (size_t)n;
    }
    if ((lasting && fsync(fd) < 0) || rename(temporary.p, path) < 0)
        return err_set(e, errno, "cannot write %s: %s", path, strerror(errno));
    return 0;
}

void file_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
