/* The canonical form keeps the value and, within a suffix family, is its own canonical form; adding and
 * subtracting are inverse; comparing follows the sign of the difference. */
#include "base/quantity.h"
#include "fuzz.h"

static struct quantity parse(str text)
{
    struct quantity q;
    if (quantity_parse(text, &q, NULL) < 0)
        abort();
    return q;
}

/* A sum may print longer than what is read, and a binary one may be above 2^63-1, where reading cuts it, of
 * either sign. */
static void check_text(const struct quantity *q)
{
    char once[QUANTITY_TEXT_MAX], twice[QUANTITY_TEXT_MAX];
    str text = quantity_text(q, once);
    int64_t fits;
    if (text.n > QUANTITY_DIGITS_MAX ||
        (q->format == QUANTITY_BINARY && (quantity_scaled(q, 0, &fits) || fits == INT64_MIN)))
        return;
    struct quantity again = parse(text);
    if (quantity_cmp(q, &again) ||
        (again.format == q->format && !str_eq(text, quantity_text(&again, twice))))
        abort();
}

static void check_pair(const struct quantity *a, const struct quantity *b)
{
    struct quantity sum = *a, difference = *a;
    int order = quantity_cmp(a, b);
    if (order != -quantity_cmp(b, a))
        abort();
    if (quantity_add(&sum, b) == 0) {
        check_text(&sum);
        if (quantity_sub(&sum, b) == 0 && quantity_cmp(&sum, a))
            abort();
    }
    if (quantity_sub(&difference, b) == 0 &&
        order != (difference.negative ? -1 : !quantity_is_zero(&difference)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str rest = { (const char *)data, size }, first;
    struct quantity a, b;
    err_t e;
    if (!rest.p || !str_cut(&rest, ' ', &first) || quantity_parse(first, &a, &e) < 0)
        return 0;
    check_text(&a);
    char out[QUANTITY_TEXT_MAX];
    str canonical;
    int64_t milli, value;
    if (quantity_canonical(first, out, &canonical, &e))
        abort();
    struct quantity again = parse(canonical);
    if (quantity_cmp(&a, &again))
        abort();
    quantity_go_scaled(&a, -3);
    if (quantity_scaled(&a, -3, &milli) == 0 && quantity_scaled(&a, 0, &value) == 0 &&
        (milli / 1000 > value || milli / 1000 < value - 1) && !a.negative)
        abort();
    if (rest.p && quantity_parse(rest, &b, &e) == 0)
        check_pair(&a, &b);
    return 0;
}
