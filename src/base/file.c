/* Files: see file.h. A file is read to its end instead of by its size: files in /proc report a size
 * of 0. */
#include "file.h"

#include <fcntl.h>
#include <sys/resource.h>
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

void file_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
