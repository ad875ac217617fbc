/* JSONPath as Kubernetes implements it (client-go: kubectl -o jsonpath, printer columns).
 *
 *   .name  .a\.b  ..name  .*  [2]  [-1]  [1:3]  [::2]  [*]  [0,2]  ['a','b']  ['key']
 *   [?(@.type=="Ready")]  [?(@.n>2)]  [?(@.x)]  "text"  3  true      $ and @ are the current value
 *
 * An expression is parsed once and can be evaluated many times. Evaluation starts with a list that
 * holds the root; each step turns the list into the next one. A field that no value of the list has
 * is an error unless missing keys are allowed. A path of plain fields and single indexes is
 * evaluated without allocation.
 *
 * In ['a.b'] client-go treats dots as steps and backslashes as escapes; with JSONPATH_LITERAL_KEYS
 * the quotes, single or double, contain the literal key. */
#ifndef FLYBALL_JSONPATH_H
#define FLYBALL_JSONPATH_H

#include "json.h"

enum {
    JSONPATH_LITERAL_KEYS = 1,  /* keys in brackets are literal and may contain any character */
    JSONPATH_ALLOW_MISSING = 2, /* a missing field yields no value instead of an error */
};

enum { JSONPATH_VALUES_MAX = 100000 }; /* more are an error: repeated `..` multiplies values */

struct jsonpath_op;

struct jsonpath {
    const struct jsonpath_op *ops; /* in the arena of the parser; texts borrow from the source */
    uint32_t n;
    unsigned flags;
    bool plain; /* only fields and single indexes */
};

struct jsonpath_source {
    str text;      /* the text between the braces */
    size_t column; /* of its first byte, for errors; 0 means 1 */
    unsigned flags;
};

struct jsonpath_values {
    const struct json **at;
    size_t n;
};

/* -EINVAL: "column 17: unterminated array". The text must outlive the path. */
int jsonpath_parse(struct arena *a, struct jsonpath_source source, struct jsonpath *ret, err_t *e);

/* All values. -ENOENT: "column 5: x is not found"; -EBADMSG: it cannot be evaluated (an index out
 * of bounds, text compared with a number). `scratch` holds the list. */
int jsonpath_find(struct arena *scratch, const struct jsonpath *p, const struct json *root,
                  struct jsonpath_values *ret, err_t *e);

/* The only value: the same errors, -ENOENT for none and -E2BIG for more than one. */
int jsonpath_one(struct arena *scratch, const struct jsonpath *p, const struct json *root,
                 const struct json **ret, err_t *e);

/* The first value, for a column or a label; NULL: no value, or it cannot be evaluated. */
const struct json *jsonpath_first(struct arena *scratch, const struct jsonpath *p,
                                  const struct json *root);

/* Prints a value like Go's fmt: plain text, 1.5e+06, <nil>; lists and maps as JSON. */
void jsonpath_put(struct buf *out, const struct json *v);

#endif
