/* Walks an OpenAPI schema and checks each CEL rule in the scope of the node that declares it. */
#include "cel_check.h"

static void check_reason(const struct json *reason, const struct field_path *up,
                         struct field_errors *errors)
{
    static const char *const reasons[] = { "FieldValueDuplicate", "FieldValueForbidden",
                                           "FieldValueInvalid", "FieldValueRequired", NULL };
    for (size_t i = 0; reasons[i]; i++)
        if (!reason || str_eqc(json_text(reason), reasons[i]))
            return;
    field_not_supported(errors, &(struct field_path){ up, .key = S("reason") }, reason, reasons);
}

static bool has_line_break(str text)
{
    return str_find_char(text, '\n') != SIZE_MAX || str_find_char(text, '\r') != SIZE_MAX;
}

/* Consumes ".name" or "['name']" from the front of the path; false if it is malformed. */
static bool take_path_step(str *path, str *ret_name)
{
    size_t n = 1;
    if (str_starts(*path, S("['"))) {
        n = str_find(*path, S("']"));
        if (n == SIZE_MAX)
            return false;
        *ret_name = str_from(str_upto(*path, n), 2);
        *path = str_from(*path, n + 2);
        return true;
    }
    while (n < path->n && !strchr(".[]", path->p[n]))
        n++;
    *ret_name = str_from(str_upto(*path, n), 1);
    bool named = path->p[0] == '.' && ret_name->n;
    *path = str_from(*path, n);
    return named;
}

/* True if `path` leads from `node` to a declared field or map value. */
static bool is_field_path(const struct json *node, str path)
{
    while (node && path.n) {
        str name;
        if (!take_path_step(&path, &name))
            return false;
        const struct json *fields = json_get(node, "properties");
        const struct json *others = json_get(node, "additionalProperties");
        node = json_len(fields)            ? json_get_str(fields, name)
               : json_is(others, JSON_OBJ) ? others
                                           : NULL;
    }
    return node;
}

/* fieldPath: where an error of the rule is reported; must lead to a declared field. */
static void check_field_path(const struct json *node, const struct json *path,
                             const struct field_path *at, struct field_errors *errors)
{
    str text = json_text(path);
    if (text.n && !str_trim(text).n)
        field_invalid(errors, at, path, "must be non-empty if specified");
    if (has_line_break(text))
        field_invalid(errors, at, path, "must not contain line breaks");
    if (!is_field_path(node, text))
        field_invalid(errors, at, path, "must be a valid path");
}

/* message and messageExpression: what a client sees when the rule fails. */
static void check_message(const struct json *each, const struct field_path *up,
                          struct field_errors *errors)
{
    const struct json *message = json_get(each, "message");
    const struct json *computed = json_get(each, "messageExpression");
    str rule = str_trim(json_text(json_get(each, "rule"))), text = str_trim(json_text(message));
    struct field_path at = { up, .key = S("message") };
    if (json_text(message).n && !text.n)
        field_invalid(errors, &at, message, "must be non-empty if specified");
    else if (has_line_break(text))
        field_invalid(errors, &at, message, "must not contain line breaks");
    else if (has_line_break(rule) && !text.n)
        field_required(errors, &at, "message must be specified if rule contains line breaks");
    if (json_text(computed).n && !str_trim(json_text(computed)).n)
        field_required(errors, AT(up, "messageExpression"),
                       "messageExpression must be non-empty if specified");
}

static void check_rule_fields(const struct json *each, const struct json *node,
                              const struct field_path *at, struct field_errors *errors)
{
    if (!str_trim(json_text(json_get(each, "rule"))).n)
        field_required(errors, AT(at, "rule"), "rule is not specified");
    check_reason(json_get(each, "reason"), at, errors);
    check_field_path(node, json_get(each, "fieldPath"), AT(at, "fieldPath"), errors);
    check_message(each, at, errors);
}

/* Checks the form of a rule first; only a well-formed rule is parsed as an expression. */
static void check_rule(const struct json *each, struct cel_place place, const struct field_path *at,
                       struct field_errors *errors)
{
    const struct json *rule = json_get(each, "rule"), *old = json_get(each, "optionalOldSelf");
    const struct json *message = json_get(each, "messageExpression");
    size_t before = errors->n;
    err_t e;
    place.optional_old = json_bool(old, false);
    check_rule_fields(each, place.openapi, at, errors);
    if (errors->n > before)
        return;
    if (cel_check(&place, str_trim(json_text(rule)), &e) < 0)
        field_invalid(errors, AT(at, "rule"), rule, "%s", e.text);
    if (json_text(message).n && cel_check_message(&place, json_text(message), &e) < 0)
        field_invalid(errors, AT(at, "messageExpression"), message, "%s", e.text);
    if (old && str_find(json_text(rule), S("oldSelf")) == SIZE_MAX)
        field_invalid(errors, AT(at, "optionalOldSelf"), old,
                      "may not be set if oldSelf is not used in rule");
}

/* Checks each rule of one node with `self` being the value of that node. */
static void check_rules(const struct json *node, bool root, const struct field_path *up,
                        struct field_errors *errors)
{
    const struct json *rules = json_get(node, "x-kubernetes-validations");
    struct field_path list = { up, .key = S("x-kubernetes-validations") };
    for (uint32_t i = 0; i < json_len(rules); i++)
        check_rule(rules->items[i], (struct cel_place){ node, .root = root },
                   &(struct field_path){ &list, .index = i, .how = FIELD_INDEX }, errors);
}

/* Checks the rules of a node, then those of its children. Rules below allOf and the like are
 * refused earlier, by schema_structural.c. */
static void check_schema_node(const struct json *node, bool root, const struct field_path *at,
                              struct field_errors *errors)
{
    check_rules(node, root, at, errors);
    const struct json *items = json_get(node, "items");
    const struct json *others = json_get(node, "additionalProperties");
    struct field_path properties = { at, .key = S("properties") };
    if (json_is(items, JSON_OBJ))
        check_schema_node(items, false, &(struct field_path){ at, .key = S("items") }, errors);
    if (json_is(others, JSON_OBJ))
        check_schema_node(others, false,
                          &(struct field_path){ at, .key = S("additionalProperties") }, errors);
    json_each(m, json_get(node, "properties"))
        check_schema_node(m->value, false,
                          &(struct field_path){ &properties, .key = m->key, .how = FIELD_KEY },
                          errors);
}

void cel_check_schema(const struct json *openapi, const struct field_path *at,
                      struct field_errors *errors)
{
    check_schema_node(openapi, true, at, errors);
}
