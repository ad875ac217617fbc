/* The tokens of a PromQL query, one at a time. Used by promql.c only. */
#ifndef FLYBALL_PROMQL_LEX_H
#define FLYBALL_PROMQL_LEX_H

#include "../base/str.h"

enum promql_token_kind {
    PROMQL_END,
    PROMQL_NAME,     /* a label, metric, function or keyword */
    PROMQL_METRIC,   /* a name with a colon: can only be a metric */
    PROMQL_NUMBER,   /* 1.5, 0x1f, 1e9; Inf and NaN are names here */
    PROMQL_DURATION, /* 1h30m */
    PROMQL_STRING,   /* with its quotes */
    PROMQL_SIGN,     /* an operator, a bracket, a comma */
};

struct promql_token {
    enum promql_token_kind kind;
    str text;
    size_t at;         /* byte offset in the query */
    bool after_blanks; /* blanks or a comment precede it */
};

struct promql_lexer {
    str query;
    size_t at;
    bool in_range; /* between [ and ], where a colon is an operator, not part of a name */
};

/* The next token; PROMQL_END at the end, also when called again. */
int promql_lex(struct promql_lexer *l, struct promql_token *ret, err_t *e);

/* Fails with a message that starts with the position of byte `at`, counted in characters. */
int promql_refuse(str query, size_t at, err_t *e, const char *format, ...) PRINTF_LIKE(4, 5);

#endif
