/* The syntax tree between the parser (regex_parse.c) and the matcher (regex.c). Used by those two
 * only. */
#ifndef FLYBALL_REGEX_NODE_H
#define FLYBALL_REGEX_NODE_H

#include "regex.h"

#define REGEX_NO_CHAR UINT32_MAX
#define REGEX_NO_MAX UINT32_MAX
#define REGEX_LAST_CHAR UINT32_C(0x10ffff)

struct regex_set { /* sorted ranges without overlap */
    struct regex_range {
        uint32_t first, last;
    } *at;
    uint32_t n;
};

enum regex_assert {
    REGEX_TEXT_START,
    REGEX_TEXT_END,
    REGEX_LINE_START,
    REGEX_LINE_END,
    REGEX_WORD_EDGE,
    REGEX_NO_WORD_EDGE,
};

enum regex_kind { REGEX_EMPTY, REGEX_SET, REGEX_ASSERT, REGEX_CAT, REGEX_ALT, REGEX_REPEAT };

struct regex_node {
    enum regex_kind kind;
    enum regex_assert assert;
    struct regex_set set;
    const struct regex_node *left, *right; /* REGEX_REPEAT: left */
    uint32_t min, max;                     /* max may be REGEX_NO_MAX */
    bool lazy; /* prefers fewer repetitions; matters to regex_find only */
};

int regex_parse(struct arena *a, str pattern, const struct regex_node **ret, err_t *e);

/* The character at a byte offset and its width in bytes; an invalid byte is U+FFFD with width 1. */
uint32_t regex_char(str text, size_t at, size_t *ret_width);

#endif
