/* The lexer of PromQL: see promql_lex.h.
 *
 * The invariant is about security, not convenience: a string, comment or name ends here exactly
 * where it ends for Prometheus, or the query is rejected. Text that we read as a string and
 * Prometheus reads as a selector would escape confinement:
 *
 *     up{a=`\`} or secret{b=`x`}      a lexer that knew escapes in ` would see one string from the
 *          ^^^                        first ` to b=`, and overlook the selector of `secret`
 *
 * So every escape is checked against the list that Prometheus accepts, a string in quotes must not
 * contain a line break, and a number must be one that Prometheus reads as a single token. Tokens
 * are slices of the query; nothing is unescaped or converted, because the query is only copied. */
#include "promql_lex.h"

#include "../base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

int promql_refuse(str query, size_t at, err_t *e, const char *format, ...)
{
    char text[300];
    size_t characters = 1;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (size_t i = 0; i < MIN(at, query.n); i++)
        characters += ((unsigned char)query.p[i] & 0xc0) != 0x80;
    return err_set(e, EINVAL, "at character %zu: %s", characters, text);
}

static char char_at(const struct promql_lexer *l, size_t at)
{
    return at < l->query.n ? l->query.p[at] : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* True if anything was skipped. A comment ends with its line. */
static bool skip_blanks(struct promql_lexer *l)
{
    size_t start = l->at;
    while (l->at < l->query.n) {
        if (char_at(l, l->at) == '#')
            while (l->at < l->query.n && char_at(l, l->at) != '\n' && char_at(l, l->at) != '\r')
                l->at++;
        else if (is_blank(char_at(l, l->at)))
            l->at++;
        else
            break;
    }
    return l->at > start;
}

/* ---- strings */

/* The length of an escape sequence after its backslash; 0: Prometheus knows no such escape. */
static size_t escape_length(const struct promql_lexer *l, size_t at, char quote)
{
    char c = char_at(l, at);
    if (c && (c == quote || strchr("abfnrtv\\", c)))
        return 1;
    size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    for (size_t i = 0; n && i < n; i++)
        if (!char_at(l, at + 1 + i) || !strchr("0123456789abcdefABCDEF", char_at(l, at + 1 + i)))
            return 0;
    if (n)
        return n + 1;
    for (size_t i = 0; i < 3; i++)
        if (char_at(l, at + i) < '0' || char_at(l, at + i) > '7')
            return 0;
    return 3;
}

/* A string in " or ' with escapes, or in ` without. */
static int lex_string(struct promql_lexer *l, err_t *e)
{
    size_t start = l->at;
    char quote = char_at(l, l->at++);
    while (l->at < l->query.n && char_at(l, l->at) != quote) {
        char c = char_at(l, l->at++);
        if (quote == '`')
            continue;
        if (c == '\n')
            break;
        if (c == '\\') {
            size_t n = escape_length(l, l->at, quote);
            if (!n)
                return promql_refuse(l->query, l->at - 1, e, "unknown escape sequence in a string");
            l->at += n;
        }
    }
    if (char_at(l, l->at) != quote)
        return promql_refuse(l->query, start, e, "unterminated string");
    l->at++;
    return 0;
}

/* ---- numbers */

/* digits [ "." digits ] [ e [+-] digits ], with a digit before or after the point. */
static bool is_decimal(str text)
{
    size_t i = 0, digits = 0;
    for (; i < text.n && (is_digit(text.p[i]) || text.p[i] == '.'); i++)
        digits += is_digit(text.p[i]);
    str whole = str_upto(text, i);
    size_t dot = str_find_char(whole, '.');
    if (!digits || (dot != SIZE_MAX && str_find_char(str_from(whole, dot + 1), '.') != SIZE_MAX))
        return false;
    if (i == text.n)
        return true;
    if (text.p[i] != 'e' && text.p[i] != 'E')
        return false;
    i += i + 1 < text.n && (text.p[i + 1] == '+' || text.p[i + 1] == '-') ? 2 : 1;
    if (i == text.n)
        return false;
    while (i < text.n && is_digit(text.p[i]))
        i++;
    return i == text.n;
}

static bool is_hexadecimal(str text)
{
    if (text.n < 3 || text.p[0] != '0' || (text.p[1] != 'x' && text.p[1] != 'X'))
        return false;
    for (size_t i = 2; i < text.n; i++)
        if (!strchr("0123456789abcdefABCDEF", text.p[i]) || !text.p[i])
            return false;
    return true;
}

/* A sequence of numbers with units, such as 1h30m. The order of units is left to Prometheus. */
static bool is_duration(str text)
{
    while (text.n) {
        size_t i = 0;
        while (i < text.n && is_digit(text.p[i]))
            i++;
        if (!i || i == text.n || !strchr("smhdwy", text.p[i]))
            return false;
        bool milli = text.p[i] == 'm' && i + 1 < text.n && text.p[i + 1] == 's';
        text = str_from(text, i + 1 + milli);
    }
    return true;
}

/* Consumes everything that could belong to a number and then decides what it is, so that "5mx" is
 * an error instead of two tokens. A sign belongs to it only as part of an exponent. */
static int lex_number(struct promql_lexer *l, enum promql_token_kind *ret, err_t *e)
{
    size_t start = l->at;
    for (;; l->at++) {
        char c = char_at(l, l->at), before = l->at > start ? char_at(l, l->at - 1) : '\0';
        str so_far = { l->query.p + start, l->at - start };
        bool exponent = (c == '+' || c == '-') && (before == 'e' || before == 'E') &&
                        is_decimal(str_upto(so_far, so_far.n - 1)) &&
                        is_digit(char_at(l, l->at + 1));
        if (!is_alpha(c) && !is_digit(c) && c != '.' && !exponent)
            break;
    }
    str text = { l->query.p + start, l->at - start };
    *ret = is_decimal(text) || is_hexadecimal(text) ? PROMQL_NUMBER : PROMQL_DURATION;
    if (*ret == PROMQL_DURATION && !is_duration(text))
        return promql_refuse(l->query, start, e, "bad number or duration \"" STR_FMT "\"",
                             STR_ARG(str_upto(text, 40)));
    return 0;
}

/* ---- the rest */

static void lex_name(struct promql_lexer *l, enum promql_token_kind *ret)
{
    *ret = PROMQL_NAME;
    for (char c; (c = char_at(l, l->at)); l->at++) {
        if (c == ':' && !l->in_range)
            *ret = PROMQL_METRIC;
        else if (!is_alpha(c) && !is_digit(c))
            break;
    }
}

/* The longest operator or bracket. */
static int lex_sign(struct promql_lexer *l, err_t *e)
{
    static const char *const two[] = { "==", "!=", ">=", "<=", "=~", "!~" };
    str rest = str_from(l->query, l->at);
    for (size_t i = 0; i < countof(two); i++)
        if (str_starts(rest, str_c(two[i]))) {
            l->at += 2;
            return 0;
        }
    if (strchr("+-*/%^=<>(){}[],:@", char_at(l, l->at))) {
        l->at++;
        return 0;
    }
    uint32_t point = utf8_next(&rest);
    return point >= ' ' && point < 0x7f
               ? promql_refuse(l->query, l->at, e, "unexpected \"%c\"", (char)point)
               : promql_refuse(l->query, l->at, e, "unexpected character U+%04X", point);
}

int promql_lex(struct promql_lexer *l, struct promql_token *ret, err_t *e)
{
    bool blanks = skip_blanks(l);
    size_t start = l->at;
    char c = char_at(l, l->at);
    enum promql_token_kind kind = PROMQL_SIGN;
    int r = 0;
    if (l->at >= l->query.n)
        kind = PROMQL_END;
    else if (c == '"' || c == '\'' || c == '`')
        kind = PROMQL_STRING, r = lex_string(l, e);
    else if (is_digit(c) || (c == '.' && is_digit(char_at(l, l->at + 1))))
        r = lex_number(l, &kind, e);
    else if (is_alpha(c) || (c == ':' && !l->in_range))
        lex_name(l, &kind);
    else
        r = lex_sign(l, e);
    if (r < 0)
        return r;
    *ret = (struct promql_token){ kind, { l->query.p + start, l->at - start }, start, blanks };
    return 0;
}
