/* See db_files.h.
 *
 * A limit of the file size (RLIMIT_FSIZE) is like a small disk, except that no other file can give room back. So a part
 * of it is kept: the log needs it to delete what is in a database that has grown to its limit. */
#include "db_files.h"

#include "../../base/buf.h"

#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LIMIT_BYTES_KEPT = 4 << 20 };

static int files_size(const char *path, int64_t *ret_bytes)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    *ret_bytes = st.st_size;
    return 0;
}

static int64_t files_identity(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0 ? -errno : (int64_t)(st.st_ino & INT64_MAX);
}

static int files_remove(const char *path)
{
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The mode is set again after the creation: the umask may have taken even the owner's bits away. */
static int create_private(const char *path)
{
    int result = files_remove(path);
    if (result < 0)
        return result;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0600) < 0) {
        result = -errno;
        close(fd);
        return result;
    }
    return fd;
}

static int files_create(const char *path)
{
    auto_close int fd = create_private(path);
    return fd < 0 ? fd : 0;
}

static int files_rename(const char *from, const char *to)
{
    return rename(from, to) < 0 ? -errno : 0;
}

static int files_sync(const char *path)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int files_sync_directory(const char *path)
{
    auto_free char *copy = mem_dup(path, strlen(path));
    return files_sync(dirname(copy));
}

static int64_t free_below_limit(const char *path)
{
    struct rlimit limit;
    struct stat st = { 0 };
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur > INT64_MAX / 2)
        return INT64_MAX;
    (void)stat(path, &st);
    int64_t most = (int64_t)limit.rlim_cur, kept = MIN(most / 4, (int64_t)LIMIT_BYTES_KEPT);
    return MAX(most - kept - (int64_t)st.st_size, (int64_t)0);
}

static int64_t files_free_bytes(const char *path)
{
    struct statvfs disk;
    int64_t below = free_below_limit(path);
    if (statvfs(path, &disk) < 0)
        return below == INT64_MAX ? -1 : below;
    return MIN(below, (int64_t)(disk.f_bavail * disk.f_frsize));
}

static void map_errno(void)
{
    if (errno == EDQUOT || errno == EFBIG)
        errno = ENOSPC;
}

static ssize_t map_write(int fd, const void *p, size_t n)
{
    ssize_t written = write(fd, p, n);
    if (written < 0)
        map_errno();
    return written;
}

static ssize_t map_pwrite(int fd, const void *p, size_t n, off_t at)
{
    ssize_t written = pwrite(fd, p, n, at);
    if (written < 0)
        map_errno();
    return written;
}

void db_files_map_limits(void)
{
    const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = { { "write", (sqlite3_syscall_ptr)map_write },
                  { "pwrite", (sqlite3_syscall_ptr)map_pwrite },
                  { "pwrite64", (sqlite3_syscall_ptr)map_pwrite } };
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    for (size_t i = 0; vfs && vfs->iVersion >= 3 && i < countof(calls); i++)
        (void)vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
}

static int files_reserve(const char *path, int64_t bytes)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == bytes &&
        (int64_t)st.st_blocks * 512 >= bytes)
        return 0; /* of an earlier run */
    auto_close int fd = create_private(path);
    if (fd < 0)
        return fd;
    int code = posix_fallocate(fd, 0, bytes);
    if (code)
        (void)unlink(path);
    return -code;
}

const struct db_files db_files_real = {
    .size = files_size,
    .identity = files_identity,
    .create = files_create,
    .remove = files_remove,
    .rename = files_rename,
    .sync = files_sync,
    .sync_directory = files_sync_directory,
    .free_bytes = files_free_bytes,
    .reserve = files_reserve,
};
const struct db_files *db_files = &db_files_real;
