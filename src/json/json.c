/* The tree: build, read, compare. Parsing is in parse.c, writing in write.c.
 *
 * Members are an array in their original order. Up to INDEX_FROM of them are searched linearly,
 * because Kubernetes objects have a handful of keys per level; a larger object has an index, so
 * that n lookups take linear instead of quadratic time:
 *
 *     members[0 .. cap)  |  slots: 1 + index of a member, 0: free; open addressing, a power of two
 *
 * Both are in one block of the arena. Every function here maintains the index; code that changes
 * `members` directly calls json_reindex().
 *
 * Growing abandons the old block in the arena instead of freeing it: trees are short-lived, and an
 * arena makes both building and freeing a tree nearly free of cost. Hashes of keys and values are
 * seeded per process, because clients choose them. Recursion is bounded, because parsers and
 * patches limit the depth of trees to JSON_DEPTH_MAX. */
#include "json.h"

#include "../base/map.h"

#include <stdarg.h>

enum { INDEX_FROM = 32 };

static struct json *new_value(struct arena *a, enum json_type type)
{
    struct json *v = arena_new(a, struct json);
    v->type = type;
    return v;
}

struct json *json_new_null(struct arena *a)
{
    return new_value(a, JSON_NULL);
}

struct json *json_new_bool(struct arena *a, bool value)
{
    struct json *v = new_value(a, JSON_BOOL);
    v->boolean = value;
    return v;
}

struct json *json_new_int(struct arena *a, int64_t value)
{
    struct json *v = new_value(a, JSON_INT);
    v->integer = value;
    return v;
}

struct json *json_new_real(struct arena *a, double value)
{
    struct json *v = new_value(a, JSON_REAL);
    v->real = value;
    return v;
}

struct json *json_new_str(struct arena *a, str value)
{
    assert(value.n <= UINT32_MAX);
    struct json *v = new_value(a, JSON_STR);
    v->text = arena_str(a, value).p;
    v->n = (uint32_t)value.n;
    return v;
}

struct json *json_new_arr(struct arena *a)
{
    return new_value(a, JSON_ARR);
}

struct json *json_new_obj(struct arena *a)
{
    return new_value(a, JSON_OBJ);
}

/* ---- members and their index */

static uint32_t *slots_of(const struct json *obj)
{
    return (uint32_t *)(void *)(obj->members + obj->cap);
}

static void index_member(struct json *obj, uint32_t at)
{
    uint32_t *slots = slots_of(obj), mask = obj->slots - 1;
    uint32_t i = (uint32_t)map_hash(obj->members[at].key) & mask;
    while (slots[i])
        i = (i + 1) & mask;
    slots[i] = at + 1;
}

void json_reindex(struct json *obj)
{
    if (!obj->slots)
        return;
    memset(slots_of(obj), 0, obj->slots * sizeof(uint32_t));
    for (uint32_t i = 0; i < obj->n; i++)
        index_member(obj, i);
}

/* Moves the members to a block for `cap` of them. */
static void move_members(struct arena *a, struct json *obj, uint32_t cap)
{
    const struct json_member *old = obj->members;
    uint32_t slots = 0;
    if (cap > INDEX_FROM)
        for (slots = 2 * INDEX_FROM; slots < cap + cap / 2;)
            slots *= 2;
    size_t index = (slots * sizeof(uint32_t) + sizeof(*old) - 1) / sizeof(*old);
    obj->members = arena_array(a, cap + index, sizeof(*old));
    obj->cap = cap;
    obj->slots = slots;
    if (obj->n)
        memcpy(obj->members, old, obj->n * sizeof(*old));
    json_reindex(obj);
}

void json_reserve(struct arena *a, struct json *obj, uint32_t members)
{
    assert(json_is(obj, JSON_OBJ));
    if (members > obj->cap)
        move_members(a, obj, members);
}

struct json *json_shallow(struct arena *a, const struct json *v)
{
    struct json *copy = arena_new(a, struct json);
    *copy = *v;
    copy->cap = v->n;
    if (v->type == JSON_OBJ) {
        move_members(a, copy, v->n);
    } else if (v->type == JSON_ARR) {
        copy->items = arena_array(a, v->n, sizeof(struct json *));
        if (v->n)
            memcpy(copy->items, v->items, v->n * sizeof(struct json *));
    }
    return copy;
}

struct json *json_copy(struct arena *a, const struct json *v)
{
    if (!v)
        return NULL;
    struct json *copy = json_shallow(a, v);
    if (v->type == JSON_STR) {
        copy->text = arena_str(a, (str){ v->text, v->n }).p;
    } else if (v->type == JSON_ARR) {
        for (uint32_t i = 0; i < v->n; i++)
            copy->items[i] = json_copy(a, v->items[i]);
    } else if (v->type == JSON_OBJ) {
        for (uint32_t i = 0; i < v->n; i++) {
            copy->members[i].key = arena_str(a, v->members[i].key);
            copy->members[i].value = json_copy(a, v->members[i].value);
        }
    }
    return copy;
}

static struct json_member *find_indexed(const struct json *obj, str key)
{
    const uint32_t *slots = slots_of(obj), mask = obj->slots - 1;
    for (uint32_t i = (uint32_t)map_hash(key) & mask; slots[i]; i = (i + 1) & mask)
        if (str_eq(obj->members[slots[i] - 1].key, key))
            return &obj->members[slots[i] - 1];
    return NULL;
}

struct json_member *json_find(const struct json *obj, str key)
{
    if (json_is(obj, JSON_OBJ) && obj->slots)
        return find_indexed(obj, key);
    json_each(m, obj)
        if (str_eq(m->key, key))
            return m;
    return NULL;
}

void json_set(struct arena *a, struct json *obj, str key, struct json *value)
{
    assert(json_is(obj, JSON_OBJ));
    struct json_member *m = json_find(obj, key);
    if (m) {
        m->value = value;
        return;
    }
    json_append(a, obj, key, value);
}

void json_append(struct arena *a, struct json *obj, str key, struct json *value)
{
    assert(json_is(obj, JSON_OBJ) && obj->cap < UINT32_MAX / 4);
    if (obj->n == obj->cap)
        move_members(a, obj, obj->cap ? obj->cap * 2 : 4);
    obj->members[obj->n++] = (struct json_member){ arena_str(a, key), value };
    if (obj->slots)
        index_member(obj, obj->n - 1);
}

/* Removes a member from the index and decrements the indexes after it. Hashes only the keys of the
 * run that closes the gap. */
static void unindex_member(struct json *obj, uint32_t at)
{
    uint32_t *slots = slots_of(obj), mask = obj->slots - 1;
    uint32_t hole = (uint32_t)map_hash(obj->members[at].key) & mask;
    while (slots[hole] != at + 1)
        hole = (hole + 1) & mask;
    for (uint32_t i = (hole + 1) & mask; slots[i]; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)map_hash(obj->members[slots[i] - 1].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole] = 0;
    for (uint32_t i = 0; i <= mask; i++)
        slots[i] -= slots[i] > at + 1;
}

bool json_del(struct json *obj, str key)
{
    struct json_member *m = json_find(obj, key);
    if (!m)
        return false;
    size_t after = (size_t)(obj->members + obj->n - m) - 1;
    if (obj->slots)
        unindex_member(obj, (uint32_t)(m - obj->members));
    memmove(m, m + 1, after * sizeof(*m));
    obj->n--;
    return true;
}

void json_sweep(struct json *obj)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < obj->n; i++)
        if (obj->members[i].value)
            obj->members[kept++] = obj->members[i];
    if (kept == obj->n)
        return;
    obj->n = kept;
    json_reindex(obj);
}

/* ---- elements */

void json_push(struct arena *a, struct json *arr, struct json *value)
{
    json_insert(a, arr, json_len(arr), value);
}

void json_insert(struct arena *a, struct json *arr, size_t at, struct json *value)
{
    assert(json_is(arr, JSON_ARR) && at <= arr->n && arr->cap < UINT32_MAX / 2);
    if (arr->n == arr->cap) {
        arr->cap = arr->cap ? arr->cap * 2 : 4;
        struct json **larger = arena_array(a, arr->cap, sizeof(struct json *));
        if (arr->n)
            memcpy(larger, arr->items, arr->n * sizeof(struct json *));
        arr->items = larger;
    }
    memmove(arr->items + at + 1, arr->items + at, (arr->n - at) * sizeof(struct json *));
    arr->items[at] = value;
    arr->n++;
}

void json_remove(struct json *arr, size_t at)
{
    assert(json_is(arr, JSON_ARR) && at < arr->n);
    memmove(arr->items + at, arr->items + at + 1, (arr->n - at - 1) * sizeof(struct json *));
    arr->n--;
}

struct json *json_make(struct arena *a, struct json *obj, ...)
{
    va_list keys;
    va_start(keys, obj);
    for (const char *key; (key = va_arg(keys, const char *));) {
        struct json *child = json_get(obj, key);
        if (!json_is(child, JSON_OBJ))
            json_set(a, obj, str_c(key), child = json_new_obj(a));
        obj = child;
    }
    va_end(keys);
    return obj;
}

struct json *json_get_str(const struct json *obj, str key)
{
    struct json_member *m = json_find(obj, key);
    return m ? m->value : NULL;
}

struct json *json_get(const struct json *obj, const char *key)
{
    return json_get_str(obj, str_c(key));
}

struct json *json_at(const struct json *obj, ...)
{
    va_list keys;
    va_start(keys, obj);
    struct json *found = NULL;
    for (const char *key; (key = va_arg(keys, const char *)); obj = found)
        if (!(found = json_get(obj, key)))
            break;
    va_end(keys);
    return found;
}

struct json *json_item(const struct json *arr, size_t at)
{
    return json_is(arr, JSON_ARR) && at < arr->n ? arr->items[at] : NULL;
}

const char *json_type_name(const struct json *v)
{
    static const char *const names[] = { "null",   "boolean", "integer", "number",
                                         "string", "array",   "object" };
    return v ? names[v->type] : "nothing";
}

static size_t weigh_value(const struct json *v, size_t most, size_t levels)
{
    if (levels == 0)
        return most + 1;
    size_t bytes = sizeof(*v) + (v->type == JSON_STR ? v->n : 0);
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n && bytes <= most; i++)
        bytes += sizeof(v) + weigh_value(v->items[i], most - bytes, levels - 1);
    for (uint32_t i = 0; v->type == JSON_OBJ && i < v->n && bytes <= most; i++)
        bytes += sizeof(*v->members) + v->members[i].key.n +
                 weigh_value(v->members[i].value, most - bytes, levels - 1);
    return bytes;
}

size_t json_weight(const struct json *v, size_t most)
{
    return v ? weigh_value(v, most, JSON_DEPTH_MAX + 1) : 0;
}

bool json_deeper(const struct json *v, size_t levels)
{
    if (!json_is(v, JSON_ARR) && !json_is(v, JSON_OBJ))
        return false;
    bool deeper = levels == 0;
    for (uint32_t i = 0; i < v->n && !deeper; i++)
        deeper = json_deeper(v->type == JSON_ARR ? v->items[i] : v->members[i].value, levels - 1);
    return deeper;
}

static bool is_number(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_REAL;
}

static bool numbers_eq(const struct json *a, const struct json *b)
{
    if (a->type == b->type)
        return a->type == JSON_INT ? a->integer == b->integer : a->real == b->real;
    const struct json *integer = a->type == JSON_INT ? a : b, *real = a->type == JSON_INT ? b : a;
    return real->real >= -0x1p63 && real->real < 0x1p63 &&
           (int64_t)real->real == integer->integer && (double)(int64_t)real->real == real->real;
}

static bool objects_eq(const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        /* the same position is the common case and avoids the search */
        const struct json_member *m = str_eq(a->members[i].key, b->members[i].key)
                                          ? &b->members[i]
                                          : json_find(b, a->members[i].key);
        if (!m || !json_eq(a->members[i].value, m->value))
            return false;
    }
    return true;
}

/* Numbers are equal by value, whatever their type; members by key, whatever their order. */
bool json_eq(const struct json *a, const struct json *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    if (is_number(a) && is_number(b))
        return numbers_eq(a, b);
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_STR:
        return str_eq((str){ a->text, a->n }, (str){ b->text, b->n });
    case JSON_ARR:
        for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
            if (!json_eq(a->items[i], b->items[i]))
                return false;
        return a->n == b->n;
    case JSON_OBJ:
        return a->n == b->n && objects_eq(a, b);
    default:
        return true;
    }
}

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t hash_number(const struct json *v)
{
    int64_t whole = v->integer;
    if (v->type == JSON_REAL) {
        bool fits = v->real >= -0x1p63 && v->real < 0x1p63;
        if (!fits || (double)(int64_t)v->real != v->real)
            return map_hash((str){ (const char *)&v->real, sizeof(v->real) });
        whole = (int64_t)v->real;
    }
    return map_hash((str){ (const char *)&whole, sizeof(whole) });
}

/* Equal values must have equal hashes: an integral real hashes like the integer. */
uint64_t json_hash(const struct json *v)
{
    if (!v)
        return 0;
    uint64_t hash = v->type;
    switch (v->type) {
    case JSON_BOOL:
        return mix_bits(hash + 16 + v->boolean);
    case JSON_INT:
    case JSON_REAL:
        return hash_number(v);
    case JSON_STR:
        return map_hash((str){ v->text, v->n });
    case JSON_ARR:
        for (uint32_t i = 0; i < v->n; i++)
            hash = mix_bits(hash) + json_hash(v->items[i]);
        return mix_bits(hash);
    case JSON_OBJ: /* a sum does not depend on the order of members */
        for (uint32_t i = 0; i < v->n; i++)
            hash +=
                mix_bits(map_hash(v->members[i].key) + mix_bits(json_hash(v->members[i].value)));
        return mix_bits(hash);
    default:
        return mix_bits(hash);
    }
}
