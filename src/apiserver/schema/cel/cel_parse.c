/* The parser of CEL: recursive descent, one function per level of precedence.
 *
 *   parse_ternary   a ? b : c
 *   parse_or        ||, as a balanced tree would be without use here: the chain leans to the left
 *   parse_and       &&
 *   parse_relation  == != < <= > >= in
 *   parse_sum       + -
 *   parse_product   * / %
 *   parse_unary     ! -
 *   parse_member    .field  .?field  .method()  [index]  [?index]  Type{field: value}
 *   parse_primary   literals, identifiers, (...), [...], {...}
 *
 * The first syntax error ends the parse: the current token becomes the end of the text, so every loop stops.
 * Macros are expanded as they are read (cel_macro.c). The depth of the tree is bounded, since everything that walks
 * it is recursive. */
#include "cel_node.h"

struct parser {
    struct cel_builder b;
    uint32_t next; /* byte after the current token */
    struct cel_token token;
    uint32_t depth;
    bool failed;
};

static struct cel_node *parse_ternary(struct parser *p);

static void advance(struct parser *p)
{
    p->token = cel_next_token(p->b.issues, &p->next);
    if (p->token.kind == CEL_T_BAD)
        p->failed = true;
    if (p->failed)
        p->token.kind = CEL_T_END;
}

/* Ends the parse. Returns a node, so that callers need no check of their own. */
static struct cel_node *error_node(struct parser *p)
{
    p->failed = true;
    p->token.kind = CEL_T_END;
    return cel_new_ident(&p->b, S(""));
}

/* Reports what stands where an expression or a mark should be. */
static struct cel_node *fail_syntax(struct parser *p, const char *expected)
{
    if (!p->failed) {
        str source = p->b.issues->text;
        bool end = p->token.kind == CEL_T_END;
        str found =
            end ? S("<EOF>") : str_upto(str_from(source, p->token.at), p->next - p->token.at);
        cel_issue(p->b.issues, p->token.at,
                  "Syntax error: mismatched input '" STR_FMT "' expecting %s", STR_ARG(found),
                  expected);
    }
    return error_node(p);
}

static bool is_mark(const struct parser *p, const char *mark)
{
    return p->token.kind == CEL_T_MARK && str_eqc(p->token.text, mark);
}

static bool accept_mark(struct parser *p, const char *mark)
{
    if (!is_mark(p, mark))
        return false;
    advance(p);
    return true;
}

static void expect_mark(struct parser *p, const char *mark)
{
    static const char *const quoted[][2] = {
        { ")", "')'" }, { "]", "']'" }, { "}", "'}'" }, { ":", "':'" }, { "(", "'('" }
    };
    if (accept_mark(p, mark))
        return;
    for (size_t i = 0; i < countof(quoted); i++)
        if (!strcmp(quoted[i][0], mark))
            fail_syntax(p, quoted[i][1]);
}

/* ---- nodes */

struct cel_node *cel_new_node(struct cel_builder *b, enum cel_node_kind kind)
{
    struct cel_node *node = arena_new(b->arena, struct cel_node);
    node->kind = kind;
    node->at = b->at;
    node->depth = node->weight = 1;
    return node;
}

struct cel_node *cel_new_ident(struct cel_builder *b, str name)
{
    struct cel_node *node = cel_new_node(b, CEL_N_IDENT);
    node->ident.name = name;
    return node;
}

/* Depth and weight of a subtree grow with each child; both are limited (check_depth). */
void cel_adopt(struct cel_node *node, const struct cel_node *child)
{
    if (!child)
        return;
    node->depth = MAX(node->depth, child->depth + 1);
    node->weight = MIN(node->weight + child->weight, (uint32_t)CEL_WEIGHT_MAX);
}

struct cel_node *cel_new_call(struct cel_builder *b, const char *name, struct cel_node *target,
                              size_t n, struct cel_node *const *args)
{
    struct cel_node *node = cel_new_node(b, CEL_N_CALL);
    node->call.name = str_c(name);
    node->call.target = target;
    node->call.args = arena_array(b->arena, n + 1, sizeof(*node->call.args));
    node->call.n = (uint32_t)n;
    cel_adopt(node, target);
    for (size_t i = 0; i < n; i++) {
        node->call.args[i] = args[i];
        cel_adopt(node, args[i]);
    }
    return node;
}

/* Long chains of operators and members make a deep tree without nesting in the text. */
static struct cel_node *check_depth(struct parser *p, struct cel_node *node)
{
    if (node->depth < 2 * CEL_DEPTH_MAX && node->weight < CEL_WEIGHT_MAX)
        return node;
    if (!p->failed)
        cel_issue(p->b.issues, node->at, "expression recursion limit exceeded: %d", CEL_DEPTH_MAX);
    return error_node(p);
}

static struct cel_node *binary(struct parser *p, const char *name, uint32_t at,
                               struct cel_node *left, struct cel_node *right)
{
    p->b.at = at;
    return check_depth(p, cel_new_call(&p->b, name, NULL, 2, (struct cel_node *[]){ left, right }));
}

/* ---- primary */

/* The arguments of a call up to its ")", which is consumed. */
static struct cel_node **parse_arguments(struct parser *p, uint32_t *ret_n)
{
    uint32_t cap = 4, n = 0;
    struct cel_node **args = arena_array(p->b.arena, cap, sizeof(*args));
    while (!is_mark(p, ")") && !p->failed) {
        if (n == cap) {
            struct cel_node **grown = arena_array(p->b.arena, (size_t)cap * 2, sizeof(*grown));
            memcpy(grown, args, n * sizeof(*args));
            args = grown, cap *= 2;
        }
        args[n++] = parse_ternary(p);
        if (!accept_mark(p, ","))
            break;
    }
    expect_mark(p, ")");
    *ret_n = n;
    return args;
}

/* A call: a macro is expanded, anything else becomes a node at its "(". */
static struct cel_node *parse_call(struct parser *p, str name, struct cel_node *target)
{
    uint32_t at = p->token.at, n;
    advance(p); /* "(" */
    struct cel_node **args = parse_arguments(p, &n);
    p->b.at = at;
    struct cel_node *macro = p->failed ? NULL : cel_expand_macro(&p->b, name, target, args, n);
    if (macro)
        return check_depth(p, macro);
    struct cel_node *call = cel_new_call(&p->b, "", target, n, args);
    call->call.name = name;
    return check_depth(p, call);
}

struct items {
    struct cel_node **at;
    bool *optional;
    uint32_t n, cap; /* entries */
    uint32_t width;  /* nodes per entry: 2 in a map */
};

static void push_item(struct parser *p, struct items *items, struct cel_node *first,
                      struct cel_node *second, bool optional)
{
    if (items->n == items->cap) {
        uint32_t cap = items->cap ? items->cap * 2 : 8;
        struct cel_node **at = arena_array(p->b.arena, (size_t)cap * items->width, sizeof(*at));
        bool *flags = arena_array(p->b.arena, cap, sizeof(*flags));
        if (items->n) {
            memcpy(at, items->at, (size_t)items->n * items->width * sizeof(*at));
            memcpy(flags, items->optional, items->n * sizeof(*flags));
        }
        items->at = at, items->optional = flags, items->cap = cap;
    }
    items->at[items->n * items->width] = first;
    if (items->width == 2)
        items->at[items->n * 2 + 1] = second;
    items->optional[items->n++] = optional;
}

static struct cel_node *finish_items(struct parser *p, enum cel_node_kind kind, uint32_t at,
                                     const struct items *items)
{
    p->b.at = at;
    struct cel_node *node = cel_new_node(&p->b, kind);
    node->list.items = items->at;
    node->list.optional = items->optional;
    node->list.n = items->n;
    for (uint32_t i = 0; i < items->n * items->width; i++)
        cel_adopt(node, items->at[i]);
    return check_depth(p, node);
}

static struct cel_node *parse_list(struct parser *p)
{
    uint32_t at = p->token.at;
    struct items items = { .width = 1 };
    advance(p);
    while (!is_mark(p, "]") && !p->failed) {
        bool optional = accept_mark(p, "?");
        push_item(p, &items, parse_ternary(p), NULL, optional);
        if (!accept_mark(p, ","))
            break;
    }
    expect_mark(p, "]");
    return finish_items(p, CEL_N_LIST, at, &items);
}

/* {key: value}, or with a type name the fields of a message. */
static struct cel_node *parse_map(struct parser *p, str name)
{
    uint32_t at = p->token.at;
    struct items items = { .width = 2 };
    advance(p);
    while (!is_mark(p, "}") && !p->failed) {
        bool optional = accept_mark(p, "?");
        struct cel_node *key;
        if (name.n && p->token.kind == CEL_T_WORD) {
            p->b.at = p->token.at;
            key = cel_new_ident(&p->b, p->token.text);
            advance(p);
        } else if (name.n) {
            key = fail_syntax(p, optional  ? "{IDENTIFIER, ESC_IDENTIFIER}"
                                 : items.n ? "{'}', '?', IDENTIFIER, ESC_IDENTIFIER}"
                                           : "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}");
        } else {
            key = parse_ternary(p);
        }
        if (name.n)
            key->at = p->token.at; /* errors of a field are reported at its colon */
        expect_mark(p, ":");
        push_item(p, &items, key, parse_ternary(p), optional);
        if (!accept_mark(p, ","))
            break;
    }
    expect_mark(p, "}");
    struct cel_node *node = finish_items(p, name.n ? CEL_N_STRUCT : CEL_N_MAP, at, &items);
    if (node->kind == CEL_N_STRUCT)
        node->list.name = name;
    return node;
}

static struct cel_node *parse_constant(struct parser *p, bool negative)
{
    struct cel_value v = p->token.constant;
    p->b.at = p->token.at;
    if (v.kind == CEL_INT && v.natural > (uint64_t)INT64_MAX + negative) {
        cel_issue(p->b.issues, p->token.at, "invalid int literal");
        return error_node(p);
    }
    if (v.kind == CEL_INT && negative)
        v.integer = (int64_t)(0 - v.natural);
    if (v.kind == CEL_DOUBLE && negative)
        v.real = -v.real;
    struct cel_node *node = cel_new_node(&p->b, CEL_N_CONST);
    node->constant = v;
    advance(p);
    return node;
}

static bool is_reserved(str word)
{
    static const char *const words[] = { "as",   "break",    "const",     "continue", "else",
                                         "for",  "function", "if",        "import",   "let",
                                         "loop", "package",  "namespace", "return",   "var",
                                         "void", "while" };
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(word, words[i]))
            return true;
    return false;
}

/* An identifier, a literal word or a function call. */
static struct cel_node *parse_word(struct parser *p)
{
    str word = p->token.text;
    p->b.at = p->token.at;
    struct cel_value v = { .kind = CEL_BOOL, .boolean = str_eqc(word, "true") };
    if (str_eqc(word, "null"))
        v = (struct cel_value){ .kind = CEL_NULL };
    if (v.boolean || v.kind == CEL_NULL || str_eqc(word, "false")) {
        struct cel_node *node = cel_new_node(&p->b, CEL_N_CONST);
        node->constant = v;
        advance(p);
        return node;
    }
    if (str_eqc(word, "in"))
        return fail_syntax(p, "IDENTIFIER");
    if (is_reserved(word)) {
        cel_issue(p->b.issues, p->token.at, "Syntax error: reserved identifier: " STR_FMT,
                  STR_ARG(word));
        return error_node(p);
    }
    advance(p);
    if (is_mark(p, "("))
        return parse_call(p, word, NULL);
    return cel_new_ident(&p->b, word);
}

static struct cel_node *parse_primary(struct parser *p)
{
    if (p->token.kind == CEL_T_CONST)
        return parse_constant(p, false);
    if (is_mark(p, "."))
        advance(p); /* a name from the root: there is only one container */
    if (p->token.kind == CEL_T_WORD)
        return parse_word(p);
    if (is_mark(p, "["))
        return parse_list(p);
    if (is_mark(p, "{"))
        return parse_map(p, S(""));
    if (accept_mark(p, "(")) {
        struct cel_node *inner = parse_ternary(p);
        expect_mark(p, ")");
        return inner;
    }
    return fail_syntax(p, "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, "
                          "NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}");
}

/* The dotted name of a chain of identifiers; empty if the node is anything else. */
static str get_qualified_name(struct parser *p, const struct cel_node *node)
{
    if (node->kind == CEL_N_IDENT)
        return node->ident.name;
    if (node->kind != CEL_N_SELECT || node->select.test)
        return S("");
    str front = get_qualified_name(p, node->select.from);
    if (!front.n)
        return front;
    return arena_join(p->b.arena, (str[]){ front, S("."), node->select.field }, 3);
}

static struct cel_node *parse_field(struct parser *p, struct cel_node *from)
{
    uint32_t at = p->token.at;
    advance(p); /* "." */
    bool optional = accept_mark(p, "?");
    if (p->token.kind != CEL_T_WORD || str_eqc(p->token.text, "in") ||
        str_eqc(p->token.text, "true") || str_eqc(p->token.text, "false") ||
        str_eqc(p->token.text, "null"))
        return fail_syntax(p, "IDENTIFIER");
    str name = p->token.text;
    advance(p);
    if (!optional && is_mark(p, "("))
        return parse_call(p, name, from);
    p->b.at = at;
    struct cel_node *node = cel_new_node(&p->b, CEL_N_SELECT);
    node->select.from = from;
    node->select.field = name;
    node->select.optional = optional;
    cel_adopt(node, from);
    return check_depth(p, node);
}

static struct cel_node *parse_index(struct parser *p, struct cel_node *from)
{
    uint32_t at = p->token.at;
    advance(p); /* "[" */
    bool optional = accept_mark(p, "?");
    struct cel_node *index = parse_ternary(p);
    expect_mark(p, "]");
    return binary(p, optional ? "_[?_]" : "_[_]", at, from, index);
}

static struct cel_node *parse_member(struct parser *p)
{
    struct cel_node *node = parse_primary(p);
    for (;;) {
        if (is_mark(p, "."))
            node = parse_field(p, node);
        else if (is_mark(p, "["))
            node = parse_index(p, node);
        else if (is_mark(p, "{") && get_qualified_name(p, node).n)
            node = parse_map(p, get_qualified_name(p, node));
        else
            return node;
    }
}

/* ---- operators */

/* On success the caller decrements p->depth when it returns. */
static bool enter_level(struct parser *p)
{
    if (p->depth < CEL_DEPTH_MAX) {
        p->depth++;
        return true;
    }
    if (!p->failed)
        cel_issue(p->b.issues, p->token.at, "expression recursion limit exceeded: %d",
                  CEL_DEPTH_MAX);
    return false;
}

static struct cel_node *parse_unary(struct parser *p)
{
    if (!enter_level(p))
        return error_node(p);
    const char *name = is_mark(p, "!") ? "!_" : is_mark(p, "-") ? "-_" : NULL;
    uint32_t at = p->token.at;
    struct cel_node *node;
    if (!name) {
        node = parse_member(p);
    } else {
        advance(p);
        bool number = p->token.kind == CEL_T_CONST &&
                      (p->token.constant.kind == CEL_INT || p->token.constant.kind == CEL_DOUBLE);
        if (name[0] == '-' && number) {
            node = parse_constant(p, true);
            node->at = at;
        } else {
            struct cel_node *operand = parse_unary(p);
            p->b.at = at;
            node = check_depth(p, cel_new_call(&p->b, name, NULL, 1, &operand));
        }
    }
    p->depth--;
    return node;
}

struct operator
{
    const char *mark, *name;
};

/* Left-associative operators of one level. */
static struct cel_node *parse_level(struct parser *p, const struct operator* operators, size_t n,
                                    struct cel_node *(*operand)(struct parser *p))
{
    struct cel_node *left = operand(p);
    for (;;) {
        size_t i = 0;
        bool word = p->token.kind == CEL_T_WORD && str_eqc(p->token.text, "in");
        while (i < n && !is_mark(p, operators[i].mark) && !(word && operators[i].mark[0] == 'i'))
            i++;
        if (i == n)
            return left;
        uint32_t at = p->token.at;
        advance(p);
        left = binary(p, operators[i].name, at, left, operand(p));
    }
}

static struct cel_node *parse_product(struct parser *p)
{
    static const struct operator operators[] = { { "*", "_*_" }, { "/", "_/_" }, { "%", "_%_" } };
    return parse_level(p, operators, countof(operators), parse_unary);
}

static struct cel_node *parse_sum(struct parser *p)
{
    static const struct operator operators[] = { { "+", "_+_" }, { "-", "_-_" } };
    return parse_level(p, operators, countof(operators), parse_product);
}

static struct cel_node *parse_relation(struct parser *p)
{
    static const struct operator operators[] = {
        { "==", "_==_" },
        { "!=", "_!=_" },
        { "<", "_<_" },
        { "<=", "_<=_" },
        { ">", "_>_" },
        { ">=", "_>=_" },
        { "in", "@in" }
    };
    return parse_level(p, operators, countof(operators), parse_sum);
}

static struct cel_node *parse_and(struct parser *p)
{
    static const struct operator operators[] = { { "&&", "_&&_" } };
    return parse_level(p, operators, countof(operators), parse_relation);
}

static struct cel_node *parse_or(struct parser *p)
{
    static const struct operator operators[] = { { "||", "_||_" } };
    return parse_level(p, operators, countof(operators), parse_and);
}

static struct cel_node *parse_ternary(struct parser *p)
{
    if (!enter_level(p))
        return error_node(p);
    struct cel_node *condition = parse_or(p);
    uint32_t at = p->token.at;
    if (accept_mark(p, "?")) {
        struct cel_node *yes = parse_or(p);
        expect_mark(p, ":");
        struct cel_node *no = parse_ternary(p);
        p->b.at = at;
        condition = check_depth(p, cel_new_call(&p->b, "_?_:_", NULL, 3,
                                                (struct cel_node *[]){ condition, yes, no }));
    }
    p->depth--;
    return condition;
}

struct cel_node *cel_parse(struct cel_issues *issues)
{
    struct parser p = { .b = { .issues = issues, .arena = issues->keep } };
    if (issues->text.n > 100000) {
        cel_issue(issues, 0, "expression code point size exceeds limit: size: %zu, limit 100000",
                  issues->text.n);
        return NULL;
    }
    advance(&p);
    struct cel_node *root = parse_ternary(&p);
    if (!p.failed && p.token.kind != CEL_T_END) {
        str found = str_upto(str_from(issues->text, p.token.at), p.next - p.token.at);
        cel_issue(issues, p.token.at,
                  "Syntax error: extraneous input '" STR_FMT "' expecting <EOF>", STR_ARG(found));
    }
    return issues->n ? NULL : root;
}
