/* Interning: texts and label maps that many cached objects have in common are stored once.
 *
 * Namespaces, node names and images repeat; pods of one ReplicaSet have identical labels. A `word`
 * is such a text, a `struct labels` such a map; both are immutable and reference-counted. Equal
 * values have the same address, so comparing two maps means comparing two pointers.
 *
 * Measured with 5,000 pods of 50 Deployments, 5 labels each: 8 bytes per pod instead of 290. */
#ifndef FLYBALL_INTERN_H
#define FLYBALL_INTERN_H

#include "../base/set.h"

struct word {
    struct set_node node;
    uint32_t refs;
    uint32_t n;
    char text[]; /* n bytes and a NUL */
};

/* A map from text to text: labels, annotations, node selectors. Sorted by key. */
struct labels {
    struct set_node node;
    uint32_t refs;
    uint32_t n;
    struct labels_entry {
        struct word *key, *value; /* one reference each */
    } at[];
};

struct intern {
    struct set words, maps;
    size_t bytes; /* of all words and maps, as counted by the allocator */
};

struct labels_pair { /* input of intern_labels() */
    str key, value;
};

void intern_done(struct intern *in); /* all references must be released before */

struct word *intern_word(struct intern *in, str text); /* a new reference */
void intern_word_unref(struct intern *in, struct word *w);

/* A new reference; NULL: no pairs. Sorts `pairs` in place; the last of equal keys wins. */
const struct labels *intern_labels(struct intern *in, struct labels_pair *pairs, size_t n);
void intern_labels_unref(struct intern *in, const struct labels *l);

static inline str word_str(const struct word *w)
{
    return (str){ w->text, w->n };
}

/* ---- reading; NULL is an empty map */

str intern_labels_get(const struct labels *l, str key); /* "": not found */

#endif
