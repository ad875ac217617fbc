/* Values: where they come from, how they compare, and the two containers that expressions can build.
 *
 * A list or map of an object stays JSON; its items become values when they are read, by the type that the
 * schema gives them (text may be a timestamp, an integer a double). A list that an expression builds is a
 * prefix of a store: appending to the longest prefix extends the store in place, so that map() and
 * filter() are linear, and older prefixes stay valid. Maps work the same way and have an index once they are
 * larger than a few entries. */
#include "../../../base/base64.h"
#include "../../../base/utf8.h"
#include "cel_node.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { SCAN_MAX = 8 };

/* ---- making */

/* An error is a value. Its text is limited to 511 bytes: arguments come from the object and can be large. */
struct cel_value cel_fail(struct arena *a, const char *format, ...)
{
    auto_buf struct buf b = { 0 };
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_put(&b, str_c(text));
    struct cel_value v = cel_kept_text(a, &b);
    v.kind = CEL_ERROR;
    return v;
}

struct cel_value cel_no_overload(void)
{
    return (struct cel_value){ .kind = CEL_ERROR, .text = "no such overload", .n = 16 };
}

struct cel_value cel_of_text(str text)
{
    return (struct cel_value){ .kind = CEL_STRING, .text = text.p, .n = (uint32_t)text.n };
}

struct cel_value cel_kept_text(struct arena *a, struct buf *b)
{
    str text = arena_str(a, buf_str(b));
    return cel_of_text(text);
}

struct cel_value cel_optional_of(struct arena *a, struct cel_value value)
{
    struct cel_value *kept = arena_room(a, sizeof(*kept));
    *kept = value;
    return (struct cel_value){ .kind = CEL_OPTIONAL, .value = kept };
}

/* Text of a schema with a format: bytes, a time or a duration. */
static struct cel_value of_formatted(struct arena *a, str text, const struct cel_type *type)
{
    struct cel_value v;
    int64_t ns;
    if (type->kind == CEL_TIMESTAMP)
        return cel_parse_schema_time(text, type->date, &v)
                   ? v
                   : cel_fail(a, "Invalid %s formatted string " STR_FMT,
                              type->date ? "date" : "date-time", STR_ARG(text));
    if (type->kind == CEL_DURATION)
        return cel_parse_schema_duration(text, &ns)
                   ? (struct cel_value){ .kind = CEL_DURATION, .integer = ns }
                   : cel_fail(a, "Invalid duration " STR_FMT, STR_ARG(text));
    auto_buf struct buf bytes = { 0 };
    if (base64_decode(&bytes, text) < 0)
        return cel_fail(a, "Invalid byte formatted string " STR_FMT, STR_ARG(text));
    v = cel_kept_text(a, &bytes);
    v.kind = CEL_BYTES;
    return v;
}

/* A number as the schema wants it: 1 and 1.0 are the same in JSON. */
static struct cel_value of_number(struct arena *a, const struct json *json,
                                  const struct cel_type *type)
{
    double real = json_real(json, 0);
    if (type && type->kind == CEL_DOUBLE)
        return cel_of_real(real);
    if (json->type == JSON_INT)
        return cel_of_int(json->integer);
    bool wants_int = type && type->kind == CEL_INT;
    if (wants_int && floor(real) == real && fabs(real) < 9.2e18)
        return cel_of_int((int64_t)real);
    return wants_int ? cel_fail(a, "invalid data, expected int, got float64") : cel_of_real(real);
}

/* The value of a JSON tree under the type of its schema. Containers are not converted, only wrapped: their
 * items become values when an expression reads them, so an expression pays for what it uses, not for the
 * object. */
struct cel_value cel_of_json(struct arena *a, const struct json *json, const struct cel_type *type)
{
    struct cel_value v = { .is_json = true, .type = type };
    if (!json)
        return cel_fail(a, "no such key");
    switch (json->type) {
    case JSON_NULL:
        if (type && type->kind != CEL_DYN && !type->nullable)
            return cel_fail(a, "invalid data, got null for schema with nullable=false");
        return (struct cel_value){ .kind = CEL_NULL };
    case JSON_BOOL:
        return cel_of_bool(json->boolean);
    case JSON_INT:
    case JSON_REAL:
        return of_number(a, json, type);
    case JSON_STR:
        return type && type->from_text ? of_formatted(a, json_text(json), type)
                                       : cel_of_text(json_text(json));
    case JSON_ARR:
        v.kind = CEL_LIST;
        break;
    default:
        v.kind = type && type->kind == CEL_OBJECT ? CEL_OBJECT : CEL_MAP;
        break;
    }
    v.n = json->n;
    v.json = json;
    return v;
}

/* ---- lists */

/* An empty list with room for `cap` items. */
struct cel_value cel_new_list(struct arena *a, uint32_t cap)
{
    struct cel_list *list = arena_room(a, sizeof(*list));
    *list = (struct cel_list){ 0, cap, cap ? arena_room(a, cap * sizeof(struct cel_value)) : NULL };
    return (struct cel_value){ .kind = CEL_LIST, .list = list };
}

/* The list with one more item. Extends the store if this is its longest prefix, otherwise copies. */
struct cel_value cel_append(struct arena *a, struct cel_value v, struct cel_value item)
{
    struct cel_list *list = v.list;
    if (list->n != v.n || list->n == list->cap) {
        uint32_t cap = MAX(v.n * 2, 8u);
        struct cel_value copy = cel_new_list(a, cap);
        if (v.n)
            memcpy(copy.list->items, list->items, v.n * sizeof(*list->items));
        copy.list->n = v.n;
        list = copy.list;
    }
    list->items[list->n++] = item;
    return (struct cel_value){ .kind = CEL_LIST, .list = list, .n = v.n + 1 };
}

struct cel_value cel_item(struct cel_machine *m, struct cel_value list, uint32_t i)
{
    if (!list.is_json)
        return list.list->items[i];
    return cel_of_json(m->arena, list.json->items[i], list.type ? list.type->of[0] : NULL);
}

/* ---- maps */

struct cel_value cel_new_map(struct arena *a, uint32_t cap)
{
    struct cel_map *map = arena_room(a, sizeof(*map));
    *map = (struct cel_map){ .cap = cap };
    map->keys = arena_room(a, MAX(cap, 1u) * sizeof(*map->keys));
    map->values = arena_room(a, MAX(cap, 1u) * sizeof(*map->values));
    return (struct cel_value){ .kind = CEL_MAP, .map = map };
}

/* FNV-1a of text. Other keys are numbers or bools. */
static uint64_t hash_key(struct cel_value key)
{
    uint64_t h = 1469598103934665603u;
    if (key.kind == CEL_STRING) {
        for (uint32_t i = 0; i < key.n; i++)
            h = (h ^ (unsigned char)key.text[i]) * 1099511628211u;
        return h;
    }
    double real = key.kind == CEL_DOUBLE ? key.real
                  : key.kind == CEL_INT  ? (double)key.integer
                  : key.kind == CEL_UINT ? (double)key.natural
                                         : key.boolean;
    uint64_t bits; /* numbers that are equal have one hash, whatever their kind */
    memcpy(&bits, &real, sizeof(bits));
    return (bits ^ h) * 0x9e3779b97f4a7c15u;
}

static void index_entry(struct cel_map *map, uint32_t i)
{
    uint64_t at = hash_key(map->keys[i]);
    at ^= at >> 29;
    while (map->index[at % map->slots])
        at++;
    map->index[at % map->slots] = i + 1;
}

/* Index of a key; UINT32_MAX: absent. Small maps are scanned, larger ones have an open-addressing table. The
 * table covers the whole store, so an entry beyond this prefix (`v.n`) does not count. */
static uint32_t find_entry(struct cel_machine *m, struct cel_value v, struct cel_value key)
{
    const struct cel_map *map = v.map;
    if (!map->slots) {
        for (uint32_t i = 0; i < v.n; i++)
            if (cel_equal(m, map->keys[i], key))
                return i;
        return UINT32_MAX;
    }
    uint64_t at = hash_key(key);
    at ^= at >> 29;
    for (uint32_t found; (found = map->index[at % map->slots]); at++)
        if (found - 1 < v.n && cel_equal(m, map->keys[found - 1], key))
            return found - 1;
    return UINT32_MAX;
}

/* Half of the slots stay empty, so that a chain of collisions is short. */
static void reindex(struct arena *a, struct cel_map *map)
{
    map->slots = map->cap > SCAN_MAX ? map->cap * 2 : 0;
    if (!map->slots)
        return;
    map->index = arena_array(a, map->slots, sizeof(*map->index));
    for (uint32_t i = 0; i < map->n; i++)
        index_entry(map, i);
}

/* Adds an entry; false if the key exists or cannot be a key. As with lists, the longest prefix is extended in
 * place and any other is copied. */
bool cel_insert(struct cel_machine *m, struct cel_value *v, struct cel_value key,
                struct cel_value value)
{
    if ((key.kind != CEL_STRING && key.kind != CEL_INT && key.kind != CEL_UINT &&
         key.kind != CEL_BOOL && key.kind != CEL_DOUBLE) ||
        find_entry(m, *v, key) != UINT32_MAX)
        return false;
    struct cel_map *map = v->map;
    if (map->n != v->n || map->n == map->cap) {
        struct cel_value copy = cel_new_map(m->arena, MAX(v->n * 2, 8u));
        if (v->n) {
            memcpy(copy.map->keys, map->keys, v->n * sizeof(*map->keys));
            memcpy(copy.map->values, map->values, v->n * sizeof(*map->values));
        }
        copy.map->n = v->n;
        map = copy.map;
        reindex(m->arena, map);
    }
    map->keys[map->n] = key;
    map->values[map->n++] = value;
    if (map->slots)
        index_entry(map, map->n - 1);
    *v = (struct cel_value){ .kind = CEL_MAP, .map = map, .n = v->n + 1 };
    return true;
}

/* The type of a member by the schema. `ret_known` false: the schema does not have the field, so expressions
 * cannot see it, even if the object has it. */
static const struct cel_type *member_type(const struct cel_type *type, str key, bool *ret_known)
{
    *ret_known = true;
    if (!type || type->kind == CEL_DYN)
        return NULL;
    if (type->kind == CEL_MAP)
        return type->of[1];
    const struct cel_field *f = cel_find_field(type, key);
    *ret_known = f != NULL;
    return f ? f->type : NULL;
}

/* null counts as absent in an object, but not in a map. */
bool cel_lookup(struct cel_machine *m, struct cel_value map, struct cel_value key,
                struct cel_value *ret)
{
    if (!map.is_json) {
        uint32_t i = find_entry(m, map, key);
        if (i != UINT32_MAX && ret)
            *ret = map.map->values[i];
        return i != UINT32_MAX;
    }
    const struct json *value =
        key.kind == CEL_STRING ? json_get_str(map.json, cel_text(key)) : NULL;
    bool known;
    if (!value)
        return false;
    const struct cel_type *type = member_type(map.type, cel_text(key), &known);
    if (!known || (map.kind == CEL_OBJECT && value->type == JSON_NULL))
        return false;
    if (ret)
        *ret = cel_of_json(m->arena, value, type);
    return true;
}

struct cel_value cel_key_at(struct cel_machine *m, struct cel_value map, uint32_t i)
{
    (void)m;
    return map.is_json ? cel_of_text(map.json->members[i].key) : map.map->keys[i];
}

struct cel_value cel_value_at(struct cel_machine *m, struct cel_value map, uint32_t i)
{
    bool known;
    if (!map.is_json)
        return map.map->values[i];
    const struct json_member *member = &map.json->members[i];
    return cel_of_json(m->arena, member->value, member_type(map.type, member->key, &known));
}

/* ---- comparing */

static bool is_number(struct cel_value v)
{
    return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE;
}

static int compare_real(double a, double b)
{
    return isnan(a) || isnan(b) ? 2 : a < b ? -1 : a > b;
}

/* A number and a double, exactly: not every 64-bit integer is a double. */
static int compare_int_real(int64_t i, double d)
{
    if (isnan(d))
        return 2;
    if (d < -9223372036854775808.0)
        return 1;
    if (d >= 9223372036854775808.0)
        return -1;
    int64_t whole = (int64_t)d;
    return i < whole ? -1 : i > whole ? 1 : compare_real(0, d - (double)whole);
}

/* Order of two numbers of any kind, by mathematical value; 2 if one is NaN. Each pair of kinds is handled once,
 * the mirrored pairs by swapping. */
static int compare_numbers(struct cel_value a, struct cel_value b)
{
    if (a.kind == b.kind)
        return a.kind == CEL_INT    ? (a.integer > b.integer) - (a.integer < b.integer)
               : a.kind == CEL_UINT ? (a.natural > b.natural) - (a.natural < b.natural)
                                    : compare_real(a.real, b.real);
    if (a.kind == CEL_DOUBLE || (a.kind == CEL_UINT && b.kind == CEL_INT)) {
        int other = compare_numbers(b, a);
        return other == 2 ? 2 : -other;
    }
    if (b.kind == CEL_UINT) /* a is an int */
        return a.integer < 0 || b.natural > INT64_MAX
                   ? -1
                   : (a.integer > (int64_t)b.natural) - (a.integer < (int64_t)b.natural);
    return a.kind == CEL_INT        ? compare_int_real(a.integer, b.real)
           : a.natural <= INT64_MAX ? compare_int_real((int64_t)a.natural, b.real)
                                    : compare_real((double)a.natural, b.real);
}

/* -1, 0 or 1; 2: a NaN is involved; -2: these kinds have no order. */
int cel_compare(struct cel_value a, struct cel_value b)
{
    if (is_number(a) && is_number(b))
        return compare_numbers(a, b);
    if (a.kind != b.kind)
        return -2;
    switch (a.kind) {
    case CEL_BOOL:
        return a.boolean - b.boolean;
    case CEL_STRING:
    case CEL_BYTES: {
        int order = str_cmp(cel_text(a), cel_text(b));
        return (order > 0) - (order < 0);
    }
    case CEL_TIMESTAMP:
        return a.integer != b.integer ? (a.integer > b.integer ? 1 : -1)
                                      : (a.n > b.n) - (a.n < b.n);
    case CEL_DURATION:
        return (a.integer > b.integer) - (a.integer < b.integer);
    default:
        return -2;
    }
}

/* Sets and map lists of a schema are equal in any order. Quadratic; the steps bound it. */
static bool has_equal_items(struct cel_machine *m, struct cel_value a, struct cel_value b)
{
    for (uint32_t i = 0; i < a.n; i++) {
        struct cel_value item = cel_item(m, a, i);
        uint32_t j = 0;
        while (j < b.n && !cel_equal(m, item, cel_item(m, b, j)))
            j++;
        if (j == b.n)
            return false;
    }
    return true;
}

static bool equal_lists(struct cel_machine *m, struct cel_value a, struct cel_value b)
{
    if (a.n != b.n)
        return false;
    if (a.is_json && a.type && a.type->list != SHAPE_ATOMIC_LIST)
        return has_equal_items(m, a, b);
    for (uint32_t i = 0; i < a.n; i++)
        if (!cel_equal(m, cel_item(m, a, i), cel_item(m, b, i)))
            return false;
    return true;
}

/* Equal sizes and equal values for each key of `a`, so that no key of `b` can be left over. */
static bool equal_maps(struct cel_machine *m, struct cel_value a, struct cel_value b)
{
    if (a.n != b.n || (a.kind == CEL_OBJECT && !a.is_json && !cel_same_type(a.type, b.type)))
        return false;
    for (uint32_t i = 0; i < a.n; i++) {
        struct cel_value key = cel_key_at(m, a, i), other;
        if (cel_lookup(m, b, key, &other)) {
            if (!cel_equal(m, cel_value_at(m, a, i), other))
                return false;
        } else if (!a.is_json || !b.is_json || a.kind != CEL_OBJECT ||
                   !json_eq(a.json->members[i].value, json_get_str(b.json, cel_text(key)))) {
            return false; /* fields that expressions do not see compare as JSON */
        }
    }
    return true;
}

/* Deep equality. Every comparison counts as a step, because containers make it recursive; values of different
 * kinds are different, except numbers. */
bool cel_equal(struct cel_machine *m, struct cel_value a, struct cel_value b)
{
    if (++m->steps > CEL_STEPS_MAX) {
        m->exceeded = true;
        return false;
    }
    if (is_number(a) && is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case CEL_NULL:
        return true;
    case CEL_LIST:
        return equal_lists(m, a, b);
    case CEL_MAP:
    case CEL_OBJECT:
        return equal_maps(m, a, b);
    case CEL_OPTIONAL:
        return !a.value || !b.value ? a.value == b.value : cel_equal(m, *a.value, *b.value);
    case CEL_TYPE:
        return a.type->kind == b.type->kind;
    case CEL_QUANTITY:
    case CEL_SEMVER:
        return cel_version_equal(a, b);
    case CEL_IP:
    case CEL_CIDR:
        return cel_net_equal(a, b);
    case CEL_URL:
        return str_eq(cel_url_text(a), cel_url_text(b));
    case CEL_FORMAT:
        return a.integer == b.integer;
    default:
        return cel_compare(a, b) == 0;
    }
}

int64_t cel_count_chars(str text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return n;
}

/* The size that size() returns and that costs are computed from: code points, bytes or items; 1 for scalars. */
uint64_t cel_size(struct cel_value v)
{
    switch (v.kind) {
    case CEL_STRING:
        return (uint64_t)cel_count_chars(cel_text(v));
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_MAP:
    case CEL_OBJECT:
        return v.n;
    case CEL_IP:
    case CEL_CIDR:
        return v.n == 4 ? 4 : 16;
    case CEL_OPTIONAL:
        return v.value ? cel_size(*v.value) : 1;
    default:
        return 1;
    }
}

bool cel_is_zero(struct cel_value v)
{
    switch (v.kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v.boolean;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DURATION:
        return !v.integer;
    case CEL_DOUBLE:
        return v.real == 0;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_MAP:
    case CEL_OBJECT:
        return !v.n;
    default:
        return false;
    }
}

const struct cel_type *cel_type_of(struct arena *a, struct cel_value v)
{
    if (v.kind == CEL_OBJECT && v.type)
        return v.type;
    bool parts = v.kind == CEL_LIST || v.kind == CEL_OPTIONAL || v.kind == CEL_TYPE;
    return cel_new_type(a, v.kind, parts || v.kind == CEL_MAP ? &cel_dyn : NULL,
                        v.kind == CEL_MAP ? &cel_dyn : NULL);
}
