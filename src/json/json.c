/* The tree: build, read, compare. Members are an array searched linearly: Kubernetes objects have a
 * handful of keys a level, and order must be kept. Readers of strangers' bytes bound `members`.
 * Parsing is in parse.c, writing in write.c. */
#include "json.h"

#include <stdarg.h>

static struct json *make(struct arena *a, enum json_type type)
{
    struct json *v = arena_new(a, struct json);
    v->type = type;
    return v;
}

struct json *json_new_null(struct arena *a)
{
    return make(a, JSON_NULL);
}

struct json *json_new_bool(struct arena *a, bool value)
{
    struct json *v = make(a, JSON_BOOL);
    v->boolean = value;
    return v;
}

struct json *json_new_int(struct arena *a, int64_t value)
{
    struct json *v = make(a, JSON_INT);
    v->integer = value;
    return v;
}

struct json *json_new_real(struct arena *a, double value)
{
    struct json *v = make(a, JSON_REAL);
    v->real = value;
    return v;
}

struct json *json_new_str(struct arena *a, str value)
{
    assert(value.n <= UINT32_MAX);
    struct json *v = make(a, JSON_STR);
    v->text = arena_str(a, value).p;
    v->n = (uint32_t)value.n;
    return v;
}

struct json *json_new_arr(struct arena *a)
{
    return make(a, JSON_ARR);
}

struct json *json_new_obj(struct arena *a)
{
    return make(a, JSON_OBJ);
}

struct json *json_copy(struct arena *a, const struct json *v)
{
    if (!v)
        return NULL;
    struct json *copy = arena_new(a, struct json);
    *copy = *v;
    copy->cap = v->n;
    if (v->type == JSON_STR) {
        copy->text = arena_str(a, (str){ v->text, v->n }).p;
    } else if (v->type == JSON_ARR) {
        copy->items = arena_array(a, v->n, sizeof(*copy->items));
        for (uint32_t i = 0; i < v->n; i++)
            copy->items[i] = json_copy(a, v->items[i]);
    } else if (v->type == JSON_OBJ) {
        copy->members = arena_array(a, v->n, sizeof(*copy->members));
        for (uint32_t i = 0; i < v->n; i++) {
            copy->members[i].key = arena_str(a, v->members[i].key);
            copy->members[i].value = json_copy(a, v->members[i].value);
        }
    }
    return copy;
}

/* Room for one more entry. The old array stays in the arena: trees are short-lived. */
static void *roomier(struct arena *a, struct json *v, void *entries, size_t bytes)
{
    if (v->n < v->cap)
        return entries;
    assert(v->cap < UINT32_MAX / 2);
    v->cap = v->cap ? v->cap * 2 : 4;
    void *larger = arena_array(a, v->cap, bytes);
    if (v->n)
        memcpy(larger, entries, v->n * bytes);
    return larger;
}

static struct json_member *find(const struct json *obj, str key)
{
    json_each(m, obj)
        if (str_eq(m->key, key))
            return m;
    return NULL;
}

void json_set(struct arena *a, struct json *obj, str key, struct json *value)
{
    assert(json_is(obj, JSON_OBJ));
    struct json_member *m = find(obj, key);
    if (m) {
        m->value = value;
        return;
    }
    json_append(a, obj, key, value);
}

void json_append(struct arena *a, struct json *obj, str key, struct json *value)
{
    assert(json_is(obj, JSON_OBJ));
    obj->members = roomier(a, obj, obj->members, sizeof(*obj->members));
    obj->members[obj->n++] = (struct json_member){ arena_str(a, key), value };
}

bool json_del(struct json *obj, str key)
{
    struct json_member *m = find(obj, key);
    if (!m)
        return false;
    size_t after = (size_t)(obj->members + obj->n - m) - 1;
    memmove(m, m + 1, after * sizeof(*m));
    obj->n--;
    return true;
}

void json_push(struct arena *a, struct json *arr, struct json *value)
{
    json_insert(a, arr, json_len(arr), value);
}

void json_insert(struct arena *a, struct json *arr, size_t at, struct json *value)
{
    assert(json_is(arr, JSON_ARR) && at <= arr->n);
    arr->items = roomier(a, arr, arr->items, sizeof(struct json *));
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
    struct json_member *m = find(obj, key);
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

static size_t weigh(const struct json *v, size_t most, size_t levels)
{
    if (levels == 0)
        return most + 1;
    size_t bytes = sizeof(*v) + (v->type == JSON_STR ? v->n : 0);
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n && bytes <= most; i++)
        bytes += sizeof(v) + weigh(v->items[i], most - bytes, levels - 1);
    for (uint32_t i = 0; v->type == JSON_OBJ && i < v->n && bytes <= most; i++)
        bytes += sizeof(*v->members) + v->members[i].key.n +
                 weigh(v->members[i].value, most - bytes, levels - 1);
    return bytes;
}

size_t json_weight(const struct json *v, size_t most)
{
    return v ? weigh(v, most, JSON_DEPTH_MAX + 1) : 0;
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
        /* the same place is the common case and spares the search */
        const struct json_member *m = str_eq(a->members[i].key, b->members[i].key)
                                          ? &b->members[i]
                                          : find(b, a->members[i].key);
        if (!m || !json_eq(a->members[i].value, m->value))
            return false;
    }
    return true;
}

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
