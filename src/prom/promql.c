/* Confinement of PromQL queries: see promql.h. A recursive descent parser that copies the tokens as
 * it goes and inserts our matcher at the end of every selector:
 *
 *     expression  operand { operator [bool] [on|ignoring labels [group_left|group_right [labels]]] operand }
 *     operand     { + | - } primary { "[" range "]" | offset duration | @ time }
 *     primary     number | string | "(" expression ")" | call | aggregation | selector
 *     selector    name [matchers] | matchers
 *
 * There is no syntax tree. Operator precedence and types do not matter here: a query that
 * Prometheus itself rejects selects nothing. What matters is that every selector is found, so the
 * parser fails closed: an unknown keyword, function or modifier is an error and never treated as a
 * metric.
 *
 * Each parse_* function starts at its first token and stops at the first one that it does not
 * consume; it returns 0 or the error. The output is a buffer that grows with the query, which is at
 * most 16 KiB; recursion is bounded by PROMQL_DEPTH_MAX. Rewriting with regular expressions was
 * rejected: strings, comments and nested brackets make it possible to hide a selector from them. */
#include "promql.h"

#include "../base/buf.h"
#include "../base/utf8.h"
#include "promql_lex.h"

struct parser {
    struct promql_lexer lexer;
    struct promql_token token; /* the next token, not copied yet */
    const struct promql_matcher *matcher;
    struct buf out;
    int depth;
    err_t *e;
};

static int parse_expression(struct parser *p);

/* ---- tokens */

/* Fails with what was found and what would have been valid. */
static int refuse_token(const struct parser *p, const char *wanted)
{
    str text = str_upto(p->token.text, 40);
    if (p->token.kind == PROMQL_END)
        return promql_refuse(p->lexer.query, p->token.at, p->e,
                             "unexpected end of the query, expected %s", wanted);
    return promql_refuse(p->lexer.query, p->token.at, p->e,
                         "unexpected \"" STR_FMT "\", expected %s", STR_ARG(text), wanted);
}

/* Copies the token and reads the next one. */
static int take_token(struct parser *p)
{
    if (p->token.after_blanks && p->out.n)
        buf_putc(&p->out, ' ');
    buf_put(&p->out, p->token.text);
    return promql_lex(&p->lexer, &p->token, p->e);
}

static bool is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == PROMQL_SIGN && str_eqc(p->token.text, sign);
}

static bool is_one_of(str word, const char *const *words)
{
    for (; *words; words++)
        if (str_eq_nocase(word, str_c(*words)))
            return true;
    return false;
}

static bool is_word(const struct parser *p, const char *const *words)
{
    return p->token.kind == PROMQL_NAME && is_one_of(p->token.text, words);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int take_sign(struct parser *p, const char *sign, const char *wanted)
{
    return is_sign(p, sign) ? take_token(p) : refuse_token(p, wanted);
}

/* ---- selectors */

static void put_matcher(struct parser *p)
{
    buf_printf(&p->out, STR_FMT "=\"" STR_FMT "\"", STR_ARG(p->matcher->label),
               STR_ARG(p->matcher->value));
}

/* Is this string, with its quotes, the value of our matcher? */
static bool is_our_value(const struct parser *p, str quoted)
{
    return quoted.n == p->matcher->value.n + 2 && quoted.p[0] == '"' &&
           str_eq((str){ quoted.p + 1, quoted.n - 2 }, p->matcher->value);
}

/* name op "value", "quoted name" op "value", or "quoted metric". */
static int parse_matcher(struct parser *p, bool *ret_is_ours)
{
    bool quoted = p->token.kind == PROMQL_STRING;
    bool ours = !quoted && str_eq(p->token.text, p->matcher->label);
    *ret_is_ours = false;
    if (!quoted && p->token.kind != PROMQL_NAME)
        return refuse_token(p, "a label");
    int r = take_token(p);
    if (r < 0 || (quoted && (is_sign(p, ",") || is_sign(p, "}"))))
        return r;
    ours &= is_sign(p, "=");
    if (!is_sign(p, "=") && !is_sign(p, "!=") && !is_sign(p, "=~") && !is_sign(p, "!~"))
        return refuse_token(p, "one of = != =~ !~");
    r = take_token(p);
    if (r < 0)
        return r;
    if (p->token.kind != PROMQL_STRING)
        return refuse_token(p, "a string");
    *ret_is_ours = ours && is_our_value(p, p->token.text);
    return take_token(p);
}

/* "{" ... "}". Adds our matcher unless it is already there; a trailing comma needs no second
 * one. */
static int parse_matchers(struct parser *p)
{
    bool confined = false, needs_comma = false;
    int r = take_sign(p, "{", "{");
    while (r == 0 && !is_sign(p, "}")) {
        bool ours = false;
        r = needs_comma ? refuse_token(p, ", or }") : parse_matcher(p, &ours);
        if (r < 0)
            return r;
        confined |= ours;
        needs_comma = !is_sign(p, ",");
        r = needs_comma ? 0 : take_token(p);
    }
    if (r < 0)
        return r;
    if (!confined) {
        if (needs_comma)
            buf_putc(&p->out, ',');
        put_matcher(p);
    }
    return take_token(p);
}

/* A metric name, with or without matchers. */
static int parse_metric(struct parser *p)
{
    int r = take_token(p);
    if (r < 0 || is_sign(p, "{"))
        return r < 0 ? r : parse_matchers(p);
    buf_putc(&p->out, '{');
    put_matcher(p);
    buf_putc(&p->out, '}');
    return 0;
}

/* ---- calls */

static const char *const functions[] = { "abs",
                                         "absent",
                                         "absent_over_time",
                                         "acos",
                                         "acosh",
                                         "asin",
                                         "asinh",
                                         "atan",
                                         "atanh",
                                         "avg_over_time",
                                         "ceil",
                                         "changes",
                                         "clamp",
                                         "clamp_max",
                                         "clamp_min",
                                         "cos",
                                         "cosh",
                                         "count_over_time",
                                         "day_of_month",
                                         "day_of_week",
                                         "day_of_year",
                                         "days_in_month",
                                         "deg",
                                         "delta",
                                         "deriv",
                                         "double_exponential_smoothing",
                                         "exp",
                                         "first_over_time",
                                         "floor",
                                         "histogram_avg",
                                         "histogram_count",
                                         "histogram_fraction",
                                         "histogram_quantile",
                                         "histogram_stddev",
                                         "histogram_stdvar",
                                         "histogram_sum",
                                         "holt_winters",
                                         "hour",
                                         "idelta",
                                         "increase",
                                         "irate",
                                         "label_join",
                                         "label_replace",
                                         "last_over_time",
                                         "ln",
                                         "log10",
                                         "log2",
                                         "mad_over_time",
                                         "max_over_time",
                                         "min_over_time",
                                         "minute",
                                         "month",
                                         "pi",
                                         "predict_linear",
                                         "present_over_time",
                                         "quantile_over_time",
                                         "rad",
                                         "rate",
                                         "resets",
                                         "round",
                                         "scalar",
                                         "sgn",
                                         "sin",
                                         "sinh",
                                         "sort",
                                         "sort_by_label",
                                         "sort_by_label_desc",
                                         "sort_desc",
                                         "sqrt",
                                         "stddev_over_time",
                                         "stdvar_over_time",
                                         "sum_over_time",
                                         "tan",
                                         "tanh",
                                         "time",
                                         "timestamp",
                                         "vector",
                                         "year",
                                         NULL };

static const char *const aggregations[] = { "sum",    "avg",         "count",    "min",
                                            "max",    "group",       "stddev",   "stdvar",
                                            "topk",   "bottomk",     "quantile", "count_values",
                                            "limitk", "limit_ratio", NULL };

static const char *const keywords[] = {
    "and",      "or",         "unless",      "atan2",     "offset",     "by",  "without", "on",
    "ignoring", "group_left", "group_right", "bool",      "start",      "end", "step",    "range",
    "anchored", "smoothed",   "fill",        "fill_left", "fill_right", NULL
};

/* "(" [expression {"," expression}] ")" */
static int parse_arguments(struct parser *p)
{
    int r = take_sign(p, "(", "(");
    if (r == 0 && !is_sign(p, ")"))
        r = parse_expression(p);
    while (r == 0 && is_sign(p, ",")) {
        r = take_token(p);
        r = r < 0 ? r : parse_expression(p);
    }
    return r < 0 ? r : take_sign(p, ")", ", or )");
}

/* "(" [label {"," label} [","]] ")": label names select nothing. */
static int parse_labels(struct parser *p)
{
    int r = take_sign(p, "(", "( with labels");
    while (r == 0 && !is_sign(p, ")")) {
        if (p->token.kind != PROMQL_NAME && p->token.kind != PROMQL_STRING)
            return refuse_token(p, "a label");
        r = take_token(p);
        if (r == 0 && !is_sign(p, ")"))
            r = take_sign(p, ",", ", or )");
    }
    return r < 0 ? r : take_token(p);
}

static int parse_grouping(struct parser *p)
{
    int r = take_token(p);
    return r < 0 ? r : parse_labels(p);
}

/* The grouping may precede or follow the arguments: sum by (a) (x), sum (x) by (a). */
static int parse_aggregation(struct parser *p)
{
    struct promql_token name = p->token;
    int r = take_token(p);
    bool grouped = is_word(p, WORDS("by", "without"));
    if (r == 0 && !grouped && !is_sign(p, "("))
        return promql_refuse(p->lexer.query, name.at, p->e,
                             "\"" STR_FMT "\" is an aggregation; write {__name__=\"" STR_FMT
                             "\"} for a metric of that name",
                             STR_ARG(name.text), STR_ARG(name.text));
    if (r == 0 && grouped)
        r = parse_grouping(p);
    r = r < 0 ? r : parse_arguments(p);
    if (r == 0 && !grouped && is_word(p, WORDS("by", "without")))
        r = parse_grouping(p);
    return r;
}

/* A name that is neither a number nor an aggregation: a function if ( follows, otherwise a
 * metric. */
static int parse_name(struct parser *p)
{
    struct promql_lexer ahead = p->lexer;
    struct promql_token next;
    str name = p->token.text;
    if (is_word(p, keywords))
        return promql_refuse(p->lexer.query, p->token.at, p->e,
                             "unexpected keyword \"" STR_FMT "\"; write {__name__=\"" STR_FMT
                             "\"} for a metric of that name",
                             STR_ARG(name), STR_ARG(name));
    int r = promql_lex(&ahead, &next, p->e);
    if (r < 0)
        return r;
    if (next.kind != PROMQL_SIGN || !str_eqc(next.text, "("))
        return parse_metric(p);
    for (const char *const *known = functions; *known; known++)
        if (str_eqc(name, *known)) { /* case-sensitive, unlike keywords */
            r = take_token(p);
            return r < 0 ? r : parse_arguments(p);
        }
    return promql_refuse(p->lexer.query, p->token.at, p->e,
                         "function \"" STR_FMT "\" is unknown or not allowed here",
                         STR_ARG(str_upto(name, 60)));
}

/* ---- expressions */

/* An operand without signs, ranges and modifiers. */
static int parse_primary(struct parser *p)
{
    int r;
    switch (p->token.kind) {
    case PROMQL_NUMBER:
    case PROMQL_DURATION:
    case PROMQL_STRING:
        return take_token(p);
    case PROMQL_METRIC:
        return parse_metric(p);
    case PROMQL_NAME:
        if (is_word(p, WORDS("inf", "nan")))
            return take_token(p);
        return is_word(p, aggregations) ? parse_aggregation(p) : parse_name(p);
    default:
        if (is_sign(p, "{"))
            return parse_matchers(p);
        if (!is_sign(p, "("))
            return refuse_token(p, "an expression");
        r = take_token(p);
        r = r < 0 ? r : parse_expression(p);
        return r < 0 ? r : take_sign(p, ")", "an operator or )");
    }
}

static int parse_signs(struct parser *p)
{
    int r = 0;
    while (r == 0 && (is_sign(p, "+") || is_sign(p, "-")))
        r = take_token(p);
    return r;
}

static int parse_duration(struct parser *p)
{
    if (p->token.kind != PROMQL_DURATION && p->token.kind != PROMQL_NUMBER)
        return refuse_token(p, "a duration");
    return take_token(p);
}

/* "[5m]", "[5m:1m]" or "[5m:]". The lexer must know that it is in a range before it reads the token
 * after [, hence the flag is set first. */
static int parse_range(struct parser *p)
{
    p->lexer.in_range = true;
    int r = take_token(p);
    r = r < 0 ? r : parse_duration(p);
    if (r == 0 && is_sign(p, ":")) {
        r = take_token(p);
        if (r == 0 && !is_sign(p, "]"))
            r = parse_duration(p);
    }
    p->lexer.in_range = false;
    return r < 0 ? r : take_sign(p, "]", "]");
}

/* @ 1609746000, @ start(), @ end() */
static int parse_at(struct parser *p)
{
    int r = take_token(p);
    if (r == 0 && is_word(p, WORDS("start", "end"))) {
        r = take_token(p);
        r = r < 0 ? r : take_sign(p, "(", "(");
        return r < 0 ? r : take_sign(p, ")", ")");
    }
    r = r < 0 ? r : parse_signs(p);
    if (r == 0 && p->token.kind != PROMQL_NUMBER)
        return refuse_token(p, "a time, start() or end()");
    return r < 0 ? r : take_token(p);
}

/* A primary expression with its signs, ranges and modifiers, in any order and number. */
static int parse_operand(struct parser *p)
{
    int r = parse_signs(p);
    r = r < 0 ? r : parse_primary(p);
    while (r == 0) {
        if (is_sign(p, "[")) {
            r = parse_range(p);
        } else if (is_sign(p, "@")) {
            r = parse_at(p);
        } else if (is_word(p, WORDS("offset"))) {
            r = take_token(p);
            r = r < 0 ? r : parse_signs(p);
            r = r < 0 ? r : parse_duration(p);
        } else {
            break;
        }
    }
    return r;
}

static bool is_operator(const struct parser *p)
{
    static const char *const signs[] = { "+",  "-", "*", "/",  "%",  "^", "==",
                                         "!=", ">", "<", ">=", "<=", NULL };
    return p->token.kind == PROMQL_SIGN ? is_one_of(p->token.text, signs)
                                        : is_word(p, WORDS("and", "or", "unless", "atan2"));
}

/* An operator and its matching clause. After group_left a ( always starts a list of labels, as in
 * Prometheus; the operand follows it. */
static int parse_operator(struct parser *p)
{
    int r = take_token(p);
    if (r == 0 && is_word(p, WORDS("bool")))
        r = take_token(p);
    if (r < 0 || !is_word(p, WORDS("on", "ignoring")))
        return r;
    r = parse_grouping(p);
    if (r < 0 || !is_word(p, WORDS("group_left", "group_right")))
        return r;
    r = take_token(p);
    return r == 0 && is_sign(p, "(") ? parse_labels(p) : r;
}

static int parse_expression(struct parser *p)
{
    if (p->depth == PROMQL_DEPTH_MAX)
        return promql_refuse(p->lexer.query, p->token.at, p->e, "the query is nested too deeply");
    p->depth++;
    int r = parse_operand(p);
    while (r == 0 && is_operator(p)) {
        r = parse_operator(p);
        r = r < 0 ? r : parse_operand(p);
    }
    p->depth--;
    return r;
}

/* ---- the query */

/* Valid UTF-8 without NUL. */
static bool is_text(str query)
{
    while (query.n) {
        str before = query;
        uint32_t point = utf8_next(&query);
        if (!point || (point == 0xfffd && before.n - query.n == 1))
            return false;
    }
    return true;
}

static bool is_plain(str text, const char *others)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (!c || !strchr(others, c)))
            return false;
    }
    return text.n > 0;
}

int promql_confine(struct arena *a, str query, const struct promql_matcher *matcher, str *ret,
                   err_t *e)
{
    struct parser p = { .lexer = { .query = query }, .matcher = matcher, .e = e };
    if (!is_plain(matcher->label, "_") || !is_plain(matcher->value, ".-"))
        return err_set(e, EINVAL, "\"" STR_FMT "\" is not a valid value of a label matcher",
                       STR_ARG(str_upto(matcher->value, 60)));
    if (query.n > PROMQL_BYTES_MAX)
        return err_set(e, E2BIG, "the query has %zu bytes; the limit is %d", query.n,
                       PROMQL_BYTES_MAX);
    if (!is_text(query))
        return err_set(e, EINVAL, "the query is not UTF-8 text");
    int r = promql_lex(&p.lexer, &p.token, e);
    r = r < 0 ? r : parse_expression(&p);
    if (r == 0 && p.token.kind != PROMQL_END)
        r = refuse_token(&p, "an operator or the end of the query");
    if (r == 0)
        *ret = arena_str(a, buf_str(&p.out));
    buf_done(&p.out);
    return r;
}
