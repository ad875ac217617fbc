/* Quantities ("1.5Gi") and semantic versions ("1.2.3-rc.1"): values that compare by meaning, not by text.
 *
 * A quantity is base/quantity.c's exact decimal number; this file adds the methods of the Kubernetes library. A
 * version keeps its three numbers and the text of its prerelease; build metadata ("+build") is checked and
 * dropped, because it takes no part in the order.
 *
 * The order of versions is that of semver.org: numbers first; a prerelease comes before its release; prerelease
 * identifiers compare one by one, numerically if both are numbers, and numbers before words. Errors are those
 * of the Go library that kube-apiserver uses, whose texts clients see. */
#include "../../../base/quantity.h"
#include "cel_node.h"

#include <math.h>

/* ---- quantities */

static struct cel_value keep_quantity(struct cel_machine *m, const struct quantity *q)
{
    struct quantity *kept = arena_new(m->arena, struct quantity);
    *kept = *q;
    return (struct cel_value){ .kind = CEL_QUANTITY, .other = kept };
}

static struct cel_value to_quantity(struct cel_machine *m, str text)
{
    struct quantity q;
    err_t e = { 0 };
    if (quantity_parse(text, &q, &e) == 0)
        return keep_quantity(m, &q);
    /* the sentence names the quantity first; the original does not */
    const char *why = strstr(e.text, "\": ");
    return cel_fail(m->arena, "%s", why ? why + 3 : e.text);
}

/* Exact whole numbers only; Go does not reduce a fraction that happens to be whole. */
static bool get_integer(const struct quantity *q, int64_t *ret)
{
    if (q->exponent < 0 || quantity_scaled(q, 0, ret) < 0)
        return false;
    struct quantity back = quantity_of(*ret, 0, QUANTITY_DECIMAL);
    return quantity_cmp(q, &back) == 0;
}

/* asApproximateFloat(): the nearest double. A mantissa beyond 64 bits goes through its text. */
static double get_float(const struct quantity *q)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity plain = *q;
    int64_t scaled;
    if (quantity_scaled(q, q->exponent, &scaled) == 0)
        return (double)scaled * pow(10, q->exponent);
    plain.format = QUANTITY_EXPONENT;
    str printed = quantity_text(&plain, text);
    return strtod(printed.p, NULL);
}

/* The sum or difference keeps the format of the left operand, so that it prints with the same suffix. */
static struct cel_value add_quantity(struct cel_machine *m, const struct quantity *q,
                                     struct cel_value more, bool minus)
{
    struct quantity sum = *q;
    struct quantity number = more.kind == CEL_INT ? quantity_of(more.integer, 0, QUANTITY_EXPONENT)
                                                  : *(const struct quantity *)more.other;
    if ((minus ? quantity_sub(&sum, &number) : quantity_add(&sum, &number)) < 0)
        return cel_fail(m->arena, "quantity is too large a number");
    return keep_quantity(m, &sum);
}

static struct cel_value order_result(const char *name, int order)
{
    return !strcmp(name, "compareTo")    ? cel_of_int((order > 0) - (order < 0))
           : !strcmp(name, "isLessThan") ? cel_of_bool(order < 0)
                                         : cel_of_bool(order > 0);
}

struct cel_value cel_call_quantity(struct cel_machine *m, enum cel_fn fn,
                                   const struct cel_overload *o, const struct cel_value *a)
{
    const struct quantity *q = a[0].other;
    int64_t i;
    switch (fn) {
    case CEL_F_QUANTITY:
        return to_quantity(m, cel_text(a[0]));
    case CEL_F_IS_QUANTITY:
        return cel_of_bool(!cel_is_error(to_quantity(m, cel_text(a[0]))));
    case CEL_F_Q_SIGN:
        return cel_of_int(quantity_is_zero(q) ? 0 : q->negative ? -1 : 1);
    case CEL_F_Q_COMPARE:
        return order_result(o->name, quantity_cmp(q, a[1].other));
    case CEL_F_Q_FLOAT:
        return cel_of_real(get_float(q));
    case CEL_F_Q_INT:
        return get_integer(q, &i) ? cel_of_int(i)
                                  : cel_fail(m->arena, "cannot convert value to integer");
    case CEL_F_Q_IS_INT:
        return cel_of_bool(get_integer(q, &i));
    default:
        return add_quantity(m, q, a[1], o->name[0] == 's');
    }
}

/* ---- versions */

struct version {
    uint64_t part[3];
    str pre; /* identifiers after "-", joined by dots */
};

static bool is_digits(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n > 0;
}

/* Dot-separated identifiers of letters, digits and hyphens; numbers before "+" have no leading zero. */
static const char *check_identifiers(str text, bool pre)
{
    str part, rest = text;
    while (str_cut(&rest, '.', &part)) {
        if (!part.n)
            return pre ? "Prerelease is empty" : "Build meta data is empty";
        for (size_t i = 0; i < part.n; i++) {
            char c = part.p[i];
            bool good = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-';
            if (!good)
                return pre ? "Invalid character(s) found in prerelease"
                           : "Invalid character(s) found in build meta data";
        }
        if (pre && is_digits(part) && part.n > 1 && part.p[0] == '0')
            return "Numeric PreRelease version must not contain leading zeroes";
    }
    return NULL;
}

static const char *parse_number(str text, uint64_t *ret)
{
    *ret = 0;
    if (!is_digits(text))
        return "Invalid character(s) found in version number";
    if (text.n > 1 && text.p[0] == '0')
        return "Version number must not contain leading zeroes";
    for (size_t i = 0; i < text.n; i++)
        if (__builtin_mul_overflow(*ret, (uint64_t)10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(text.p[i] - '0'), ret))
            return "value out of range";
    return NULL;
}

/* Why a text is not a version; NULL: it is one. */
static const char *parse_version(str text, struct version *ret)
{
    *ret = (struct version){ .pre = S("") };
    if (!text.n)
        return "Version string empty";
    str parts[3], rest = text;
    for (int i = 0; i < 2; i++) {
        size_t dot = str_find_char(rest, '.');
        if (dot == SIZE_MAX)
            return "No Major.Minor.Patch elements found";
        parts[i] = str_upto(rest, dot);
        rest = str_from(rest, dot + 1);
    }
    size_t plus = str_find_char(rest, '+');
    str build = plus == SIZE_MAX ? S("") : str_from(rest, plus + 1);
    rest = plus == SIZE_MAX ? rest : str_upto(rest, plus);
    size_t dash = str_find_char(rest, '-');
    ret->pre = dash == SIZE_MAX ? S("") : str_from(rest, dash + 1);
    parts[2] = dash == SIZE_MAX ? rest : str_upto(rest, dash);
    const char *why = NULL;
    for (int i = 0; i < 3 && !why; i++)
        why = parse_number(parts[i], &ret->part[i]);
    if (!why && dash != SIZE_MAX)
        why = check_identifiers(ret->pre, true);
    if (!why && plus != SIZE_MAX)
        why = check_identifiers(build, false);
    return why;
}

/* For built-in kinds with versions in their fields. */
bool cel_is_version(str text)
{
    struct version ignored;
    return !parse_version(text, &ignored);
}

/* "v1.02" as "1.2.0": drops a leading v and zeros, and adds the parts that are missing. */
static const char *normalize_version(struct arena *a, str text, str *ret)
{
    auto_buf struct buf out = { 0 };
    str rest = str_starts(text, S("v")) ? str_from(text, 1) : text;
    int parts = 0;
    for (; parts < 3; parts++) {
        size_t dot = parts < 2 ? str_find_char(rest, '.') : SIZE_MAX;
        str part = dot == SIZE_MAX ? rest : str_upto(rest, dot);
        while (part.n > 1 && part.p[0] == '0' && part.p[1] >= '0' && part.p[1] <= '9')
            part = str_from(part, 1);
        buf_put(&out, parts ? S(".") : S(""));
        buf_put(&out, part);
        if (dot == SIZE_MAX) {
            bool extra =
                str_find_char(part, '+') != SIZE_MAX || str_find_char(part, '-') != SIZE_MAX;
            if (parts < 2 && extra)
                return "short version cannot contain PreRelease/Build meta data";
            parts++;
            break;
        }
        rest = str_from(rest, dot + 1);
    }
    for (; parts < 3; parts++)
        buf_put(&out, S(".0"));
    *ret = arena_str(a, buf_str(&out));
    return NULL;
}

/* semver(text, normalize): without `normalize` all three numbers are required. */
static struct cel_value to_version(struct cel_machine *m, str text, bool normalize)
{
    struct version *v = arena_new(m->arena, struct version);
    const char *why = normalize ? normalize_version(m->arena, text, &text) : NULL;
    if (!why)
        why = parse_version(text, v);
    if (why)
        return cel_fail(m->arena, "%s", why);
    return (struct cel_value){ .kind = CEL_SEMVER, .other = v };
}

static int compare_identifier(str a, str b)
{
    bool number = is_digits(a), other = is_digits(b);
    if (number != other)
        return number ? -1 : 1; /* numbers come first */
    if (number && a.n != b.n)
        return a.n < b.n ? -1 : 1;
    int order = str_cmp(a, b);
    return (order > 0) - (order < 0);
}

static int compare_versions(const struct version *a, const struct version *b)
{
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    if (!a->pre.n || !b->pre.n) /* a release comes after its previews */
        return (b->pre.n > 0) - (a->pre.n > 0);
    str left = a->pre, right = b->pre, x, y;
    for (;;) {
        bool more = str_cut(&left, '.', &x), more_right = str_cut(&right, '.', &y);
        if (!more || !more_right)
            return more - more_right;
        int order = compare_identifier(x, y);
        if (order)
            return order;
    }
}

bool cel_version_equal(struct cel_value a, struct cel_value b)
{
    return a.kind == CEL_QUANTITY ? quantity_cmp(a.other, b.other) == 0
                                  : compare_versions(a.other, b.other) == 0;
}

struct cel_value cel_call_version(struct cel_machine *m, enum cel_fn fn,
                                  const struct cel_overload *o, const struct cel_value *a,
                                  uint32_t n)
{
    const struct version *v = a[0].other;
    bool normalize = n > 1 && a[1].kind == CEL_BOOL && a[1].boolean;
    switch (fn) {
    case CEL_F_SEMVER:
        return to_version(m, cel_text(a[0]), normalize);
    case CEL_F_IS_SEMVER:
        return cel_of_bool(!cel_is_error(to_version(m, cel_text(a[0]), normalize)));
    case CEL_F_V_COMPARE:
        return order_result(o->name, compare_versions(v, a[1].other));
    default:
        return cel_of_int((int64_t)v->part[o->name[0] == 'p' ? 2 : o->name[1] == 'i' ? 1 : 0]);
    }
}
