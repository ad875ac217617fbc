/* Label selectors as objects: matchLabels and matchExpressions, as workloads have them. (Selectors
 * in a query are text and live in selector.c.) */
#include "../schema/formats.h"
#include "kind_hooks.h"

static bool has_operator(const struct json *e, const char *name)
{
    return str_eqc(json_text(json_get(e, "operator")), name);
}

static void check_expression(const struct json *e, const struct field_path *at,
                             struct field_errors *errors)
{
    const struct json *values = json_get(e, "values");
    bool set = has_operator(e, "In") || has_operator(e, "NotIn");
    bool there = has_operator(e, "Exists") || has_operator(e, "DoesNotExist");
    if (set && !json_len(values))
        field_required(errors, AT(at, "values"), "In and NotIn need values");
    else if (there && json_len(values))
        field_forbidden(errors, AT(at, "values"), "Exists and DoesNotExist take no values");
    else if (!set && !there)
        field_invalid(errors, AT(at, "operator"), json_get(e, "operator"),
                      "must be In, NotIn, Exists or DoesNotExist");
    kind_check_qualified(json_get(e, "key"), AT(at, "key"), errors);
    for (uint32_t i = 0; i < json_len(values); i++) {
        const char *fault = format_label_value(json_text(values->items[i]));
        if (fault)
            field_invalid(errors, AT_INDEX(AT(at, "values"), i), values->items[i], "%s", fault);
    }
}

void kind_check_selector(const struct json *selector, const struct field_path *at,
                         struct field_errors *errors)
{
    kind_check_labels(json_get(selector, "matchLabels"), AT(at, "matchLabels"), errors);
    const struct json *expressions = json_get(selector, "matchExpressions");
    for (uint32_t i = 0; i < json_len(expressions); i++)
        check_expression(expressions->items[i], AT_INDEX(AT(at, "matchExpressions"), i), errors);
}

static bool expression_matches(const struct json *e, const struct json *labels)
{
    const struct json *label = json_get_str(labels, json_text(json_get(e, "key")));
    const struct json *values = json_get(e, "values");
    bool listed = false;
    for (uint32_t i = 0; label && i < json_len(values); i++)
        listed = listed || json_eq(values->items[i], label);
    return has_operator(e, "In")       ? listed
           : has_operator(e, "NotIn")  ? !listed
           : has_operator(e, "Exists") ? label != NULL
                                       : label == NULL;
}

bool kind_selector_empty(const struct json *selector)
{
    return !json_len(json_get(selector, "matchLabels")) &&
           !json_len(json_get(selector, "matchExpressions"));
}

static bool readable_values(const struct json *values)
{
    for (uint32_t i = 0; i < json_len(values); i++)
        if (format_label_value(json_text(values->items[i])))
            return false;
    return true;
}

bool kind_selector_readable(const struct json *selector)
{
    json_each(m, json_get(selector, "matchLabels"))
        if (format_qualified_name(m->key) || format_label_value(json_text(m->value)))
            return false;
    const struct json *expressions = json_get(selector, "matchExpressions");
    for (uint32_t i = 0; i < json_len(expressions); i++) {
        const struct json *e = expressions->items[i];
        bool set = has_operator(e, "In") || has_operator(e, "NotIn");
        bool there = has_operator(e, "Exists") || has_operator(e, "DoesNotExist");
        if (format_qualified_name(json_text(json_get(e, "key"))) ||
            (set && !readable_values(json_get(e, "values"))) || (!set && !there) ||
            (set && !json_len(json_get(e, "values"))) || (there && json_len(json_get(e, "values"))))
            return false;
    }
    return true;
}

bool kind_selector_matches(const struct json *selector, const struct json *labels)
{
    if (!json_is(selector, JSON_OBJ))
        return false;
    json_each(m, json_get(selector, "matchLabels"))
        if (!json_eq(json_get_str(labels, m->key), m->value))
            return false;
    const struct json *expressions = json_get(selector, "matchExpressions");
    for (uint32_t i = 0; i < json_len(expressions); i++)
        if (!expression_matches(expressions->items[i], labels))
            return false;
    return true;
}

struct requirement {
    str key, text;
    size_t place; /* keeps those of one key in the order they came */
};

static int by_key(const void *a, const void *b)
{
    const struct requirement *x = a, *y = b;
    int order = str_cmp(x->key, y->key);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static str expression_text(struct arena *a, const struct json *e)
{
    const struct json *values = json_get(e, "values");
    str key = json_text(json_get(e, "key"));
    if (has_operator(e, "Exists"))
        return key;
    if (has_operator(e, "DoesNotExist"))
        return arena_printf(a, "!" STR_FMT, STR_ARG(key));
    str *sorted = arena_array(a, json_len(values), sizeof(*sorted));
    for (uint32_t i = 0; i < json_len(values); i++)
        sorted[i] = json_text(values->items[i]);
    if (json_len(values))
        qsort(sorted, json_len(values), sizeof(*sorted), by_text);
    auto_buf struct buf text = { 0 };
    buf_put(&text, key);
    buf_put(&text, has_operator(e, "In") ? S(" in (") : S(" notin ("));
    for (uint32_t i = 0; i < json_len(values); i++) {
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, sorted[i]);
    }
    buf_putc(&text, ')');
    return arena_str(a, buf_str(&text));
}

str kind_selector_text(struct arena *a, const struct json *selector)
{
    const struct json *labels = json_get(selector, "matchLabels");
    const struct json *expressions = json_get(selector, "matchExpressions");
    struct requirement *parts =
        arena_array(a, json_len(labels) + json_len(expressions), sizeof(*parts));
    size_t n = 0;
    json_each(m, labels) {
        parts[n] = (struct requirement){
            m->key,
            arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(m->key), STR_ARG(json_text(m->value))), n
        };
        n++;
    }
    for (uint32_t i = 0; i < json_len(expressions); i++, n++)
        parts[n] = (struct requirement){ json_text(json_get(expressions->items[i], "key")),
                                         expression_text(a, expressions->items[i]), n };
    if (n)
        qsort(parts, n, sizeof(*parts), by_key);
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, parts[i].text);
    }
    return arena_str(a, buf_str(&text));
}
