/* The parser of regular expressions: recursive descent over code points.
 *
 *     alternatives   sequence { "|" sequence }
 *     sequence       { atom [ "*" | "+" | "?" | "{n,m}" ] }
 *     atom           "(" [flags] alternatives ")" | "[" class "]" | escape | "." | "^" | "$" | character
 *
 * The syntax and the limits (repetition up to 1000, no repetition of a repetition) are those of
 * Go's regexp, so that a CRD is accepted here if kube-apiserver accepts it. Every character becomes
 * a set of ranges; case folding and negation are resolved here, so the matcher knows only sets and
 * assertions.
 *
 * Nesting is bounded, because it is recursion: a pattern of 16 KiB could hold 8,000 parentheses.
 * Nodes and sets live in the arena of the caller; a ranges_t under construction is on the heap and
 * freed by the function that fills it. */
#include "regex_node.h"

#include "vec.h"

enum { NESTING_MAX = 250, REPEAT_MAX = 1000, PATTERN_BYTES_MAX = 16384 };

struct parser {
    struct arena *arena;
    str pattern;
    size_t at;
    unsigned depth;
    bool fold, lines, dot_all; /* (?i) (?m) (?s) */
    err_t *e;
};

typedef VEC(struct regex_range) ranges_t;

static int parse_alternatives(struct parser *p, const struct regex_node **ret);

/* The text names the pattern and the position of the error. */
static int fail_at(struct parser *p, int code, const char *what)
{
    return err_set(p->e, code, "pattern `" STR_FMT "`: %s at byte %zu", STR_ARG(p->pattern), what,
                   p->at);
}

/* Unlike utf8_next() this reads at an offset, because the matcher looks ahead by one character.
 * Both accept the same sequences: no overlong forms, no surrogates. */
uint32_t regex_char(str text, size_t at, size_t *ret_width)
{
    const unsigned char *p = (const unsigned char *)text.p + at;
    size_t left = text.n - at;
    *ret_width = 1;
    if (p[0] < 0x80)
        return p[0];
    size_t width = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (!width || p[0] >= 0xf5 || width > left)
        return 0xfffd;
    uint32_t c = p[0] & (0xffu >> (width + 1));
    for (size_t i = 1; i < width; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0xfffd;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if ((width == 3 && c < 0x800) || (width == 4 && c < 0x10000) || c > REGEX_LAST_CHAR ||
        (c >= 0xd800 && c < 0xe000))
        return 0xfffd;
    *ret_width = width;
    return c;
}

static bool has_more(const struct parser *p)
{
    return p->at < p->pattern.n;
}

static bool accept(struct parser *p, const char *text)
{
    if (!str_starts(str_from(p->pattern, p->at), str_c(text)))
        return false;
    p->at += strlen(text);
    return true;
}

static uint32_t take_char(struct parser *p)
{
    size_t width = 0;
    uint32_t c = regex_char(p->pattern, p->at, &width);
    p->at += width;
    return c;
}

static struct regex_node *new_node(struct parser *p, enum regex_kind kind)
{
    struct regex_node *node = arena_new(p->arena, struct regex_node);
    node->kind = kind;
    return node;
}

/* A node of two operands, or the only operand there is. */
static const struct regex_node *join_nodes(struct parser *p, enum regex_kind kind,
                                           const struct regex_node *left,
                                           const struct regex_node *right)
{
    if (!left || !right)
        return left ? left : right;
    struct regex_node *node = new_node(p, kind);
    node->left = left, node->right = right;
    return node;
}

/* ---- sets of characters */

static void add_range(ranges_t *out, uint32_t first, uint32_t last)
{
    vec_push(out, ((struct regex_range){ first, last }));
}

static int by_first(const void *a, const void *b)
{
    const struct regex_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts the ranges, merges those that overlap, and complements the set if `negate`. The result is
 * in the arena. */
static struct regex_set build_set(struct parser *p, ranges_t *in, bool negate)
{
    if (in->n)
        qsort(in->at, in->n, sizeof(*in->at), by_first);
    struct regex_set set = { arena_array(p->arena, in->n + 1, sizeof(*set.at)), 0 };
    for (size_t i = 0; i < in->n; i++) {
        struct regex_range r = in->at[i];
        if (set.n && r.first <= set.at[set.n - 1].last + 1)
            set.at[set.n - 1].last = MAX(set.at[set.n - 1].last, r.last);
        else
            set.at[set.n++] = r;
    }
    if (!negate)
        return set;
    struct regex_set rest = { arena_array(p->arena, set.n + 1, sizeof(*rest.at)), 0 };
    uint32_t next = 0;
    for (uint32_t i = 0; i < set.n; i++) {
        if (set.at[i].first > next)
            rest.at[rest.n++] = (struct regex_range){ next, set.at[i].first - 1 };
        next = set.at[i].last + 1;
    }
    if (next <= REGEX_LAST_CHAR)
        rest.at[rest.n++] = (struct regex_range){ next, REGEX_LAST_CHAR };
    return rest;
}

/* Adds the other case of every ASCII letter in the set. */
static void fold_case(ranges_t *set)
{
    for (size_t i = 0, n = set->n; i < n; i++) {
        struct regex_range r = set->at[i];
        uint32_t first = MAX(r.first, 'a'), last = MIN(r.last, 'z');
        if (first <= last)
            add_range(set, first - 32, last - 32);
        first = MAX(r.first, 'A'), last = MIN(r.last, 'Z');
        if (first <= last)
            add_range(set, first + 32, last + 32);
    }
}

/* Named sets as pairs of first and last character, sorted. */
static const struct {
    const char *name, *pairs;
} named_sets[] = {
    { "d", "09" },           { "w", "09AZ__az" },
    { "s", "\t\n\f\r  " },   { "alnum", "09AZaz" },
    { "alpha", "AZaz" },     { "ascii", "\x01\x7f" },
    { "blank", "\t\t  " },   { "cntrl", "\x01\x1f\x7f\x7f" },
    { "digit", "09" },       { "graph", "!~" },
    { "lower", "az" },       { "print", " ~" },
    { "punct", "!/:@[`{~" }, { "space", "\t\r  " },
    { "upper", "AZ" },       { "word", "09AZ__az" },
    { "xdigit", "09AFaf" },
};

/* Adds a named set, or its complement; false if there is none of that name. */
static bool add_named(struct parser *p, ranges_t *out, str name, bool negate)
{
    for (size_t i = 0; i < countof(named_sets); i++) {
        if (!str_eqc(name, named_sets[i].name))
            continue;
        ranges_t set = { 0 };
        for (const char *pair = named_sets[i].pairs; *pair; pair += 2)
            add_range(&set, (unsigned char)pair[0], (unsigned char)pair[1]);
        struct regex_set done = build_set(p, &set, negate);
        for (uint32_t j = 0; j < done.n; j++)
            add_range(out, done.at[j].first, done.at[j].last);
        free(set.at);
        return true;
    }
    return false;
}

/* ---- escapes */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* \x41 or \x{263a}, after the x. */
static int parse_hex(struct parser *p, uint32_t *ret)
{
    bool braces = accept(p, "{");
    uint32_t c = 0;
    unsigned digits = 0;
    while (has_more(p) && hex_digit(p->pattern.p[p->at]) >= 0 &&
           (braces ? digits < 8 : digits < 2)) {
        c = c * 16 + (uint32_t)hex_digit(p->pattern.p[p->at++]);
        digits++;
    }
    if (!digits || (!braces && digits != 2) || c > REGEX_LAST_CHAR || (braces && !accept(p, "}")))
        return fail_at(p, EINVAL, "bad hexadecimal escape");
    *ret = c;
    return 0;
}

/* A single character after a backslash. Letters and digits without a meaning are reserved, as in
 * Go. */
static int parse_escaped_char(struct parser *p, uint32_t *ret)
{
    static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    if (!has_more(p))
        return fail_at(p, EINVAL, "trailing backslash");
    char c = p->pattern.p[p->at];
    if (c == 'x') {
        p->at++;
        return parse_hex(p, ret);
    }
    if (c == 'p' || c == 'P')
        return fail_at(p, ENOTSUP, "Unicode classes are not supported");
    const char *named = c ? strchr(names, c) : NULL;
    if (named) {
        p->at++;
        *ret = (unsigned char)values[named - names];
        return 0;
    }
    if ((unsigned char)c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
        (c >= 'a' && c <= 'z'))
        return fail_at(p, EINVAL, "unknown escape");
    *ret = (unsigned char)c;
    p->at++;
    return 0;
}

/* \d \w \s and their complements, added to `out`. */
static bool accept_class_escape(struct parser *p, ranges_t *out)
{
    if (p->at + 1 >= p->pattern.n || p->pattern.p[p->at] != '\\')
        return false;
    char c = p->pattern.p[p->at + 1];
    char low = (char)(c | 32);
    if (low != 'd' && low != 'w' && low != 's')
        return false;
    add_named(p, out, (str){ &low, 1 }, c != low);
    p->at += 2;
    return true;
}

/* ---- [...] */

static int parse_class_char(struct parser *p, uint32_t *ret)
{
    if (accept(p, "\\"))
        return parse_escaped_char(p, ret);
    *ret = take_char(p);
    return 0;
}

/* One element of [...]: a named class, an escape, a character or a range. */
static int parse_class_item(struct parser *p, ranges_t *set)
{
    if (accept(p, "[:")) {
        bool negate = accept(p, "^");
        str rest = str_from(p->pattern, p->at);
        size_t end = str_find(rest, S(":]"));
        if (end == SIZE_MAX || !add_named(p, set, str_upto(rest, end), negate))
            return fail_at(p, EINVAL, "unknown character class");
        p->at += end + 2;
        return 0;
    }
    if (accept_class_escape(p, set))
        return 0;
    uint32_t first = 0, last = 0;
    int failed = parse_class_char(p, &first);
    if (failed)
        return failed;
    last = first;
    bool range =
        p->at + 1 < p->pattern.n && p->pattern.p[p->at] == '-' && p->pattern.p[p->at + 1] != ']';
    if (range) {
        p->at++;
        failed = parse_class_char(p, &last);
        if (failed)
            return failed;
    }
    if (last < first)
        return fail_at(p, EINVAL, "range ends before it starts");
    add_range(set, first, last);
    return 0;
}

/* [...] after the opening bracket. A ] in the first place is a literal. */
static int parse_class(struct parser *p, struct regex_set *ret)
{
    ranges_t set = { 0 };
    bool negate = accept(p, "^");
    int failed = 0;
    for (bool first = true; !failed; first = false) {
        if (!has_more(p))
            failed = fail_at(p, EINVAL, "missing closing ]");
        else if (!first && accept(p, "]"))
            break;
        else
            failed = parse_class_item(p, &set);
    }
    if (!failed) {
        if (p->fold)
            fold_case(&set);
        *ret = build_set(p, &set, negate);
    }
    free(set.at);
    return failed;
}

/* ---- atoms */

static const struct regex_node *set_node(struct parser *p, struct regex_set set)
{
    struct regex_node *node = new_node(p, REGEX_SET);
    node->set = set;
    return node;
}

static const struct regex_node *char_node(struct parser *p, uint32_t c)
{
    ranges_t set = { 0 };
    add_range(&set, c, c);
    if (p->fold)
        fold_case(&set);
    const struct regex_node *node = set_node(p, build_set(p, &set, false));
    free(set.at);
    return node;
}

static const struct regex_node *assert_node(struct parser *p, enum regex_assert what)
{
    struct regex_node *node = new_node(p, REGEX_ASSERT);
    node->assert = what;
    return node;
}

/* Any character; without (?s) any but a newline. */
static const struct regex_node *dot_node(struct parser *p)
{
    ranges_t set = { 0 };
    if (!p->dot_all)
        add_range(&set, '\n', '\n');
    const struct regex_node *node = set_node(p, build_set(p, &set, true));
    free(set.at);
    return node;
}

/* The letters of (?imsU-imsU...); leaves the ':' or ')' that ends them. */
static int parse_flags(struct parser *p)
{
    bool on = true;
    for (; has_more(p); p->at++) {
        switch (p->pattern.p[p->at]) {
        case 'i':
            p->fold = on;
            break;
        case 'm':
            p->lines = on;
            break;
        case 's':
            p->dot_all = on;
            break;
        case 'U':
            break;
        case '-':
            if (!on)
                return fail_at(p, EINVAL, "bad group flags");
            on = false;
            break;
        case ':':
        case ')':
            return 0;
        default:
            return fail_at(p, EINVAL, "unknown group flag");
        }
    }
    return fail_at(p, EINVAL, "missing closing )");
}

/* (...) after the opening parenthesis. Names are checked and forgotten; flags end with their
 * group. */
static int parse_group(struct parser *p, const struct regex_node **ret)
{
    bool fold = p->fold, lines = p->lines, dot_all = p->dot_all;
    if (accept(p, "?P<") || accept(p, "?<")) {
        size_t end = str_find_char(str_from(p->pattern, p->at), '>');
        char next = has_more(p) ? p->pattern.p[p->at] : '\0';
        if (end == SIZE_MAX || end == 0 || next == '=' || next == '!')
            return fail_at(p, EINVAL, "bad group name");
        p->at += end + 1;
    } else if (accept(p, "?")) {
        int failed = parse_flags(p);
        if (failed)
            return failed;
        if (accept(p, ")")) { /* flags for the rest of the enclosing group */
            *ret = new_node(p, REGEX_EMPTY);
            return 0;
        }
        p->at++;
    }
    int failed = parse_alternatives(p, ret);
    if (failed)
        return failed;
    if (!accept(p, ")"))
        return fail_at(p, EINVAL, "missing closing )");
    p->fold = fold, p->lines = lines, p->dot_all = dot_all;
    return 0;
}

/* \Q...\E: literal characters; \E may be missing at the end of the pattern. */
static int parse_quoted(struct parser *p, const struct regex_node **ret)
{
    const struct regex_node *all = new_node(p, REGEX_EMPTY);
    while (has_more(p) && !accept(p, "\\E"))
        all = join_nodes(p, REGEX_CAT, all, char_node(p, take_char(p)));
    *ret = all;
    return 0;
}

/* An escape outside of brackets, where there are also assertions and \Q...\E. */
static int parse_escape(struct parser *p, const struct regex_node **ret)
{
    ranges_t set = { 0 };
    if (accept_class_escape(p, &set)) {
        *ret = set_node(p, build_set(p, &set, false));
        free(set.at);
        return 0;
    }
    p->at++;
    if (accept(p, "A"))
        *ret = assert_node(p, REGEX_TEXT_START);
    else if (accept(p, "z"))
        *ret = assert_node(p, REGEX_TEXT_END);
    else if (accept(p, "b"))
        *ret = assert_node(p, REGEX_WORD_EDGE);
    else if (accept(p, "B"))
        *ret = assert_node(p, REGEX_NO_WORD_EDGE);
    else if (accept(p, "Q"))
        return parse_quoted(p, ret);
    else {
        uint32_t c = 0;
        int failed = parse_escaped_char(p, &c);
        if (failed)
            return failed;
        *ret = char_node(p, c);
    }
    return 0;
}

/* One element that a repetition may follow. */
static int parse_atom(struct parser *p, const struct regex_node **ret)
{
    char c = p->pattern.p[p->at];
    if (c == '\\')
        return parse_escape(p, ret);
    if (c == '*' || c == '+' || c == '?')
        return fail_at(p, EINVAL, "nothing to repeat");
    if (accept(p, "("))
        return parse_group(p, ret);
    if (accept(p, "[")) {
        struct regex_set set = { 0 };
        int failed = parse_class(p, &set);
        if (!failed)
            *ret = set_node(p, set);
        return failed;
    }
    if (accept(p, "."))
        *ret = dot_node(p);
    else if (accept(p, "^"))
        *ret = assert_node(p, p->lines ? REGEX_LINE_START : REGEX_TEXT_START);
    else if (accept(p, "$"))
        *ret = assert_node(p, p->lines ? REGEX_LINE_END : REGEX_TEXT_END);
    else
        *ret = char_node(p, take_char(p));
    return 0;
}

/* ---- repetition, concatenation, alternation */

static bool accept_number(struct parser *p, uint32_t *ret)
{
    size_t start = p->at;
    uint32_t n = 0;
    while (has_more(p) && p->pattern.p[p->at] >= '0' && p->pattern.p[p->at] <= '9' &&
           n <= REPEAT_MAX)
        n = n * 10 + (uint32_t)(p->pattern.p[p->at++] - '0');
    *ret = n;
    return p->at > start;
}

/* {n}, {n,} or {n,m}; anything else that starts with a brace is a literal brace. */
static bool accept_braces(struct parser *p, uint32_t *ret_min, uint32_t *ret_max)
{
    size_t start = p->at;
    if (accept(p, "{") && accept_number(p, ret_min)) {
        *ret_max = *ret_min;
        if (accept(p, ",") && !accept_number(p, ret_max))
            *ret_max = REGEX_NO_MAX;
        if (accept(p, "}"))
            return true;
    }
    p->at = start;
    return false;
}

/* Wraps the node in the repetition that follows it, if any. */
static int parse_repeats(struct parser *p, const struct regex_node **node)
{
    for (unsigned repeats = 0;; repeats++) {
        uint32_t min = 0, max = REGEX_NO_MAX;
        size_t start = p->at;
        if (accept(p, "*"))
            min = 0;
        else if (accept(p, "+"))
            min = 1;
        else if (accept(p, "?"))
            max = 1;
        else if (!accept_braces(p, &min, &max))
            return 0;
        if (repeats) {
            p->at = start;
            return fail_at(p, EINVAL, "repetition of a repetition");
        }
        if (min > REPEAT_MAX || (max != REGEX_NO_MAX && (max > REPEAT_MAX || max < min)))
            return fail_at(p, EINVAL, "bad repetition count");
        struct regex_node *repeat = new_node(p, REGEX_REPEAT);
        repeat->lazy = accept(p, "?");
        repeat->left = *node, repeat->min = min, repeat->max = max;
        *node = repeat;
    }
}

static int parse_sequence(struct parser *p, const struct regex_node **ret)
{
    const struct regex_node *all = NULL;
    while (has_more(p) && p->pattern.p[p->at] != '|' && p->pattern.p[p->at] != ')') {
        const struct regex_node *node = NULL;
        int failed = parse_atom(p, &node);
        if (!failed)
            failed = parse_repeats(p, &node);
        if (failed)
            return failed;
        all = join_nodes(p, REGEX_CAT, all, node);
    }
    *ret = all ? all : new_node(p, REGEX_EMPTY);
    return 0;
}

static int parse_alternatives(struct parser *p, const struct regex_node **ret)
{
    if (++p->depth > NESTING_MAX)
        return fail_at(p, EINVAL, "nested too deeply");
    const struct regex_node *all = NULL;
    do {
        const struct regex_node *node = NULL;
        int failed = parse_sequence(p, &node);
        if (failed)
            return failed;
        all = join_nodes(p, REGEX_ALT, all, node);
    } while (accept(p, "|"));
    p->depth--;
    *ret = all;
    return 0;
}

int regex_parse(struct arena *a, str pattern, const struct regex_node **ret, err_t *e)
{
    if (pattern.n > PATTERN_BYTES_MAX)
        return err_set(e, E2BIG, "pattern of %zu bytes is longer than %d bytes", pattern.n,
                       PATTERN_BYTES_MAX);
    struct parser p = { .arena = a, .pattern = pattern, .e = e };
    int failed = parse_alternatives(&p, ret);
    if (failed)
        return failed;
    return has_more(&p) ? fail_at(&p, EINVAL, "unexpected )") : 0;
}
