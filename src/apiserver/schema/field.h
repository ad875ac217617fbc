/* Field errors: what is wrong with an object, one entry per field, as the causes of a Status.
 *
 * A path is a chain on the stack of the function that walks an object, from the leaf up to the root. It is
 * written out ("spec.ports[0].name", "data[some key]") only when an error is added, so validating a
 * valid object allocates nothing:
 *
 *     struct field_path spec = { NULL, .key = S("spec") }, ports = { &spec, .key = S("ports") };
 *     field_invalid(errors, &(struct field_path){ &ports, .index = i, .how = FIELD_INDEX }, value,
 *                   "must be between 1 and 65535, inclusive");
 *
 * Everything lives in the arena of the list. */
#ifndef FLYBALL_APISERVER_FIELD_H
#define FLYBALL_APISERVER_FIELD_H

#include "../../json/json.h"

struct field_path {
    const struct field_path *up; /* the parent; NULL: a field of the object itself */
    str key;
    size_t index;
    enum { FIELD_NAME, FIELD_INDEX, FIELD_KEY } how; /* .key   [index]   [key] */
};

/* The path of a child: a field, a list item, a map entry. It lives until the end of the block. */
#define AT(up, name) (&(struct field_path){ (up), .key = S(name) })
#define AT_INDEX(up, i) (&(struct field_path){ (up), .index = (i), .how = FIELD_INDEX })
#define AT_KEY(up, name) (&(struct field_path){ (up), .key = (name), .how = FIELD_KEY })

/* Status.details.causes[].reason, without "FieldValue". */
enum field_reason {
    FIELD_NOT_FOUND,     /* FieldValueNotFound: refers to something that does not exist */
    FIELD_REQUIRED,      /* FieldValueRequired */
    FIELD_DUPLICATE,     /* FieldValueDuplicate */
    FIELD_INVALID,       /* FieldValueInvalid */
    FIELD_NOT_SUPPORTED, /* FieldValueNotSupported: not one of the enum */
    FIELD_FORBIDDEN,     /* FieldValueForbidden */
    FIELD_TOO_LONG,      /* FieldValueTooLong */
    FIELD_TOO_MANY,      /* FieldValueTooMany */
    FIELD_TYPE_INVALID,  /* FieldValueTypeInvalid */
    FIELD_INTERNAL,      /* InternalError */
    FIELD_REASON_N,
};

struct field_error {
    str path;
    enum field_reason reason;
    str message; /* "Invalid value: 70000: must be between 1 and 65535" */
};

/* A hostile megabyte can be wrong in a hundred thousand places, under very long keys. All errors are
 * counted; those beyond this many bytes of text are not kept. */
enum { FIELD_ERRORS_BYTES = 1024 * 1024 };

struct field_errors {
    struct arena *arena; /* set by the caller; the list and its texts live here */
    struct field_error *at;
    size_t n;           /* errors found */
    size_t n_kept, cap; /* entries in `at`; fewer than `n` only beyond FIELD_ERRORS_BYTES */
    size_t bytes;       /* of the texts in `at` */
    uint64_t steps;     /* regular expression steps spent so far (schema_validate.c) */
};

const char *field_reason_word(enum field_reason reason);
str field_path_text(struct arena *a, const struct field_path *path);

void field_add(struct field_errors *errors,
               struct field_error error); /* its texts must outlive the list */
void field_add_all(struct field_errors *to, const struct field_errors *from);

void field_required(struct field_errors *errors, const struct field_path *at, const char *detail);
void field_invalid(struct field_errors *errors, const struct field_path *at,
                   const struct json *value, const char *format, ...) PRINTF_LIKE(4, 5);
void field_type_invalid(struct field_errors *errors, const struct field_path *at,
                        const struct json *value, const char *format, ...) PRINTF_LIKE(4, 5);
void field_forbidden(struct field_errors *errors, const struct field_path *at, const char *format,
                     ...) PRINTF_LIKE(3, 4);
void field_duplicate(struct field_errors *errors, const struct field_path *at,
                     const struct json *value);
void field_not_found(struct field_errors *errors, const struct field_path *at,
                     const struct json *value);
void field_too_long(struct field_errors *errors, const struct field_path *at, int64_t most);
void field_too_many(struct field_errors *errors, const struct field_path *at, int64_t have,
                    int64_t most);
/* `allowed` ends in NULL. */
void field_not_supported(struct field_errors *errors, const struct field_path *at,
                         const struct json *value, const char *const *allowed);

/* Status.details.causes: [{"reason", "message", "field"}]. */
struct json *field_causes(struct arena *a, const struct field_errors *errors);

/* The text after "is invalid: " in the message of a Status: one error as it is, several in brackets. */
str field_summary(struct arena *a, const struct field_errors *errors);

#endif
