/* Label selectors as kubectl writes them: "pool in (a,b),!spot,tier!=test". Parsed once, matched
 * against the labels of many objects. The grammar and what it accepts are those of Kubernetes. */
#ifndef FLYBALL_LABELS_H
#define FLYBALL_LABELS_H

#include "arena.h"

enum labels_op {
    LABELS_IN, /* also = and == */
    LABELS_NOT_IN,
    LABELS_EXISTS,
    LABELS_MISSING,
    LABELS_GREATER,
    LABELS_LESS,
};

struct labels_rule {
    str key;
    enum labels_op op;
    const str *values;
    size_t value_n;
};

struct labels_selector { /* no rule: matches everything */
    const struct labels_rule *rules;
    size_t n;
};

enum { LABELS_TEXT_MAX = 16 << 10, LABELS_RULES_MAX = 256 };

/* -EINVAL with a sentence. The selector lives in the arena. */
int labels_parse(struct arena *a, str text, struct labels_selector *ret, err_t *e);

/* Returns the value of a label, or false if the object does not have it. */
typedef bool labels_get_fn(const void *labels, str key, str *ret_value);
bool labels_match(const struct labels_selector *s, labels_get_fn *get, const void *labels);

bool labels_is_key(str text); /* "example.com/name" */

#endif
