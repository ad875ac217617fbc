/* The format, from SQLite's documentation of it (all numbers big-endian, unless stated otherwise):
 *
 *     header   magic 4 | version 4 | page size 4 | sequence 4 | salt 8 | checksum 8
 *     frame    page number 4 | pages after a commit, or 0: 4 | salt 8 | checksum 8 | the page
 *
 * A checksum covers the header's first 24 bytes, then of each frame the first 8 bytes and the page, one chain
 * through all frames; the lowest bit of the magic number selects the byte order in which words are added. */
#include "db_log.h"

#include "../../base/str.h"
#include "db_files.h"

enum { HEADER_BYTES = 32, FRAME_BYTES = 24, PAGE_MAX = 65536 };

static const uint32_t MAGIC = 0x377f0682;

struct chain {
    bool big_endian;
    uint32_t a, b;
};

static uint32_t get_be(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t get_le(const unsigned char *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void chain_add(struct chain *c, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i + 8 <= n; i += 8) {
        c->a += (c->big_endian ? get_be(p + i) : get_le(p + i)) + c->b;
        c->b += (c->big_endian ? get_be(p + i + 4) : get_le(p + i + 4)) + c->a;
    }
}

static bool chain_is(const struct chain *c, const unsigned char *p)
{
    return c->a == get_be(p) && c->b == get_be(p + 4);
}

static sqlite3_file *log_file(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    return code == SQLITE_OK && file && file->pMethods ? file : NULL;
}

static bool log_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    sqlite3_int64 bytes;
    return f->pMethods->xFileSize(f, &bytes) == SQLITE_OK && at + n <= bytes &&
           f->pMethods->xRead(f, p, n, at) == SQLITE_OK;
}

int64_t db_log_bytes(sqlite3 *db)
{
    sqlite3_int64 bytes;
    sqlite3_file *f = log_file(db);
    return f && f->pMethods->xFileSize(f, &bytes) == SQLITE_OK ? bytes : 0;
}

int64_t db_log_identity(sqlite3 *db)
{
    const char *path = sqlite3_filename_wal(sqlite3_db_filename(db, "main"));
    return path && db_log_bytes(db) ? db_files->identity(path) : 0;
}

uint64_t db_log_salt(sqlite3 *db)
{
    unsigned char salt[8];
    sqlite3_file *f = log_file(db);
    if (!f || !log_read(f, salt, sizeof(salt), 16))
        return 0;
    return (uint64_t)get_be(salt) << 32 | get_be(salt + 4);
}

int db_log_sync(sqlite3 *db)
{
    sqlite3_file *f = log_file(db);
    return f ? f->pMethods->xSync(f, SQLITE_SYNC_NORMAL) : SQLITE_OK;
}

/* The chain of checksums after a valid header. */
static bool header_begin(const unsigned char *header, struct chain *ret)
{
    uint32_t page_bytes = get_be(header + 8);
    *ret = (struct chain){ .big_endian = get_be(header) & 1 };
    chain_add(ret, header, 24);
    return (get_be(header) & ~1U) == MAGIC && chain_is(ret, header + 24) && page_bytes >= 512 &&
           page_bytes <= PAGE_MAX;
}

struct db_log_state db_log_scan(sqlite3 *db)
{
    struct db_log_state found = { 0 };
    struct chain chain;
    unsigned char header[HEADER_BYTES];
    sqlite3_file *f = log_file(db);
    if (!f || !log_read(f, header, sizeof(header), 0) || !header_begin(header, &chain))
        return found;
    found.salt = db_log_salt(db);
    size_t page_bytes = get_be(header + 8);
    auto_free unsigned char *frame = mem_zero(1, FRAME_BYTES + page_bytes);
    uint32_t frames = 0;
    for (sqlite3_int64 at = HEADER_BYTES;; at += FRAME_BYTES + (sqlite3_int64)page_bytes) {
        if (!log_read(f, frame, (int)(FRAME_BYTES + page_bytes), at) ||
            memcmp(frame + 8, header + 16, 8) != 0)
            break;
        chain_add(&chain, frame, 8);
        chain_add(&chain, frame + FRAME_BYTES, page_bytes);
        if (!chain_is(&chain, frame + 16))
            break;
        frames++;
        if (get_be(frame + 4)) {
            found.frames = frames;
            found.commits++;
        }
    }
    return found;
}
