/* The compiled steps of a JSONPath, from jsonpath_parse.c to jsonpath.c. Used by those two only. */
#ifndef FLYBALL_JSONPATH_OP_H
#define FLYBALL_JSONPATH_OP_H

#include "jsonpath.h"

enum jsonpath_kind {
    PATH_FIELD,
    PATH_SLICE,
    PATH_WILDCARD,
    PATH_RECURSIVE,
    PATH_UNION,
    PATH_FILTER,
    PATH_TEXT,   /* one value, independent of the list */
    PATH_SCALAR, /* a number or boolean per value of the list */
    PATH_WORD,   /* range, end, or an unknown word, which fails when evaluated */
};

enum jsonpath_compare {
    PATH_EXISTS,
    PATH_EQ,
    PATH_NE,
    PATH_LT,
    PATH_LE,
    PATH_GT,
    PATH_GE,
    PATH_BAD
};

struct jsonpath_slice {
    int64_t start, end, step;
    bool has_end, has_step;
    bool derived; /* a single index: the end is start + 1 */
};

struct jsonpath_filter {
    struct jsonpath left, right;
    enum jsonpath_compare compare;
};

struct jsonpath_op {
    enum jsonpath_kind kind;
    uint32_t column;
    uint32_t n_branches;
    union {
        str name; /* field, word */
        struct jsonpath_slice slice;
        const struct jsonpath *branches; /* union */
        const struct jsonpath_filter *filter;
        const struct json *literal;
    };
};

#endif
