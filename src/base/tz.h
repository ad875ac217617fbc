/* IANA time zones, read from the system's compiled files (TZif, RFC 9636). The zone of the process is
 * never used or changed, any number of zones can be in use, and any thread may ask.
 *
 * An offset is local time minus UTC in seconds: east is positive. "Local seconds" are the wall
 * clock's reading counted from 1970-01-01T00:00:00 as if it were UTC.
 *
 *     const struct tz *berlin;
 *     if (tz_get(S("Europe/Berlin"), &berlin, e)) ...
 *     struct tz_local at = tz_resolve(berlin, civil_to_days(date) * CIVIL_DAY_S + 9 * 3600);
 */
#ifndef FLYBALL_TZ_H
#define FLYBALL_TZ_H

#include "str.h"

struct tz; /* immutable */

/* The zone of that name from the process's cache; it stays valid for ever, and the same name gives
 * the same pointer unless tz_refresh saw a newer file. UTC needs no file. -ENOENT: no such zone. */
int tz_get(str name, const struct tz **ret, err_t *e);
const struct tz *tz_utc(void);
str tz_name(const struct tz *zone);

/* Forgets zones whose file has changed since (a tzdata update), so that the next tz_get reads them
 * anew. What was handed out stays valid. */
void tz_refresh(void);

/* A stretch of time with one offset: [from, until). INT64_MIN, INT64_MAX: without end. Neighbours
 * differ, so `until` is the next transition. */
struct tz_span {
    int64_t from, until;
    int32_t offset;
};

struct tz_span tz_span_at(const struct tz *zone, int64_t utc);
int32_t tz_offset_at(const struct tz *zone, int64_t utc);
bool tz_next_transition(const struct tz *zone, int64_t utc, int64_t *ret_utc); /* after `utc` */

enum tz_kind {
    TZ_UNIQUE,  /* the reading occurs once */
    TZ_GAP,     /* the clock jumps over it */
    TZ_OVERLAP, /* the clock shows it twice */
};

struct tz_local {
    enum tz_kind kind;
    int64_t first, last; /* instants with that reading; both the jump in a gap */
    int64_t transition;  /* gap: the jump. Overlap: when the clock goes back. Unique: as `first` */
};

struct tz_local tz_resolve(const struct tz *zone, int64_t local_seconds);

/* Reads one file's bytes (for tests and fuzzing); tz_free the result. */
int tz_parse(str name, str bytes, struct tz **ret, err_t *e);
void tz_free(struct tz *zone);

#endif
