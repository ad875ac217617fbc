/* Walks a path step by step; a step that may go several ways ([*], a filter) tries each in turn. */
#include "printer_path.h"

enum { STEPS_MAX = 64 };

static const struct json *walk(const struct json *value, str path, unsigned depth);

static bool is_name_char(char c)
{
    return c != '.' && c != '[' && c != ']' && c != ')' && c != '=' && c != '!' && c != '<' &&
           c != '>' && c != ' ';
}

static str take_name(str *path)
{
    size_t n = 0;
    while (n < path->n && is_name_char(path->p[n]))
        n++;
    str name = str_upto(*path, n);
    *path = str_from(*path, n);
    return name;
}

/* ---- [?(@.key=='value')] */

struct filter {
    str path, comparison, literal;
    bool quoted;
};

static bool parse_filter(str text, struct filter *ret)
{
    static const char *const comparisons[] = { "==", "!=", "<=", ">=", "<", ">" };
    text = str_trim(text);
    if (!str_starts(text, S("@")))
        return false;
    *ret = (struct filter){ .path = str_from(text, 1) };
    for (size_t i = 0; i < countof(comparisons); i++) {
        size_t at = str_find(text, str_c(comparisons[i]));
        if (at == SIZE_MAX)
            continue;
        ret->path = str_trim(str_upto(str_from(text, 1), at - 1));
        ret->comparison = str_c(comparisons[i]);
        str literal = str_trim(str_from(text, at + strlen(comparisons[i])));
        ret->quoted = literal.n >= 2 && (literal.p[0] == '\'' || literal.p[0] == '"') &&
                      literal.p[literal.n - 1] == literal.p[0];
        ret->literal = ret->quoted ? str_upto(str_from(literal, 1), literal.n - 2) : literal;
        return true;
    }
    return true;
}

static int compare(const struct json *value, const struct filter *f, bool *ret_comparable)
{
    double number = 0;
    *ret_comparable = true;
    if (json_is(value, JSON_STR))
        return str_cmp(json_text(value), f->literal);
    if (json_is(value, JSON_BOOL))
        return str_cmp(value->boolean ? S("true") : S("false"), f->literal);
    *ret_comparable = (json_is(value, JSON_INT) || json_is(value, JSON_REAL)) && !f->quoted &&
                      str_to_f64(f->literal, &number) == 0;
    double have = json_real(value, 0);
    return have < number ? -1 : have > number;
}

static bool passes(const struct json *element, const struct filter *f, unsigned depth)
{
    const struct json *value = walk(element, f->path, depth + 1);
    bool comparable = false;
    if (!value || !f->comparison.n)
        return value != NULL;
    int order = compare(value, f, &comparable);
    if (!comparable)
        return str_eqc(f->comparison, "!=");
    return str_eqc(f->comparison, "==")   ? order == 0
           : str_eqc(f->comparison, "!=") ? order != 0
           : str_eqc(f->comparison, "<=") ? order <= 0
           : str_eqc(f->comparison, ">=") ? order >= 0
           : str_eqc(f->comparison, "<")  ? order < 0
                                          : order > 0;
}

/* ---- steps */

static const struct json *walk_each(const struct json *value, const struct filter *f, str rest,
                                    unsigned depth)
{
    for (size_t i = 0; i < json_len(value); i++) {
        const struct json *element =
            value->type == JSON_ARR ? value->items[i] : value->members[i].value;
        const struct json *found =
            !f || passes(element, f, depth) ? walk(element, rest, depth + 1) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static const struct json *walk_index(const struct json *value, str inside, str rest, unsigned depth)
{
    int64_t index = 0;
    struct filter filter;
    if (str_eqc(inside, "*"))
        return walk_each(value, NULL, rest, depth);
    if (str_starts(inside, S("?(")) && str_ends(inside, S(")")))
        return parse_filter(str_upto(str_from(inside, 2), inside.n - 3), &filter)
                   ? walk_each(value, &filter, rest, depth)
                   : NULL;
    if (inside.n >= 2 && (inside.p[0] == '\'' || inside.p[0] == '"'))
        return walk(json_get_str(value, str_upto(str_from(inside, 1), inside.n - 2)), rest,
                    depth + 1);
    if (str_to_i64(inside, &index) < 0 || !json_is(value, JSON_ARR))
        return NULL;
    if (index < 0)
        index += (int64_t)json_len(value);
    return index < 0 ? NULL : walk(json_item(value, (size_t)index), rest, depth + 1);
}

/* The end of a bracket, past brackets and quotes inside it. */
static size_t bracket_end(str path)
{
    size_t depth = 0;
    char quote = '\0';
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '[')
            depth++;
        else if (c == ']' && --depth == 0)
            return i;
    }
    return SIZE_MAX;
}

static const struct json *walk(const struct json *value, str path, unsigned depth)
{
    if (!value || !path.n)
        return value;
    if (depth > STEPS_MAX)
        return NULL;
    if (path.p[0] == '[') {
        size_t end = bracket_end(path);
        return end == SIZE_MAX ? NULL
                               : walk_index(value, str_upto(str_from(path, 1), end - 1),
                                            str_from(path, end + 1), depth);
    }
    if (path.p[0] != '.')
        return NULL;
    path = str_from(path, 1);
    if (path.n && path.p[0] == '[')
        return walk(value, path, depth + 1);
    str name = take_name(&path);
    if (str_eqc(name, "*"))
        return walk_each(value, NULL, path, depth);
    return name.n ? walk(json_get_str(value, name), path, depth + 1) : path.n ? NULL : value;
}

const struct json *printer_path_first(const struct json *object, str path)
{
    str trimmed = str_trim(path);
    if (str_starts(trimmed, S("{")) && str_ends(trimmed, S("}")))
        trimmed = str_upto(str_from(trimmed, 1), trimmed.n - 2);
    if (str_starts(trimmed, S("$")))
        trimmed = str_from(trimmed, 1);
    return walk(object, trimmed, 0);
}
