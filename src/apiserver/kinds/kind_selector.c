/* Label selectors as objects, with matchLabels and matchExpressions, as workloads have them: validation,
 * evaluation and text form. Selectors of a query are text and are handled in http/selector.c.
 *
 * matchLabels is an AND of equalities, matchExpressions an AND of requirements; an empty selector matches
 * everything, a missing one nothing. In the text form both become one list of requirements sorted by key,
 * which clients compare. */
#include "../schema/format.h"
#include "kind_hooks.h"

static bool has_operator(const struct json *e, const char *name)
{
    return str_eqc(json_text(json_get(e, "operator")), name);
}

/* One requirement: operator, key and values must agree. */
static void check_expression(const struct json *e, const struct field_path *at,
                             struct field_errors *errors)
{
    const struct json *values = json_get(e, "values");
    bool set = has_operator(e, "In") || has_operator(e, "NotIn");
    bool existence = has_operator(e, "Exists") || has_operator(e, "DoesNotExist");
    if (set && !json_len(values))
        field_required(errors, AT(at, "values"),
                       "must be specified when `operator` is 'In' or 'NotIn'");
    else if (existence && json_len(values))
        field_forbidden(errors, AT(at, "values"),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    else if (!set && !existence)
        field_invalid(errors, AT(at, "operator"), json_get(e, "operator"),
                      "not a valid selector operator");
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

/* NotIn also matches if the label is missing. */
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

bool kind_selector_is_empty(const struct json *selector)
{
    return !json_len(json_get(selector, "matchLabels")) &&
           !json_len(json_get(selector, "matchExpressions"));
}

/* The values of In and NotIn must be label values. */
static bool has_valid_values(const struct json *values)
{
    for (uint32_t i = 0; i < json_len(values); i++)
        if (format_label_value(json_text(values->items[i])))
            return false;
    return true;
}

/* The same rules as kind_check_selector(), as a yes or no: an invalid selector cannot be
 * evaluated. */
bool kind_selector_is_valid(const struct json *selector)
{
    json_each(m, json_get(selector, "matchLabels"))
        if (format_qualified_name(m->key) || format_label_value(json_text(m->value)))
            return false;
    const struct json *expressions = json_get(selector, "matchExpressions");
    for (uint32_t i = 0; i < json_len(expressions); i++) {
        const struct json *e = expressions->items[i];
        bool set = has_operator(e, "In") || has_operator(e, "NotIn");
        bool existence = has_operator(e, "Exists") || has_operator(e, "DoesNotExist");
        if (format_qualified_name(json_text(json_get(e, "key"))) ||
            (set && !has_valid_values(json_get(e, "values"))) || (!set && !existence) ||
            (set && !json_len(json_get(e, "values"))) ||
            (existence && json_len(json_get(e, "values"))))
            return false;
    }
    return true;
}

/* False for a missing selector. */
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
    size_t place; /* index; keeps requirements of the same key in order */
};

/* By key; equal keys keep their order. */
static int compare_keys(const void *a, const void *b)
{
    const struct requirement *x = a, *y = b;
    int order = str_cmp(x->key, y->key);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int compare_texts(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* "key in (a,b)", "key", "!key"; values are sorted. */
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
        qsort(sorted, json_len(values), sizeof(*sorted), compare_texts);
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

/* Requirements sorted by key, joined with commas. */
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
        qsort(parts, n, sizeof(*parts), compare_keys);
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, parts[i].text);
    }
    return arena_str(a, buf_str(&text));
}
