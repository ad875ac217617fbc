/* The data directory: created, locked, and closed to other users; see data_dir.h.
 *
 * The lock is on the directory itself: it needs no space on the disk, and it is the same lock whatever path leads
 * to the directory. A directory that other users can read is closed to them (mode 0700), unless it looks like one
 * that they need: `--data /tmp` and `--data /etc` are refused. */
#include "data_dir.h"

#include "../../base/buf.h"
#include "../../base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The files that flyball creates, with their temporary and companion names. */
static bool is_ours(const char *name)
{
    static const char *const names[] = { "admin.token", "reader.token", "accounts.key", "ca.crt",
                                         "ca.key",      "kubeconfig",   "state.db",     "nodes",
                                         "clock",       "page.url",     "page.session" };
    static const char *const suffixes[] = { "", ".new", ".new-wal", "-wal", "-mark", "-reserve" };
    for (size_t i = 0; i < countof(names); i++) {
        size_t n = strlen(names[i]);
        for (size_t k = 0; k < countof(suffixes) && !strncmp(name, names[i], n); k++)
            if (!strcmp(name + n, suffixes[k]))
                return true;
    }
    return false;
}

static bool is_directory(int fd, const char *name)
{
    struct stat st;
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Calls `each` (may be NULL) for our files. Returns the name of the first folder that is not ours (owned by
 * the caller), or NULL. */
static char *scan_directory(int fd, const char *path, void (*each)(int fd, const char *name))
{
    char *foreign = NULL;
    DIR *dir = opendir(path);
    for (const struct dirent *d; dir && !foreign && (d = readdir(dir));) {
        if (is_ours(d->d_name) && each)
            each(fd, d->d_name);
        else if (!is_ours(d->d_name) && d->d_name[0] != '.' && is_directory(fd, d->d_name))
            foreign = mem_dup(d->d_name, strlen(d->d_name));
    }
    if (dir)
        closedir(dir);
    return foreign;
}

/* Symbolic links are left alone, because they may lead to files of other programs. */
static void close_file(int fd, const char *name)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
        !(st.st_mode & 077) || st.st_uid != geteuid())
        return;
    if (fchmodat(fd, name, 0600, 0) == 0)
        log_warn("file was open to other users; changed its mode", KV_C("file", name),
                 KV_C("mode", "0600"));
}

/* Refuses a directory that other users own or use; otherwise removes their access to it and to our files. */
static int close_directory(int fd, const char *path, bool made, err_t *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(e, errno, "data directory %s: %s", path, strerror(errno));
    unsigned mode = st.st_mode & 07777;
    if (mode & 077) {
        auto_free char *foreign = scan_directory(fd, path, NULL);
        if (st.st_uid != geteuid())
            return err_set(e, EPERM,
                           "data directory %s belongs to another user and has mode %04o; use a "
                           "directory of your own, such as %s/flyball",
                           path, mode, path);
        if (foreign || mode & S_ISVTX)
            return err_set(e, EPERM,
                           "data directory %s is open to other users (mode %04o) and used for "
                           "other things%s%s; use a directory of its own, such as %s/flyball",
                           path, mode, foreign ? ", such as " : "", foreign ? foreign : "", path);
    }
    if ((mode & 077 || (made && mode != 0700)) && fchmod(fd, 0700) < 0)
        return err_set(e, errno, "data directory %s: its mode cannot be changed to 0700: %s", path,
                       strerror(errno));
    if (mode & 077 && !made)
        log_warn("data directory was open to other users; changed its mode",
                 KV_C("directory", path), KV_C("mode", "0700"));
    free(scan_directory(fd, path, close_file));
    return 0;
}

/* Does not wait: a second server on the same directory is a mistake. */
static int lock_directory(int fd, const char *path, err_t *e)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return err_set(e, EBUSY,
                       "data directory %s is in use by another flyball; stop it, or use another "
                       "directory",
                       path);
    if (errno == EBADF || errno == EINVAL || errno == ENOLCK || errno == EOPNOTSUPP) {
        /* some network file systems; the database's own lock still keeps a second server out */
        log_warn("data directory cannot be locked", KV_C("directory", path),
                 KV_C("reason", strerror(errno)));
        return 0;
    }
    return err_set(e, errno, "data directory %s cannot be locked: %s", path, strerror(errno));
}

int data_dir_open(const char *path, int *ret_fd, err_t *e)
{
    bool made = mkdir(path, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_set(e, errno, "data directory %s cannot be created: %s", path, strerror(errno));
    if (made && chmod(path, 0700) < 0) /* the umask may have removed the owner's bits */
        return err_set(e, errno, "data directory %s: %s", path, strerror(errno));
    auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "data directory %s cannot be written to: %s", path,
                       strerror(errno));
    int result = lock_directory(fd, path, e);
    if (result == 0)
        result = close_directory(fd, path, made, e);
    if (result == 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        result =
            err_set(e, errno, "data directory %s cannot be written to: %s", path, strerror(errno));
    if (result < 0)
        return result;
    *ret_fd = fd;
    fd = -1;
    return 0;
}
