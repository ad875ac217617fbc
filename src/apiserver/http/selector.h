/* Label and field selectors: parsed once per request, matched against stored objects without parsing
 * those.
 *
 *   labels   a=b, a==b, a!=b, a in (b,c), a notin (b,c), a, !a, a>5, a<5, joined by commas
 *   fields   metadata.name=x, spec.nodeName!=y, ... joined by commas; the kind defines the supported paths
 *            and their values (read_is_selected)
 *
 * Selectors live in the arena they were parsed into and borrow nothing else. */
#ifndef FLYBALL_SELECTOR_H
#define FLYBALL_SELECTOR_H

#include "../store/object.h"

enum selector_op { SEL_IN, SEL_NOT_IN, SEL_EXISTS, SEL_NOT_EXISTS, SEL_GREATER, SEL_LESS };

struct label_term {
    str key;
    enum selector_op op;
    const str *values; /* IN, NOT_IN: any number; GREATER, LESS: none */
    size_t n_values;
    int64_t bound; /* GREATER, LESS */
};

struct label_selector {
    const struct label_term *terms;
    size_t n; /* 0: matches everything */
};

struct field_term {
    str path, value;
    bool negated;
};

struct field_selector {
    const struct field_term *terms;
    size_t n;
};

int selector_parse_labels(struct arena *a, str text, struct label_selector *ret, err_t *e);
int selector_parse_fields(struct arena *a, str text, struct field_selector *ret, err_t *e);

bool selector_matches_labels(const struct label_selector *s, const struct object *o);
/* The value that the selector requires for a path such as "metadata.name"; .p NULL: none. */
str selector_exact_field(const struct field_selector *s, str path);

#endif
