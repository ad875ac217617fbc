/* Tokens of CEL, and the list of errors of one compilation.
 *
 * A token is a mark ("&&"), a word, a literal or the end. Literals are converted here, so that the parser sees
 * values. Errors name a place; cel_issues_text() prints them as kube-apiserver does, with the line of the source
 * and a pointer below it:
 *
 *     ERROR: <input>:1:5: undefined field 'nope'
 *      | self.nope == 1
 *      | ....^
 */
#include "../../../base/utf8.h"
#include "cel_node.h"

#include <stdarg.h>
#include <stdio.h>

void cel_issue(struct cel_issues *issues, uint32_t at, const char *format, ...)
{
    if (issues->n == CEL_ISSUES_MAX)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    issues->items[issues->n++] =
        (struct cel_issue){ at, arena_str(issues->arena, utf8_clean(issues->arena, str_c(text))) };
}

static int compare_issues(const void *a, const void *b)
{
    uint32_t left = ((const struct cel_issue *)a)->at, right = ((const struct cel_issue *)b)->at;
    return left < right ? -1 : left > right;
}

/* Appends one error: line and column from 1, the line, and a pointer to the column. */
static void put_issue(struct buf *out, str source, const struct cel_issue *issue)
{
    uint32_t line = 1, start = 0;
    for (uint32_t i = 0; i < issue->at && i < source.n; i++)
        if (source.p[i] == '\n')
            line++, start = i + 1;
    str rest = str_from(source, start);
    size_t end = str_find_char(rest, '\n');
    size_t column = (size_t)cel_count_chars(str_upto(rest, issue->at - start));
    buf_printf(out, "ERROR: <input>:%u:%zu: " STR_FMT "\n | ", line, column + 1,
               STR_ARG(issue->message));
    buf_put(out, end == SIZE_MAX ? rest : str_upto(rest, end));
    buf_put(out, S("\n | "));
    for (size_t i = 0; i < column; i++)
        buf_putc(out, '.');
    buf_putc(out, '^');
}

str cel_issues_text(struct cel_issues *issues)
{
    auto_buf struct buf out = { 0 };
    qsort(issues->items, issues->n, sizeof(issues->items[0]), compare_issues);
    for (size_t i = 0; i < issues->n; i++) {
        if (i)
            buf_putc(&out, '\n');
        put_issue(&out, issues->text, &issues->items[i]);
    }
    return arena_str(issues->arena, buf_str(&out));
}

/* ---- literals */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static char char_at(str text, size_t at)
{
    return at < text.n ? text.p[at] : '\0';
}

/* The value of a decimal or hexadecimal integer; false if it does not fit in 64 bits. */
static bool read_natural(str digits, bool hex, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.n; i++) {
        uint64_t base = hex ? 16 : 10;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (uint64_t)hex_digit(digits.p[i]), &value))
            return false;
    }
    *ret = value;
    return true;
}

/* An integer stays a natural number here: the parser knows whether a minus sign precedes it. */
static struct cel_token read_integer(struct cel_issues *issues, uint32_t *at, bool hex)
{
    struct cel_token token = { CEL_T_CONST, *at };
    str text = issues->text;
    size_t start = *at + (hex ? 2u : 0u), end = start;
    while (hex ? hex_digit(char_at(text, end)) >= 0 : is_digit(char_at(text, end)))
        end++;
    bool is_unsigned = char_at(text, end) == 'u' || char_at(text, end) == 'U';
    uint64_t value = 0;
    if (end == start || !read_natural(str_upto(str_from(text, start), end - start), hex, &value)) {
        cel_issue(issues, token.at, "invalid %s literal", is_unsigned ? "uint" : "int");
        token.kind = CEL_T_BAD;
    }
    token.constant =
        (struct cel_value){ .kind = is_unsigned ? CEL_UINT : CEL_INT, .natural = value };
    *at = (uint32_t)(end + is_unsigned);
    return token;
}

static struct cel_token read_number(struct cel_issues *issues, uint32_t *at)
{
    str text = issues->text;
    if (char_at(text, *at) == '0' && (char_at(text, *at + 1) | 32) == 'x')
        return read_integer(issues, at, true);
    size_t end = *at;
    bool real = false;
    while (is_digit(char_at(text, end)))
        end++;
    if (char_at(text, end) == '.' && is_digit(char_at(text, end + 1))) {
        real = true;
        for (end++; is_digit(char_at(text, end));)
            end++;
    }
    if ((char_at(text, end) | 32) == 'e') {
        size_t exponent = end + 1;
        exponent += char_at(text, exponent) == '+' || char_at(text, exponent) == '-';
        if (is_digit(char_at(text, exponent))) {
            real = true;
            for (end = exponent; is_digit(char_at(text, end));)
                end++;
        }
    }
    if (!real)
        return read_integer(issues, at, false);
    struct cel_token token = { CEL_T_CONST, *at, .constant = { .kind = CEL_DOUBLE } };
    auto_buf struct buf copy = { 0 };
    buf_put(&copy, str_upto(str_from(text, *at), end - *at));
    token.constant.real = strtod(buf_str(&copy).p, NULL);
    *at = (uint32_t)end;
    return token;
}

/* Appends the character of an escape sequence at `at` (after the backslash); returns what it takes, or 0 if
 * there is no such sequence. In bytes, \x and octal are bytes, otherwise code points. */
static size_t read_escape(str text, size_t at, bool bytes, struct buf *out)
{
    static const char from[] = "abfnrtv\\'\"`?", to[] = "\a\b\f\n\r\t\v\\'\"`?";
    char c = char_at(text, at);
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        buf_putc(out, to[simple - from]);
        return 1;
    }
    size_t digits = c == 'x' || c == 'X' ? 2
                    : c == 'u'           ? 4
                    : c == 'U'           ? 8
                                         : 0,
           skip = digits ? 1 : 0;
    uint32_t base = digits ? 16 : 8, value = 0;
    if (!digits)
        digits = 3;
    if (bytes && (c == 'u' || c == 'U'))
        return 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_digit(char_at(text, at + skip + i));
        if (digit < 0 || digit >= (int)base)
            return 0;
        value = value * base + (uint32_t)digit;
    }
    if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000) || (base == 8 && value > 255))
        return 0;
    if (bytes)
        buf_putc(out, (char)value);
    else
        utf8_put(out, value);
    return skip + digits;
}

/* A string or bytes literal; `at` is its prefix. */
static struct cel_token read_text(struct cel_issues *issues, uint32_t *at)
{
    struct cel_token token = { CEL_T_CONST, *at };
    str text = issues->text;
    size_t i = *at;
    bool raw = false, bytes = false;
    for (; is_letter(char_at(text, i)); i++)
        (char_at(text, i) | 32) == 'r' ? (raw = true) : (bytes = true);
    str rest = str_from(text, i);
    bool triple = str_starts(rest, S("'''")) || str_starts(rest, S("\"\"\""));
    str quote = str_upto(rest, triple ? 3 : 1);
    auto_buf struct buf value = { 0 };
    for (i += quote.n; i < text.n && !str_starts(str_from(text, i), quote);) {
        if (text.p[i] == '\\' && !raw) {
            size_t used = read_escape(text, i + 1, bytes, &value);
            if (!used)
                cel_issue(issues, (uint32_t)i, "Syntax error: token recognition error at: '%.*s'",
                          (int)MIN(text.n - i, (size_t)2), text.p + i);
            i += 1 + MAX(used, (size_t)1);
        } else if (text.p[i] == '\n' && !triple) {
            break;
        } else {
            buf_putc(&value, text.p[i++]);
        }
    }
    if (!str_starts(str_from(text, i), quote)) {
        cel_issue(issues, token.at, "Syntax error: token recognition error at: '" STR_FMT "'",
                  STR_ARG(str_upto(str_from(text, token.at), 40)));
        *at = (uint32_t)text.n;
        return (struct cel_token){ CEL_T_BAD, token.at };
    }
    token.constant = cel_kept_text(issues->keep, &value);
    token.constant.kind = bytes ? CEL_BYTES : CEL_STRING;
    *at = (uint32_t)(i + quote.n);
    return token;
}

/* True if a literal starts here: a quote, possibly after r, b or both. */
static bool is_text_start(str text, size_t at)
{
    for (int prefix = 0; prefix < 2; prefix++) {
        char c = (char)(char_at(text, at) | 32);
        if (c != 'r' && c != 'b')
            break;
        at++;
    }
    return char_at(text, at) == '\'' || char_at(text, at) == '"';
}

/* Skips white space and comments. */
static void skip_blanks(str text, uint32_t *at)
{
    while (*at < text.n) {
        char c = text.p[*at];
        if (str_starts(str_from(text, *at), S("//")))
            while (*at < text.n && text.p[*at] != '\n')
                ++*at;
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f')
            ++*at;
        else
            return;
    }
}

struct cel_token cel_next_token(struct cel_issues *issues, uint32_t *at)
{
    static const char *const marks[] = { "&&", "||", "==", "!=", "<=", ">=", "<", ">",
                                         "+",  "-",  "*",  "/",  "%",  "!",  "?", ":",
                                         ".",  ",",  "(",  ")",  "[",  "]",  "{", "}" };
    str text = issues->text;
    skip_blanks(text, at);
    struct cel_token token = { CEL_T_END, *at };
    char c = char_at(text, *at), next = char_at(text, *at + 1u);
    if (*at >= text.n)
        return token;
    if (is_text_start(text, *at))
        return read_text(issues, at);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        return read_number(issues, at);
    if (is_letter(c)) {
        size_t end = *at;
        while (is_letter(char_at(text, end)) || is_digit(char_at(text, end)))
            end++;
        token = (struct cel_token){ CEL_T_WORD, *at, str_upto(str_from(text, *at), end - *at) };
        *at = (uint32_t)end;
        return token;
    }
    for (size_t i = 0; i < countof(marks); i++) {
        if (!str_starts(str_from(text, *at), str_c(marks[i])))
            continue;
        token = (struct cel_token){ CEL_T_MARK, *at, str_c(marks[i]) };
        *at += (uint32_t)strlen(marks[i]);
        return token;
    }
    str rest = str_from(text, *at);
    utf8_next(&rest);
    cel_issue(issues, *at, "Syntax error: token recognition error at: '%.*s'",
              (int)(text.n - *at - rest.n), text.p + *at);
    *at = (uint32_t)(text.n - rest.n);
    token.kind = CEL_T_BAD;
    return token;
}
