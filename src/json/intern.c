/* Interning: see intern.h.
 *
 * Words and label maps are in two hash sets, found by content. A map refers to words, so that equal
 * keys of different maps are stored once, and holds one reference to each. An entry is freed with
 * its last reference. All of it belongs to one thread: the counts are not atomic. */
#include "intern.h"

#include "../base/map.h"

#include <malloc.h>

static bool same_word(const struct set_node *member, const void *key)
{
    return str_eq(word_str((const struct word *)member), *(const str *)key);
}

struct word *intern_word(struct intern *in, str text)
{
    uint32_t hash = set_hash(map_hash(text));
    struct word *w = (struct word *)set_find(&in->words, hash, same_word, &text);
    if (!w) {
        assert(text.n < UINT32_MAX);
        w = mem_alloc(sizeof(*w) + text.n + 1);
        *w = (struct word){ .node.hash = hash, .n = (uint32_t)text.n };
        if (text.n)
            memcpy(w->text, text.p, text.n);
        w->text[text.n] = '\0';
        set_add(&in->words, &w->node);
        in->bytes += malloc_usable_size(w);
    }
    w->refs++;
    return w;
}

void intern_word_unref(struct intern *in, struct word *w)
{
    if (!w || --w->refs)
        return;
    set_remove(&in->words, &w->node);
    in->bytes -= malloc_usable_size(w);
    free(w);
}

enum { FEW_PAIRS = 64 };

/* By key, then by position in the document: the parser's texts are in the order of the document, so
 * their addresses show which of two equal keys is the last. */
static int compare_pairs(const void *a, const void *b)
{
    const struct labels_pair *x = a, *y = b;
    int order = str_cmp(x->key, y->key);
    return order ? order : (x->key.p > y->key.p) - (x->key.p < y->key.p);
}

/* Insertion sort, because servers send maps already sorted: then it is one pass. A long map that is
 * out of order is sorted with qsort first, because insertion alone would be quadratic. Returns the
 * number of unique keys. */
static size_t sort_pairs(struct labels_pair *pairs, size_t n)
{
    size_t falls = 0;
    for (size_t i = 1; i < n; i++)
        falls += str_cmp(pairs[i - 1].key, pairs[i].key) > 0;
    if (n > FEW_PAIRS && falls)
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct labels_pair pair = pairs[i];
        size_t at = kept;
        while (at && str_cmp(pairs[at - 1].key, pair.key) > 0)
            at--;
        if (at && str_eq(pairs[at - 1].key, pair.key)) {
            pairs[at - 1] = pair;
            continue;
        }
        memmove(pairs + at + 1, pairs + at, (kept - at) * sizeof(pair));
        pairs[at] = pair;
        kept++;
    }
    return kept;
}

struct pairs {
    const struct labels_pair *at;
    size_t n;
};

static bool same_labels(const struct set_node *member, const void *key)
{
    const struct labels *l = (const struct labels *)member;
    const struct pairs *pairs = key;
    if (l->n != pairs->n)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (!str_eq(word_str(l->at[i].key), pairs->at[i].key) ||
            !str_eq(word_str(l->at[i].value), pairs->at[i].value))
            return false;
    return true;
}

static uint32_t hash_of(const struct labels_pair *pairs, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++) {
        hash = hash * 0x9E3779B97F4A7C15u + map_hash(pairs[i].key);
        hash = hash * 0x9E3779B97F4A7C15u + map_hash(pairs[i].value);
    }
    return set_hash(hash);
}

/* Looks a map up by its content before it takes references to words, so that the common case (the
 * map exists) touches no word. */
const struct labels *intern_labels(struct intern *in, struct labels_pair *pairs, size_t n)
{
    n = sort_pairs(pairs, n);
    if (!n)
        return NULL;
    uint32_t hash = hash_of(pairs, n);
    struct labels *l =
        (struct labels *)set_find(&in->maps, hash, same_labels, &(struct pairs){ pairs, n });
    if (!l) {
        l = mem_alloc(sizeof(*l) + n * sizeof(l->at[0]));
        *l = (struct labels){ .node.hash = hash, .n = (uint32_t)n };
        for (size_t i = 0; i < n; i++) {
            l->at[i].key = intern_word(in, pairs[i].key);
            l->at[i].value = intern_word(in, pairs[i].value);
        }
        set_add(&in->maps, &l->node);
        in->bytes += malloc_usable_size(l);
    }
    l->refs++;
    return l;
}

void intern_labels_unref(struct intern *in, const struct labels *shared)
{
    struct labels *l = (struct labels *)(uintptr_t)shared; /* immutable except for the count */
    if (!l || --l->refs)
        return;
    set_remove(&in->maps, &l->node);
    in->bytes -= malloc_usable_size(l);
    for (size_t i = 0; i < l->n; i++) {
        intern_word_unref(in, l->at[i].key);
        intern_word_unref(in, l->at[i].value);
    }
    free(l);
}

void intern_done(struct intern *in)
{
    assert(!in->words.n && !in->maps.n);
    set_done(&in->words);
    set_done(&in->maps);
}

static bool intern_labels_find(const struct labels *l, str key, str *ret_value)
{
    for (size_t low = 0, high = l ? l->n : 0; low < high;) {
        size_t middle = (low + high) / 2;
        int order = str_cmp(word_str(l->at[middle].key), key);
        if (!order) {
            *ret_value = word_str(l->at[middle].value);
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

str intern_labels_get(const struct labels *l, str key)
{
    str value = S("");
    intern_labels_find(l, key, &value);
    return value;
}
