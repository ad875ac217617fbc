/* Type-checks CEL rules without building a tree: a recursive-descent parser whose functions return the
 * type of the expression they consumed.
 *
 * The rules are stored but not evaluated by this server. Still, a rule that could never run must be
 * refused when its definition is written, as kube-apiserver does, or the mistake surfaces on another
 * cluster. So the checker is conservative: what it cannot know (values of unknown type, results of extension
 * libraries) has the type `dyn`, which fits everywhere, and a rule is refused only if it is certainly
 * wrong.
 *
 *   parse_expr      a ? b : c
 *   parse_junction  ||, then &&
 *   parse_relation  == != < <= > >= in
 *   parse_arithmetic  + -, then * / %
 *   parse_unary     ! -
 *   parse_member    .field  .method()  [index]
 *   parse_primary   literals, identifiers, (...), [...], {...}
 *
 * The first error ends the parse: fail_parse() moves to the end of the text, so every loop stops. Nesting and
 * variables are bounded; nothing is allocated except the buffers that unescape a field name. */
#include "cel_check.h"

enum { NESTING_MAX = 120, SCOPE_MAX = 24 };

enum type_kind {
    CEL_DYN,
    CEL_BOOL,
    CEL_INT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_NULL,
    CEL_LIST,
    CEL_MAP,
    CEL_OBJECT,
    CEL_METADATA, /* rules see name and generateName only */
};

struct type {
    enum type_kind kind;
    const struct json *schema; /* of the object, or of the items of a list or map; NULL: dyn */
    bool root;                 /* the whole object, which has metadata */
};

struct variable {
    str name;
    struct type type;
};

struct parser {
    str text;
    size_t at;
    unsigned depth;
    struct variable scope[SCOPE_MAX];
    size_t n_scope;
    err_t *e;
    int failed;
};

static struct type parse_expr(struct parser *p);

static const struct type dyn = { CEL_DYN }, boolean = { CEL_BOOL };

static struct type fail_parse(struct parser *p, const char *what, str about)
{
    if (!p->failed)
        p->failed =
            err_set(p->e, EINVAL, "%s '" STR_FMT "' at byte %zu", what, STR_ARG(about), p->at);
    p->at = p->text.n; /* ends every loop */
    return dyn;
}

/* ---- tokens */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Skips white space and comments; returns the next character, or 0 at the end. */
static char peek(struct parser *p)
{
    for (; p->at < p->text.n; p->at++) {
        char c = p->text.p[p->at];
        bool comment = str_starts(str_from(p->text, p->at), S("//"));
        if (comment)
            while (p->at + 1 < p->text.n && p->text.p[p->at] != '\n')
                p->at++;
        else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return c;
    }
    return '\0';
}

static bool accept(struct parser *p, const char *mark)
{
    peek(p);
    if (!str_starts(str_from(p->text, p->at), str_c(mark)))
        return false;
    p->at += strlen(mark);
    return true;
}

static void expect(struct parser *p, const char *mark)
{
    if (!accept(p, mark))
        fail_parse(p, "missing", str_c(mark));
}

/* Consumes an identifier; empty if there is none. */
static str take_word(struct parser *p)
{
    peek(p);
    size_t start = p->at;
    while (p->at < p->text.n &&
           (is_letter(p->text.p[p->at]) || (p->at > start && is_digit(p->text.p[p->at]))))
        p->at++;
    return str_upto(str_from(p->text, start), p->at - start);
}

static bool accept_word(struct parser *p, const char *word)
{
    size_t start = p->at;
    if (str_eqc(take_word(p), word))
        return true;
    p->at = start;
    return false;
}

/* ---- types */

/* The CEL type of values of an OpenAPI schema; formats that CEL maps to other types are dyn. */
static struct type type_of_schema(const struct json *schema, bool root)
{
    str type = json_text(json_get(schema, "type"));
    const struct json *others = json_get(schema, "additionalProperties");
    if (json_bool(json_get(schema, "x-kubernetes-int-or-string"), false))
        return dyn;
    if (str_eqc(type, "string")) {
        str format = json_text(json_get(schema, "format"));
        bool special = str_eqc(format, "date-time") || str_eqc(format, "date") ||
                       str_eqc(format, "duration") || str_eqc(format, "byte");
        return special ? dyn : (struct type){ CEL_STRING };
    }
    if (str_eqc(type, "integer"))
        return (struct type){ CEL_INT };
    if (str_eqc(type, "number"))
        return (struct type){ CEL_DOUBLE };
    if (str_eqc(type, "boolean"))
        return boolean;
    if (str_eqc(type, "array"))
        return (struct type){ CEL_LIST, json_get(schema, "items") };
    if (!str_eqc(type, "object"))
        return dyn;
    if (others)
        return (struct type){ CEL_MAP, json_is(others, JSON_OBJ) ? others : NULL };
    return (struct type){ CEL_OBJECT, schema, .root = root };
}

static struct type element_of(struct type t)
{
    return t.schema && (t.kind == CEL_LIST || t.kind == CEL_MAP) ? type_of_schema(t.schema, false)
                                                                 : dyn;
}

/* True if `word` is how a rule spells `field`: "x__dash__y" for the field "x-y". */
static bool is_escaped_name_of(str word, str field)
{
    static const struct {
        const char *escape, *plain;
    } escapes[] = {
        { "__dash__", "-" }, { "__dot__", "." }, { "__slash__", "/" }, { "__underscores__", "__" }
    };
    if (str_eq(word, field))
        return true;
    auto_buf struct buf plain = { 0 };
    for (size_t i = 0; i < word.n;) {
        size_t j = 0;
        while (j < countof(escapes) && !str_starts(str_from(word, i), str_c(escapes[j].escape)))
            j++;
        if (j < countof(escapes)) {
            buf_put(&plain, str_c(escapes[j].plain));
            i += strlen(escapes[j].escape);
        } else {
            buf_putc(&plain, word.p[i++]);
        }
    }
    if (str_eq(buf_str(&plain), field))
        return true;
    /* reserved words are written with underscores on both sides */
    return word.n == field.n + 4 && str_starts(word, S("__")) && str_ends(word, S("__")) &&
           str_eq(str_upto(str_from(word, 2), field.n), field);
}

/* The type of `t.word`; fails if the schema has no such field. */
static struct type select_field(struct parser *p, struct type t, str word)
{
    if (t.kind == CEL_DYN)
        return dyn;
    if (t.kind == CEL_MAP)
        return element_of(t);
    if (t.kind == CEL_METADATA && (str_eqc(word, "name") || str_eqc(word, "generateName")))
        return (struct type){ CEL_STRING };
    if (t.kind != CEL_OBJECT)
        return fail_parse(p, "there is no field", word);
    bool whole = t.root || json_bool(json_get(t.schema, "x-kubernetes-embedded-resource"), false);
    if (whole && (str_eqc(word, "apiVersion") || str_eqc(word, "kind")))
        return (struct type){ CEL_STRING };
    if (whole && str_eqc(word, "metadata"))
        return (struct type){ CEL_METADATA };
    json_each(m, json_get(t.schema, "properties"))
        if (is_escaped_name_of(word, m->key))
            return type_of_schema(m->value, false);
    return fail_parse(p, "undefined field", word);
}

/* ---- functions */

/* Functions of the language and of the libraries that Kubernetes adds, by result type. */
static const struct {
    enum type_kind result;
    const char *names; /* each surrounded by blanks */
} functions[] = {
    { CEL_BOOL, " bool contains startsWith endsWith matches isSorted isURL isQuantity isInteger "
                "isLessThan isGreaterThan isIP isCanonical isUnspecified isLoopback "
                "isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast isCIDR containsIP "
                "containsCIDR hasValue equivalent intersects isSemver isNaN isInf isFinite " },
    { CEL_INT, " size int getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours "
               "getMinutes getMonth getSeconds getMilliseconds indexOf lastIndexOf sign asInteger "
               "compareTo family prefixLength major minor patch " },
    { CEL_DOUBLE, " double asApproximateFloat ceil floor round " },
    { CEL_STRING, " string charAt join lowerAscii upperAscii replace substring trim format quote "
                  "reverse find getScheme getHost getHostname getPort getEscapedPath " },
    { CEL_LIST, " split findAll " },
    { CEL_DYN, " uint bytes duration timestamp type dyn sum min max url getQuery quantity add sub "
               "ip cidr masked of none ofNonZeroValue value orValue or semver validate named abs "
               "greatest least " },
};

static void parse_arguments(struct parser *p)
{
    if (accept(p, ")"))
        return;
    do
        parse_expr(p);
    while (accept(p, ","));
    expect(p, ")");
}

/* Consumes the arguments of a known function and returns its result type. */
static struct type call_function(struct parser *p, str name)
{
    auto_buf struct buf word = { 0 };
    buf_printf(&word, " " STR_FMT " ", STR_ARG(name));
    for (size_t i = 0; i < countof(functions); i++) {
        if (str_find(str_c(functions[i].names), buf_str(&word)) == SIZE_MAX)
            continue;
        parse_arguments(p);
        return (struct type){ functions[i].result };
    }
    return fail_parse(p, "undeclared function", name);
}

static void push_variable(struct parser *p, str name, struct type type)
{
    if (p->n_scope == SCOPE_MAX)
        fail_parse(p, "too many variables, beginning with", name);
    else
        p->scope[p->n_scope++] = (struct variable){ name, type };
}

/* all, exists, filter, map and the like: binds one or two variables for the expressions that
 * follow. Returns false, without consuming anything, if `name` is not a macro. */
static bool call_macro(struct parser *p, struct type target, str name, struct type *ret)
{
    static const char *const macros[] = { "all",    "exists", "exists_one", "existsOne",
                                          "filter", "map",    "optMap",     "optFlatMap" };
    bool known = false;
    for (size_t i = 0; i < countof(macros); i++)
        known = known || str_eqc(name, macros[i]);
    if (!known)
        return false;
    bool returns_bool = str_eqc(name, "all") || str_starts(name, S("exists"));
    size_t scope = p->n_scope;
    struct type element = target.kind == CEL_LIST  ? element_of(target)
                          : target.kind == CEL_MAP ? (struct type){ CEL_STRING }
                                                   : dyn;
    push_variable(p, take_word(p), str_starts(name, S("opt")) ? dyn : element);
    expect(p, ",");
    size_t before_second = p->at;
    str second = take_word(p); /* the two-variable form: index and value */
    if (second.n && peek(p) == ',' && !str_starts(name, S("map"))) {
        p->at++;
        p->scope[p->n_scope - 1].type = dyn;
        push_variable(p, second, element_of(target));
    } else {
        p->at = before_second;
    }
    struct type body = parse_expr(p);
    if (returns_bool && body.kind != CEL_BOOL && body.kind != CEL_DYN)
        fail_parse(p, "expected a bool expression in", name);
    while (accept(p, ","))
        parse_expr(p);
    expect(p, ")");
    p->n_scope = scope;
    *ret = returns_bool                                         ? boolean
           : str_eqc(name, "filter") && target.kind == CEL_LIST ? target
           : str_eqc(name, "map") || str_eqc(name, "filter")    ? (struct type){ CEL_LIST }
                                                                : dyn;
    return true;
}

/* ---- expressions */

/* Integers, hex, unsigned and floating point. */
static struct type parse_number(struct parser *p)
{
    bool fraction = false;
    if (accept(p, "0x")) {
        while (p->at < p->text.n && (is_digit(p->text.p[p->at]) || is_letter(p->text.p[p->at])))
            p->at++;
        return (struct type){ CEL_INT };
    }
    while (p->at < p->text.n) {
        char c = p->text.p[p->at];
        bool next_digit = p->at + 1 < p->text.n && is_digit(p->text.p[p->at + 1]);
        if (c == '.' && next_digit)
            fraction = true;
        else if ((c == 'e' || c == 'E') && p->at + 1 < p->text.n) {
            fraction = true;
            if (p->text.p[p->at + 1] == '-' || p->text.p[p->at + 1] == '+')
                p->at++;
        } else if (c == 'u' || c == 'U') {
            p->at++;
            return dyn;
        } else if (!is_digit(c)) {
            break;
        }
        p->at++;
    }
    return (struct type){ fraction ? CEL_DOUBLE : CEL_INT };
}

/* A string in single, double or triple quotes; raw strings have no escapes. */
static struct type parse_text(struct parser *p, bool raw)
{
    str rest = str_from(p->text, p->at);
    bool triple = str_starts(rest, S("'''")) || str_starts(rest, S("\"\"\""));
    str quote = str_upto(rest, triple ? 3 : 1);
    p->at += quote.n;
    for (; p->at < p->text.n; p->at++) {
        if (p->text.p[p->at] == '\\' && !raw) {
            p->at++;
        } else if (str_starts(str_from(p->text, p->at), quote)) {
            p->at += quote.n;
            return (struct type){ CEL_STRING };
        }
    }
    return fail_parse(p, "unterminated string starting with", str_upto(rest, 12));
}

static struct type parse_list(struct parser *p)
{
    while (!accept(p, "]")) {
        accept(p, "?");
        parse_expr(p);
        if (!accept(p, ",") && peek(p) != ']')
            return fail_parse(p, "missing", S("]"));
    }
    return (struct type){ CEL_LIST };
}

static struct type parse_map(struct parser *p)
{
    while (!accept(p, "}")) {
        accept(p, "?");
        parse_expr(p);
        expect(p, ":");
        parse_expr(p);
        if (!accept(p, ",") && peek(p) != '}')
            return fail_parse(p, "missing", S("}"));
    }
    return (struct type){ CEL_MAP };
}

/* A literal word, a variable in scope, a function call or a type name. */
static struct type parse_identifier(struct parser *p)
{
    static const char *const names[] = { "int",    "uint", "double", "string",  "bool",
                                         "bytes",  "list", "map",    "type",    "null_type",
                                         "sets",   "math", "ip",     "strings", "optional",
                                         "format", "cel",  "google", "lists",   "base64" };
    size_t start = p->at;
    char c = peek(p);
    str word = take_word(p);
    bool text = p->at < p->text.n && (p->text.p[p->at] == '"' || p->text.p[p->at] == '\'');
    if (word.n == 1 && text && strchr("rRbB", c))
        return parse_text(p, c == 'r' || c == 'R');
    if (str_eqc(word, "true") || str_eqc(word, "false"))
        return boolean;
    if (str_eqc(word, "null"))
        return (struct type){ CEL_NULL };
    for (size_t i = p->n_scope; i > 0; i--)
        if (str_eq(p->scope[i - 1].name, word))
            return p->scope[i - 1].type;
    if (accept(p, "(")) {
        if (str_eqc(word, "has")) {
            parse_arguments(p);
            return boolean;
        }
        return call_function(p, word);
    }
    for (size_t i = 0; i < countof(names); i++)
        if (str_eqc(word, names[i]))
            return dyn;
    p->at = start;
    return fail_parse(p, "undeclared reference to", word);
}

static struct type parse_primary(struct parser *p)
{
    char c = peek(p);
    if (accept(p, "(")) {
        struct type t = parse_expr(p);
        expect(p, ")");
        return t;
    }
    if (accept(p, "["))
        return parse_list(p);
    if (accept(p, "{"))
        return parse_map(p);
    if (c == '"' || c == '\'')
        return parse_text(p, false);
    if (is_digit(c))
        return parse_number(p);
    if (is_letter(c))
        return parse_identifier(p);
    return fail_parse(p, "unexpected", str_upto(str_from(p->text, p->at), 1));
}

/* A primary followed by any number of selections, calls and indexes. */
static struct type parse_member(struct parser *p)
{
    struct type t = parse_primary(p);
    while (!p->failed) {
        if (accept(p, "[")) {
            if (t.kind == CEL_OBJECT)
                return fail_parse(p, "an object cannot be indexed with", S("["));
            accept(p, "?");
            parse_expr(p);
            expect(p, "]");
            t = element_of(t);
        } else if (accept(p, ".")) {
            bool optional = accept(p, "?");
            str word = take_word(p);
            if (!word.n)
                return fail_parse(p, "missing name after", S("."));
            if (!accept(p, "("))
                t = optional ? (select_field(p, t, word), dyn) : select_field(p, t, word);
            else if (!call_macro(p, t, word, &t))
                t = call_function(p, word);
        } else {
            return t;
        }
    }
    return t;
}

static struct type parse_unary(struct parser *p)
{
    if (peek(p) == '!' && !str_starts(str_from(p->text, p->at), S("!="))) {
        p->at++;
        struct type t = parse_unary(p);
        return t.kind == CEL_BOOL || t.kind == CEL_DYN
                   ? boolean
                   : fail_parse(p, "expected a bool operand for", S("!"));
    }
    if (accept(p, "-"))
        return parse_unary(p);
    return parse_member(p);
}

/* True if an operator accepts these operands; int and double compare with each other. */
static bool is_comparable(struct type a, struct type b)
{
    bool numbers =
        (a.kind == CEL_INT || a.kind == CEL_DOUBLE) && (b.kind == CEL_INT || b.kind == CEL_DOUBLE);
    return a.kind == b.kind || numbers || a.kind == CEL_DYN || b.kind == CEL_DYN ||
           a.kind == CEL_NULL || b.kind == CEL_NULL ||
           ((a.kind == CEL_OBJECT || a.kind == CEL_MAP) &&
            (b.kind == CEL_OBJECT || b.kind == CEL_MAP));
}

static bool accept_any(struct parser *p, const char *const *operators, str *ret)
{
    for (; *operators; operators++) {
        if (!accept(p, *operators))
            continue;
        *ret = str_c(*operators);
        return true;
    }
    return false;
}

/* `products` selects the level: * / % binds tighter than + -. */
static struct type parse_arithmetic(struct parser *p, bool products)
{
    static const char *const times[] = { "*", "/", "%", NULL }, *const plus[] = { "+", "-", NULL };
    struct type left = products ? parse_unary(p) : parse_arithmetic(p, true);
    for (str op; !p->failed && accept_any(p, products ? times : plus, &op);) {
        struct type right = products ? parse_unary(p) : parse_arithmetic(p, true);
        if (!is_comparable(left, right) || left.kind == CEL_BOOL)
            return fail_parse(p, "operand types do not match for", op);
        if (left.kind != right.kind)
            left = dyn;
    }
    return left;
}

static struct type parse_relation(struct parser *p)
{
    static const char *const operators[] = { "==", "!=", "<=", ">=", "<", ">", NULL };
    struct type left = parse_arithmetic(p, false);
    str op = S("in");
    while (!p->failed) {
        bool in = accept_word(p, "in");
        if (!in && !accept_any(p, operators, &op))
            return left;
        struct type right = parse_arithmetic(p, false);
        if (!in && !is_comparable(left, right))
            return fail_parse(p, "operand types do not match for", op);
        left = boolean;
    }
    return left;
}

/* `both` selects the level: && binds tighter than ||. */
static struct type parse_junction(struct parser *p, bool both)
{
    struct type left = both ? parse_relation(p) : parse_junction(p, true);
    while (!p->failed && accept(p, both ? "&&" : "||")) {
        struct type right = both ? parse_relation(p) : parse_junction(p, true);
        if ((left.kind != CEL_BOOL && left.kind != CEL_DYN) ||
            (right.kind != CEL_BOOL && right.kind != CEL_DYN))
            return fail_parse(p, "expected bool operands for", both ? S("&&") : S("||"));
        left = boolean;
    }
    return left;
}

static struct type parse_expr(struct parser *p)
{
    if (++p->depth > NESTING_MAX)
        return fail_parse(p, "nested too deeply at", str_upto(str_from(p->text, p->at), 8));
    struct type t = parse_junction(p, false);
    if (!p->failed && accept(p, "?")) {
        if (t.kind != CEL_BOOL && t.kind != CEL_DYN)
            return fail_parse(p, "expected a bool expression before", S("?"));
        t = parse_expr(p);
        expect(p, ":");
        struct type other = parse_expr(p);
        if (t.kind != other.kind)
            t = dyn;
    }
    p->depth--;
    return t;
}

/* Parses `text` with self and oldSelf in scope; `type_error` is the message for a result that is
 * not of the wanted type. */
static int check_expression(const struct cel_place *place, str text, enum type_kind wanted,
                            const char *type_error, err_t *e)
{
    struct parser p = { .text = text, .e = e };
    struct type self = type_of_schema(place->openapi, place->root);
    push_variable(&p, S("self"), self);
    push_variable(&p, S("oldSelf"), place->optional_old ? dyn : self);
    struct type result = parse_expr(&p);
    if (!p.failed && peek(&p))
        fail_parse(&p, "unexpected", str_upto(str_from(text, p.at), 8));
    if (!p.failed && result.kind != wanted && result.kind != CEL_DYN)
        return err_set(e, EINVAL, "%s", type_error);
    return p.failed;
}

int cel_check(const struct cel_place *place, str rule, err_t *e)
{
    return check_expression(place, rule, CEL_BOOL, "cel expression must evaluate to a bool", e);
}

int cel_check_message(const struct cel_place *place, str expression, err_t *e)
{
    return check_expression(place, expression, CEL_STRING,
                            "messageExpression must evaluate to a string", e);
}
