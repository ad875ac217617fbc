/* Two slots, each in a sector of its own:
 *
 *     offset 0      slot: "flybmark" | sequence | rev | log salt | 2 * log frames + log moved | checksum
 *     offset 4096   the same; 8 bytes each, little-endian
 *
 * The valid slot with the higher sequence counts. Writes go to one slot until it is synced and then to the
 * other: whatever a power failure does to the slot being written, the other one is whole. Files with two blank
 * slots were cut off while being created, before anything was acknowledged on their account. */
#include "db_mark.h"

#include "../../base/str.h"
#include "../../base/sum.h"
#include "db_files.h"

#include <sqlite3.h>

enum { SLOTS = 2, SLOT_BYTES = 48, SLOT_SPACING = 4096 };

struct mark {
    sqlite3_file *file; /* owned, opened */
    uint64_t sequence;  /* of the last write */
    int slot;           /* where the next write goes */
    bool synced;
};

static void put_u64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_u64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* Over everything but itself. */
static uint64_t slot_sum(const unsigned char *slot)
{
    return sum64((str){ (const char *)slot, SLOT_BYTES - 8 }, 0);
}

static void slot_encode(unsigned char *slot, uint64_t sequence, struct db_mark_value value)
{
    memcpy(slot, "flybmark", 8);
    put_u64(slot + 8, sequence);
    put_u64(slot + 16, (uint64_t)value.rev);
    put_u64(slot + 24, value.log_salt);
    put_u64(slot + 32, (uint64_t)value.log_frames << 1 | value.log_moved);
    put_u64(slot + 40, slot_sum(slot));
}

static bool slot_decode(const unsigned char *slot, uint64_t *ret_sequence,
                        struct db_mark_value *ret_value)
{
    if (memcmp(slot, "flybmark", 8) != 0 || get_u64(slot + 40) != slot_sum(slot))
        return false;
    *ret_sequence = get_u64(slot + 8);
    uint64_t log = get_u64(slot + 32);
    *ret_value = (struct db_mark_value){ (int64_t)get_u64(slot + 16), get_u64(slot + 24),
                                         (uint32_t)(log >> 1), log & 1 };
    return true;
}

static bool slot_is_blank(const unsigned char *slot)
{
    for (size_t i = 0; i < SLOT_BYTES; i++)
        if (slot[i])
            return false;
    return true;
}

void db_mark_close(struct mark *m)
{
    if (!m)
        return;
    if (m->file->pMethods)
        m->file->pMethods->xClose(m->file);
    free(m->file);
    free(m);
}

static int file_open(const char *path, struct mark **ret, err_t *e)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    struct mark *m = mem_zero(1, sizeof(*m));
    m->file = mem_zero(1, (size_t)vfs->szOsFile);
    /* A journal's flags: SQLite then gives the file the database's mode and syncs the directory with it. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_JOURNAL;
    int code = vfs->xOpen(vfs, path, m->file, flags, &flags);
    if (code != SQLITE_OK || !(flags & SQLITE_OPEN_READWRITE)) {
        db_mark_close(m);
        return err_set(e, code == SQLITE_FULL ? ENOSPC : EACCES,
                       "the high-water mark %s cannot be opened for writing", path);
    }
    *ret = m;
    return 0;
}

/* Finds the newest valid slot. */
static int read_slots(struct mark *m, const char *path, struct db_mark_value *ret_value, err_t *e)
{
    int blank = 0, newest = -1;
    for (int i = 0; i < SLOTS; i++) {
        unsigned char slot[SLOT_BYTES];
        uint64_t sequence;
        struct db_mark_value value;
        int code = m->file->pMethods->xRead(m->file, slot, SLOT_BYTES, i * SLOT_SPACING);
        if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) /* short: filled with zeros */
            return err_set(e, EIO, "the high-water mark %s cannot be read", path);
        blank += slot_is_blank(slot);
        if (slot_decode(slot, &sequence, &value) && (newest < 0 || sequence > m->sequence)) {
            newest = i;
            m->sequence = sequence;
            *ret_value = value;
        }
    }
    if (newest < 0)
        return blank == SLOTS ? -ENODATA
                              : err_set(e, EUCLEAN,
                                        "the high-water mark %s is damaged; restore the data "
                                        "directory from a copy, or, to accept the database as it "
                                        "is, remove the file",
                                        path);
    m->slot = newest; /* the sync in db_mark_open() moves on */
    return 0;
}

int db_mark_open(const char *path, struct mark **ret, struct db_mark_value *ret_value, err_t *e)
{
    int64_t bytes = 0;
    int there = db_files->size(path, &bytes);
    if (there == -ENOENT)
        return -ENOENT;
    if (there < 0)
        return err_set(e, EIO, "the high-water mark %s cannot be accessed: %s", path,
                       strerror(-there));
    struct mark *m;
    int result = file_open(path, &m, e);
    if (result < 0)
        return result;
    result = read_slots(m, path, ret_value, e);
    /* The newest slot may never have been synced: before the other one is overwritten, it must be. */
    if (result == 0 && db_mark_sync(m) != SQLITE_OK)
        result = err_set(e, EIO, "the high-water mark %s cannot be synced", path);
    if (result < 0) {
        db_mark_close(m);
        return result;
    }
    *ret = m;
    return 0;
}

/* Both slots are written before the first sync: a file with one blank slot and one damaged slot must not exist. */
int db_mark_create(const char *path, struct db_mark_value value, struct mark **ret, err_t *e)
{
    struct mark *m;
    int result = file_open(path, &m, e);
    if (result < 0)
        return result;
    int code = SQLITE_OK;
    for (int i = 0; i < SLOTS && code == SQLITE_OK; i++) {
        m->slot = i;
        code = db_mark_write(m, value);
    }
    if (code == SQLITE_OK)
        code = db_mark_sync(m);
    if (code != SQLITE_OK) {
        db_mark_close(m);
        return err_set(e, code == SQLITE_FULL ? ENOSPC : EIO,
                       "the high-water mark %s cannot be written", path);
    }
    *ret = m;
    return 0;
}

/* Writes to the current slot, possibly again. Until the sync, the other slot is the one that counts after a
 * power failure. */
int db_mark_write(struct mark *m, struct db_mark_value value)
{
    unsigned char slot[SLOT_BYTES];
    slot_encode(slot, m->sequence + 1, value);
    m->synced = false;
    int code =
        m->file->pMethods->xWrite(m->file, slot, SLOT_BYTES, (sqlite3_int64)m->slot * SLOT_SPACING);
    if (code == SQLITE_OK)
        m->sequence++;
    return code;
}

int db_mark_sync(struct mark *m)
{
    int code = m->file->pMethods->xSync(m->file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (code == SQLITE_OK && !m->synced) {
        m->synced = true;
        m->slot = 1 - m->slot;
    }
    return code;
}

bool db_mark_is_synced(const struct mark *m)
{
    return m->synced;
}
