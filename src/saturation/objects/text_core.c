/* Texts: see text_core.h. */
#include "text_core.h"

#include "../../base/vec.h"

#define MINUTE_NS (60 * INT64_C(1000000000))

/* Vendor-Model-…; Intel's models have two parts. */
str sat_accelerator_name(str product)
{
    str rest = product, vendor, model, version;
    if (!product.p || !str_cut(&rest, '-', &vendor) || !rest.p)
        return product;
    const char *start = rest.p;
    str_cut(&rest, '-', &model);
    if (!str_eq_nocase(vendor, S("intel")) || !str_cut(&rest, '-', &version))
        return model;
    return (str){ start, model.n + 1 + version.n };
}

struct text_pair *sat_label_pairs(struct arena *a, const struct labels *labels, size_t *ret_n)
{
    size_t n = labels ? labels->n : 0;
    struct text_pair *pairs = arena_array(a, n, sizeof(*pairs));
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct text_pair){ word_str(labels->at[i].key), word_str(labels->at[i].value) };
    *ret_n = n;
    return pairs;
}

static int by_name(const void *a, const void *b)
{
    const struct text_pair *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

void sat_cache_key(struct buf *out, str query, const struct text_pair *pairs, size_t n)
{
    buf_put(out, query);
    if (n == 0)
        return;
    auto_free struct text_pair *sorted = mem_zero(n, sizeof(*sorted));
    memcpy(sorted, pairs, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_name);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%c" STR_FMT "=" STR_FMT, i ? ',' : ':', STR_ARG(sorted[i].name),
                   STR_ARG(sorted[i].value));
}

enum sat_freshness sat_freshness_of(int64_t age_ns)
{
    if (age_ns < MINUTE_NS)
        return FRESHNESS_FRESH;
    return age_ns < 5 * MINUTE_NS ? FRESHNESS_STALE : FRESHNESS_UNAVAILABLE;
}

const char *sat_freshness_name(enum sat_freshness f)
{
    static const char *const names[] = { "fresh", "stale", "unavailable" };
    return names[f];
}

/* A quote opens or closes, and a blank outside quotes ends a word; an empty quoted word is dropped.
 * All words are written into one copy of the text, which is always large enough. */
struct sat_words sat_split_command(struct arena *a, str text)
{
    VEC(str) words = { 0 };
    char *copy = arena_alloc(a, text.n + 1), *end = copy, *start = copy, quote = '\0';
    for (size_t i = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : ' ';
        if (quote && i < text.n && c == quote)
            quote = '\0';
        else if (!quote && (c == '\'' || c == '"'))
            quote = c;
        else if (i < text.n && (quote || c != ' '))
            *end++ = c;
        else if (end > start) {
            vec_push(&words, ((str){ start, (size_t)(end - start) }));
            start = end;
        }
    }
    struct sat_words result = { arena_array(a, words.n, sizeof(str)), words.n };
    if (words.n)
        memcpy(result.at, words.at, words.n * sizeof(str));
    vec_done(&words);
    return result;
}
