/* Reading one manifest: fields with their types checked, and a sentence for each problem. Used only by the files that
 * read a schedule's spec (schedule_spec.c, schedule_trigger_spec.c). No function fails: a field that is missing or wrong
 * has its default. */
#ifndef FLYBALL_SCHEDULE_READER_SPEC_H
#define FLYBALL_SCHEDULE_READER_SPEC_H

#include "schedule_spec.h"

struct schedule_reader {
    struct arena *a;
    struct schedule_spec *spec;
    struct schedule_defaults defaults;
    size_t problems_cap;
    int trigger; /* index of the one being read; -1: outside the list */
};

struct schedule_range {
    int32_t least, most, otherwise;
};

/* Appends a problem, prefixed with the trigger that is being read. */
void schedule_add_problem(struct schedule_reader *r, enum schedule_problem_kind kind,
                          const char *format, ...) PRINTF_LIKE(3, 4);
/* True if the value has this type. Any other type except null is a problem; unset and null are not. */
bool schedule_check_type(struct schedule_reader *r, const struct json *value, enum json_type type,
                         const char *field, const char *wanted);

str schedule_read_text(struct schedule_reader *r, const struct json *object, const char *field);
bool schedule_read_bool(struct schedule_reader *r, const struct json *object, const char *field);
int64_t schedule_read_int(struct schedule_reader *r, const struct json *object, const char *field,
                          int64_t otherwise);
/* An integer in the range; its default if unset or, with a problem, if outside. */
int32_t schedule_read_in_range(struct schedule_reader *r, const struct json *object,
                               const char *field, struct schedule_range range);
/* The index of one of up to three words; the first is the default, also for an unknown word. */
int schedule_read_choice(struct schedule_reader *r, const struct json *object, const char *field,
                         const char *const words[3]);
/* Reads a config and reports values that no HPA accepts. */
struct schedule_config schedule_read_config(struct schedule_reader *r, const struct json *object,
                                            const char *field);
/* The zone of this name; UTC if it is empty or, with a problem, unknown. */
const struct tz *schedule_read_zone(struct schedule_reader *r, str name);

/* schedule_trigger_spec.c: reads every field of a trigger, even if an earlier one is invalid: all problems are
 * reported at once. */
void schedule_read_trigger(struct schedule_reader *r, const struct json *object,
                           struct schedule_trigger *t);

#endif
