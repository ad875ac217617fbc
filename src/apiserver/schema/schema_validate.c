/* Validates a value against a structural schema: everything that is wrong with it, by field.
 *
 * Each keyword applies to the values it is made for (a length to text, a bound to numbers), whatever the
 * declared type. A value of the wrong type is therefore reported once for the type and once for every
 * keyword that still applies, as kube-apiserver does.
 *
 * Ratcheting: where the old object has the same value at the same place, nothing is reported, so an object
 * that a stricter schema made invalid can still be updated elsewhere. To find "the same place", members of
 * objects are matched by name and items of map lists by key; other lists are compared as a whole.
 *
 *   schema_validate(value, old)
 *      is_unchanged?  ----yes----> return
 *      check_type, check_limits (enum, length, pattern, bounds, size, alternatives)
 *      check_object / check_list ----> schema_validate(child, old child)
 *
 * The alternatives of anyOf and oneOf are tried into lists of their own, of which the closest is reported.
 * Patterns are the only step whose cost is not linear in the object; PATTERN_STEPS_MAX bounds it. */
#include "schema.h"

#include "../../base/regex.h"
#include "../../json/seen.h"
#include "format.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* True if the value has the JSON type; 1.0 is an integer, as in JSON Schema. */
static bool type_matches(enum schema_type type, const struct json *value)
{
    bool integer = value->type == JSON_INT || (value->type == JSON_REAL && isfinite(value->real) &&
                                               floor(value->real) == value->real);
    switch (type) {
    case SCHEMA_OBJECT:
        return value->type == JSON_OBJ;
    case SCHEMA_ARRAY:
        return value->type == JSON_ARR;
    case SCHEMA_STRING:
        return value->type == JSON_STR;
    case SCHEMA_INTEGER:
        return integer;
    case SCHEMA_NUMBER:
        return value->type == JSON_INT || value->type == JSON_REAL;
    case SCHEMA_BOOLEAN:
        return value->type == JSON_BOOL;
    case SCHEMA_INT_OR_STRING:
        return integer || value->type == JSON_STR;
    default:
        return true;
    }
}

/* An error that kube-apiserver reports without a field; its text names the path. */
static void add_without_field(struct field_errors *errors, const struct field_path *at,
                              const char *what)
{
    str path = field_path_text(errors->arena, at);
    field_add(errors,
              (struct field_error){ .path = S("<nil>"),
                                    .reason = FIELD_INVALID,
                                    .message = arena_printf(errors->arena,
                                                            "Invalid value: \"\": " STR_FMT " %s",
                                                            STR_ARG(path), what) });
}

/* Adds an error whose text repeats the path, as kube-apiserver writes them: "spec.a in body should ...". */
static void add_in_body(struct field_errors *errors, const struct field_path *at,
                        const struct json *value, const char *format, ...) PRINTF_LIKE(4, 5);
static void add_in_body(struct field_errors *errors, const struct field_path *at,
                        const struct json *value, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    str path = at ? field_path_text(errors->arena, at) : S("");
    field_invalid(errors, at, value, STR_FMT " in body %s", STR_ARG(path), text);
}

static void check_type(const struct schema *s, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    static const char *const names[SCHEMA_TYPE_N] = {
        [SCHEMA_ANY] = "any",         [SCHEMA_OBJECT] = "object",
        [SCHEMA_ARRAY] = "array",     [SCHEMA_STRING] = "string",
        [SCHEMA_INTEGER] = "integer", [SCHEMA_NUMBER] = "number",
        [SCHEMA_BOOLEAN] = "boolean", [SCHEMA_INT_OR_STRING] = "integer or string",
    };
    if (value->type == JSON_NULL ? s->nullable || s->type == SCHEMA_ANY
                                 : type_matches(s->type, value))
        return;
    /* the value of the error is the name of the type that was found */
    str path = at ? field_path_text(errors->arena, at) : S("");
    const char *found = json_type_name(value);
    field_type_invalid(errors, at, json_new_str(errors->arena, str_c(found)),
                       STR_FMT " in body must be of type %s: \"%s\"", STR_ARG(path), names[s->type],
                       found);
}

/* Compares the value with each allowed one; a long enum has an index. */
static void check_enum(const struct schema_limits *l, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    if (!l->one_of_values || l->has & SCHEMA_WORDS_UNCHECKED)
        return;
    for (uint32_t i = 0; !l->words && i < l->one_of_values->n; i++)
        if (json_eq(l->one_of_values->items[i], value))
            return;
    if (l->words && seen_lookup(l->words, value))
        return;
    const char **allowed = arena_array(errors->arena, l->one_of_values->n + 1u, sizeof(*allowed));
    for (uint32_t i = 0; i < l->one_of_values->n; i++) {
        const struct json *v = l->one_of_values->items[i];
        str text = v->type == JSON_STR ? arena_str(errors->arena, json_text(v))
                                       : json_to_str(errors->arena, v);
        allowed[i] = text.p;
    }
    field_not_supported(errors, at, value, allowed);
}

/* Code points: bytes that are not UTF-8 continuation bytes. */
static int64_t count_chars(str text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return n;
}

/* Matching costs the size of the pattern for each character (base/regex.c), which a definition and an
 * object can drive up together. This bounds what one object may spend to about 0.3 s. */
#define PATTERN_STEPS_MAX 100000000u

/* Matches the pattern within the step limit of the whole object. */
static void check_pattern(const struct schema_limits *l, const struct json *value,
                          const struct field_path *at, struct field_errors *errors)
{
    bool matches =
        errors->steps < PATTERN_STEPS_MAX &&
        regex_matches_within(l->regex, json_text(value), PATTERN_STEPS_MAX, &errors->steps);
    if (matches)
        return;
    if (errors->steps >= PATTERN_STEPS_MAX)
        field_invalid(
            errors, at, value,
            "cannot be checked: the patterns of this schema take too long on this object; "
            "shorten the text or simplify the pattern '%.*s'",
            (int)MIN(l->pattern.n, (size_t)256), l->pattern.p);
    else
        add_in_body(errors, at, value, "should match '" STR_FMT "'", STR_ARG(l->pattern));
}

/* Length in code points, then the pattern, then the format. */
static void check_text(const struct schema_limits *l, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    str text = json_text(value);
    int64_t length = count_chars(text);
    if (l->max_length >= 0 && length > l->max_length)
        field_too_long(errors, at, l->max_length);
    else if (l->min_length > 0 && length < l->min_length)
        add_in_body(errors, at, value, "should be at least %lld chars long",
                    (long long)l->min_length);
    else if (l->regex)
        check_pattern(l, value, at, errors);
    if (l->format.n && !format_matches(l->format, text))
        field_type_invalid(errors, at, value,
                           STR_FMT " in body must be of type " STR_FMT ": " STR_FMT,
                           STR_ARG(at ? field_path_text(errors->arena, at) : S("")),
                           STR_ARG(l->format), STR_ARG(json_to_str(errors->arena, value)));
}

/* With a tolerance, since 0.3 is not a multiple of 0.1 in binary. */
static bool is_multiple(double value, double of)
{
    double quotient = value / of;
    return fabs(quotient - nearbyint(quotient)) <= 1e-9 * fmax(1, fabs(quotient));
}

/* Bounds, multiples and the int32 format. */
static void check_number(const struct schema *s, const struct json *value,
                         const struct field_path *at, struct field_errors *errors)
{
    const struct schema_limits *l = s->limits;
    double n = json_real(value, 0);
    bool low = l->has & SCHEMA_EXCLUSIVE_MINIMUM ? n <= l->minimum : n < l->minimum;
    bool high = l->has & SCHEMA_EXCLUSIVE_MAXIMUM ? n >= l->maximum : n > l->maximum;
    if ((l->has & SCHEMA_HAS_MINIMUM) && low)
        add_in_body(errors, at, value, "should be greater than %s%.15g",
                    l->has & SCHEMA_EXCLUSIVE_MINIMUM ? "" : "or equal to ", l->minimum);
    if ((l->has & SCHEMA_HAS_MAXIMUM) && high)
        add_in_body(errors, at, value, "should be less than %s%.15g",
                    l->has & SCHEMA_EXCLUSIVE_MAXIMUM ? "" : "or equal to ", l->maximum);
    if ((l->has & SCHEMA_HAS_MULTIPLE) && !is_multiple(n, l->multiple_of))
        add_in_body(errors, at, value, "should be a multiple of %.15g", l->multiple_of);
    bool int32 = str_eqc(l->format, "int32");
    if (int32 && s->type == SCHEMA_INTEGER && (n < INT32_MIN || n > INT32_MAX))
        add_without_field(errors, at, "should be a 32-bit integer");
}

/* Number of items of a list or of members of an object. */
static void check_size(const struct schema_limits *l, const struct json *value,
                       const struct field_path *at, struct field_errors *errors)
{
    bool list = value->type == JSON_ARR;
    int64_t least = list ? l->min_items : l->min_properties;
    int64_t most = list ? l->max_items : l->max_properties;
    if (most >= 0 && value->n > most)
        field_too_many(errors, at, value->n, most);
    if (least > 0 && value->n < least)
        add_in_body(errors, at, value, "should have at least %lld %s", (long long)least,
                    list ? "items" : "properties");
}

/* ---- alternatives */

/* Validates into a list of its own; pattern steps still count against the whole object. */
static struct field_errors validate_alternative(const struct schema *s, const struct json *value,
                                                const struct field_path *at,
                                                struct field_errors *all)
{
    struct field_errors errors = { .arena = all->arena, .steps = all->steps };
    schema_validate(s, value, NULL, at, &errors);
    all->steps = errors.steps;
    return errors;
}

static void check_all_of(const struct schema **all, const struct json *value,
                         const struct field_path *at, struct field_errors *errors)
{
    size_t before = errors->n;
    for (size_t i = 0; all && all[i]; i++) {
        struct field_errors part = validate_alternative(all[i], value, at, errors);
        field_add_all(errors, &part);
    }
    if (errors->n > before)
        add_without_field(errors, at, "must validate all the schemas (allOf)");
}

/* Returns how many alternatives accept the value; `ret_closest` gets the shortest error list of
 * those that do not. */
static size_t count_matches(const struct schema **some, const struct json *value,
                            const struct field_path *at, struct field_errors *all,
                            struct field_errors *ret_closest)
{
    size_t matches = 0;
    for (size_t i = 0; some[i]; i++) {
        struct field_errors part = validate_alternative(some[i], value, at, all);
        matches += part.n == 0;
        if (part.n && (!ret_closest->n || part.n < ret_closest->n))
            *ret_closest = part;
    }
    return matches;
}

/* Applies allOf, anyOf, oneOf and not, in this order. */
static void check_alternatives(const struct schema_limits *l, const struct json *value,
                               const struct field_path *at, struct field_errors *errors)
{
    check_all_of(l->all_of, value, at, errors);
    struct field_errors closest = { .arena = errors->arena };
    if (l->any_of && count_matches(l->any_of, value, at, errors, &closest) == 0) {
        add_without_field(errors, at, "must validate at least one schema (anyOf)");
        field_add_all(errors, &closest);
    }
    closest = (struct field_errors){ .arena = errors->arena };
    size_t matches = l->one_of ? count_matches(l->one_of, value, at, errors, &closest) : 1;
    if (matches != 1) {
        add_without_field(errors, at, "must validate one and only one schema (oneOf)");
        if (!matches)
            field_add_all(errors, &closest);
    }
    if (l->not_schema && !validate_alternative(l->not_schema, value, at, errors).n)
        add_without_field(errors, at, "must not validate the schema (not)");
}

/* ---- containers */

/* An embedded resource must state a well-formed apiVersion and kind; whether the kind exists is
 * not checked. */
static void check_embedded(const struct json *value, const struct field_path *up,
                           struct field_errors *errors)
{
    static const char *const names[] = { "apiVersion", "kind" };
    for (size_t i = 0; i < countof(names); i++) {
        struct field_path at = { up, .key = str_c(names[i]) };
        const struct json *name = json_get(value, names[i]);
        str text = json_text(name), group, rest = text;
        if (!name) {
            field_required(errors, &at, NULL);
        } else if (!text.n) {
            field_invalid(errors, &at, name, "must be a non-empty string");
        } else if (i == 0) {
            if (str_cut(&rest, '/', &group) && rest.p && str_find_char(rest, '/') != SIZE_MAX)
                field_invalid(errors, &at, name, "must be VERSION or GROUP/VERSION");
        } else {
            char *small = (char *)arena_str(errors->arena, text).p;
            for (char *p = small; *p; p++)
                *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 32 : *p);
            if (format_dns_label_1035(str_c(small)))
                field_invalid(errors, &at, name, "%s", format_dns_label_1035(str_c(small)));
        }
    }
}

/* Required members, then every member that the schema describes. */
static void check_object(const struct schema *s, const struct json *value, const struct json *old,
                         const struct field_path *up, struct field_errors *errors)
{
    for (uint32_t i = 0; s->limits && i < s->limits->n_required; i++) {
        struct field_path at = { up, .key = s->limits->required[i] };
        if (!json_get_str(value, at.key))
            field_required(errors, &at, NULL);
    }
    if (s->embedded)
        check_embedded(value, up, errors);
    json_each(member, value) {
        const struct schema_field *f = schema_field(s, member->key);
        const struct schema *schema = f ? &f->schema : schema_map_element(s);
        struct field_path at = { up, .key = member->key };
        if (schema)
            schema_validate(schema, member->value, json_get_str(old, member->key), &at, errors);
    }
}

/* Compares the key fields of two items of a map list. */
static bool has_same_keys(const struct schema *s, const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < s->n_list_keys; i++)
        if (!json_eq(json_get_str(a, s->list_keys[i]), json_get_str(b, s->list_keys[i])))
            return false;
    return true;
}

static const struct json **get_list_keys(struct arena *a, const struct schema *s,
                                         const struct json *item)
{
    const struct json **keys = arena_array(a, s->n_list_keys + 1u, sizeof(*keys));
    for (uint32_t i = 0; i < s->n_list_keys; i++)
        keys[i] = json_get_str(item, s->list_keys[i]);
    return keys;
}

/* The old list, indexed by key once an item is not at its old place. */
struct old_list {
    struct arena *arena;
    const struct json *list;
    struct seen keys;
    bool filled;
};

/* The item of the old list with the same keys, or NULL. Most items keep their place, so that one
 * is tried first. */
static const struct json *find_old_element(const struct schema *s, const struct json *item,
                                           struct old_list *old, uint32_t guess)
{
    uint32_t n = s->list == SHAPE_MAP_LIST ? (uint32_t)json_len(old->list) : 0;
    if (guess < n && has_same_keys(s, item, json_item(old->list, guess)))
        return json_item(old->list, guess);
    if (n && !old->filled) {
        old->keys = seen_new(old->arena, s->n_list_keys);
        for (uint32_t i = 0; i < n; i++)
            seen_put(&old->keys, get_list_keys(old->arena, s, json_item(old->list, i)), i);
        old->filled = true;
    }
    const struct seen_key *found =
        n ? seen_find(&old->keys, get_list_keys(old->arena, s, item)) : NULL;
    return found ? json_item(old->list, found->place) : NULL;
}

/* Validates the items and reports duplicates in sets and map lists. */
static void check_list(const struct schema *s, const struct json *value, const struct json *old,
                       const struct field_path *up, struct field_errors *errors)
{
    struct old_list old_list = { .arena = errors->arena, .list = old };
    struct seen before = seen_new(errors->arena, s->list == SHAPE_SET_LIST ? 1 : s->n_list_keys);
    for (uint32_t i = 0; i < value->n; i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *item = value->items[i];
        bool repeated = s->list == SHAPE_SET_LIST ? seen_value(&before, item, i) != NULL
                        : s->list == SHAPE_MAP_LIST
                            ? seen_put(&before, get_list_keys(errors->arena, s, item), i) != NULL
                            : false;
        if (schema_list_element(s))
            schema_validate(s->element, item, find_old_element(s, item, &old_list, i), &at, errors);
        if (s->list == SHAPE_MAP_LIST && !json_is(item, JSON_OBJ))
            field_invalid(errors, &at, item, "must be an object: the list is of type map");
        else if (repeated)
            field_duplicate(errors, &at, item);
    }
}

/* Applies the keywords that fit the type of the value. */
static void check_limits(const struct schema *s, const struct json *value,
                         const struct field_path *at, struct field_errors *errors)
{
    const struct schema_limits *l = s->limits;
    if (!(value->type == JSON_NULL && s->nullable))
        check_enum(l, value, at, errors);
    if (value->type == JSON_NULL)
        return;
    if (value->type == JSON_STR)
        check_text(l, value, at, errors);
    else if (value->type == JSON_INT || value->type == JSON_REAL)
        check_number(s, value, at, errors);
    else if (value->type == JSON_ARR || value->type == JSON_OBJ)
        check_size(l, value, at, errors);
    check_alternatives(l, value, at, errors);
}

/* True if the value equals the old one, ignoring the order of map lists. */
static bool is_unchanged(struct arena *a, const struct schema *s, const struct json *value,
                         const struct json *old)
{
    if (!old || value->type != old->type || (value->type != JSON_OBJ && value->type != JSON_ARR) ||
        (value->type == JSON_ARR && s->list != SHAPE_MAP_LIST))
        return old && json_eq(value, old);
    if (value->n != old->n)
        return false;
    struct old_list old_list = { .arena = a, .list = old };
    for (uint32_t i = 0; value->type == JSON_ARR && i < value->n; i++)
        if (!is_unchanged(a, s->element, value->items[i],
                          find_old_element(s, value->items[i], &old_list, i)))
            return false;
    for (uint32_t i = 0; value->type == JSON_OBJ && i < value->n; i++) {
        const struct json_member *m = &value->members[i];
        const struct schema_field *f = schema_field(s, m->key);
        const struct schema *child = f ? &f->schema : schema_map_element(s);
        const struct json *before = json_get_str(old, m->key);
        if (child ? !is_unchanged(a, child, m->value, before)
                  : !before || !json_eq(m->value, before))
            return false;
    }
    return true;
}

void schema_validate(const struct schema *s, const struct json *value, const struct json *old,
                     const struct field_path *at, struct field_errors *errors)
{
    if (is_unchanged(errors->arena, s, value, old))
        return;
    check_type(s, value, at, errors);
    if (s->limits)
        check_limits(s, value, at, errors);
    if (value->type == JSON_OBJ)
        check_object(s, value, old, at, errors);
    else if (value->type == JSON_ARR)
        check_list(s, value, old, at, errors);
}
