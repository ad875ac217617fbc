/* Arithmetic, conversions between types, and values as text.
 *
 * Integers never wrap around: a result that does not fit in 64 bits is an error, and so is a division by zero.
 * Doubles follow IEEE 754, so that x / 0.0 is infinity. Conversions between number kinds check the range; those
 * from text accept what Go's strconv accepts ("t" and "TRUE" are bools, "+5" is an int).
 *
 * Text of a double is what Go's %g prints: the fewest digits that give the same value, with an exponent below
 * 1e-4 and from 1e6. It appears in messages and in string concatenation, so a rule can depend on it.
 *
 * Times are part of arithmetic: timestamp ± duration, timestamp - timestamp. A timestamp is limited to the
 * years 1 to 9999; leaving them is an overflow. */
#include "../../../base/duration.h"
#include "../../../base/utf8.h"
#include "cel_node.h"

#include <math.h>
#include <stdio.h>

/* An error whose text is a literal, so that overflowing needs no memory. */
static struct cel_value overflow(const char *what)
{
    bool plain = what[0] == 'i';
    return (struct cel_value){ .kind = CEL_ERROR,
                               .text = plain ? "integer overflow" : what,
                               .n = plain ? 16 : (uint32_t)strlen(what) };
}

static struct cel_value of_uint(uint64_t u)
{
    return (struct cel_value){ .kind = CEL_UINT, .natural = u };
}

/* ---- arithmetic */

/* The smallest integer divided by -1 does not fit, and its remainder traps on x86, so both are caught first. */
static struct cel_value int_arithmetic(struct cel_machine *m, enum cel_fn fn, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool bad = false;
    if ((fn == CEL_F_DIV || fn == CEL_F_MOD) && b == 0)
        return cel_fail(m->arena, fn == CEL_F_DIV ? "division by zero" : "modulus by zero");
    switch (fn) {
    case CEL_F_ADD:
        bad = __builtin_add_overflow(a, b, &result);
        break;
    case CEL_F_SUB:
        bad = __builtin_sub_overflow(a, b, &result);
        break;
    case CEL_F_MUL:
        bad = __builtin_mul_overflow(a, b, &result);
        break;
    default:
        bad = a == INT64_MIN && b == -1;
        result = bad ? 0 : fn == CEL_F_DIV ? a / b : a % b;
    }
    return bad ? overflow("integer overflow") : cel_of_int(result);
}

static struct cel_value uint_arithmetic(struct cel_machine *m, enum cel_fn fn, uint64_t a,
                                        uint64_t b)
{
    uint64_t result = 0;
    bool bad = false;
    if ((fn == CEL_F_DIV || fn == CEL_F_MOD) && b == 0)
        return cel_fail(m->arena, fn == CEL_F_DIV ? "division by zero" : "modulus by zero");
    if (fn == CEL_F_ADD)
        bad = __builtin_add_overflow(a, b, &result);
    else if (fn == CEL_F_SUB)
        bad = __builtin_sub_overflow(a, b, &result);
    else if (fn == CEL_F_MUL)
        bad = __builtin_mul_overflow(a, b, &result);
    else
        result = fn == CEL_F_DIV ? a / b : a % b;
    return bad ? overflow("unsigned integer overflow") : of_uint(result);
}

/* Moves a timestamp by a duration. */
static struct cel_value move_time(struct cel_value at, int64_t ns, bool back)
{
    int64_t whole = ns / 1000000000, rest = ns % 1000000000;
    int64_t seconds = at.integer + (back ? -whole : whole);
    int64_t nanos = (int64_t)at.n + (back ? -rest : rest);
    if (nanos < 0)
        nanos += 1000000000, seconds--;
    if (nanos >= 1000000000)
        nanos -= 1000000000, seconds++;
    if (!cel_in_time_range(seconds))
        return overflow("timestamp overflow");
    return (struct cel_value){
        .kind = CEL_TIMESTAMP, .integer = seconds, .n = (uint32_t)nanos, .zone = at.zone
    };
}

/* One operand is a timestamp or both are durations: the checker accepts nothing else. A timestamp cannot be
 * subtracted from a duration. */
static struct cel_value time_arithmetic(enum cel_fn fn, struct cel_value a, struct cel_value b)
{
    int64_t result;
    bool minus = fn == CEL_F_SUB;
    if (a.kind == CEL_TIMESTAMP && b.kind == CEL_DURATION)
        return move_time(a, b.integer, minus);
    if (a.kind == CEL_DURATION && b.kind == CEL_TIMESTAMP)
        return move_time(b, a.integer, false);
    bool bad;
    if (a.kind == CEL_TIMESTAMP) {
        int64_t seconds = a.integer - b.integer;
        bad = __builtin_mul_overflow(seconds, INT64_C(1000000000), &result) ||
              __builtin_add_overflow(result, (int64_t)a.n - (int64_t)b.n, &result);
    } else {
        bad = minus ? __builtin_sub_overflow(a.integer, b.integer, &result)
                    : __builtin_add_overflow(a.integer, b.integer, &result);
    }
    return bad ? overflow("duration overflow")
               : (struct cel_value){ .kind = CEL_DURATION, .integer = result };
}

/* Both operands have the same kind, except for times; mixed numbers have no overload for arithmetic. */
struct cel_value cel_call_number(struct cel_machine *m, enum cel_fn fn, const struct cel_value *a,
                                 uint32_t n)
{
    (void)n;
    if (fn == CEL_F_NEGATE)
        return a[0].kind == CEL_DOUBLE     ? cel_of_real(-a[0].real)
               : a[0].integer == INT64_MIN ? overflow("integer overflow")
                                           : cel_of_int(-a[0].integer);
    switch (a[0].kind) {
    case CEL_INT:
        return int_arithmetic(m, fn, a[0].integer, a[1].integer);
    case CEL_UINT:
        return uint_arithmetic(m, fn, a[0].natural, a[1].natural);
    case CEL_DOUBLE:
        return cel_of_real(fn == CEL_F_ADD   ? a[0].real + a[1].real
                           : fn == CEL_F_SUB ? a[0].real - a[1].real
                           : fn == CEL_F_MUL ? a[0].real * a[1].real
                                             : a[0].real / a[1].real);
    default:
        return time_arithmetic(fn, a[0], a[1]);
    }
}

/* ---- text */

/* The shortest digits that give the same double, in the form of Go's %g. */
static void cel_put_real(struct buf *out, double d)
{
    char text[40];
    if (isnan(d) || isinf(d)) {
        buf_put(out, isnan(d) ? S("NaN") : d > 0 ? S("+Inf") : S("-Inf"));
        return;
    }
    int precision = 0;
    do
        snprintf(text, sizeof(text), "%.*e", precision, d);
    while (strtod(text, NULL) != d && ++precision < 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6) {
        buf_put(out, str_c(text)); /* C has at least two digits of exponent, as Go has */
        return;
    }
    snprintf(text, sizeof(text), "%.*f", MAX(precision - exponent, 0), d);
    buf_put(out, str_c(text));
}

/* False for kinds that have no text: lists, maps, optionals and the types of the libraries. */
bool cel_put_text(struct buf *out, struct cel_value v)
{
    char room[STR_I64_ROOM];
    switch (v.kind) {
    case CEL_STRING:
    case CEL_BYTES:
        buf_put(out, cel_text(v));
        return true;
    case CEL_BOOL:
        buf_put(out, v.boolean ? S("true") : S("false"));
        return true;
    case CEL_NULL:
        buf_put(out, S("null"));
        return true;
    case CEL_INT:
        buf_put(out, str_of_i64(v.integer, room));
        return true;
    case CEL_UINT:
        buf_printf(out, "%llu", (unsigned long long)v.natural);
        return true;
    case CEL_DOUBLE:
        cel_put_real(out, v.real);
        return true;
    case CEL_TIMESTAMP:
        cel_put_timestamp(out, v);
        return true;
    case CEL_DURATION:
        cel_put_duration(out, v.integer);
        return true;
    case CEL_IP:
    case CEL_CIDR:
        return cel_put_net(out, v);
    default:
        return false;
    }
}

/* ---- conversions */

static struct cel_value fail_conversion(struct cel_machine *m, struct cel_value from,
                                        const char *to)
{
    static const char *const names[] = {
        [CEL_INT] = "int",       [CEL_UINT] = "uint",   [CEL_DOUBLE] = "double",
        [CEL_STRING] = "string", [CEL_BYTES] = "bytes", [CEL_BOOL] = "bool"
    };
    const char *name = from.kind < countof(names) ? names[from.kind] : NULL;
    return cel_fail(m->arena, "type conversion error from '%s' to '%s'", name ? name : "dyn", to);
}

/* Doubles are truncated. The limits are exclusive at both ends, although -2^63 would fit, as in cel-go. */
static struct cel_value to_int(struct cel_machine *m, struct cel_value v)
{
    int64_t i;
    switch (v.kind) {
    case CEL_UINT:
        return v.natural <= INT64_MAX ? cel_of_int((int64_t)v.natural)
                                      : overflow("integer overflow");
    case CEL_DOUBLE:
        if (isnan(v.real) || v.real <= -9223372036854775808.0 || v.real >= 9223372036854775808.0)
            return overflow("integer overflow");
        return cel_of_int((int64_t)v.real);
    case CEL_STRING:
        if (str_to_i64(str_from(cel_text(v), v.n > 1 && v.text[0] == '+'), &i) < 0)
            return fail_conversion(m, v, "int");
        return cel_of_int(i);
    case CEL_INT:
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        return cel_of_int(v.integer);
    default:
        return cel_no_overload();
    }
}

/* Text must be digits alone: a sign is refused, as by Go's ParseUint. */
static struct cel_value to_uint(struct cel_machine *m, struct cel_value v)
{
    switch (v.kind) {
    case CEL_INT:
        return v.integer >= 0 ? of_uint((uint64_t)v.integer)
                              : overflow("unsigned integer overflow");
    case CEL_DOUBLE:
        if (isnan(v.real) || v.real < 0 || v.real >= 18446744073709551616.0)
            return overflow("unsigned integer overflow");
        return of_uint((uint64_t)v.real);
    case CEL_STRING: {
        uint64_t u = 0;
        bool good = v.n > 0;
        for (uint32_t i = 0; good && i < v.n; i++)
            good = v.text[i] >= '0' && v.text[i] <= '9' &&
                   !__builtin_mul_overflow(u, (uint64_t)10, &u) &&
                   !__builtin_add_overflow(u, (uint64_t)(v.text[i] - '0'), &u);
        return good ? of_uint(u) : fail_conversion(m, v, "uint");
    }
    default:
        return v;
    }
}

static struct cel_value to_double(struct cel_machine *m, struct cel_value v)
{
    static const struct {
        const char *word;
        double value;
    } words[] = { { "inf", INFINITY }, { "infinity", INFINITY }, { "nan", NAN } };
    double d;
    if (v.kind == CEL_INT || v.kind == CEL_UINT)
        return cel_of_real(v.kind == CEL_INT ? (double)v.integer : (double)v.natural);
    if (v.kind != CEL_STRING)
        return v;
    str text = cel_text(v);
    bool sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
    for (size_t i = 0; i < countof(words); i++)
        if (str_eq_nocase(str_from(text, sign), str_c(words[i].word)))
            return cel_of_real(sign && text.p[0] == '-' ? -words[i].value : words[i].value);
    return str_to_f64(text, &d) < 0 ? fail_conversion(m, v, "double") : cel_of_real(d);
}

static struct cel_value to_bool(struct cel_machine *m, struct cel_value v)
{
    static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" }, *const no[] = {
        "0", "f", "F", "false", "FALSE", "False"
    };
    if (v.kind == CEL_BOOL)
        return v;
    for (size_t i = 0; i < countof(yes); i++)
        if (str_eqc(cel_text(v), yes[i]) || str_eqc(cel_text(v), no[i]))
            return cel_of_bool(str_eqc(cel_text(v), yes[i]));
    return fail_conversion(m, v, "bool");
}

static struct cel_value to_string(struct cel_machine *m, struct cel_value v)
{
    auto_buf struct buf out = { 0 };
    if (v.kind == CEL_BYTES) {
        str text = cel_text(v);
        str clean = utf8_clean(m->arena, text);
        if (clean.p != text.p)
            return cel_fail(m->arena, "invalid UTF-8 in bytes, cannot convert to string");
    }
    if (!cel_put_text(&out, v))
        return cel_no_overload();
    return cel_kept_text(m->arena, &out);
}

/* Converts to the type that the function is named after; a value of that type is returned as it is. */
struct cel_value cel_convert(struct cel_machine *m, enum cel_fn fn, struct cel_value v)
{
    struct cel_value result = { .kind = CEL_DURATION };
    switch (fn) {
    case CEL_F_BOOL:
        return to_bool(m, v);
    case CEL_F_BYTES:
    case CEL_F_BYTES_TEXT:
        v.kind = CEL_BYTES;
        return v;
    case CEL_F_DOUBLE:
        return to_double(m, v);
    case CEL_F_INT:
        return to_int(m, v);
    case CEL_F_UINT:
        return to_uint(m, v);
    case CEL_F_DURATION:
        if (v.kind == CEL_DURATION || v.kind == CEL_INT)
            return (struct cel_value){ .kind = CEL_DURATION, .integer = v.integer };
        if (duration_parse(cel_text(v), &result.integer, NULL) < 0)
            return cel_fail(m->arena, "type conversion error from 'string' to "
                                      "'google.protobuf.Duration'");
        return result;
    case CEL_F_TIMESTAMP:
        if (v.kind == CEL_TIMESTAMP)
            return v;
        if (v.kind == CEL_INT)
            return cel_in_time_range(v.integer)
                       ? (struct cel_value){ .kind = CEL_TIMESTAMP, .integer = v.integer }
                       : overflow("timestamp overflow");
        if (!cel_parse_timestamp(cel_text(v), &result))
            return cel_fail(m->arena, "type conversion error from 'string' to "
                                      "'google.protobuf.Timestamp'");
        return result;
    default:
        return to_string(m, v);
    }
}
