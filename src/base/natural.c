/* Natural numbers: see natural.h.
 *
 * A number is limbs of nine decimal digits, least significant first; the highest limb in use is
 * never 0, so that numbers compare by length first. With base 10^9 a decimal shift is mostly a
 * memmove and printing is one snprintf per limb; with base 2^32 each would be a long division. Two
 * limbs and a carry fit in 64 bits, and two limbs added fit in 32. The size is fixed, so every
 * function that can grow a number returns false when it is full. */
#include "natural.h"

#include <stdio.h>

enum { LIMB_DIGITS = 9 };
static const uint32_t LIMB = 1000000000;

static void trim_zeros(struct natural *x)
{
    while (x->n && x->limb[x->n - 1] == 0)
        x->n--;
}

static bool push_limb(struct natural *x, uint32_t limb)
{
    if (x->n == NATURAL_LIMBS)
        return false;
    x->limb[x->n++] = limb;
    return true;
}

struct natural natural_of(uint64_t value)
{
    struct natural x = { 0 };
    for (; value; value /= LIMB)
        x.limb[x.n++] = (uint32_t)(value % LIMB);
    return x;
}

/* Nine digits at a time from the end, so that each group is one limb. */
bool natural_from_digits(str digits, struct natural *ret)
{
    while (digits.n && digits.p[0] == '0')
        digits = str_from(digits, 1);
    if (digits.n > NATURAL_DIGITS)
        return false;
    struct natural x = { 0 };
    while (digits.n) {
        size_t part = MIN(digits.n, (size_t)LIMB_DIGITS);
        uint32_t limb = 0;
        for (size_t i = digits.n - part; i < digits.n; i++)
            limb = limb * 10 + (uint32_t)(digits.p[i] - '0');
        x.limb[x.n++] = limb;
        digits.n -= part;
    }
    *ret = x;
    return true;
}

bool natural_mul(struct natural *x, uint32_t factor)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        carry += (uint64_t)x->limb[i] * factor;
        x->limb[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    for (; carry; carry /= LIMB)
        if (!push_limb(x, (uint32_t)(carry % LIMB)))
            return false;
    trim_zeros(x); /* a factor of 0 */
    return true;
}

/* Whole limbs move; the rest, a factor below 10^9, is a multiplication. */
bool natural_mul_power10(struct natural *x, size_t exponent)
{
    if (x->n == 0)
        return true;
    size_t limbs = exponent / LIMB_DIGITS;
    if (limbs > NATURAL_LIMBS - x->n)
        return false;
    memmove(x->limb + limbs, x->limb, x->n * sizeof(x->limb[0]));
    memset(x->limb, 0, limbs * sizeof(x->limb[0]));
    x->n += (uint32_t)limbs;
    uint32_t factor = 1;
    for (exponent %= LIMB_DIGITS; exponent; exponent--)
        factor *= 10;
    return natural_mul(x, factor);
}

uint32_t natural_div(struct natural *x, uint32_t divisor)
{
    uint64_t rest = 0;
    for (uint32_t i = x->n; i-- > 0;) {
        rest = rest * LIMB + x->limb[i];
        x->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    trim_zeros(x);
    return (uint32_t)rest;
}

bool natural_add(struct natural *x, const struct natural *y)
{
    uint32_t carry = 0;
    for (uint32_t i = 0; i < y->n || carry; i++) {
        if (i == x->n && !push_limb(x, 0))
            return false;
        x->limb[i] += carry + (i < y->n ? y->limb[i] : 0);
        carry = x->limb[i] >= LIMB;
        x->limb[i] -= carry * LIMB;
    }
    return true;
}

void natural_sub(struct natural *x, const struct natural *y)
{
    uint32_t borrow = 0;
    for (uint32_t i = 0; i < y->n || borrow; i++) {
        uint32_t less = borrow + (i < y->n ? y->limb[i] : 0);
        borrow = x->limb[i] < less;
        x->limb[i] += borrow * LIMB - less;
    }
    trim_zeros(x);
}

int natural_cmp(const struct natural *x, const struct natural *y)
{
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (uint32_t i = x->n; i-- > 0;)
        if (x->limb[i] != y->limb[i])
            return x->limb[i] < y->limb[i] ? -1 : 1;
    return 0;
}

/* Unsigned arithmetic wraps, which is the modulus. */
uint64_t natural_low(const struct natural *x)
{
    uint64_t low = 0;
    for (uint32_t i = x->n; i-- > 0;)
        low = low * LIMB + x->limb[i];
    return low;
}

bool natural_to_u64(const struct natural *x, uint64_t *ret)
{
    struct natural low = natural_of(natural_low(x));
    if (natural_cmp(x, &low))
        return false;
    *ret = natural_low(x);
    return true;
}

size_t natural_text(const struct natural *x, char out[static NATURAL_DIGITS + 1])
{
    if (x->n == 0)
        return (size_t)snprintf(out, NATURAL_DIGITS + 1, "0");
    size_t n = (size_t)snprintf(out, NATURAL_DIGITS + 1, "%u", x->limb[x->n - 1]);
    for (uint32_t i = x->n - 1; i-- > 0;)
        n += (size_t)snprintf(out + n, NATURAL_DIGITS + 1 - n, "%09u", x->limb[i]);
    return n;
}

size_t natural_digits(const struct natural *x)
{
    if (x->n == 0)
        return 0;
    size_t n = (x->n - 1) * (size_t)LIMB_DIGITS;
    for (uint32_t top = x->limb[x->n - 1]; top; top /= 10)
        n++;
    return n;
}
