/* Natural numbers of up to 288 decimal digits, without allocation: the exact arithmetic behind
 * quantities. The base is 10^9, because quantities need only decimal shifts, powers of two and
 * printing. An operation whose result does not fit returns false and leaves the number
 * undefined. */
#ifndef FLYBALL_NATURAL_H
#define FLYBALL_NATURAL_H

#include "str.h"

enum { NATURAL_LIMBS = 32, NATURAL_DIGITS = NATURAL_LIMBS * 9 };

struct natural {
    uint32_t n;                   /* limbs in use; 0 is zero */
    uint32_t limb[NATURAL_LIMBS]; /* least first, each below 10^9; the last in use is not 0 */
};

struct natural natural_of(uint64_t value);
/* Only digits, with any number of leading zeros. */
bool natural_from_digits(str digits, struct natural *ret);

bool natural_mul(struct natural *x, uint32_t factor);
bool natural_mul_power10(struct natural *x, size_t exponent);
uint32_t natural_div(struct natural *x, uint32_t divisor); /* returns the remainder */
bool natural_add(struct natural *x, const struct natural *y);
void natural_sub(struct natural *x, const struct natural *y); /* y must not be larger */
int natural_cmp(const struct natural *x, const struct natural *y);

uint64_t natural_low(const struct natural *x);               /* modulo 2^64 */
bool natural_to_u64(const struct natural *x, uint64_t *ret); /* false: too large */
size_t natural_text(const struct natural *x, char out[static NATURAL_DIGITS + 1]);
size_t natural_digits(const struct natural *x); /* 0 for zero */

#endif
