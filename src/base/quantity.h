/* Kubernetes quantities ("500m", "1.5Gi", "2e3"): exact, never a float, and the kind of suffix is
 * kept.
 *
 * Accepts what kube-apiserver accepts, and prints the same canonical form: the largest suffix that
 * leaves a whole number ("1000m" is "1", "1.5Gi" is "1536Mi", "1e3" stays). As there, digits below
 * a nano are rounded away from zero, and a binary quantity is capped at 2^63-1.
 *
 * Most callers want one number:  quantity_parse_milli(text, &milli, e). */
#ifndef FLYBALL_QUANTITY_H
#define FLYBALL_QUANTITY_H

#include "natural.h"

enum {
    QUANTITY_BYTES_MAX = 255,  /* of a text to parse, */
    QUANTITY_DIGITS_MAX = 128, /* and of its digits, without leading and trailing zeros */
    QUANTITY_TEXT_MAX = NATURAL_DIGITS + 24, /* room for any printed quantity and its NUL */
};

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
    struct natural digits; /* the value is ± digits × 10^exponent */
    int32_t exponent;
    bool negative;
    enum quantity_format format;
    bool wide; /* Go stores it as a big decimal; matters to quantity_go_scaled only */
    bool
        as_written; /* kube-apiserver returns the text unchanged, although it may not be canonical */
};

int quantity_parse(str text, struct quantity *ret, err_t *e);
struct quantity quantity_of(int64_t value, int32_t exponent, enum quantity_format format);

/* The number in units of 10^exponent (-3: milli), rounded away from zero; -ERANGE outside 64
 * bits. */
int quantity_scaled(const struct quantity *q, int32_t exponent, int64_t *ret);
int quantity_parse_milli(str text, int64_t *ret, err_t *e);
int quantity_parse_value(str text, int64_t *ret, err_t *e); /* whole units: bytes, replicas */

int quantity_cmp(const struct quantity *a, const struct quantity *b);
bool quantity_is_zero(const struct quantity *q);
/* The sum keeps the format of the first operand unless that is zero. -ERANGE: more than 288
 * digits. */
int quantity_add(struct quantity *sum, const struct quantity *more);
int quantity_sub(struct quantity *sum, const struct quantity *less);

str quantity_text(const struct quantity *q, char out[static QUANTITY_TEXT_MAX]); /* canonical */
/* What kube-apiserver stores for a text: the canonical form, or the text as written where it keeps
 * that. */
int quantity_canonical(str text, char out[static QUANTITY_TEXT_MAX], str *ret, err_t *e);

/* What Go's Quantity.ScaledValue returns, including its overflow and its rounding of negative
 * values. Only for comparison with Go. */
int64_t quantity_go_scaled(const struct quantity *q, int32_t exponent);

#endif
