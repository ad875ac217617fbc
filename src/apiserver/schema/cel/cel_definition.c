/* The rules of a definition: everything that can be wrong with them before an object exists.
 *
 * The form of a rule is checked first (message, reason, fieldPath); only if nothing is wrong at a node or below it are
 * its rules compiled and their cost estimated. The cost of a rule is what one evaluation may cost, times how often the
 * value may occur: the product of maxItems and maxProperties above it, or, if one of those is missing, as many values as
 * fit in a request. */
#include "../schema.h"
#include "cel_cost.h"
#include "cel_validator.h"

#include <stdio.h>

#define RULE_COST_MAX UINT64_C(10000000)
#define TOTAL_COST_MAX UINT64_C(100000000)
#define REQUEST_BYTES INT64_C(3145728)
enum { EXPENSIVE_MAX = 4 };

/* The sum over all rules of a definition, and the few most expensive ones, which are named if the sum is too
 * high. */
struct total {
    uint64_t cost;
    struct {
        str path;
        uint64_t cost;
    } most[EXPENSIVE_MAX + 1];
    size_t n;
};

struct context {
    struct field_errors *errors;
    struct arena *scratch;
    struct total *total;
    bool bounded;       /* `count` is known */
    uint64_t count;     /* how often a value may occur */
    str uncorrelatable; /* path of a list without keys above; or empty */
};

/* ---- the form of a rule */

static bool has_line_break(str text)
{
    return str_find_char(text, '\n') != SIZE_MAX || str_find_char(text, '\r') != SIZE_MAX;
}

static void check_reason(const struct json *reason, const struct field_path *up,
                         struct field_errors *errors)
{
    static const char *const reasons[] = { "FieldValueDuplicate", "FieldValueForbidden",
                                           "FieldValueInvalid", "FieldValueRequired", NULL };
    for (size_t i = 0; reasons[i]; i++)
        if (!reason || str_eqc(json_text(reason), reasons[i]))
            return;
    field_not_supported(errors, AT(up, "reason"), reason, reasons);
}

/* fieldPath: where an error of the rule is reported; must lead to a declared field. */
static void check_field_path(struct context *c, const struct json *schema, const struct json *path,
                             const struct field_path *at)
{
    str text = json_text(path), ignored;
    if (text.n && !str_trim(text).n)
        field_invalid(c->errors, at, path, "must be non-empty if specified");
    if (has_line_break(text))
        field_invalid(c->errors, at, path, "must not contain line breaks");
    if (!cel_normalize_path(c->scratch, schema, text, &ignored))
        field_invalid(c->errors, at, path, "must be a valid path");
}

/* rule, message and messageExpression: the first problem of the first two is reported. */
static void check_texts(struct context *c, const struct json *each, const struct field_path *up)
{
    const struct json *message = json_get(each, "message");
    const struct json *computed = json_get(each, "messageExpression");
    str rule = str_trim(json_text(json_get(each, "rule"))), text = str_trim(json_text(message));
    if (!rule.n)
        field_required(c->errors, AT(up, "rule"), "rule is not specified");
    else if (json_text(message).n && !text.n)
        field_invalid(c->errors, AT(up, "message"), message, "must be non-empty if specified");
    else if (has_line_break(text))
        field_invalid(c->errors, AT(up, "message"), message, "must not contain line breaks");
    else if (has_line_break(rule) && !text.n)
        field_required(c->errors, AT(up, "message"),
                       "message must be specified if rule contains line breaks");
    if (json_text(computed).n && !str_trim(json_text(computed)).n)
        field_required(c->errors, AT(up, "messageExpression"),
                       "messageExpression must be non-empty if specified");
}

static void check_forms(struct context *c, const struct json *schema, const struct field_path *up)
{
    const struct json *rules = json_get(schema, "x-kubernetes-validations");
    struct field_path list = { up, .key = S("x-kubernetes-validations") };
    for (uint32_t i = 0; i < json_len(rules); i++) {
        const struct json *each = rules->items[i];
        struct field_path at = { &list, .index = i, .how = FIELD_INDEX };
        check_texts(c, each, &at);
        check_reason(json_get(each, "reason"), &at, c->errors);
        check_field_path(c, schema, json_get(each, "fieldPath"), AT(&at, "fieldPath"));
    }
}

/* ---- costs */

/* By how much a limit is exceeded, with the rounding of the original. */
static str cost_message(struct arena *a, const char *what, uint64_t cost, uint64_t limit)
{
    double factor = (double)cost / (double)limit;
    char text[32] = "more than 100x";
    if (factor < 1.5)
        snprintf(text, sizeof(text), "%fx", factor);
    else if (factor <= 100)
        snprintf(text, sizeof(text), "%.1fx", factor);
    return arena_printf(
        a,
        "%s exceeds budget by factor of %s (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
        "declared)",
        what, text);
}

/* Adds to the total, and remembers the most expensive rules. */
static void observe_cost(struct context *c, const struct field_path *at, uint64_t cost)
{
    struct total *t = c->total;
    if (__builtin_add_overflow(t->cost, cost, &t->cost))
        t->cost = UINT64_MAX;
    if (cost < TOTAL_COST_MAX / 100)
        return;
    size_t i = t->n;
    for (; i > 0 && t->most[i - 1].cost < cost; i--)
        t->most[i] = t->most[i - 1];
    if (i < EXPENSIVE_MAX)
        t->most[i].path = field_path_text(c->scratch, at), t->most[i].cost = cost;
    t->n = MIN(t->n + 1, (size_t)EXPENSIVE_MAX);
}

/* One rule is limited by itself, and counts toward the total even if it is within its limit. */
static void check_cost(struct context *c, const struct field_path *at, const char *what,
                       uint64_t cost)
{
    if (cost > RULE_COST_MAX)
        field_forbidden(c->errors, at, "%s", cost_message(c->scratch, what, cost, RULE_COST_MAX).p);
    observe_cost(c, at, cost);
}

static void check_total(struct context *c, const struct field_path *at)
{
    const struct total *t = c->total;
    if (t->cost <= TOTAL_COST_MAX)
        return;
    for (size_t i = 0; i < t->n; i++)
        field_add(c->errors, (struct field_error){
                                 .path = arena_str(c->errors->arena, t->most[i].path),
                                 .reason = FIELD_FORBIDDEN,
                                 .message = S("Forbidden: contributed to estimated rule cost "
                                              "total exceeding cost limit for entire "
                                              "OpenAPIv3 schema") });
    field_forbidden(c->errors, at, "%s",
                    cost_message(c->scratch,
                                 "x-kubernetes-validations estimated rule cost total for entire "
                                 "OpenAPIv3 schema",
                                 t->cost, TOTAL_COST_MAX)
                        .p);
}

/* ---- expressions */

/* kube-apiserver prints its internal struct here, with the escapes of Go's JSON. */
static str print_rule_as_go(struct arena *a, const struct json *rule)
{
    static const struct {
        const char *from, *to;
    } fields[] = { { "rule", "Rule" },
                   { "message", "Message" },
                   { "messageExpression", "MessageExpression" },
                   { "reason", "Reason" },
                   { "fieldPath", "FieldPath" },
                   { "optionalOldSelf", "OptionalOldSelf" } };
    auto_buf struct buf plain = { 0 };
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < countof(fields); i++) {
        const struct json *value = json_get(rule, fields[i].from);
        buf_printf(&plain, "%c\"%s\":", i ? ',' : '{', fields[i].to);
        bool pointer = i == 3 || i == 5;
        if (value)
            json_write(&plain, value);
        else
            buf_put(&plain, pointer ? S("null") : S("\"\""));
    }
    buf_putc(&plain, '}');
    for (size_t i = 0; i < plain.n; i++)
        if (strchr("<>&", plain.p[i]))
            buf_printf(&out, "\\u%04x", plain.p[i]);
        else
            buf_putc(&out, plain.p[i]);
    return arena_str(a, buf_str(&out));
}

static void add_issue(struct context *c, const struct field_path *at, const struct json *rule,
                      str issues)
{
    struct arena *a = c->errors->arena;
    field_add(c->errors, (struct field_error){
                             .path = field_path_text(a, at),
                             .reason = FIELD_INVALID,
                             .message = arena_printf(a, "Invalid value: " STR_FMT ": " STR_FMT,
                                                     STR_ARG(print_rule_as_go(c->scratch, rule)),
                                                     STR_ARG(issues)) });
}

/* oldSelf needs a counterpart in the old object; items of a list without keys have none. */
static void check_old_self(struct context *c, const struct cel_rule *rule, const struct json *each,
                           const struct field_path *at)
{
    const struct json *optional = json_get(each, "optionalOldSelf");
    if (rule->uses_old && c->uncorrelatable.n)
        field_invalid(c->errors, AT(at, "rule"), json_get(each, "rule"),
                      "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                      "" STR_FMT,
                      STR_ARG(c->uncorrelatable));
    else if (!rule->uses_old && optional)
        field_invalid(c->errors, AT(at, "optionalOldSelf"), optional,
                      "may not be set if oldSelf is not used in rule");
}

/* Compiles each rule of a node and reports what is wrong with its expression, its cost and its use of oldSelf. */
static void check_expressions(struct context *c, const struct json *schema,
                              const struct cel_type *type, const struct field_path *up)
{
    const struct json *rules = json_get(schema, "x-kubernetes-validations");
    struct field_path list = { up, .key = S("x-kubernetes-validations") };
    for (uint32_t i = 0; i < json_len(rules); i++) {
        const struct json *each = rules->items[i];
        struct field_path at = { &list, .index = i, .how = FIELD_INDEX };
        struct cel_rule rule;
        cel_compile_rule(c->scratch, schema, each, type, &rule);
        uint64_t count = c->bounded ? c->count : (uint64_t)(REQUEST_BYTES / (type->min_size + 1));
        if (rule.rule)
            check_cost(c, AT(&at, "rule"), "estimated rule cost",
                       cel_cost_multiply(rule.rule->cost.max, count));
        if (rule.issues.n)
            add_issue(c, AT(&at, "rule"), each, rule.issues);
        if (rule.message_issues.n)
            add_issue(c, AT(&at, "messageExpression"), each, rule.message_issues);
        else if (rule.message)
            check_cost(c, AT(&at, "messageExpression"), "estimated messageExpression cost",
                       rule.message->cost.max);
        if (rule.rule)
            check_old_self(c, &rule, each, &at);
    }
}

/* A default must not break a rule of its own schema. */
static void check_default(struct context *c, const struct json *schema, const struct field_path *up)
{
    const struct json *value = json_get(schema, "default");
    bool embedded = json_bool(json_get(schema, "x-kubernetes-embedded-resource"), false);
    const struct cel_validator *v = value ? cel_validator_new(c->scratch, schema, embedded) : NULL;
    struct cel_validation run = { .errors = c->errors, .budget = CEL_COST_OBJECT };
    if (v)
        cel_validate(v, value, NULL, AT(up, "default"), &run);
}

/* ---- the walk */

static void check_node(struct context *c, const struct json *schema, bool root,
                       const struct field_path *at);

/* The context of what is inside a node: how often it may occur, and whether it has an old value. */
static struct context enter(const struct context *c, const struct json *schema,
                            const struct field_path *at)
{
    struct context inner = *c;
    str type = json_text(json_get(schema, "type"));
    bool list = str_eqc(type, "array");
    bool map = str_eqc(type, "object") && json_get(schema, "additionalProperties");
    const struct json *most = json_get(schema, list ? "maxItems" : "maxProperties");
    if (list || map) {
        inner.bounded = c->bounded && most;
        inner.count = cel_cost_multiply(c->count, (uint64_t)MAX(json_int(most, 0), (int64_t)0));
    }
    if (list && !str_eqc(json_text(json_get(schema, "x-kubernetes-list-type")), "map"))
        inner.uncorrelatable = field_path_text(c->scratch, at);
    return inner;
}

static void check_children(struct context *c, const struct json *schema,
                           const struct field_path *at)
{
    struct context inner = enter(c, schema, at);
    const struct json *items = json_get(schema, "items");
    const struct json *others = json_get(schema, "additionalProperties");
    struct field_path properties = { at, .key = S("properties") };
    if (json_is(others, JSON_OBJ))
        check_node(&inner, others, false, AT(at, "additionalProperties"));
    json_each(m, json_get(schema, "properties"))
        check_node(&inner, m->value, false, AT_KEY(&properties, m->key));
    if (json_is(items, JSON_OBJ))
        check_node(&inner, items, false, AT(at, "items"));
}

/* Children first: an error below a node usually explains an error in its rules, so these are then skipped. */
static void check_node(struct context *c, const struct json *schema, bool root,
                       const struct field_path *at)
{
    size_t before = c->errors->n;
    check_children(c, schema, at);
    bool embedded = json_bool(json_get(schema, "x-kubernetes-embedded-resource"), false);
    if (json_len(json_get(schema, "x-kubernetes-validations"))) {
        check_forms(c, schema, at);
        const struct cel_type *type = c->errors->n == before
                                          ? cel_type_of_schema(c->scratch, schema, root || embedded)
                                          : NULL;
        if (type)
            check_expressions(c, schema, type, at);
        else if (c->errors->n == before)
            field_add(c->errors,
                      (struct field_error){
                          .path =
                              field_path_text(c->errors->arena, AT(at, "x-kubernetes-validations")),
                          .reason = FIELD_INTERNAL,
                          .message = S("Internal error: internal error: failed to construct type "
                                       "information for x-kubernetes-validations rules: unable to "
                                       "convert structural schema to CEL declarations") });
    }
    if (c->errors->n == before)
        check_default(c, schema, at);
}

void cel_check_definition(const struct json *openapi, const struct field_path *at,
                          struct field_errors *errors)
{
    auto_arena struct arena scratch = { 0 };
    struct total total = { 0 };
    struct context c = {
        .errors = errors, .scratch = &scratch, .total = &total, .bounded = true, .count = 1
    };
    if (!schema_has_cel_rules(openapi))
        return;
    check_node(&c, openapi, true, at);
    check_total(&c, at);
}
