/* Merge patch, its inverse and its composition: see merge.h. All return new trees that share nothing with their
 * input, because callers go on to modify the result. */
#include "merge.h"

/* A copy without members that are null, at any depth. */
static struct json *without_nulls(struct arena *a, const struct json *v)
{
    if (v->type != JSON_OBJ && v->type != JSON_ARR)
        return json_copy(a, v);
    struct json *copy = v->type == JSON_OBJ ? json_new_obj(a) : json_new_arr(a);
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n; i++)
        json_push(a, copy, without_nulls(a, v->items[i]));
    json_each(m, v)
        if (m->value->type != JSON_NULL)
            json_append(a, copy, m->key, without_nulls(a, m->value));
    return copy;
}

/* Merges into `target`, which is modified. */
static struct json *merge_into(struct arena *a, struct json *target, const struct json *patch)
{
    if (!json_is(patch, JSON_OBJ) || !json_is(target, JSON_OBJ))
        return without_nulls(a, patch);
    json_each(m, patch) {
        struct json_member *at = json_find(target, m->key);
        if (m->value->type != JSON_NULL)
            json_set(a, target, m->key, merge_into(a, at ? at->value : NULL, m->value));
        else if (at)
            at->value = NULL;
    }
    json_sweep(target);
    return target;
}

struct json *merge_patch(struct arena *a, const struct json *target, const struct json *patch)
{
    return merge_into(a, json_copy(a, target), patch);
}

/* Like json_get_str(), but starts where the last key was found: two trees of which one was made
 * from the other have their members in the same order, and a search from the beginning would be
 * quadratic. */
static const struct json *find_near(const struct json *obj, str key, uint32_t *at)
{
    for (uint32_t i = 0; i < obj->n; i++) {
        uint32_t here = (*at + i) % obj->n;
        if (!str_eq(obj->members[here].key, key))
            continue;
        *at = here + 1;
        return obj->members[here].value;
    }
    return NULL;
}

/* Removed members become null; objects are compared recursively; anything else is replaced. */
struct json *merge_diff(struct arena *a, const struct json *from, const struct json *to)
{
    if (json_eq(from, to))
        return NULL;
    if (!json_is(from, JSON_OBJ) || !json_is(to, JSON_OBJ))
        return json_copy(a, to);
    struct json *patch = json_new_obj(a);
    uint32_t in_to = 0, in_from = 0;
    json_each(m, from)
        if (!find_near(to, m->key, &in_to))
            json_append(a, patch, m->key, json_new_null(a));
    json_each(m, to) {
        const struct json *was = find_near(from, m->key, &in_from);
        struct json *change = merge_diff(a, was, m->value);
        if (change && m->value->type != JSON_NULL)
            json_append(a, patch, m->key, change);
    }
    return patch->n ? patch : NULL;
}

/* Nulls stay: they are what removes a member of the target. */
static struct json *compose_into(struct arena *a, struct json *first, const struct json *second)
{
    if (!json_is(second, JSON_OBJ))
        return json_copy(a, second);
    if (!json_is(first, JSON_OBJ))
        return NULL;
    json_each(m, second) {
        struct json_member *at = json_find(first, m->key);
        struct json *both = at ? compose_into(a, at->value, m->value) : json_copy(a, m->value);
        if (!both)
            return NULL;
        json_set(a, first, m->key, both);
    }
    return first;
}

struct json *merge_compose(struct arena *a, const struct json *first, const struct json *second)
{
    return compose_into(a, json_copy(a, first), second);
}
