/* Time zones: see tz.h.
 *
 * A file lists transitions and ends with a rule for the time after them:
 *
 *     first_offset |  at[0]  |  at[1]  |  ...  |  at[n-1]  |  rule, forever
 *     -------------+---------+---------+-------+-----------+-----------------> UTC
 *                                                          ^ rule_from
 *
 * Of the two blocks in a file only the 64-bit one is read (the 32-bit one in files of version 1).
 * Abbreviations and daylight flags are not kept, and transitions that do not change the offset are
 * dropped. Files come in two kinds, "fat" with the transitions up to 2037 and "slim" with almost
 * none; both end with the rule, which alone defines later years. The rule applies from the last
 * transition that the file lists, even if that one was dropped, so `rule_from` is stored
 * separately.
 *
 * localtime() was not an option: it knows one zone per process, and a schedule may name any zone.
 *
 * The cache never frees a zone, so callers may keep the pointer without a reference count. It
 * cannot grow beyond the zones of the system, because names without a valid file are not stored. */
#include "tz.h"

#include "civil.h"
#include "file.h"
#include "map.h"
#include "tz_rule.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum { HEADER_BYTES = 44, FILE_BYTES_MAX = 256 * 1024, NAME_BYTES_MAX = 128, TYPES_MAX = 256 };

static const int64_t HORIZON = INT64_C(1) << 59; /* seconds; keeps all sums below 2^63 */

struct transition {
    int64_t at;
    int32_t offset; /* from `at` on */
};

struct tz {
    char *name;            /* owned */
    struct transition *at; /* owned; adjacent ones have different offsets */
    size_t n;
    int32_t first_offset; /* before the first transition */
    bool has_rule;
    struct tz_rule rule;
    int64_t rule_from; /* the rule applies from here on */
};

static struct tz utc_zone = { .name = (char[]){ "UTC" } };

/* ---- reading a file */

/* One header (its counts) and the data that follows it. */
struct block {
    size_t ut_flags, std_flags, leaps, times, types, chars;
    char version;
    str body;
};

static uint32_t read_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int64_t read_time(const char *p, size_t bytes)
{
    if (bytes == 4)
        return (int32_t)read_u32(p);
    return (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

/* Removes a block with times of `time_bytes` from `*rest`; false if it is incomplete. The counts
 * are below 2^32 and the element sizes below 16, so the sum fits in a size_t. */
static bool take_block(str *rest, size_t time_bytes, struct block *ret)
{
    if (rest->n < HEADER_BYTES || memcmp(rest->p, "TZif", 4) != 0)
        return false;
    struct block b = {
        .version = rest->p[4],
        .ut_flags = read_u32(rest->p + 20),
        .std_flags = read_u32(rest->p + 24),
        .leaps = read_u32(rest->p + 28),
        .times = read_u32(rest->p + 32),
        .types = read_u32(rest->p + 36),
        .chars = read_u32(rest->p + 40),
    };
    size_t bytes = b.times * (time_bytes + 1) + b.types * 6 + b.chars + b.leaps * (time_bytes + 4) +
                   b.std_flags + b.ut_flags;
    if (rest->n - HEADER_BYTES < bytes)
        return false;
    b.body = str_upto(str_from(*rest, HEADER_BYTES), bytes);
    *rest = str_from(*rest, HEADER_BYTES + bytes);
    *ret = b;
    return true;
}

static bool read_offsets(const struct block *b, size_t time_bytes, int32_t offsets[TYPES_MAX])
{
    const char *types = b->body.p + b->times * (time_bytes + 1);
    for (size_t i = 0; i < b->types; i++) {
        offsets[i] = (int32_t)read_u32(types + i * 6);
        if (offsets[i] <= -TZ_OFFSET_LIMIT || offsets[i] >= TZ_OFFSET_LIMIT)
            return false;
    }
    return true;
}

/* Fills the transitions of a zone; returns what is wrong with the file, or NULL. */
static const char *read_block(struct tz *z, const struct block *b, size_t time_bytes)
{
    int32_t offsets[TYPES_MAX];
    if (b->types == 0 || b->types > TYPES_MAX)
        return "has no local time type, or too many";
    if (b->leaps)
        return "counts leap seconds, which Kubernetes does not support";
    if (!read_offsets(b, time_bytes, offsets))
        return "has an offset of more than a day";
    const char *indexes = b->body.p + b->times * time_bytes;
    z->first_offset = offsets[0];
    z->rule_from = INT64_MIN;
    z->at = b->times ? mem_zero(b->times, sizeof(*z->at)) : NULL;
    int32_t before = z->first_offset;
    for (size_t i = 0; i < b->times; i++) {
        int64_t at = read_time(b->body.p + i * time_bytes, time_bytes);
        size_t type = (unsigned char)indexes[i];
        if (type >= b->types)
            return "refers to a local time type that it does not define";
        if (i > 0 && at <= z->rule_from)
            return "has transitions out of order";
        z->rule_from = at;
        if (offsets[type] != before)
            z->at[z->n++] = (struct transition){ at, before = offsets[type] };
    }
    return NULL;
}

/* The footer: a newline, the rule (may be empty), a newline. Returns what is wrong with it, or
 * NULL. */
static const char *read_footer(struct tz *z, str rest)
{
    if (rest.n < 2 || rest.p[0] != '\n')
        return "does not end with its rule";
    rest = str_from(rest, 1);
    size_t end = str_find_char(rest, '\n');
    if (end == SIZE_MAX)
        return "does not end with its rule";
    z->has_rule = end > 0;
    if (z->has_rule && tz_rule_parse(str_upto(rest, end), &z->rule))
        return "ends with an invalid rule";
    if (z->has_rule && z->n && z->at[z->n - 1].at == z->rule_from)
        z->n--; /* the rule takes precedence, even if a broken file contradicts itself */
    return NULL;
}

/* A file of version 1 is one block; later versions repeat it with 64-bit times and add the
 * footer. */
static const char *read_bytes(struct tz *z, str bytes)
{
    struct block block;
    str rest = bytes;
    if (!take_block(&rest, 4, &block))
        return "is not a compiled time zone";
    if (block.version == '\0')
        return read_block(z, &block, 4);
    if (!take_block(&rest, 8, &block))
        return "is truncated";
    const char *problem = read_block(z, &block, 8);
    return problem ? problem : read_footer(z, rest);
}

int tz_parse(str name, str bytes, struct tz **ret, err_t *e)
{
    struct tz *z = mem_zero(1, sizeof(*z));
    z->name = mem_dup(name.p, name.n);
    const char *problem = read_bytes(z, bytes);
    if (problem) {
        tz_free(z);
        return err_set(e, EINVAL, "time zone \"" STR_FMT "\": the file %s", STR_ARG(name), problem);
    }
    *ret = z;
    return 0;
}

void tz_free(struct tz *z)
{
    if (!z)
        return;
    free(z->name);
    free(z->at);
    free(z);
}

/* ---- finding a file */

/* Letters, digits, "_", "+", "-" and "." in segments that are not "." or "..": such a name cannot
 * leave the zoneinfo directory. Names come from users. */
static bool is_zone_name(str name)
{
    if (name.n == 0 || name.n > NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-./",
                    name.p[i]) ||
            !name.p[i])
            return false;
    str rest = name, part;
    while (str_cut(&rest, '/', &part))
        if (part.n == 0 || str_eq(part, S(".")) || str_eq(part, S("..")))
            return false;
    return true;
}

/* Reads and parses one file; -ENOENT makes the caller try the next directory. */
static int read_zone_file(const char *path, str name, struct tz **ret, err_t *e)
{
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) /* before opening: a named pipe would block */
        return err_set(e, ENOENT,
                       "time zone \"" STR_FMT
                       "\" not found on this system; check the name or install tzdata",
                       STR_ARG(name));
    auto_buf struct buf bytes = { 0 };
    struct tz *z;
    int r = file_read(path, FILE_BYTES_MAX, &bytes, e);
    if (r)
        return err_wrap(e, "time zone \"" STR_FMT "\"", STR_ARG(name));
    r = tz_parse(name, buf_str(&bytes), &z, e);
    if (r)
        return r;
    *ret = z;
    return 0;
}

/* Searches $ZONEINFO and the directories that Go's time package searches, and $TZDIR as glibc
 * does. */
static int load_zone(str name, struct tz **ret, err_t *e)
{
    const char *folders[] = { getenv("ZONEINFO"),    getenv("TZDIR"),
                              "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo",
                              "/usr/lib/locale/TZ",  "/etc/zoneinfo" };
    if (!is_zone_name(name))
        return err_set(e, EINVAL,
                       "time zone \"" STR_FMT "\" is not a valid name such as Europe/Berlin",
                       STR_ARG(name));
    int r = -ENOENT;
    for (size_t i = 0; i < countof(folders) && r == -ENOENT; i++) {
        char path[4096];
        if (!folders[i] || !folders[i][0])
            continue;
        int n = snprintf(path, sizeof(path), "%s/" STR_FMT, folders[i], STR_ARG(name));
        if (n > 0 && (size_t)n < sizeof(path))
            r = read_zone_file(path, name, ret, e);
    }
    return r;
}

/* ---- the cache */

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map cache; /* name → zone; the zone owns the name */

const struct tz *tz_utc(void)
{
    return &utc_zone;
}

str tz_name(const struct tz *z)
{
    return str_c(z->name);
}

int tz_get(str name, const struct tz **ret, err_t *e)
{
    if (str_eq(name, S("UTC")) || str_eq(name, S("Etc/UTC"))) {
        *ret = &utc_zone;
        return 0;
    }
    int r = 0;
    pthread_mutex_lock(&cache_lock);
    struct tz *z = map_get(&cache, name);
    if (!z && !(r = load_zone(name, &z, e)))
        map_put(&cache, tz_name(z), z);
    pthread_mutex_unlock(&cache_lock);
    if (!r)
        *ret = z;
    return r;
}

/* ---- queries */

static int64_t clamp(int64_t seconds, int64_t limit)
{
    return MIN(MAX(seconds, -limit), limit);
}

/* The number of transitions at or before `utc`. */
static size_t count_transitions(const struct tz *z, int64_t utc)
{
    size_t low = 0, high = z->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (z->at[middle].at <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct tz_span listed_span(const struct tz *z, int64_t utc)
{
    size_t i = count_transitions(z, utc);
    return (struct tz_span){
        .from = i ? z->at[i - 1].at : INT64_MIN,
        .until = i < z->n ? z->at[i].at : INT64_MAX,
        .offset = i ? z->at[i - 1].offset : z->first_offset,
    };
}

/* The span at an instant, joined across `rule_from` if the offset does not change there: the last
 * listed span and the first span of the rule are computed separately. */
static struct tz_span join_span(const struct tz *z, int64_t utc)
{
    if (!z->has_rule)
        return listed_span(z, utc);
    int64_t seam = clamp(z->rule_from, HORIZON);
    if (utc >= seam) {
        struct tz_span span = tz_rule_span(&z->rule, utc);
        if (span.from >= seam || z->rule_from == INT64_MIN)
            return span;
        struct tz_span before = listed_span(z, seam - 1);
        span.from = before.offset == span.offset ? before.from : seam;
        return span;
    }
    struct tz_span span = listed_span(z, utc);
    if (span.until > seam) {
        struct tz_span after = tz_rule_span(&z->rule, seam);
        span.until = after.offset == span.offset ? after.until : seam;
    }
    return span;
}

/* A boundary beyond the horizon is reported as unbounded. */
struct tz_span tz_span_at(const struct tz *z, int64_t utc)
{
    struct tz_span span = join_span(z, clamp(utc, HORIZON));
    span.from = span.from <= -HORIZON ? INT64_MIN : span.from;
    span.until = span.until > HORIZON ? INT64_MAX : span.until;
    return span;
}

int32_t tz_offset_at(const struct tz *z, int64_t utc)
{
    return tz_span_at(z, utc).offset;
}

bool tz_next_transition(const struct tz *z, int64_t utc, int64_t *ret_utc)
{
    struct tz_span span = tz_span_at(z, utc);
    if (span.until == INT64_MAX)
        return false;
    *ret_utc = span.until;
    return true;
}

/* Every instant with that local time is at most the largest offset away from it. Visits the spans
 * in that range in order: each contains the local time at most once, and a local time in none of
 * them was skipped between two. */
struct tz_local tz_resolve(const struct tz *z, int64_t local)
{
    local = clamp(local, HORIZON / 2); /* the loop must not reach the horizon */
    struct tz_local found = { .kind = TZ_GAP, .first = local, .last = local, .transition = local };
    struct tz_span span = tz_span_at(z, local - TZ_OFFSET_LIMIT);
    for (;;) {
        int64_t utc = local - span.offset;
        if (utc >= span.from && utc < span.until) {
            if (found.kind == TZ_GAP)
                found = (struct tz_local){ TZ_UNIQUE, utc, utc, utc };
            else
                found = (struct tz_local){ TZ_OVERLAP, found.first, utc, span.from };
        }
        if (span.until > local + TZ_OFFSET_LIMIT)
            return found;
        struct tz_span next = tz_span_at(z, span.until);
        if (found.kind == TZ_GAP && span.until + span.offset <= local &&
            local < span.until + next.offset)
            found.first = found.last = found.transition = span.until;
        span = next;
    }
}
