/* IANA time zones, read from the system's compiled files (TZif, RFC 9636). The time zone of the
 * process is never used or changed, any number of zones can be in use, and all functions are safe
 * to call from any thread.
 *
 * An offset is local time minus UTC in seconds: east is positive. "Local seconds" are the local
 * time counted from 1970-01-01T00:00:00 as if it were UTC.
 *
 *     const struct tz *berlin;
 *     if (tz_get(S("Europe/Berlin"), &berlin, e)) ...
 *     struct tz_local at = tz_resolve(berlin, civil_to_days(date) * CIVIL_DAY_S + 9 * 3600);
 */
#ifndef FLYBALL_TZ_H
#define FLYBALL_TZ_H

#include "str.h"

struct tz; /* immutable */

/* The zone of that name from the process-wide cache. It is never freed, and the same name returns
 * the same pointer: an update of tzdata takes effect at the next start. UTC needs no file. -ENOENT: no such zone. */
int tz_get(str name, const struct tz **ret, err_t *e);
const struct tz *tz_utc(void);
str tz_name(const struct tz *zone);

/* A period with one offset: [from, until). INT64_MIN and INT64_MAX mean unbounded. Adjacent spans
 * have different offsets, so `until` is the next transition. */
struct tz_span {
    int64_t from, until;
    int32_t offset;
};

struct tz_span tz_span_at(const struct tz *zone, int64_t utc);
int32_t tz_offset_at(const struct tz *zone, int64_t utc);
bool tz_next_transition(const struct tz *zone, int64_t utc, int64_t *ret_utc); /* after `utc` */

enum tz_kind {
    TZ_UNIQUE,  /* the local time occurs once */
    TZ_GAP,     /* it is skipped when the clock goes forward */
    TZ_OVERLAP, /* it occurs twice, because the clock goes back */
};

struct tz_local {
    enum tz_kind kind;
    int64_t first, last; /* UTC instants with that local time; in a gap both are the transition */
    int64_t transition;  /* when the clock goes forward or back; unique: same as `first` */
};

struct tz_local tz_resolve(const struct tz *zone, int64_t local_seconds);

/* Parses the bytes of one file (for tests and fuzzing); tz_free the result. */
int tz_parse(str name, str bytes, struct tz **ret, err_t *e);
void tz_free(struct tz *zone);

#endif
