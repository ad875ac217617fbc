/* The lexical forms of a schedule: times of day, dates and weekday lists. They are read exactly as Go's
 * time layouts and SmartHPA's weekday codes are, because existing manifests rely on it.
 * Returns 0 or -EINVAL without a message: the caller knows which field of which trigger it reads. */
#ifndef FLYBALL_SCHEDULE_LEX_H
#define FLYBALL_SCHEDULE_LEX_H

#include "../base/str.h"

/* "9:05:00", "09:05:00.25": an hour of one or two digits, two-digit minute and second, and a
 * fraction that is accepted and ignored. */
int schedule_lex_time(str text, int32_t *ret_second_of_day);

/* The same, and also "09:05" without seconds. */
int schedule_lex_clock(str text, int32_t *ret_second_of_day);

/* "2026-12-31": a real date of the years 1 to 9999, as days since 1970-01-01. */
int schedule_lex_date(str text, int32_t *ret_day);

/* One weekday word ("M", "tue", "Saturday") as 0 (Sunday) to 6. */
int schedule_lex_weekday(str word, int *ret_weekday);

/* Removes the next word of a weekday list ("M, TU,W") from `*rest`, blanks trimmed; false at the end.
 * An empty list has no words. */
bool schedule_lex_next_word(str *rest, str *ret_word);

#endif
