/* Constants that can never work: patterns, durations and timestamps that do not parse, lists and maps of mixed
 * types, and arguments that a format string does not accept. kube-apiserver refuses them when a rule is
 * written, and so a client finds the mistake before the first object does.
 *
 * Constant patterns are compiled here, once, for all evaluations. */
#include "../../../base/duration.h"
#include "../../../base/regex.h"
#include "cel_node.h"

struct literals {
    struct cel_issues *issues;
    bool mixed_allowed; /* inside the arguments of format() */
};

static void walk(struct literals *l, struct cel_node *node);

/* ---- homogeneous lists and maps */

/* Compares with the first item, as the original does, so the error is reported at the later one. */
static void check_same(struct literals *l, const struct cel_node *first,
                       const struct cel_node *item, bool optional, bool first_optional)
{
    const struct cel_type *want = first->type, *type = item->type;
    if (first_optional && want->kind == CEL_OPTIONAL)
        want = want->of[0];
    if (optional && type->kind == CEL_OPTIONAL)
        type = type->of[0];
    if (!cel_same_type(want, type))
        cel_issue(l->issues, item->at, "expected type '" STR_FMT "' but found '" STR_FMT "'",
                  STR_ARG(cel_type_text(l->issues->arena, want)),
                  STR_ARG(cel_type_text(l->issues->arena, type)));
}

static void check_homogeneous(struct literals *l, const struct cel_node *node)
{
    const bool *optional = node->list.optional;
    if (l->mixed_allowed || node->kind == CEL_N_STRUCT)
        return;
    bool map = node->kind == CEL_N_MAP;
    for (uint32_t i = 1; i < node->list.n; i++) {
        size_t before = l->issues->n;
        if (map)
            check_same(l, node->list.items[0], node->list.items[2 * i], false, false);
        check_same(l, node->list.items[map ? 1 : 0], node->list.items[map ? 2 * i + 1 : i],
                   optional && optional[i], optional && optional[0]);
        if (l->issues->n > before)
            return;
    }
}

/* ---- arguments of functions */

/* Patterns that our engine does not support (-ENOTSUP) pass and fail when they are used: they may be valid. */
static void check_pattern(struct literals *l, struct cel_node *node, struct cel_node *pattern)
{
    err_t e;
    if (pattern->kind != CEL_N_CONST || pattern->constant.kind != CEL_STRING)
        return;
    int failed = regex_compile(l->issues->keep, cel_text(pattern->constant), &node->call.regex, &e);
    if (failed && failed != -ENOTSUP)
        cel_issue(l->issues, pattern->at, "invalid %.*s argument", STR_ARG(node->call.name));
}

static void check_argument(struct literals *l, const struct cel_node *node)
{
    const struct cel_node *arg = node->call.n == 1 ? node->call.args[0] : NULL;
    struct cel_value ignored;
    int64_t ns;
    if (!arg || arg->kind != CEL_N_CONST || arg->constant.kind != CEL_STRING || node->call.target)
        return;
    str text = cel_text(arg->constant);
    if (str_eqc(node->call.name, "duration") && duration_parse(text, &ns, NULL) < 0)
        cel_issue(l->issues, arg->at, "invalid duration argument");
    if (str_eqc(node->call.name, "timestamp") && !cel_parse_timestamp(text, &ignored))
        cel_issue(l->issues, arg->at, "invalid timestamp argument");
}

/* ---- format strings */

static bool is_kind_of(const struct cel_type *type, const char *letters)
{
    static const char of_kind[CEL_KIND_N] = {
        [CEL_NULL] = 'n',     [CEL_BOOL] = 'b',   [CEL_INT] = 'i',   [CEL_UINT] = 'u',
        [CEL_DOUBLE] = 'd',   [CEL_STRING] = 's', [CEL_BYTES] = 'y', [CEL_TIMESTAMP] = 't',
        [CEL_DURATION] = 'r', [CEL_LIST] = 'L',   [CEL_MAP] = 'M',   [CEL_TYPE] = 'T',
    };
    char letter = of_kind[type->kind];
    return type->kind == CEL_DYN || (letter && strchr(letters, letter));
}

/* Which kinds a clause accepts; NULL: there is no such clause. */
static const char *get_clause_kinds(char clause, const char **ret_what)
{
    static const struct {
        char clause;
        const char *kinds, *what;
    } clauses[] = {
        { 's', "LMiudbstyrTn",
          "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
          "durations, and timestamps" },
        { 'd', "iu", "decimal clause can only be used on integers" },
        { 'f', "ds", "fixed-point clause can only be used on doubles" },
        { 'e', "ds", "scientific clause can only be used on doubles" },
        { 'b', "iub", "only integers and bools can be formatted as binary" },
        { 'x', "iusy", "only integers, byte buffers, and strings can be formatted as hex" },
        { 'X', "iusy", "only integers, byte buffers, and strings can be formatted as hex" },
        { 'o', "iu", "octal clause can only be used on integers" },
    };
    for (size_t i = 0; i < countof(clauses); i++) {
        if (clauses[i].clause != clause)
            continue;
        *ret_what = clauses[i].what;
        return clauses[i].kinds;
    }
    return NULL;
}

/* 'text'.format([...]) with constant text and a list literal: clauses and arguments must fit. */
static void check_format(struct literals *l, const struct cel_node *node)
{
    const struct cel_node *target = node->call.target, *list = node->call.args[0];
    if (target->kind != CEL_N_CONST || target->constant.kind != CEL_STRING ||
        list->kind != CEL_N_LIST)
        return;
    str text = cel_text(target->constant);
    uint32_t used = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%')
            continue;
        i++;
        if (i < text.n && text.p[i] == '%')
            continue;
        while (i < text.n && (text.p[i] == '.' || (text.p[i] >= '0' && text.p[i] <= '9')))
            i++;
        const char *what = NULL;
        const char *kinds = i < text.n ? get_clause_kinds(text.p[i], &what) : NULL;
        if (i >= text.n) {
            cel_issue(l->issues, node->at, "unexpected end of string");
            return;
        }
        if (used >= list->list.n) {
            cel_issue(l->issues, node->at, "index %u out of range", used);
            return;
        }
        const struct cel_node *arg = list->list.items[used++];
        if (!kinds) {
            cel_issue(l->issues, node->at,
                      "could not parse formatting clause: unrecognized formatting clause \"%c\"",
                      text.p[i]);
            return;
        }
        if (!is_kind_of(arg->type, kinds)) {
            cel_issue(l->issues, arg->at, "error during formatting: %s, was given " STR_FMT, what,
                      STR_ARG(cel_type_text(l->issues->arena, arg->type)));
            return;
        }
    }
    if (list->list.n > used)
        cel_issue(l->issues, node->at,
                  "too many arguments supplied to string.format (expected %u, got %u)", used,
                  list->list.n);
}

/* Checks the arguments of one call, then the calls inside them. */
static void check_call(struct literals *l, struct cel_node *node)
{
    str name = node->call.name;
    struct cel_node *last =
        node->call.n ? node->call.args[node->call.target ? 0 : node->call.n - 1] : NULL;
    if (last && (str_eqc(name, "matches") || str_eqc(name, "find") || str_eqc(name, "findAll")))
        check_pattern(l, node, last);
    check_argument(l, node);
    bool format = str_eqc(name, "format") && node->call.target && node->call.n == 1;
    if (format)
        check_format(l, node);
    bool before = l->mixed_allowed;
    l->mixed_allowed = before || format;
    if (node->call.target)
        walk(l, node->call.target);
    for (uint32_t i = 0; i < node->call.n; i++)
        walk(l, node->call.args[i]);
    l->mixed_allowed = before;
}

static void walk(struct literals *l, struct cel_node *node)
{
    switch (node->kind) {
    case CEL_N_SELECT:
        walk(l, node->select.from);
        break;
    case CEL_N_CALL:
        check_call(l, node);
        break;
    case CEL_N_LIST:
    case CEL_N_MAP:
    case CEL_N_STRUCT:
        check_homogeneous(l, node);
        for (uint32_t i = 0; i < node->list.n * (node->kind == CEL_N_LIST ? 1u : 2u); i++)
            walk(l, node->list.items[i]);
        break;
    case CEL_N_LOOP:
        walk(l, node->loop.range);
        walk(l, node->loop.init);
        walk(l, node->loop.cond);
        walk(l, node->loop.step);
        walk(l, node->loop.result);
        break;
    default:
        break;
    }
}

void cel_check_literals(struct cel_issues *issues, struct cel_node *node)
{
    walk(&(struct literals){ .issues = issues }, node);
}
