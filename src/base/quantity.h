/* Kubernetes quantities ("500m", "1.5Gi", "2e3"): exact, never a float, with the suffix family kept.
 *
 * Accepted is what the API server accepts, and canonical form is what it answers with: as large a
 * suffix as leaves a whole number ("1000m" is "1", "1.5Gi" is "1536Mi", "1e3" stays). As there, what is
 * finer than a nano is rounded away from zero, and a binary quantity is cut at 2^63-1.
 *
 * Most callers want one number:  quantity_parse_milli(text, &milli, e). */
#ifndef FLYBALL_QUANTITY_H
#define FLYBALL_QUANTITY_H

#include "natural.h"

enum {
    QUANTITY_BYTES_MAX = 255,                /* of a text that is read, */
    QUANTITY_DIGITS_MAX = 128,               /* and of its digits, without zeros at the ends */
    QUANTITY_TEXT_MAX = NATURAL_DIGITS + 24, /* room for any printed one and its NUL */
};

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
    struct natural digits; /* the value is ± digits × 10^exponent */
    int32_t exponent;
    bool negative;
    enum quantity_format format;
    bool wide; /* Go keeps it as a big decimal; matters to quantity_go_scaled only */
    bool
        as_written; /* the API server gives the text back as it came, though it may not be canonical */
};

int quantity_parse(str text, struct quantity *ret, err_t *e);
struct quantity quantity_of(int64_t value, int32_t exponent, enum quantity_format format);

/* The number in units of 10^exponent (-3: milli), rounded away from zero; -ERANGE outside 64 bits. */
int quantity_scaled(const struct quantity *q, int32_t exponent, int64_t *ret);
int quantity_parse_milli(str text, int64_t *ret, err_t *e);
int quantity_parse_value(str text, int64_t *ret, err_t *e); /* whole units: bytes, replicas */

int quantity_cmp(const struct quantity *a, const struct quantity *b);
bool quantity_is_zero(const struct quantity *q);
/* The sum takes the format of the first unless that is zero. -ERANGE beyond 288 digits. */
int quantity_add(struct quantity *sum, const struct quantity *more);
int quantity_sub(struct quantity *sum, const struct quantity *less);

str quantity_text(const struct quantity *q, char out[static QUANTITY_TEXT_MAX]); /* canonical */
/* What the API server stores for a text: canonical, or as written where it leaves it so. */
int quantity_canonical(str text, char out[static QUANTITY_TEXT_MAX], str *ret, err_t *e);

/* What Quantity.ScaledValue of Go answers, overflow and negative rounding included: only to
 * compare with it. */
int64_t quantity_go_scaled(const struct quantity *q, int32_t exponent);

#endif
