/* Whole small files. */
#include "base/file.h"
#include "tap.h"

#include <unistd.h>

static void reads_and_bounds(void)
{
    char path[] = "/tmp/flyball-file-XXXXXX";
    int fd = mkstemp(path);
    OK(fd >= 0);
    char text[10000];
    memset(text, 'x', sizeof(text));
    OK(write(fd, text, sizeof(text)) == sizeof(text));
    close(fd);
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("before "));
    err_t e = { 0 };
    OK_CALL(file_read(path, sizeof(text), &out, &e), &e);
    EQ_INT(out.n, sizeof(text) + 7);
    EQ_INT(file_read(path, sizeof(text) - 1, &out, &e), -EFBIG);
    EQ_INT(out.n, sizeof(text) + 7);
    OK(strstr(e.text, path));
    unlink(path);
    EQ_INT(file_read(path, 10, &out, &e), -ENOENT);
    OK(strstr(e.text, path));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(reads_and_bounds), { 0 } });
}
