/* All the rules of a schema, each judged where it stands. */
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

static void check_rules(const struct json *node, bool root, const struct field_path *up,
                        struct field_errors *errors)
{
    const struct json *rules = json_get(node, "x-kubernetes-validations");
    struct field_path list = { up, .key = S("x-kubernetes-validations") };
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path item = { &list, .index = i, .how = FIELD_INDEX };
        struct field_path at = { &item, .key = S("rule") };
        str rule = str_trim(json_text(json_get(rules->items[i], "rule")));
        err_t e;
        const struct json *message = json_get(rules->items[i], "message");
        check_reason(json_get(rules->items[i], "reason"), &item, errors);
        if (str_find_char(json_text(message), '\n') != SIZE_MAX)
            field_invalid(errors, &(struct field_path){ &item, .key = S("message") }, message,
                          "must not contain line breaks");
        if (!rule.n)
            field_required(errors, &at, NULL);
        else if (cel_check(node, root, rule, &e) < 0)
            field_invalid(errors, &at, json_get(rules->items[i], "rule"), "%s", e.text);
    }
}

static void check_node(const struct json *node, bool root, const struct field_path *at,
                       struct field_errors *errors)
{
    check_rules(node, root, at, errors);
    const struct json *items = json_get(node, "items");
    const struct json *others = json_get(node, "additionalProperties");
    struct field_path properties = { at, .key = S("properties") };
    if (json_is(items, JSON_OBJ))
        check_node(items, false, &(struct field_path){ at, .key = S("items") }, errors);
    if (json_is(others, JSON_OBJ))
        check_node(others, false, &(struct field_path){ at, .key = S("additionalProperties") },
                   errors);
    json_each(m, json_get(node, "properties"))
        check_node(m->value, false,
                   &(struct field_path){ &properties, .key = m->key, .how = FIELD_KEY }, errors);
}

void cel_check_schema(const struct json *openapi, const struct field_path *at,
                      struct field_errors *errors)
{
    check_node(openapi, true, at, errors);
}
