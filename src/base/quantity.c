/* Quantities: see quantity.h.
 *
 * A value is a sign, a natural number and a power of ten. Parsing splits the text, joins the digits
 * on both sides of the point, and moves the point and the suffix into the exponent; binary suffixes
 * multiply by 1024 instead. Printing goes the other way: divide by 10 or 1024 as long as the result
 * stays whole, then look up the suffix.
 *
 *     "1.5Gi"  ->  whole 1, fraction 5, Gi  ->  15 x 10^-1 x 1024^3  ->  16106127360 x 10^-1  ->  "1536Mi"
 *
 * Go's package stores most values as a 64-bit number with a scale (its fast path) and the rest as a
 * big decimal. The difference is visible to clients: in whether a text is returned as written, and
 * in what the accessors return on overflow. Here all values have one representation; `wide` and
 * `as_written` only record what Go would have done.
 *
 * A quantity is never a double: 0.1 has no exact double, and sums of requests must not depend on
 * their order. */
#include "quantity.h"

#include <stdio.h>

enum { NANO = -9, SMALL_DIGITS = 18, TWO_TO_10 = 1024 };

static const struct suffix {
    const char *text;
    enum quantity_format format;
    int32_t exponent; /* of 10; of 1024 for binary ones */
} suffixes[] = {
    { "n", QUANTITY_DECIMAL, -9 }, { "u", QUANTITY_DECIMAL, -6 }, { "m", QUANTITY_DECIMAL, -3 },
    { "", QUANTITY_DECIMAL, 0 },   { "k", QUANTITY_DECIMAL, 3 },  { "M", QUANTITY_DECIMAL, 6 },
    { "G", QUANTITY_DECIMAL, 9 },  { "T", QUANTITY_DECIMAL, 12 }, { "P", QUANTITY_DECIMAL, 15 },
    { "E", QUANTITY_DECIMAL, 18 }, { "", QUANTITY_BINARY, 0 },    { "Ki", QUANTITY_BINARY, 1 },
    { "Mi", QUANTITY_BINARY, 2 },  { "Gi", QUANTITY_BINARY, 3 },  { "Ti", QUANTITY_BINARY, 4 },
    { "Pi", QUANTITY_BINARY, 5 },  { "Ei", QUANTITY_BINARY, 6 },
};

/* ---- parse */

/* The pieces of a text; all borrow from it. */
struct parts {
    bool negative;
    str whole;    /* without leading zeros */
    str fraction; /* all its digits */
    bool empty;   /* no digit at all, not even a zero */
    str suffix;
};

/* Removes the longest prefix of characters from `set`. */
static str take_while(str *rest, const char *set)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] && strchr(set, rest->p[n]))
        n++;
    str taken = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    return taken;
}

static bool take_sign(str *rest)
{
    bool sign = rest->n && (rest->p[0] == '-' || rest->p[0] == '+');
    bool negative = sign && rest->p[0] == '-';
    *rest = str_from(*rest, sign);
    return negative;
}

/* Splits a text; false if it does not match the regular expression in quantity_parse(). Whether the
 * suffix exists is checked later, because Go reports the two errors differently. */
static bool split_text(str text, struct parts *ret)
{
    static const char digits[] = "0123456789";
    struct parts p = { 0 };
    str rest = text;
    p.negative = take_sign(&rest);
    str zeros = take_while(&rest, "0");
    p.whole = take_while(&rest, digits);
    if (rest.n && rest.p[0] == '.') {
        rest = str_from(rest, 1);
        p.fraction = take_while(&rest, digits);
    }
    p.empty = zeros.n + p.whole.n + p.fraction.n == 0;
    p.suffix = rest;
    take_while(&rest, "eEinumkKMGTP");
    take_sign(&rest);
    take_while(&rest, digits);
    *ret = p;
    return rest.n == 0;
}

/* A suffix of the table, or an exponent such as e3; "E" alone is exa, "E3" an exponent. */
static bool parse_suffix(str text, struct suffix *ret)
{
    for (size_t i = 0; i < countof(suffixes); i++)
        if (str_eqc(text, suffixes[i].text)) {
            *ret = suffixes[i];
            return true;
        }
    int64_t exponent;
    if (text.n < 2 || (text.p[0] != 'e' && text.p[0] != 'E') ||
        str_to_i64(str_from(text, 1), &exponent) || exponent < INT32_MIN / 2 ||
        exponent > INT32_MAX / 2)
        return false;
    *ret = (struct suffix){ "", QUANTITY_EXPONENT, (int32_t)exponent };
    return true;
}

/* Would Go's fast path accept it? */
static bool is_small(const struct parts *p, const struct suffix *s)
{
    size_t whole = MAX(p->whole.n, (size_t)1);
    if (s->format == QUANTITY_BINARY)
        return p->fraction.n == 0 && whole + 3 * (size_t)s->exponent <= 14;
    return whole + p->fraction.n <= SMALL_DIGITS && s->exponent - (int32_t)p->fraction.n >= NANO;
}

/* Would Go return the text as written? Its fast path caches the text if no digit could be
 * canonicalized away. */
static bool is_as_written(const struct parts *p, const struct suffix *s,
                          const struct natural *digits)
{
    if (s->format == QUANTITY_BINARY)
        return natural_low(digits) % 8 != 0;
    return (s->exponent - (int32_t)p->fraction.n) % 3 == 0 && natural_low(digits) % 1000 != 0 &&
           p->whole.n > 0;
}

/* Removes the digits below 10^exponent, rounding away from zero. True if nothing was lost. */
static bool round_away(struct quantity *q, int32_t exponent)
{
    bool exact = true;
    while (q->exponent < exponent && q->digits.n) {
        int32_t step = MIN(exponent - q->exponent, 9);
        uint32_t divisor = 1;
        for (int32_t i = 0; i < step; i++)
            divisor *= 10;
        exact = natural_div(&q->digits, divisor) == 0 && exact;
        q->exponent += step;
    }
    q->exponent = MAX(q->exponent, exponent);
    if (!exact) {
        struct natural one = natural_of(1);
        natural_add(&q->digits, &one); /* cannot fail: the division made room */
    }
    return exact;
}

/* Compares absolute values. Numbers of different order of magnitude differ without looking at
 * digits; those of the same order need to be shifted by at most as many digits as the longer one
 * has, so the shift always fits. */
static int cmp_size(const struct quantity *a, const struct quantity *b)
{
    if (!a->digits.n || !b->digits.n)
        return (a->digits.n > 0) - (b->digits.n > 0);
    int64_t order_a = (int64_t)natural_digits(&a->digits) + a->exponent;
    int64_t order_b = (int64_t)natural_digits(&b->digits) + b->exponent;
    if (order_a != order_b)
        return order_a < order_b ? -1 : 1;
    struct natural x = a->digits, y = b->digits;
    int32_t common = MIN(a->exponent, b->exponent);
    natural_mul_power10(&x, (size_t)(a->exponent - common));
    natural_mul_power10(&y, (size_t)(b->exponent - common));
    return natural_cmp(&x, &y);
}

/* What Go does to a big decimal after parsing: round to nanos, cap a binary quantity at 2^63-1, and
 * treat a binary quantity below 1 as decimal. */
static void limit_wide(struct quantity *q)
{
    struct quantity most = quantity_of(INT64_MAX, 0, QUANTITY_BINARY);
    struct quantity one = quantity_of(1, 0, QUANTITY_BINARY);
    round_away(q, NANO);
    if (q->format != QUANTITY_BINARY || q->digits.n == 0)
        return;
    if (cmp_size(q, &most) > 0) {
        q->digits = most.digits;
        q->exponent = 0;
    } else if (cmp_size(q, &one) < 0) {
        q->format = QUANTITY_DECIMAL;
    }
}

/* The number of digits without leading and trailing zeros, which the canonical form does not
 * keep. */
static size_t count_significant(str digits)
{
    while (digits.n && digits.p[0] == '0')
        digits = str_from(digits, 1);
    while (digits.n && digits.p[digits.n - 1] == '0')
        digits.n--;
    return digits.n;
}

static int refuse_text(str text, const char *why, err_t *e)
{
    return err_set(e, EINVAL, "quantity \"" STR_FMT "\": %s", STR_ARG(str_upto(text, 200)), why);
}

/* The regular expression and "unable to parse" are the texts of Go's package (quoted: apimachinery).
 * The limits on characters and digits bound the work that one text can cause. */
int quantity_parse(str text, struct quantity *ret, err_t *e)
{
    struct parts p;
    struct suffix s;
    if (text.n > QUANTITY_BYTES_MAX)
        return refuse_text(text, "a quantity has at most 255 characters", e);
    if (text.n == 0 || !split_text(text, &p))
        return refuse_text(text,
                           "quantities must match the regular expression "
                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                           e);
    if (!parse_suffix(p.suffix, &s))
        return refuse_text(
            text,
            "unable to parse quantity's suffix, which must be one of n u m k M G T P E "
            "Ki Mi Gi Ti Pi Ei or an exponent such as e3",
            e);
    if (p.empty && !is_small(&p, &s)) /* "m" alone is zero, as in Go */
        return refuse_text(text, "unable to parse numeric part of quantity", e);
    char joined[QUANTITY_BYTES_MAX];
    memcpy(joined, p.whole.p, p.whole.n);
    if (p.fraction.n)
        memcpy(joined + p.whole.n, p.fraction.p, p.fraction.n);
    str digits = { joined, p.whole.n + p.fraction.n };
    if (count_significant(digits) > QUANTITY_DIGITS_MAX)
        return refuse_text(text, "a quantity has at most 128 digits", e);
    struct quantity q = { .negative = p.negative, .format = s.format, .wide = !is_small(&p, &s) };
    natural_from_digits(digits, &q.digits); /* fits, with room for the powers of 1024 below */
    q.as_written = !q.wide && is_as_written(&p, &s, &q.digits);
    q.exponent = -(int32_t)p.fraction.n;
    if (s.format == QUANTITY_BINARY)
        for (int32_t i = 0; i < s.exponent; i++)
            natural_mul(&q.digits, TWO_TO_10);
    else
        q.exponent += s.exponent;
    if (q.wide)
        limit_wide(&q);
    q.negative = q.negative && q.digits.n;
    *ret = q;
    return 0;
}

struct quantity quantity_of(int64_t value, int32_t exponent, enum quantity_format format)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return (struct quantity){
        .digits = natural_of(size), .exponent = exponent, .negative = value < 0, .format = format
    };
}

/* ---- numbers */

int quantity_scaled(const struct quantity *q, int32_t exponent, int64_t *ret)
{
    struct quantity scaled = *q;
    uint64_t size;
    round_away(&scaled, exponent);
    if (!natural_mul_power10(&scaled.digits, (size_t)((int64_t)scaled.exponent - exponent)) ||
        !natural_to_u64(&scaled.digits, &size) || size > (uint64_t)INT64_MAX + q->negative)
        return -ERANGE;
    *ret = (int64_t)(q->negative ? 0 - size : size);
    return 0;
}

static int parse_scaled(str text, int32_t exponent, int64_t *ret, err_t *e)
{
    struct quantity q;
    int r = quantity_parse(text, &q, e);
    if (r)
        return r;
    if (quantity_scaled(&q, exponent, ret))
        return err_set(e, ERANGE, "quantity \"" STR_FMT "\" is too large a number", STR_ARG(text));
    return 0;
}

int quantity_parse_milli(str text, int64_t *ret, err_t *e)
{
    return parse_scaled(text, -3, ret, e);
}

int quantity_parse_value(str text, int64_t *ret, err_t *e)
{
    return parse_scaled(text, 0, ret, e);
}

bool quantity_is_zero(const struct quantity *q)
{
    return q->digits.n == 0;
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? cmp_size(b, a) : cmp_size(a, b);
}

/* Both operands are shifted to the smaller exponent; then the digits are added or subtracted. The
 * result is limited so that print_decimal() has room to shift by up to two more digits. */
int quantity_add(struct quantity *sum, const struct quantity *more)
{
    struct quantity a = *sum, b = *more;
    a.as_written = false;
    a.wide = a.wide || b.wide;
    if (!a.digits.n) {
        a.format = b.format;
        a.exponent = b.exponent;
    }
    if (!b.digits.n)
        b.exponent = a.exponent;
    int32_t common = MIN(a.exponent, b.exponent);
    if (!natural_mul_power10(&a.digits, (size_t)((int64_t)a.exponent - common)) ||
        !natural_mul_power10(&b.digits, (size_t)((int64_t)b.exponent - common)))
        return -ERANGE;
    a.exponent = common;
    if (a.negative == b.negative) {
        if (!natural_add(&a.digits, &b.digits))
            return -ERANGE;
    } else if (natural_cmp(&a.digits, &b.digits) >= 0) {
        natural_sub(&a.digits, &b.digits);
    } else {
        natural_sub(&b.digits, &a.digits);
        a.digits = b.digits;
        a.negative = b.negative;
    }
    if (natural_digits(&a.digits) > NATURAL_DIGITS - 3) /* room for canonical form */
        return -ERANGE;
    a.negative = a.negative && a.digits.n;
    *sum = a;
    return 0;
}

int quantity_sub(struct quantity *sum, const struct quantity *less)
{
    struct quantity minus = *less;
    minus.negative = minus.digits.n && !minus.negative;
    return quantity_add(sum, &minus);
}

/* ---- text */

static const char *suffix_of(enum quantity_format format, int32_t exponent)
{
    for (size_t i = 0; i < countof(suffixes); i++)
        if (suffixes[i].format == format && suffixes[i].exponent == exponent)
            return suffixes[i].text;
    return NULL;
}

/* Divides as long as there is no remainder, at most `most` times; returns how often. */
static int32_t take_factors(struct natural *x, uint32_t factor, int32_t most)
{
    int32_t times = 0;
    for (; times < most && x->n; times++) {
        struct natural less = *x;
        if (natural_div(&less, factor))
            break;
        *x = less;
    }
    return times;
}

/* False unless it is a whole number of at least 1024: anything else has no binary form, and Go
 * prints it as decimal. */
static bool print_binary(const struct quantity *q, char *out, size_t room)
{
    struct quantity size = *q, least = quantity_of(1024, 0, QUANTITY_BINARY);
    if (cmp_size(&size, &least) < 0 || !round_away(&size, 0) ||
        !natural_mul_power10(&size.digits, (size_t)size.exponent))
        return false;
    int32_t power = take_factors(&size.digits, TWO_TO_10, 6);
    char digits[NATURAL_DIGITS + 1];
    natural_text(&size.digits, digits);
    snprintf(out, room, "%s%s%s", q->negative ? "-" : "", digits,
             suffix_of(QUANTITY_BINARY, power));
    return true;
}

/* Go's exponents are multiples of three; those without a suffix are printed as e21. */
static void print_decimal(const struct quantity *q, char *out, size_t room)
{
    struct natural x = q->digits;
    int64_t exponent = (int64_t)q->exponent + take_factors(&x, 10, NATURAL_DIGITS);
    for (; exponent % 3; exponent--)
        natural_mul(&x, 10); /* at most two digits, and quantity_add() leaves room for three */
    char digits[NATURAL_DIGITS + 1];
    natural_text(&x, digits);
    const char *sign = q->negative ? "-" : "";
    const char *suffix =
        q->format == QUANTITY_EXPONENT ? NULL : suffix_of(QUANTITY_DECIMAL, (int32_t)exponent);
    if (suffix || exponent == 0)
        snprintf(out, room, "%s%s%s", sign, digits, suffix ? suffix : "");
    else
        snprintf(out, room, "%s%se%lld", sign, digits, (long long)exponent);
}

str quantity_text(const struct quantity *q, char out[static QUANTITY_TEXT_MAX])
{
    if (q->digits.n == 0)
        snprintf(out, QUANTITY_TEXT_MAX, "0");
    else if (q->format != QUANTITY_BINARY || !print_binary(q, out, QUANTITY_TEXT_MAX))
        print_decimal(q, out, QUANTITY_TEXT_MAX);
    return str_c(out);
}

int quantity_canonical(str text, char out[static QUANTITY_TEXT_MAX], str *ret, err_t *e)
{
    struct quantity q;
    int r = quantity_parse(text, &q, e);
    if (r)
        return r;
    if (q.as_written) {
        memcpy(out, text.p, text.n);
        out[text.n] = '\0';
        *ret = (str){ out, text.n };
    } else {
        *ret = quantity_text(&q, out);
    }
    return 0;
}

/* ---- Go's results */

/* The low 64 bits of the absolute value times 10^by. */
static uint64_t low_bits(const struct quantity *q, int64_t by)
{
    uint64_t low = natural_low(&q->digits);
    for (; by > 0 && low; by--) /* at most 64 rounds: each factor of ten adds a zero bit */
        low *= 10;
    return low;
}

/* Go scales a 64-bit number by some powers of ten with one multiplication, which wraps on overflow,
 * and by the others in a loop, which gives up and returns 0. */
static int64_t go_overflow(const struct quantity *q, int64_t by)
{
    uint64_t low = low_bits(q, by);
    bool wraps = by == 1 || by == 2 || by == 3 || by == 6 || by == 9;
    return wraps ? (int64_t)(q->negative ? 0 - low : low) : 0;
}

/* Go counts a big decimal in nanos (in units if it was capped). Scaling up multiplies; scaling down
 * rounds up, which for a negative value is toward zero, and happens after wrapping. */
int64_t quantity_go_scaled(const struct quantity *q, int32_t exponent)
{
    int64_t fit;
    if (!q->wide)
        return quantity_scaled(q, exponent, &fit) ? go_overflow(q, (int64_t)q->exponent - exponent)
                                                  : fit;
    struct quantity most = quantity_of(INT64_MAX, 0, QUANTITY_BINARY);
    int32_t unit = q->format == QUANTITY_BINARY && cmp_size(q, &most) == 0 ? 0 : NANO;
    if (q->negative && unit < exponent) {
        int64_t wrapped = (int64_t)(0 - low_bits(q, (int64_t)q->exponent - unit)), divisor = 1;
        for (int32_t i = unit; i < exponent; i++)
            divisor *= 10;
        return wrapped / divisor + (wrapped % divisor != 0);
    }
    struct quantity rounded = *q;
    round_away(&rounded, exponent);
    uint64_t low = low_bits(&rounded, (int64_t)rounded.exponent - exponent);
    return (int64_t)(q->negative ? 0 - low : low);
}
