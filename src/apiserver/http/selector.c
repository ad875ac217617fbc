/* Label and field selectors: a lexer and a recursive parser for labels, a splitter for fields, and matching
 * against the text of stored objects.
 *
 * The label grammar is Kubernetes' own: a word is a run of any characters except blanks and =!<>(), and `in` and
 * `notin` are operators only after a key.
 *
 *     selector = term *( "," term )
 *     term     = "!" key | key [ operator ]
 *     operator = ( "=" | "==" | "!=" ) value | ( ">" | "<" ) integer | ( "in" | "notin" ) "(" value *( "," value ) ")"
 *
 * Keys and values must be valid labels, so that a selector that cannot match anything is an error instead of an
 * empty list. Matching does not parse the object: the store keeps the position of the labels in its JSON. */
#include "selector.h"

#include "../../json/scan.h"

#include "../../base/vec.h"

enum token { T_END, T_WORD, T_COMMA, T_OPEN, T_CLOSE, T_NOT, T_EQ, T_EQEQ, T_NE, T_GT, T_LT };

struct lexer {
    str rest;
    enum token token; /* the current one */
    str text;         /* of the current token */
    err_t *e;
};

static bool is_special(char c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reads the next token into l->token and l->text. */
static void next_token(struct lexer *l)
{
    while (l->rest.n && is_blank(l->rest.p[0]))
        l->rest = str_from(l->rest, 1);
    static const struct {
        str text;
        enum token token;
    } specials[] = {
        { { "==", 2 }, T_EQEQ }, { { "=", 1 }, T_EQ },   { { "!=", 2 }, T_NE },
        { { "!", 1 }, T_NOT },   { { "(", 1 }, T_OPEN }, { { ")", 1 }, T_CLOSE },
        { { ",", 1 }, T_COMMA }, { { ">", 1 }, T_GT },   { { "<", 1 }, T_LT },
    };
    size_t n = 0;
    l->token = l->rest.n ? T_WORD : T_END;
    for (size_t i = 0; i < countof(specials) && l->token == T_WORD; i++) {
        if (str_starts(l->rest, specials[i].text)) {
            l->token = specials[i].token;
            n = specials[i].text.n;
        }
    }
    if (l->token == T_WORD)
        while (n < l->rest.n && !is_special(l->rest.p[n]) && !is_blank(l->rest.p[n]))
            n++;
    l->text = str_upto(l->rest, n);
    l->rest = str_from(l->rest, n);
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A label value, or the name part of a key: at most 63 of [A-Za-z0-9._-], alphanumeric at both ends. */
static bool is_label_name(str s, bool may_be_empty)
{
    if (!s.n)
        return may_be_empty;
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return s.n <= 63 && is_alnum(s.p[0]) && is_alnum(s.p[s.n - 1]);
}

static bool is_dns_subdomain(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return s.n > 0 && s.n <= 253 && is_alnum(s.p[0]) && is_alnum(s.p[s.n - 1]);
}

static bool is_label_key(str s)
{
    size_t slash = str_find_char(s, '/');
    if (slash == SIZE_MAX)
        return is_label_name(s, false);
    return is_dns_subdomain(str_upto(s, slash)) && is_label_name(str_from(s, slash + 1), false);
}

static int report_unexpected(struct lexer *l, const char *expected)
{
    return err_set(l->e, EINVAL, "unable to parse requirement: found '" STR_FMT "', expected: %s",
                   STR_ARG(l->text), expected);
}

/* A label value; nothing at all is the empty value. Values that are not valid labels are refused. */
static int take_value(struct lexer *l, struct arena *a, str *ret)
{
    str value = S("");
    if (l->token == T_WORD) {
        value = l->text;
        next_token(l);
    } else if (l->token != T_COMMA && l->token != T_END && l->token != T_CLOSE) {
        return report_unexpected(l, "identifier");
    }
    if (!is_label_name(value, true))
        return err_set(l->e, EINVAL,
                       "unable to parse requirement: values[0]: Invalid value: \"" STR_FMT
                       "\": a valid label value is at most 63 alphanumeric characters, '-', '_' or "
                       "'.', and starts and ends with an alphanumeric character",
                       STR_ARG(value));
    *ret = arena_str(a, value);
    return 0;
}

/* "(a,b,c)" of in and notin. */
static int take_set(struct lexer *l, struct arena *a, struct label_term *term)
{
    if (l->token != T_OPEN)
        return err_set(l->e, EINVAL,
                       "unable to parse requirement: found '" STR_FMT "' expected: '('",
                       STR_ARG(l->text));
    VEC(str) values = { 0 };
    int result = 0;
    do {
        next_token(l);
        str value;
        result = take_value(l, a, &value);
        if (result == 0)
            vec_push(&values, value);
    } while (result == 0 && l->token == T_COMMA);
    if (result == 0 && l->token != T_CLOSE)
        result = report_unexpected(l, "',' or ')'");
    if (result == 0) {
        next_token(l);
        str *kept = arena_array(a, values.n, sizeof(*kept));
        memcpy(kept, values.at, values.n * sizeof(*kept));
        term->values = kept;
        term->n_values = values.n;
    }
    vec_done(&values);
    return result;
}

static int take_bound(struct lexer *l, struct arena *a, struct label_term *term)
{
    str value;
    int result = take_value(l, a, &value);
    if (result == 0 && str_to_i64(value, &term->bound) < 0)
        result = err_set(l->e, EINVAL,
                         "unable to parse requirement: values[0]: Invalid value: \"" STR_FMT
                         "\": for 'Gt', 'Lt' operators, the value must be an integer",
                         STR_ARG(value));
    return result;
}

/* The operator and its operands; a key without one tests for existence. */
static int take_operator(struct lexer *l, struct arena *a, struct label_term *term)
{
    enum token token = l->token;
    bool in = token == T_WORD && str_eq(l->text, S("in"));
    bool not_in = token == T_WORD && str_eq(l->text, S("notin"));
    if (token == T_COMMA || token == T_END) {
        term->op = SEL_EXISTS;
        return 0;
    }
    if (!in && !not_in && token != T_EQ && token != T_EQEQ && token != T_NE && token != T_GT &&
        token != T_LT)
        return report_unexpected(l, "in, notin, =, ==, !=, gt, lt");
    next_token(l);
    if (token == T_GT || token == T_LT) {
        term->op = token == T_GT ? SEL_GREATER : SEL_LESS;
        return take_bound(l, a, term);
    }
    term->op = not_in || token == T_NE ? SEL_NOT_IN : SEL_IN;
    if (in || not_in)
        return take_set(l, a, term);
    str *value = arena_new(a, str);
    term->values = value;
    term->n_values = 1;
    return take_value(l, a, value);
}

/* One term up to the next comma or the end. */
static int take_term(struct lexer *l, struct arena *a, struct label_term *ret)
{
    bool negated = l->token == T_NOT;
    if (negated)
        next_token(l);
    if (l->token != T_WORD)
        return report_unexpected(l, "!, identifier, or 'end of string'");
    if (!is_label_key(l->text))
        return err_set(
            l->e, EINVAL,
            "unable to parse requirement: <nil>: Invalid value: \"" STR_FMT
            "\": a label key is a name of at most 63 alphanumeric characters, '-', '_' or "
            "'.', with an optional DNS subdomain and '/' before it",
            STR_ARG(l->text));
    struct label_term term = { .key = arena_str(a, l->text), .op = SEL_NOT_EXISTS };
    next_token(l);
    int result = negated ? 0 : take_operator(l, a, &term);
    if (result == 0 && l->token != T_COMMA && l->token != T_END)
        return err_set(l->e, EINVAL, "found '" STR_FMT "', expected: ',' or 'end of string'",
                       STR_ARG(l->text));
    *ret = term;
    return result;
}

int selector_parse_labels(struct arena *a, str text, struct label_selector *ret, err_t *e)
{
    struct lexer l = { .rest = text, .e = e };
    VEC(struct label_term) terms = { 0 };
    int result = 0;
    next_token(&l);
    while (result == 0 && l.token != T_END) {
        struct label_term term;
        result = take_term(&l, a, &term);
        if (result < 0)
            break;
        vec_push(&terms, term);
        if (l.token == T_COMMA) {
            next_token(&l);
            if (l.token == T_END)
                result = err_set(e, EINVAL, "found '', expected: identifier after ','");
        }
    }
    if (result == 0) {
        struct label_term *kept = arena_array(a, terms.n, sizeof(*kept));
        if (terms.n)
            memcpy(kept, terms.at, terms.n * sizeof(*kept));
        *ret = (struct label_selector){ kept, terms.n };
    }
    vec_done(&terms);
    return result;
}

/* In "a\,b" the value is "a,b". Comma, equals sign and backslash must be escaped; nothing else may be. */
static int unescape_value(struct arena *a, str text, str *ret, err_t *e)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        bool escaped = text.p[i] == '\\';
        char c = !escaped ? text.p[i] : i + 1 < text.n ? text.p[++i] : '\0';
        bool special = c == ',' || c == '=' || c == '\\';
        if (escaped && !special)
            return err_set(e, EINVAL, "invalid field selector: invalid escape sequence: \\%c", c);
        if (special && !escaped)
            return err_set(e, EINVAL, "invalid field selector: unescaped character in value: %d",
                           c);
        out[n++] = c;
    }
    *ret = (str){ out, n };
    return 0;
}

/* The text up to the next comma that is not escaped. */
static str cut_field_term(str *rest)
{
    size_t i = 0;
    while (i < rest->n && rest->p[i] != ',')
        i += rest->p[i] == '\\' ? 2 : 1;
    str term = str_upto(*rest, i);
    *rest = str_from(*rest, i + 1);
    return term;
}

int selector_parse_fields(struct arena *a, str text, struct field_selector *ret, err_t *e)
{
    struct field_term *terms = arena_array(a, text.n / 2 + 1, sizeof(*terms));
    size_t n = 0;
    for (str rest = text; rest.n;) {
        str term = cut_field_term(&rest);
        if (!str_trim(term).n)
            continue;
        size_t eq = str_find_char(term, '=');
        if (eq == SIZE_MAX || eq == 0)
            return err_set(e, EINVAL,
                           "invalid selector: '" STR_FMT "'; can't understand '" STR_FMT "'",
                           STR_ARG(text), STR_ARG(term));
        bool negated = term.p[eq - 1] == '!';
        str path = str_upto(term, negated ? eq - 1 : eq);
        str value = str_from(term, eq + 1);
        if (!negated && value.n && value.p[0] == '=')
            value = str_from(value, 1);
        terms[n] = (struct field_term){ .path = arena_str(a, path), .negated = negated };
        int result = unescape_value(a, value, &terms[n++].value, e);
        if (result < 0)
            return result;
    }
    *ret = (struct field_selector){ terms, n };
    return 0;
}

/* Labels are ASCII without escapes, so their JSON text is compared as it is. */
static bool find_label(const struct object *o, str key, str *ret)
{
    str value = o->labels.n ? scan_member(object_span(o, o->labels), key) : (str){ 0 };
    if (!value.p || value.n < 2)
        return false;
    *ret = (str){ value.p + 1, value.n - 2 };
    return true;
}

static bool term_matches(const struct label_term *t, const struct object *o)
{
    str value;
    bool there = find_label(o, t->key, &value);
    int64_t number;
    if (t->op == SEL_EXISTS || t->op == SEL_NOT_EXISTS)
        return there == (t->op == SEL_EXISTS);
    if (t->op == SEL_GREATER || t->op == SEL_LESS)
        return there && str_to_i64(value, &number) == 0 &&
               (t->op == SEL_GREATER ? number > t->bound : number < t->bound);
    bool in = false;
    for (size_t i = 0; there && i < t->n_values && !in; i++)
        in = str_eq(value, t->values[i]);
    return in == (t->op == SEL_IN);
}

bool selector_matches_labels(const struct label_selector *s, const struct object *o)
{
    for (size_t i = 0; i < s->n; i++)
        if (!term_matches(&s->terms[i], o))
            return false;
    return true;
}

str selector_exact_field(const struct field_selector *s, str path)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->terms[i].negated && str_eq(s->terms[i].path, path))
            return s->terms[i].value;
    return (str){ 0 };
}
