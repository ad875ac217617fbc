/* See db_files.h. */
#include "db_files.h"

#include "../../base/buf.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

static int64_t files_free_bytes(const char *path)
{
    struct statvfs disk;
    return statvfs(path, &disk) == 0 ? (int64_t)(disk.f_bavail * disk.f_frsize) : 0;
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
    .create = files_create,
    .remove = files_remove,
    .rename = files_rename,
    .sync = files_sync,
    .sync_directory = files_sync_directory,
    .free_bytes = files_free_bytes,
    .reserve = files_reserve,
};
const struct db_files *db_files = &db_files_real;
