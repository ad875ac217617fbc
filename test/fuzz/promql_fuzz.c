/* What promql_confine() accepts is confined: an independent oracle, which knows no grammar but only where
 * strings end, finds the matcher in every pair of braces, and braces after every name that could be a
 * metric. Confining the result again does not change it. */
#include "base/buf.h"
#include "prom/promql.h"

#include "fuzz.h"

static const struct promql_matcher shop = { STR_INIT("namespace"), STR_INIT("shop") };

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.';
}

static size_t skip_string(str s, size_t at)
{
    char quote = s.p[at++];
    while (at < s.n && s.p[at] != quote)
        at += quote != '`' && s.p[at] == '\\' ? 2 : 1;
    return at + 1;
}

static size_t skip_blanks(str s, size_t at)
{
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '\n' || s.p[at] == '\r'))
        at++;
    return at;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* To the end of what opens at `at`; true when it contains our matcher. */
static bool skip_braces(str s, size_t *at)
{
    bool found = false;
    while (*at < s.n && s.p[*at] != '}') {
        bool begins =
            *at > 0 && (s.p[*at - 1] == '{' || s.p[*at - 1] == ',' || s.p[*at - 1] == ' ');
        found |= begins && str_starts(str_from(s, *at), S("namespace=\"shop\""));
        *at = is_quote(s.p[*at]) ? skip_string(s, *at) : *at + 1;
    }
    return found;
}

static bool is_one_of(str word, const char *words)
{
    str rest = str_c(words), one;
    while (str_cut(&rest, ' ', &one))
        if (str_eq_nocase(word, one))
            return true;
    return false;
}

/* Labels between parentheses are no metrics. */
static bool takes_labels(str word)
{
    return is_one_of(word, "by without on ignoring group_left group_right");
}

static bool is_no_metric(str word)
{
    return takes_labels(word) || (word.p[0] >= '0' && word.p[0] <= '9') || word.p[0] == '.' ||
           is_one_of(
               word,
               "and or unless atan2 bool offset start end inf nan sum avg count min max group stddev "
               "stdvar topk bottomk quantile count_values limitk limit_ratio");
}

/* At a name; returns where to go on. */
static size_t check_name(str s, size_t at)
{
    size_t end = at;
    while (end < s.n && is_name(s.p[end]))
        end++;
    str word = { s.p + at, end - at };
    size_t next = skip_blanks(s, end);
    char follows = next < s.n ? s.p[next] : '\0';
    if (takes_labels(word) && follows == '(') {
        while (next < s.n && s.p[next] != ')')
            next = is_quote(s.p[next]) ? skip_string(s, next) : next + 1;
        return next;
    }
    if (follows != '{' && follows != '(' && !is_no_metric(word))
        abort(); /* a metric without braces */
    return end;
}

static void check(str s)
{
    bool in_range = false;
    for (size_t at = 0; at < s.n;) {
        char c = s.p[at];
        in_range = (in_range || c == '[') && c != ']';
        if (c == '#')
            abort(); /* comments are dropped */
        if (is_quote(c)) {
            at = skip_string(s, at);
        } else if (c == '{') {
            at++;
            if (!skip_braces(s, &at))
                abort(); /* a selector that is not confined */
        } else if (is_name(c) && !in_range) {
            at = check_name(s, at);
        } else {
            at++;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str confined, again;
    err_t e;
    if (promql_confine(&a, (str){ (const char *)data, size }, &shop, &confined, &e) < 0)
        return 0;
    check(confined);
    if (confined.n > PROMQL_BYTES_MAX)
        return 0;
    if (promql_confine(&a, confined, &shop, &again, &e) < 0 || !str_eq(confined, again))
        abort();
    return 0;
}
