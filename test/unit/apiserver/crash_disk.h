/* A simulated disk that loses power: files in memory, with what is synced kept apart from what is not.
 *
 * Each disk is a folder: the file "/live/state.db" is on the disk named "live". SQLite reaches it through a VFS,
 * the rest of the database through db_files; crash_vfs_install() puts both in place. A crash is a copy of a disk
 * that has lost, reordered or torn what was not synced. The rules:
 *
 *   - What was written before a sync of its file is there. What was not: each sector of 512 or 4096 bytes is
 *     either old or new, in any mixture; a file that grew may have any length in between, or zeros.
 *   - Names are made, changed and removed in order, as journaling file systems do, and last when the directory is
 *     synced. Syncing a new journal or log syncs its directory, as SQLite's own VFS does. */
#ifndef FLYBALL_CRASH_DISK_H
#define FLYBALL_CRASH_DISK_H

#include "base/random.h"
#include "base/str.h"
#include "base/vec.h"

#include <sqlite3.h>

struct crash_write { /* not synced yet */
    char *bytes;     /* owned; NULL: a truncation to `at` */
    size_t n;
    int64_t at;
};

struct crash_bytes {
    char *p; /* owned */
    size_t n, cap;
};

struct crash_file {
    int refs;
    struct crash_bytes now, durable;
    VEC(struct crash_write) pending;
};

struct crash_name {
    char name[64];
    struct crash_file *file; /* owned reference */
};

struct crash_change { /* of a name, not synced yet */
    enum crash_change_kind { NAME_LINK, NAME_UNLINK } kind;
    struct crash_name entry;
};

struct crash_disk {
    char folder[16]; /* "live" */
    VEC(struct crash_name) names, durable_names;
    VEC(struct crash_change) changes;
    bool throwaway;   /* it will not crash again: what is synced need not be tracked */
    bool drops_syncs; /* a faulty disk: it reports syncs that it has not done */
    bool off;         /* every write and sync fails: the power is gone */
    bool full;        /* files cannot grow by more than `room`... */
    bool copies;      /* ...nor be overwritten: this disk copies what is written */
    int64_t room;     /* bytes that are left on a full disk */
    uint64_t writes, syncs;
    /* Called before and after each sync, and before each write. */
    void (*point)(void *context, bool sync);
    void *context;
};

enum crash_kind {
    CRASH_KILL,      /* the process is killed: nothing is lost, nothing is synced by it */
    CRASH_LOSE_ALL,  /* nothing unsynced reached the disk */
    CRASH_KEEP_ALL,  /* all of it did */
    CRASH_TORN,      /* all up to a write that is torn */
    CRASH_REORDERED, /* a random part of it, in sectors of 512 or 4096 bytes */
    CRASH_LATE_ONLY, /* the last writes, but not the first */
    CRASH_KIND_N
};

struct crash_disk *crash_disk_new(const char *folder);
void crash_disk_free(struct crash_disk *d);
/* What a crash of that kind leaves; a disk of its own under another folder. Kills leave disks that can crash
 * again; the others are throwaway, unless crash_disk_keep() is called before anything is written. */
struct crash_disk *crash_disk_after(const struct crash_disk *d, const char *folder,
                                    enum crash_kind kind, struct random *random);
void crash_disk_keep(struct crash_disk *d);
uint64_t crash_disk_sum(const struct crash_disk *d); /* of names and contents */
bool crash_disk_pending(const struct crash_disk *d); /* whether anything is not synced */
struct crash_file *crash_disk_file(const struct crash_disk *d, const char *name);
void crash_file_replace(struct crash_file *f, str bytes); /* not recorded as a write */
size_t crash_disk_bytes(const struct crash_disk *d);

/* ---- crash_vfs.c */
void crash_vfs_install(void);   /* as SQLite's default VFS and as db_files */
void crash_vfs_uninstall(void); /* restores the real ones */

/* ---- operations of crash_vfs.c on a disk */
/* The disk of "/folder/name", NULL if there is none; `*ret_name` points into `path`. */
struct crash_disk *crash_disk_find(const char *path, const char **ret_name);
struct crash_file *crash_disk_make_file(struct crash_disk *d, const char *name); /* borrowed */
void crash_disk_change_name(struct crash_disk *d, enum crash_change_kind kind, const char *name,
                            struct crash_file *file);
void crash_disk_sync_names(struct crash_disk *d);
struct crash_file *crash_file_ref(struct crash_file *f);
void crash_file_unref(struct crash_file *f);
void crash_file_sync(struct crash_file *f);
void crash_bytes_put(struct crash_bytes *b, const char *from, size_t count, int64_t at);
void crash_bytes_resize(struct crash_bytes *b, size_t want); /* fills up with zeros */

#endif
