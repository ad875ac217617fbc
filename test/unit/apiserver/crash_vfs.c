/* The simulated disk (crash_disk.h) as SQLite's VFS and as the db_files of the store.
 *
 * Every write and every sync first reaches a point (reach_point), where the test may look at the disk, fill it up or
 * switch it off. A disk that is off refuses everything, as a process sees it whose power is gone; what it has written
 * before stays for the next start. Locks always succeed: one process, one connection. Time and randomness are those of
 * the real VFS. */
#include "crash_disk.h"

#include "apiserver/store/db_files.h"

#include <stdio.h>

enum { RESERVE_BYTES = 4 << 20 }; /* as in db_room.c */

/* ---- as SQLite's VFS */

struct crash_handle {
    sqlite3_file base;
    struct crash_disk *disk;
    struct crash_file *file; /* owned reference */
    bool syncs_directory;
    bool keeps_log;
};

static void reach_point(struct crash_disk *d, bool sync)
{
    if (d->point && !d->off)
        d->point(d->context, sync);
}

/* False: a file cannot grow by so much, or not be overwritten. */
static bool take_room(struct crash_disk *d, int64_t growth)
{
    growth = MAX(growth, (int64_t)0);
    if (!d->full)
        return true;
    if (growth > d->room || (d->copies && d->room < 4096))
        return false;
    d->room -= growth;
    return true;
}

static int handle_close(sqlite3_file *f)
{
    crash_file_unref(((struct crash_handle *)f)->file);
    return SQLITE_OK;
}

static int handle_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    const struct crash_file *file = ((struct crash_handle *)f)->file;
    size_t there = (size_t)at < file->now.n ? MIN((size_t)n, file->now.n - (size_t)at) : 0;
    if (there)
        memcpy(p, file->now.p + at, there);
    memset((char *)p + there, 0, (size_t)n - there);
    return there == (size_t)n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int handle_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct crash_handle *h = (struct crash_handle *)f;
    reach_point(h->disk, false);
    if (h->disk->off)
        return SQLITE_IOERR_WRITE;
    if (!take_room(h->disk, at + n - (int64_t)h->file->now.n))
        return SQLITE_FULL;
    h->disk->writes++;
    if (!h->disk->throwaway) {
        struct crash_write w = { mem_dup(p, (size_t)n), (size_t)n, at };
        vec_push(&h->file->pending, w);
    }
    crash_bytes_put(&h->file->now, p, (size_t)n, at);
    return SQLITE_OK;
}

static int handle_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct crash_handle *h = (struct crash_handle *)f;
    if (h->disk->off)
        return SQLITE_IOERR_TRUNCATE;
    if (!h->disk->throwaway) {
        struct crash_write w = { NULL, 0, size };
        vec_push(&h->file->pending, w);
    }
    h->disk->room += MAX((int64_t)h->file->now.n - size, (sqlite3_int64)0);
    crash_bytes_resize(&h->file->now, (size_t)size);
    return SQLITE_OK;
}

static int handle_sync(sqlite3_file *f, int flags UNUSED)
{
    struct crash_handle *h = (struct crash_handle *)f;
    reach_point(h->disk, true);
    if (h->disk->off)
        return SQLITE_IOERR_FSYNC;
    h->disk->syncs++;
    if (!h->disk->drops_syncs) {
        crash_file_sync(h->file);
        if (h->syncs_directory)
            crash_disk_sync_names(h->disk);
        h->syncs_directory = false;
    }
    reach_point(h->disk, true);
    return SQLITE_OK;
}

static int handle_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct crash_handle *)f)->file->now.n;
    return SQLITE_OK;
}

static int handle_lock(sqlite3_file *f UNUSED, int level UNUSED)
{
    return SQLITE_OK;
}

static int handle_is_reserved(sqlite3_file *f UNUSED, int *ret)
{
    *ret = 0;
    return SQLITE_OK;
}

static int handle_control(sqlite3_file *f, int op, void *arg)
{
    struct crash_handle *h = (struct crash_handle *)f;
    int *keep = arg;
    if (op != SQLITE_FCNTL_PERSIST_WAL)
        return SQLITE_NOTFOUND;
    if (*keep >= 0)
        h->keeps_log = *keep > 0;
    *keep = h->keeps_log;
    return SQLITE_OK;
}

static int handle_sector(sqlite3_file *f UNUSED)
{
    return 4096;
}

static int handle_character(sqlite3_file *f UNUSED)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE; /* as SQLite's own VFS */
}

static const sqlite3_io_methods handle_methods = {
    .iVersion = 1,
    .xClose = handle_close,
    .xRead = handle_read,
    .xWrite = handle_write,
    .xTruncate = handle_truncate,
    .xSync = handle_sync,
    .xFileSize = handle_size,
    .xLock = handle_lock,
    .xUnlock = handle_lock,
    .xCheckReservedLock = handle_is_reserved,
    .xFileControl = handle_control,
    .xSectorSize = handle_sector,
    .xDeviceCharacteristics = handle_character,
};

static int disk_open(sqlite3_vfs *vfs UNUSED, const char *path, sqlite3_file *f, int flags,
                     int *ret_flags)
{
    struct crash_handle *h = (struct crash_handle *)f;
    const char *name = NULL;
    f->pMethods = NULL;
    struct crash_disk *d = path ? crash_disk_find(path, &name) : NULL;
    if (!d || d->off)
        return SQLITE_CANTOPEN;
    struct crash_file *file = crash_disk_file(d, name);
    if (!file && !(flags & SQLITE_OPEN_CREATE))
        return SQLITE_CANTOPEN;
    if (!file)
        file = crash_disk_make_file(d, name);
    *h = (struct crash_handle){ .base.pMethods = &handle_methods,
                                .disk = d,
                                .file = crash_file_ref(file),
                                .syncs_directory = flags & SQLITE_OPEN_CREATE };
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs UNUSED, const char *path, int sync_directory)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    if (!f || d->off)
        return f ? SQLITE_IOERR_DELETE : SQLITE_IOERR_DELETE_NOENT;
    reach_point(d, false);
    d->room += (int64_t)f->now.n;
    crash_disk_change_name(d, NAME_UNLINK, name, f);
    if (sync_directory && !d->drops_syncs)
        crash_disk_sync_names(d);
    reach_point(d, true);
    return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs UNUSED, const char *path, int flags UNUSED, int *ret)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    *ret = d && crash_disk_file(d, name);
    return SQLITE_OK;
}

static int disk_full_path(sqlite3_vfs *vfs UNUSED, const char *path, int n, char *ret)
{
    snprintf(ret, (size_t)n, "%s", path);
    return SQLITE_OK;
}

/* ---- as db_files */

static int names_size(const char *path, int64_t *ret)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    if (!f)
        return -ENOENT;
    *ret = (int64_t)f->now.n;
    return 0;
}

static int names_remove(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    if (d && d->off)
        return -EIO;
    if (f)
        crash_disk_change_name(d, NAME_UNLINK, name, f);
    if (f && strstr(name, "-reserve"))
        d->room += RESERVE_BYTES;
    return 0;
}

static int names_create(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    int result = names_remove(path);
    if (result == 0)
        crash_disk_make_file(d, name);
    return result;
}

static int names_rename(const char *from, const char *to)
{
    const char *name, *name_to;
    struct crash_disk *d = crash_disk_find(from, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    if (!f || d->off || !crash_disk_find(to, &name_to))
        return -ENOENT;
    crash_file_ref(f);
    reach_point(d, false);
    crash_disk_change_name(d, NAME_LINK, name_to, f);
    crash_disk_change_name(d, NAME_UNLINK, name, f);
    reach_point(d, false);
    crash_file_unref(f);
    return 0;
}

static int names_sync(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    if (!f || d->off)
        return -EIO;
    reach_point(d, true);
    if (!d->drops_syncs)
        crash_file_sync(f);
    reach_point(d, true);
    return d->off ? -EIO : 0;
}

static int names_sync_directory(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    reach_point(d, true);
    if (!d->drops_syncs)
        crash_disk_sync_names(d);
    reach_point(d, true);
    return d->off ? -EIO : 0;
}

static int64_t names_free_bytes(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    return d && !d->full ? 1 << 30 : d ? d->room : -1;
}

static int names_reserve(const char *path, int64_t bytes)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    if (d->off)
        return -ENOSPC;
    int result = names_create(path); /* replaces, which gives its room back */
    if (result == 0 && !take_room(d, bytes)) {
        crash_disk_change_name(d, NAME_UNLINK, name, crash_disk_file(d, name));
        return -ENOSPC;
    }
    return result;
}

static int64_t names_identity(const char *path)
{
    const char *name;
    struct crash_disk *d = crash_disk_find(path, &name);
    struct crash_file *f = d ? crash_disk_file(d, name) : NULL;
    return f ? (int64_t)(uintptr_t)f : -ENOENT;
}

static const struct db_files crash_files = {
    .size = names_size,
    .identity = names_identity,
    .create = names_create,
    .remove = names_remove,
    .rename = names_rename,
    .sync = names_sync,
    .sync_directory = names_sync_directory,
    .free_bytes = names_free_bytes,
    .reserve = names_reserve,
};

static sqlite3_vfs crash_vfs;
static sqlite3_vfs *real_vfs;

void crash_vfs_install(void)
{
    if (!real_vfs)
        real_vfs = sqlite3_vfs_find(NULL);
    crash_vfs = *real_vfs; /* time and randomness are its own */
    crash_vfs.zName = "crash";
    crash_vfs.szOsFile = sizeof(struct crash_handle);
    crash_vfs.xOpen = disk_open;
    crash_vfs.xDelete = disk_delete;
    crash_vfs.xAccess = disk_access;
    crash_vfs.xFullPathname = disk_full_path;
    sqlite3_vfs_register(&crash_vfs, 1);
    db_files = &crash_files;
}

void crash_vfs_uninstall(void)
{
    sqlite3_vfs_register(real_vfs, 1);
    db_files = &db_files_real;
}
