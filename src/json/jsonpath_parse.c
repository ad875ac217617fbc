/* Parses JSONPath text into steps: see jsonpath.h.
 *
 *     path      { step }
 *     step      "." name | ".." | "[" piece { "," piece } "]" | "[?(" filter ")]"
 *               | quoted text | number | word | "$" | "@" | blank
 *     piece     index | slice | "*" | 'key'
 *     filter    path [ operator path ]
 *
 * The grammar is client-go's own, with its corner cases: a step starts where the previous one
 * ended, blanks between steps are skipped, and quoted text or a number replaces the list of values.
 * Error texts are quoted: client-go; positions are columns of the whole text.
 *
 * Steps are built in the arena; names are slices of the source unless they contain escapes. Filters
 * and keys are parsed recursively, but never deeper than their brackets nest. */
#include "jsonpath_op.h"

#include <math.h>

struct parser {
    struct arena *arena;
    str text;
    size_t at;
    size_t column; /* of text.p[0] */
    unsigned flags;
    struct jsonpath_op *ops; /* under construction */
    uint32_t n, cap;
    err_t *e;
};

static int parse_steps(struct parser *p);

static int fail_at(struct parser *p, size_t at, const char *what, str detail)
{
    return err_set(p->e, EINVAL, "column %zu: %s%.*s", p->column + at, what,
                   STR_ARG(str_upto(detail, 200)));
}

static bool has_more(const struct parser *p)
{
    return p->at < p->text.n;
}

static char peek(const struct parser *p)
{
    return has_more(p) ? p->text.p[p->at] : '\0';
}

static struct jsonpath_op *add_op(struct parser *p, enum jsonpath_kind kind, size_t at)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 4;
        struct jsonpath_op *larger = arena_array(p->arena, p->cap, sizeof(*larger));
        if (p->n)
            memcpy(larger, p->ops, p->n * sizeof(*larger));
        p->ops = larger;
    }
    p->ops[p->n] = (struct jsonpath_op){ .kind = kind, .column = (uint32_t)(p->column + at) };
    return &p->ops[p->n++];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c) /* outside of ASCII everything may be a letter */
{
    return c == '_' || is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (unsigned char)c >= 0x80;
}

static bool ends_name(char c)
{
    return strchr(" \t\r\n.,[]$@{}", c) != NULL; /* and NUL, which no name contains */
}

/* Parses a part of the text as a separate expression. */
static int parse_part(struct parser *p, str part, size_t at, struct jsonpath *ret)
{
    struct jsonpath_source source = { .text = part, .column = p->column + at, .flags = p->flags };
    return jsonpath_parse(p->arena, source, ret, p->e);
}

/* ---- steps */

static str without_backslashes(struct arena *a, str name)
{
    if (str_find_char(name, '\\') == SIZE_MAX)
        return name;
    char *text = arena_alloc(a, name.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '\\')
            text[n++] = name.p[i];
    return (str){ text, n };
}

/* After the dot. */
static int parse_field(struct parser *p)
{
    size_t start = p->at;
    while (has_more(p) && !ends_name(peek(p)))
        p->at += peek(p) == '\\' && p->at + 1 < p->text.n ? 2 : 1;
    str name = { p->text.p + start, p->at - start };
    if (str_eq(name, S("*")))
        add_op(p, PATH_WILDCARD, start);
    else
        add_op(p, PATH_FIELD, start)->name = without_backslashes(p->arena, name);
    return 0;
}

static int parse_recursive(struct parser *p)
{
    if (p->n && p->ops[p->n - 1].kind == PATH_RECURSIVE)
        return fail_at(p, p->at, "invalid multiple recursive descent", S(""));
    add_op(p, PATH_RECURSIVE, p->at);
    p->at += 2;
    return has_more(p) && is_word(peek(p)) ? parse_field(p) : 0;
}

/* An integer or real; both become a literal that replaces every value of the list. */
static int parse_number(struct parser *p)
{
    size_t start = p->at;
    p->at += peek(p) == '+' || peek(p) == '-';
    while (has_more(p) && (is_digit(peek(p)) || peek(p) == '.'))
        p->at++;
    str text = { p->text.p + start, p->at - start };
    int64_t integer;
    double real;
    str digits = text.n && text.p[0] == '+' ? str_from(text, 1) : text;
    if (str_to_i64(digits, &integer) == 0)
        add_op(p, PATH_SCALAR, start)->literal = json_new_int(p->arena, integer);
    else if (str_to_f64(digits, &real) == 0 && isfinite(real))
        add_op(p, PATH_SCALAR, start)->literal = json_new_real(p->arena, real);
    else
        return fail_at(p, start, "cannot parse number ", text);
    return 0;
}

static int parse_word(struct parser *p)
{
    size_t start = p->at;
    while (has_more(p) && !ends_name(peek(p)))
        p->at++;
    str word = { p->text.p + start, p->at - start };
    if (str_eq(word, S("true")) || str_eq(word, S("false")))
        add_op(p, PATH_SCALAR, start)->literal = json_new_bool(p->arena, word.n == 4);
    else
        add_op(p, PATH_WORD, start)->name = word;
    return 0;
}

/* ---- quoted text, with Go's escapes */

static void put_rune(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_putc(out, (char)c);
        return;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
    buf_putc(out, (char)(lead[tail] | c >> (6 * tail)));
    while (tail-- > 0)
        buf_putc(out, (char)(0x80 | (c >> (6 * tail) & 0x3f)));
}

static bool read_digits(str text, size_t n, int base, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        char c = i < text.n ? text.p[i] : ' ', low = (char)(c | 0x20);
        int digit = is_digit(c) ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
        if (digit >= base)
            return false;
        *ret = *ret * (uint32_t)base + (uint32_t)digit;
    }
    return true;
}

/* One escape after its backslash; returns its length, 0: not an escape in Go. */
static size_t put_escape(struct buf *out, str text, char quote)
{
    static const char plain[] = "abfnrtv\\", meant[] = "\a\b\f\n\r\t\v\\";
    const char *found = text.n && text.p[0] ? strchr(plain, text.p[0]) : NULL;
    uint32_t c;
    if (found || (text.n && text.p[0] == quote)) {
        buf_putc(out, found ? meant[found - plain] : quote);
        return 1;
    }
    size_t digits = !text.n            ? 0
                    : text.p[0] == 'x' ? 2
                    : text.p[0] == 'u' ? 4
                    : text.p[0] == 'U' ? 8
                                       : 0;
    if (digits && read_digits(str_from(text, 1), digits, 16, &c)) {
        if (digits == 2)
            buf_putc(out, (char)c);
        else
            put_rune(out, c);
        return digits + 1;
    }
    if (!digits && read_digits(text, 3, 8, &c) && c < 256) {
        buf_putc(out, (char)c);
        return 3;
    }
    return 0;
}

static bool unquote(struct buf *out, str text, char quote)
{
    for (size_t i = 0; i < text.n;) {
        if (text.p[i] == quote)
            return false;
        if (text.p[i] != '\\') {
            buf_putc(out, text.p[i++]);
            continue;
        }
        size_t taken = put_escape(out, str_from(text, i + 1), quote);
        if (!taken)
            return false;
        i += 1 + taken;
    }
    return true;
}

/* Text in quotes becomes a literal. */
static int parse_quoted(struct parser *p)
{
    size_t start = p->at;
    char quote = peek(p);
    for (p->at++; has_more(p) && peek(p) != '\n'; p->at++)
        if (peek(p) == quote && p->text.p[p->at - 1] != '\\')
            break;
    if (!has_more(p) || peek(p) == '\n')
        return fail_at(p, start, "unterminated quoted string", S(""));
    str inner = { p->text.p + start + 1, p->at - start - 1 };
    p->at++;
    auto_buf struct buf text = { 0 };
    if (!unquote(&text, inner, quote))
        return fail_at(p, start, "invalid escape in quoted string ", inner);
    add_op(p, PATH_TEXT, start)->literal = json_new_str(p->arena, buf_str(&text));
    return 0;
}

/* ---- brackets */

static bool read_index(str text, int64_t *ret)
{
    return str_to_i64(text, ret) == 0;
}

/* Removes "-12" or "" from the front. */
static str take_index(str *rest)
{
    size_t n = rest->n && rest->p[0] == '-';
    while (n < rest->n && is_digit(rest->p[n]))
        n++;
    str taken = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    return taken;
}

/* start:end:step, each optional; without a colon it is a single index. */
static int parse_slice(struct parser *p, str text, size_t at)
{
    str rest = str_eq(text, S("*")) ? S(":") : text, parts[3] = { { 0 } };
    bool given[3] = { true, false, false };
    parts[0] = take_index(&rest);
    for (int i = 1; i < 3 && rest.n && rest.p[0] == ':'; i++) {
        rest = str_from(rest, 1);
        given[i] = true;
        parts[i] = take_index(&rest);
    }
    if (rest.n)
        return fail_at(p, at, "invalid array index ", text);
    struct jsonpath_slice s = { .has_end = parts[1].n > 0, .has_step = parts[2].n > 0 };
    int64_t *const numbers[] = { &s.start, &s.end, &s.step };
    for (int i = 0; i < 3; i++)
        if (parts[i].n && !read_index(parts[i], numbers[i]))
            return fail_at(p, at, "array index is not a number: ", parts[i]);
    if (!given[1]) {
        s.has_end = s.derived = true;
        s.end = s.start == INT64_MAX ? s.start : s.start + 1;
    }
    add_op(p, PATH_SLICE, at)->slice = s;
    return 0;
}

static bool is_quoted(str text, const char *quotes)
{
    return text.n >= 2 && strchr(quotes, text.p[0]) && text.p[text.n - 1] == text.p[0];
}

/* One index, slice or key in brackets. In client-go a key is itself a path: ['a.b'] are two
 * steps. */
static int parse_piece(struct parser *p, str piece, size_t at)
{
    bool literal = p->flags & JSONPATH_LITERAL_KEYS;
    if (!is_quoted(piece, literal ? "'\"" : "'"))
        return parse_slice(p, piece, at);
    str key = { piece.p + 1, piece.n - 2 };
    if (literal) {
        add_op(p, PATH_FIELD, at)->name = key;
        return 0;
    }
    if (str_find_char(key, '\'') != SIZE_MAX)
        return fail_at(p, at, "invalid array index ", piece);
    struct jsonpath steps;
    int result = parse_part(p, arena_printf(p->arena, "." STR_FMT, STR_ARG(key)), at, &steps);
    for (uint32_t i = 0; result == 0 && i < steps.n; i++)
        *add_op(p, PATH_FIELD, at) = steps.ops[i];
    return result;
}

static str trim_blanks(str s)
{
    while (s.n && s.p[0] == ' ')
        s = str_from(s, 1);
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

/* The end of the piece that starts here: before "," or "]". Literal keys may contain both. */
static size_t piece_end(const struct parser *p, size_t at)
{
    size_t first = at;
    while (first < p->text.n && p->text.p[first] == ' ')
        first++;
    char quote = first < p->text.n ? p->text.p[first] : '\0';
    if ((p->flags & JSONPATH_LITERAL_KEYS) && (quote == '\'' || quote == '"')) {
        size_t close = str_find_char(str_from(p->text, first + 1), quote);
        if (close != SIZE_MAX)
            at = first + 1 + close;
    }
    while (at < p->text.n && !strchr(",]\n", p->text.p[at]))
        at++;
    return at;
}

/* Several pieces: each becomes a branch that is evaluated on the same list. */
static int parse_union(struct parser *p, const str *pieces, const size_t *starts, size_t n)
{
    struct jsonpath *branches = arena_array(p->arena, n, sizeof(*branches));
    for (size_t i = 0; i < n; i++) {
        struct parser one = *p;
        one.ops = NULL;
        one.n = one.cap = 0;
        int result = parse_piece(&one, trim_blanks(pieces[i]), starts[i]);
        if (result < 0)
            return result;
        branches[i] = (struct jsonpath){ .ops = one.ops, .n = one.n, .flags = p->flags };
    }
    struct jsonpath_op *op = add_op(p, PATH_UNION, starts[0]);
    op->branches = branches;
    op->n_branches = (uint32_t)n;
    return 0;
}

enum { PIECES_MAX = 64 };

/* Splits the content of [...] at commas. */
static int parse_brackets(struct parser *p)
{
    str pieces[PIECES_MAX];
    size_t starts[PIECES_MAX], n = 0, open = p->at++;
    for (;; p->at++) {
        if (n == PIECES_MAX)
            return fail_at(p, open, "too many indices in brackets", S(""));
        starts[n] = p->at;
        size_t end = piece_end(p, p->at);
        pieces[n++] = (str){ p->text.p + p->at, end - p->at };
        p->at = end;
        if (!has_more(p) || peek(p) == '\n')
            return fail_at(p, open, "unterminated array", S(""));
        if (peek(p) == ']')
            break;
    }
    p->at++;
    if (n > 1)
        return parse_union(p, pieces, starts, n);
    bool literal = p->flags & JSONPATH_LITERAL_KEYS;
    return parse_piece(p, literal ? trim_blanks(pieces[0]) : pieces[0], starts[0]);
}

/* ---- filters */

/* The text between "[?(" and ")]"; quotes may contain a ")". */
static int filter_text(struct parser *p, str *ret, size_t *ret_at)
{
    size_t start = p->at + 3;
    bool begun = false, ended = false;
    char pair = '\0';
    for (p->at = start; has_more(p) && peek(p) != '\n'; p->at++) {
        char c = peek(p);
        if ((c == '"' || c == '\'') && !begun) {
            begun = true;
            pair = c;
        } else if (c == pair && begun && p->text.p[p->at - 1] != '\\') {
            ended = true;
        } else if (c == ')' && begun == ended) {
            break;
        }
    }
    if (!has_more(p) || peek(p) == '\n')
        return fail_at(p, start, "unterminated filter", S(""));
    *ret = (str){ p->text.p + start, p->at - start };
    *ret_at = start;
    p->at++;
    if (peek(p) != ']')
        return fail_at(p, p->at, "unclosed array expect ]", S(""));
    p->at++;
    return 0;
}

static enum jsonpath_compare comparison(str text)
{
    static const char *const names[] = { [PATH_EQ] = "==", [PATH_NE] = "!=", [PATH_LT] = "<",
                                         [PATH_LE] = "<=", [PATH_GT] = ">",  [PATH_GE] = ">=" };
    for (size_t i = PATH_EQ; i < countof(names); i++)
        if (str_eqc(text, names[i]))
            return (enum jsonpath_compare)i;
    return PATH_BAD;
}

/* Splits a filter at its operator; without one it tests whether the path exists. */
static int parse_filter(struct parser *p)
{
    size_t column = p->at, at;
    str text;
    int result = filter_text(p, &text, &at);
    if (result < 0)
        return result;
    size_t left = 0, right;
    while (left < text.n && !strchr("!<>=", text.p[left]))
        left++;
    for (right = left; right < text.n && strchr("!<>=", text.p[right]);)
        right++;
    struct jsonpath_filter *f = arena_new(p->arena, struct jsonpath_filter);
    if (left == 0 || left == right || right == text.n) {
        result = parse_part(p, text, at, &f->left);
    } else {
        f->compare = comparison((str){ text.p + left, right - left });
        result = parse_part(p, str_upto(text, left), at, &f->left);
        if (result == 0)
            result = parse_part(p, str_from(text, right), at + right, &f->right);
    }
    add_op(p, PATH_FILTER, column)->filter = f;
    return result;
}

/* ---- paths */

/* One step, chosen by its first characters. */
static int parse_step(struct parser *p)
{
    char c = peek(p);
    str rest = str_from(p->text, p->at);
    if (str_starts(rest, S("[?(")))
        return parse_filter(p);
    if (str_starts(rest, S("..")))
        return parse_recursive(p);
    if (c == '[')
        return parse_brackets(p);
    if (c == '"' || c == '\'')
        return parse_quoted(p);
    if (c == '+' || c == '-' || is_digit(c))
        return parse_number(p);
    if (is_word(c))
        return parse_word(p);
    if (c != ' ' && c != '@' && c != '$' && c != '.')
        return c == '\n' || c == '\r'
                   ? fail_at(p, p->at, "unclosed action", S(""))
                   : fail_at(p, p->at, "unrecognized character in action: ",
                             arena_printf(p->arena, "U+%04X", (unsigned)(unsigned char)c));
    p->at++;
    return c == '.' ? parse_field(p) : 0;
}

/* Up to the end, or to a "}" between steps. */
static int parse_steps(struct parser *p)
{
    int result = 0;
    while (result == 0 && has_more(p) && peek(p) != '}')
        result = parse_step(p);
    return result;
}

static void build_path(const struct parser *p, struct jsonpath *ret)
{
    *ret = (struct jsonpath){ .ops = p->ops, .n = p->n, .flags = p->flags, .plain = true };
    for (uint32_t i = 0; i < p->n; i++)
        ret->plain = ret->plain && (p->ops[i].kind == PATH_FIELD ||
                                    (p->ops[i].kind == PATH_SLICE && p->ops[i].slice.derived));
}

static struct parser parser_init(struct arena *a, const struct jsonpath_source *s, err_t *e)
{
    return (struct parser){
        .arena = a, .text = s->text, .column = s->column ? s->column : 1, .flags = s->flags, .e = e
    };
}

int jsonpath_parse(struct arena *a, struct jsonpath_source source, struct jsonpath *ret, err_t *e)
{
    struct parser p = parser_init(a, &source, e);
    int result = parse_steps(&p);
    if (result == 0 && has_more(&p))
        result = fail_at(&p, p.at, "unrecognized character in action: ", S("U+007D"));
    if (result == 0)
        build_path(&p, ret);
    return result;
}
