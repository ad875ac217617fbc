/* See labels.h. A recursive reading of
 *
 *     selector    = [ requirement { "," requirement } ]
 *     requirement = [ "!" ] key | key ( "=" | "==" | "!=" | ">" | "<" ) value
 *                 | key ( "in" | "notin" ) "(" value { "," value } ")"
 *
 * Blanks separate words and are otherwise ignored. */
#include "labels.h"

struct reader {
    struct arena *arena;
    str rest;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static void skip_blanks(struct reader *r)
{
    while (r->rest.n && is_blank(r->rest.p[0]))
        r->rest = str_from(r->rest, 1);
}

/* A word may be empty: "key=" and "(a,)" have empty values. */
static str read_word(struct reader *r)
{
    skip_blanks(r);
    size_t n = 0;
    while (n < r->rest.n && !is_blank(r->rest.p[n]) && !is_special(r->rest.p[n]))
        n++;
    str word = str_upto(r->rest, n);
    r->rest = str_from(r->rest, n);
    return word;
}

static bool take_text(struct reader *r, const char *text)
{
    skip_blanks(r);
    if (!str_starts(r->rest, str_c(text)))
        return false;
    r->rest = str_from(r->rest, strlen(text));
    return true;
}

/* ---- names */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Letters and digits, with "-", "_" and "." between them. */
static bool is_name(str s)
{
    enum { NAME_MAX_BYTES = 63 };
    if (!s.n || s.n > NAME_MAX_BYTES || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return true;
}

static bool is_domain(str s)
{
    enum { DOMAIN_MAX_BYTES = 253 };
    str rest = s, part;
    if (!s.n || s.n > DOMAIN_MAX_BYTES)
        return false;
    while (str_cut(&rest, '.', &part)) {
        if (!part.n || part.p[0] == '-' || part.p[part.n - 1] == '-')
            return false;
        for (size_t i = 0; i < part.n; i++)
            if (!is_alnum(part.p[i]) && part.p[i] != '-')
                return false;
        for (size_t i = 0; i < part.n; i++)
            if (part.p[i] >= 'A' && part.p[i] <= 'Z')
                return false;
    }
    return true;
}

bool labels_is_key(str text)
{
    size_t slash = str_find_char(text, '/');
    return slash == SIZE_MAX
               ? is_name(text)
               : is_domain(str_upto(text, slash)) && is_name(str_from(text, slash + 1));
}

static bool labels_is_value(str text)
{
    return text.n == 0 || is_name(text);
}

/* ---- requirements */

static int check_value(str key, str value, err_t *e)
{
    if (labels_is_value(value))
        return 0;
    return err_set(e, EINVAL, "\"" STR_FMT "\" is not a valid value of label " STR_FMT,
                   STR_ARG(value), STR_ARG(key));
}

static int read_values(struct reader *r, struct labels_rule *rule, err_t *e)
{
    size_t most = 1, n = 0;
    for (size_t i = 0; i < r->rest.n && r->rest.p[i] != ')'; i++)
        most += r->rest.p[i] == ',';
    str *values = arena_array(r->arena, most, sizeof(str));
    if (!take_text(r, "("))
        return err_set(e, EINVAL, "a list of values in parentheses must follow in and notin");
    do {
        values[n] = arena_str(r->arena, read_word(r));
        if (check_value(rule->key, values[n++], e) < 0)
            return -EINVAL;
    } while (take_text(r, ",") && n < most);
    if (!take_text(r, ")"))
        return err_set(e, EINVAL, "the list of values of label " STR_FMT " is not closed",
                       STR_ARG(rule->key));
    rule->values = values;
    rule->value_n = n;
    return 0;
}

static int read_value(struct reader *r, struct labels_rule *rule, err_t *e)
{
    str *value = arena_new(r->arena, str);
    *value = arena_str(r->arena, read_word(r));
    rule->values = value;
    rule->value_n = 1;
    int64_t number;
    if ((rule->op == LABELS_GREATER || rule->op == LABELS_LESS) && str_to_i64(*value, &number) < 0)
        return err_set(e, EINVAL,
                       "label " STR_FMT " is compared with \"" STR_FMT "\"; use an integer",
                       STR_ARG(rule->key), STR_ARG(*value));
    return check_value(rule->key, *value, e);
}

static int read_rule(struct reader *r, struct labels_rule *rule, err_t *e)
{
    static const struct {
        const char *text;
        enum labels_op op;
    } operators[] = { { "==", LABELS_IN },
                      { "=", LABELS_IN },
                      { "!=", LABELS_NOT_IN },
                      { ">", LABELS_GREATER },
                      { "<", LABELS_LESS } };
    bool missing = take_text(r, "!");
    rule->key = arena_str(r->arena, read_word(r));
    rule->op = missing ? LABELS_MISSING : LABELS_EXISTS;
    if (!labels_is_key(rule->key))
        return err_set(e, EINVAL, "\"" STR_FMT "\" is not a valid label name", STR_ARG(rule->key));
    skip_blanks(r);
    if (missing || !r->rest.n || r->rest.p[0] == ',')
        return 0;
    for (size_t i = 0; i < countof(operators); i++)
        if (take_text(r, operators[i].text)) {
            rule->op = operators[i].op;
            return read_value(r, rule, e);
        }
    str word = read_word(r);
    if (!str_eqc(word, "in") && !str_eqc(word, "notin"))
        return err_set(e, EINVAL, "\"" STR_FMT "\" is not an operator; use =, !=, in or notin",
                       STR_ARG(word));
    rule->op = str_eqc(word, "in") ? LABELS_IN : LABELS_NOT_IN;
    return read_values(r, rule, e);
}

/* Both limits are checked before memory is taken, since the selector comes from a query. */
int labels_parse(struct arena *a, str text, struct labels_selector *ret, err_t *e)
{
    struct reader r = { a, text };
    size_t most = 1, n = 0;
    if (text.n > LABELS_TEXT_MAX)
        return err_set(e, EINVAL, "a label selector has at most %d bytes", LABELS_TEXT_MAX);
    for (size_t i = 0; i < text.n; i++)
        most += text.p[i] == ',';
    struct labels_rule *rules = arena_array(a, MIN(most, (size_t)LABELS_RULES_MAX), sizeof(*rules));
    *ret = (struct labels_selector){ 0 };
    skip_blanks(&r);
    if (!r.rest.n)
        return 0;
    do {
        if (n == LABELS_RULES_MAX)
            return err_set(e, EINVAL, "a label selector has at most %d rules", LABELS_RULES_MAX);
        if (read_rule(&r, &rules[n++], e) < 0)
            return -EINVAL;
    } while (take_text(&r, ",") && n < most);
    skip_blanks(&r);
    if (r.rest.n)
        return err_set(e, EINVAL, "unexpected \"" STR_FMT "\" in a label selector",
                       STR_ARG(str_upto(r.rest, 20)));
    *ret = (struct labels_selector){ rules, n };
    return 0;
}

/* ---- matching */

static bool is_listed(const struct labels_rule *rule, str value)
{
    for (size_t i = 0; i < rule->value_n; i++)
        if (str_eq(rule->values[i], value))
            return true;
    return false;
}

static bool is_beyond(const struct labels_rule *rule, str value)
{
    int64_t own, limit;
    if (str_to_i64(value, &own) < 0 || str_to_i64(rule->values[0], &limit) < 0)
        return false;
    return rule->op == LABELS_GREATER ? own > limit : own < limit;
}

static bool match_rule(const struct labels_rule *rule, labels_get_fn *get, const void *labels)
{
    str value = S("");
    bool has = get(labels, rule->key, &value);
    switch (rule->op) {
    case LABELS_IN:
        return has && is_listed(rule, value);
    case LABELS_NOT_IN:
        return !has || !is_listed(rule, value);
    case LABELS_EXISTS:
        return has;
    case LABELS_MISSING:
        return !has;
    case LABELS_GREATER:
    case LABELS_LESS:
        return has && is_beyond(rule, value);
    }
    return false;
}

bool labels_match(const struct labels_selector *s, labels_get_fn *get, const void *labels)
{
    for (size_t i = 0; i < s->n; i++)
        if (!match_rule(&s->rules[i], get, labels))
            return false;
    return true;
}
