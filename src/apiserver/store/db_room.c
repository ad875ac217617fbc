/* The full disk: what is still written, and when it is not full any more.
 *
 * The problem. A deletion is a write. SQLite appends it to its log, and the file keeps its length when rows are
 * deleted. So a full disk would refuse just what makes room on it, and nothing would become better by deleting.
 *
 *     needs room           a new object, or one that grew: refused while the disk is full
 *     needs no room        a deletion, or an update that does not grow the object: its row is replaced in place, under
 *                          the number of the row that it replaces. Appending it instead would take a new page now
 *                          and then, because the rows that were replaced leave holes too small for anything else.
 *
 * What a write of the second kind takes is room in the log, which is reused from its beginning after each one; the store
 * keeps such transactions small. If the log is too short even for that, the reserve (a file of 4 MiB) is released. First of
 * all, what is in the log is moved into the file, which may have to grow for it: db_is_growing() sees to it that this is
 * less than the reserve. Then half a megabyte goes into the log and into free pages of the file, and the rest is for objects
 * that are larger.
 *
 * Room comes back in two ways. Pages that deletions have freed inside the file are room for new objects, less a few that
 * stay for deletions (FREE_BYTES_KEPT); and once the disk has room, the reserve is made again. Shrinking the file was
 * rejected: moving its last pages forward needs room in the log for each of them. */
#include "db_private.h"

#include "db_files.h"

enum {
    RESERVE_BYTES = 4 << 20,
    DISK_BYTES_KEPT = 256 << 10, /* less than this free on the disk: still full */
    FREE_BYTES_KEPT = DB_PADDING_BYTES + (128 << 10), /* of free pages */
    PAGE_BYTES = 4096,
    GROWTH_PAGES_MAX = (2 << 20) / PAGE_BYTES,
};

int db_report_full(const struct db *db, err_t *e)
{
    return err_set(
        e, ENOSPC,
        "the disk of %s is full: nothing was changed; delete objects or make room on the "
        "disk; until then, only deletions and updates that do not grow an object are accepted",
        db->path);
}

void db_make_reserve(struct db *db)
{
    int result = db_files->reserve(db->reserve_path, RESERVE_BYTES);
    /* a file system that cannot reserve is not full */
    db->has_reserve = result != -ENOSPC && result != -EDQUOT;
}

bool db_release_reserve(struct db *db)
{
    if (!db->has_reserve)
        return false;
    (void)db_files->remove(db->reserve_path);
    db->has_reserve = false;
    return true;
}

/* Bytes in free pages of the file, less what stays for deletions. */
static int64_t find_free_bytes(struct db *db)
{
    int64_t pages = 0;
    if (db_query_int(db, "PRAGMA freelist_count", &pages, NULL) < 0)
        return 0;
    return MAX(pages * PAGE_BYTES - FREE_BYTES_KEPT, (int64_t)0);
}

/* What a row takes at most, in whole pages. */
static int64_t find_row_bytes(const struct db_row *row)
{
    return (int64_t)(row->key.n + row->value.n) + 2 * PAGE_BYTES;
}

bool db_is_growing(const struct db *db)
{
    if (db->log_frames < GROWTH_PAGES_MAX)
        return false;
    sqlite3_int64 pages =
        sqlite3_step(db->count_pages) == SQLITE_ROW ? sqlite3_column_int64(db->count_pages, 0) : 0;
    sqlite3_reset(db->count_pages);
    int64_t bytes = 0;
    return db_files->size(db->path, &bytes) == 0 && pages - bytes / PAGE_BYTES >= GROWTH_PAGES_MAX;
}

/* Not before there is a little more room than it takes: each attempt is work. */
static void make_reserve_again(struct db *db)
{
    int64_t disk = db_files->free_bytes(db->path);
    if (!db->has_reserve && (disk < 0 || disk >= RESERVE_BYTES + DISK_BYTES_KEPT))
        db_make_reserve(db);
}

/* What its rows take at most. */
static int64_t find_bytes(const struct db_transaction *t)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < t->n_rows; i++)
        bytes += find_row_bytes(&t->rows[i]);
    return bytes;
}

/* The log may be long enough for what the file has no room for: it could then not be moved. */
bool db_may_grow(struct db *db, const struct db_transaction *t)
{
    make_reserve_again(db);
    int64_t disk = db_files->free_bytes(db->path);
    return db->has_reserve && (disk < 0 || disk >= find_bytes(t));
}

bool db_has_free_pages(struct db *db, const struct db_transaction *t)
{
    return find_bytes(t) <= find_free_bytes(db);
}

/* While room is short the log is moved after each commit. So the next one finds room in it; and what is in the log when
 * the disk becomes full does not make the file longer than the reserve allows. A log that cannot be moved is moved
 * later. */
void db_measure_room(struct db *db)
{
    int64_t disk = db_files->free_bytes(db->path), log = 2 * (int64_t)db->long_frames * PAGE_BYTES;
    disk = disk < 0 ? INT64_MAX : disk;
    make_reserve_again(db);
    if (db->log_frames && (!db->has_reserve || disk < RESERVE_BYTES + log))
        (void)db_move_log(db);
    bool full = !db->has_reserve || disk < DISK_BYTES_KEPT;
    db->room = full ? find_free_bytes(db) : INT64_MAX;
}

void db_keep_log_on_close(struct db *db)
{
    int keep = 1;
    (void)sqlite3_file_control(db->sqlite, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
}

int64_t db_room(const struct db *db)
{
    return db->room;
}

bool db_disk_has_room(const struct db *db, int64_t bytes)
{
    int64_t disk = db_files->free_bytes(db->path);
    return disk < 0 || disk >= 2 * bytes + DISK_BYTES_KEPT + (db->has_reserve ? 0 : RESERVE_BYTES);
}
