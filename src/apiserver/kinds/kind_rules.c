/* Field-local rules of built-in types, as data: `need`, `enum`, `oneof`, `min`, `max`, `format`,
 * `keyformat`, `most`, `unique` and `immutable` in the .types tables (types/README.md).
 *
 * A rule belongs in a table if it depends on one field only and kube-apiserver reports it at the path of that
 * field. Everything else is code in the file of its kind: rules that span fields, rules that depend on the
 * operation or on the type of the object, and the places where kube-apiserver reports another path (a taint
 * below metadata, the mode of a downward API file without its index).
 *
 * The walk goes through schema and value side by side, in the order of the table, so errors come in that
 * order too. It never fails: it collects every violation. Embedded types contribute their fields, because
 * types.c copied them. `immutable` is a walk of its own, which kind_validate() runs last, because
 * kube-apiserver compares with the old object after it has validated the new one. */
#include "../schema/format.h"
#include "kind_hooks.h"

#include "../../base/quantity.h"

/* A format that needs one message only. */
static const struct {
    const char *name;
    const char *(*check)(str text);
} name_formats[] = {
    { "dns-label", format_dns_label },
    { "dns-subdomain", format_dns_subdomain },
    { "config-key", format_config_key },
    { "env-name", format_env_name },
};

static const char *check_name_format(str format, str text)
{
    for (size_t i = 0; i < countof(name_formats); i++)
        if (str_eqc(format, name_formats[i].name))
            return name_formats[i].check(text);
    return NULL;
}

/* Segments of lower case letters, digits, "-" and "_", separated by "." or "/": net.ipv4.tcp_syncookies. */
static bool is_sysctl(str name)
{
    bool inside = false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!word && (!inside || !strchr("-_./", c)))
            return false;
        inside = word || c == '-' || c == '_';
    }
    return inside && name.n <= 253 && name.p[name.n - 1] != '-' && name.p[name.n - 1] != '_';
}

/* Applies `format` to a text. Qualified names and ports may break several rules at once. */
static void check_format(str format, const struct json *value, const struct field_path *at,
                         struct field_errors *errors)
{
    str text = json_text(value);
    const char *fault = check_name_format(format, text);
    if (fault)
        field_invalid(errors, at, value, "%s", fault);
    else if (str_eqc(format, "qualified-name"))
        kind_check_qualified(value, at, errors);
    else if (str_eqc(format, "port"))
        kind_check_port_name(value, at, errors);
    else if (str_eqc(format, "ip") && !format_is_ip(text))
        field_invalid(errors, at, value,
                      "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    else if (str_eqc(format, "cidr") && !format_matches(format, text))
        field_invalid(errors, at, value,
                      "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    else if (str_eqc(format, "sysctl") && !is_sysctl(text))
        field_invalid(errors, at, value,
                      "must have at most 253 characters and match regex "
                      "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
}

/* One message per combination of bounds, as kube-apiserver words it. */
static void check_bounds(int64_t n, const struct schema_limits *l, const struct json *value,
                         const struct field_path *at, struct field_errors *errors)
{
    long long min = (long long)l->minimum, max = (long long)l->maximum;
    bool has_min = l->has & SCHEMA_HAS_MINIMUM, has_max = l->has & SCHEMA_HAS_MAXIMUM;
    if ((!has_min || n >= min) && (!has_max || n <= max))
        return;
    if (has_min && has_max)
        field_invalid(errors, at, value, "must be between %lld and %lld, inclusive", min, max);
    else if (has_min)
        field_invalid(errors, at, value, "must be greater than or equal to %lld", min);
    else
        field_invalid(errors, at, value, "must be less than or equal to %lld", max);
}

/* A quantity has one rule: min=0. */
static void check_quantity(const struct schema_limits *l, const struct json *value,
                           const struct field_path *at, struct field_errors *errors)
{
    struct quantity q;
    if (!(l->has & SCHEMA_HAS_MINIMUM) || quantity_parse(json_text(value), &q, NULL) < 0)
        return;
    if (q.negative && !quantity_is_zero(&q))
        field_invalid(errors, at, value, "must be greater than or equal to 0");
}

/* Reports the value with all allowed ones. */
static void check_enum(const struct json *allowed, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    const char **words = arena_array(errors->arena, allowed->n + 1u, sizeof(*words));
    for (uint32_t i = 0; i < allowed->n; i++) {
        if (json_eq(allowed->items[i], value))
            return;
        words[i] = arena_str(errors->arena, json_text(allowed->items[i])).p;
    }
    field_not_supported(errors, at, value, words);
}

/* The rules of one scalar. */
static void check_scalar(const struct schema *s, const struct json *value,
                         const struct field_path *at, struct field_errors *errors)
{
    const struct schema_limits *l = s->limits;
    if (!l)
        return;
    if (l->one_of_values && !(l->has & SCHEMA_WORDS_UNCHECKED) && value->type != JSON_NULL)
        check_enum(l->one_of_values, value, at, errors);
    if (s->format == SCHEMA_QUANTITY)
        check_quantity(l, value, at, errors);
    else if (value->type == JSON_STR && l->format.n && (value->n || !l->empty_allowed))
        check_format(l->format, value, at, errors);
    else if (value->type == JSON_INT && str_eqc(l->format, "port"))
        check_bounds(value->integer,
                     &(struct schema_limits){ .minimum = 1,
                                              .maximum = 65535,
                                              .has = SCHEMA_HAS_MINIMUM | SCHEMA_HAS_MAXIMUM },
                     value, at, errors);
    else if (value->type == JSON_INT)
        check_bounds(value->integer, l, value, at, errors);
}

/* Items that repeat an earlier one, as a whole or in the field that `unique` names. */
static void check_unique(const struct schema_limits *l, const struct json *list,
                         const struct field_path *up, struct field_errors *errors)
{
    struct seen seen = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < list->n; i++) {
        struct field_path item = { up, .index = i, .how = FIELD_INDEX };
        struct field_path field = { &item, .key = l->unique_by };
        const struct json *value =
            l->unique_by.n ? json_get_str(list->items[i], l->unique_by) : list->items[i];
        if (seen_value(&seen, value, i))
            field_duplicate(errors, l->unique_by.n ? &field : &item, value);
    }
}

/* Reported at the entry, with the key as the value. */
static void check_keys(str format, const struct json *map, const struct field_path *at,
                       struct field_errors *errors)
{
    json_each(m, map) {
        struct json key = { .type = JSON_STR, .n = (uint32_t)m->key.n, .text = m->key.p };
        check_format(format, &key, AT_KEY(at, m->key), errors);
    }
}

/* What `need` refuses: absent, null, zero, "", [] or {}. */
static bool is_empty(const struct json *v)
{
    return !v || v->type == JSON_NULL || (v->type == JSON_INT && !v->integer) ||
           ((v->type == JSON_STR || v->type == JSON_ARR || v->type == JSON_OBJ) && !v->n);
}

/* Rules of the list itself, then of each item. */
static void check_list(const struct schema *s, const struct json *list, const struct field_path *up,
                       struct field_errors *errors)
{
    const struct schema_limits *l = s->limits;
    if (l && l->max_items >= 0 && list->n > l->max_items)
        field_too_many(errors, up, list->n, l->max_items);
    if (l && l->unique)
        check_unique(l, list, up, errors);
    for (uint32_t i = 0; s->element && i < list->n; i++)
        kind_check_schema(s->element, list->items[i], AT_INDEX(up, i), errors);
}

/* Reports required fields and descends into the others, in the order of the table. */
static void check_message(const struct schema_message *m, const struct json *object,
                          const struct field_path *up, struct field_errors *errors)
{
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->name.n)
            continue;
        const struct json *child = json_get_str(object, f->name);
        struct field_path at = { up, .key = f->name };
        if (f->needed && is_empty(child))
            field_required(errors, &at, NULL);
        else if (child)
            kind_check_schema(&f->schema, child, &at, errors);
    }
}

void kind_check_schema(const struct schema *s, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    if (json_is(value, JSON_ARR)) {
        check_list(s, value, at, errors);
    } else if (!json_is(value, JSON_OBJ)) {
        check_scalar(s, value, at, errors);
    } else if (s->message) {
        check_message(s->message, value, at, errors);
    } else if (s->element) {
        if (s->limits && s->limits->key_format.n)
            check_keys(s->limits->key_format, value, at, errors);
        json_each(m, value)
            kind_check_schema(s->element, m->value, AT_KEY(at, m->key), errors);
    }
}

void kind_check_changes(const struct schema_message *m, const struct json *object,
                        const struct json *old, const struct field_path *up,
                        struct field_errors *errors)
{
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct schema_field *f = &m->fields[i];
        const struct json *now = f->name.n ? json_get_str(object, f->name) : NULL;
        const struct json *was = f->name.n ? json_get_str(old, f->name) : NULL;
        struct field_path at = { up, .key = f->name };
        if (f->immutable)
            kind_check_immutable(now, was, &at, errors);
        else if (f->schema.message && json_is(now, JSON_OBJ) && json_is(was, JSON_OBJ))
            kind_check_changes(f->schema.message, now, was, &at, errors);
    }
}
