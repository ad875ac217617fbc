/* Strategic merge patch, maps and directives: see strategic.h. Lists are in strategic_list.c.
 *
 * A patch is an object with two kinds of members: values, which merge as the shape of the field
 * defines, and directives (keys with $), which change how. For every map of the patch, in this
 * order:
 *
 *     $patch                     replace or delete the whole map, and stop
 *     $retainKeys                remove the members of the object that are not listed
 *     $setElementOrder/x         merge list x with the x of the patch, then sort
 *     $deleteFromPrimitiveList/x remove elements from list x
 *     x                          merge, recursively for maps
 *
 * The object is copied once and then modified in place. The patch is only read: where Kubernetes
 * deletes a member from the patch once it is handled, this code skips it (was_ordered). Deleted
 * members of the object become NULL and are removed in one sweep at the end, so that deleting many
 * takes linear time.
 *
 * The error texts are quoted: kube-apiserver; clients see them. */
#include "strategic_list.h"

#include "../base/map.h"

static const str set_order = STR_INIT("$setElementOrder");
static const str delete_from = STR_INIT("$deleteFromPrimitiveList");

static bool is_directive(str key)
{
    return str_starts(key, set_order) || str_starts(key, delete_from) ||
           str_eq(key, S("$retainKeys")) || str_eq(key, S("$patch"));
}

/* A copy without directives and null members. `strict`: also without values that carry "$patch". */
static struct json *strip_directives(struct arena *a, const struct json *v, bool strict)
{
    if (strict && json_get(v, "$patch"))
        return NULL;
    if (v->type != JSON_OBJ && v->type != JSON_ARR)
        return json_copy(a, v);
    struct json *copy = v->type == JSON_OBJ ? json_new_obj(a) : json_new_arr(a), *kept;
    for (uint32_t i = 0; v->type == JSON_ARR && i < v->n; i++)
        if ((kept = strip_directives(a, v->items[i], strict)))
            json_push(a, copy, kept);
    json_each(m, v)
        if (m->value->type != JSON_NULL && !is_directive(m->key) &&
            (kept = strip_directives(a, m->value, strict)))
            json_append(a, copy, m->key, kept);
    return copy;
}

/* A copy without null members and without values that carry a directive; NULL: the value itself
 * does. */
static struct json *strategic_clean(struct arena *a, const struct json *v)
{
    return strip_directives(a, v, true);
}

struct json *strategic_as_is(struct arena *a, const struct json *v)
{
    return strip_directives(a, v, false);
}

/* The field name after "<directive>/"; false if there is none. */
static bool parse_directive(str key, str directive, str *ret)
{
    if (key.n <= directive.n + 1 || key.p[directive.n] != '/')
        return false;
    *ret = str_from(key, directive.n + 1);
    return true;
}

/* "$patch" in a map: the whole map is replaced, or emptied. */
static struct json *map_directive(struct strategic *w, const struct json *directive,
                                  const struct json *patch)
{
    if (str_eq(json_text(directive), S("delete")))
        return json_new_obj(w->arena);
    if (!str_eq(json_text(directive), S("replace"))) {
        err_set(w->e, EBADMSG, "unknown patch type: %s in map: %s, expected replace or delete",
                json_to_str(w->arena, directive).p, json_to_str(w->arena, patch).p);
        return NULL;
    }
    return strategic_as_is(w->arena, patch);
}

/* "$retainKeys": every member of the patch must be listed; others are removed from the object. */
static int retain_keys(struct strategic *w, struct json *object, const struct json *patch)
{
    const struct json *keys = json_get(patch, "$retainKeys");
    if (!keys)
        return 0;
    if (keys->type != JSON_ARR)
        return err_set(w->e, EINVAL, "invalid patch format of retainKeys: it must be a list");
    auto_map struct map listed = { 0 };
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i]->type == JSON_STR)
            map_put(&listed, json_text(keys->items[i]), keys->items[i]);
    json_each(m, patch)
        if (m->value->type != JSON_NULL && !is_directive(m->key) && !map_get(&listed, m->key))
            return err_set(w->e, EINVAL,
                           "invalid patch format of retainKeys: it does not list \"" STR_FMT
                           "\", which the patch sets",
                           STR_ARG(m->key));
    json_each(m, object)
        if (!map_get(&listed, m->key))
            m->value = NULL;
    json_sweep(object);
    return 0;
}

static void delete_member(struct json *object, str name) /* until the object is swept */
{
    struct json_member *m = json_find(object, name);
    if (m)
        m->value = NULL;
}

static struct strategic_field field_at(const struct shape *shape, str name)
{
    const struct shape_field *f = shape_field(shape, name);
    const struct shape *member = shape_member(shape, name);
    struct strategic_field field = { .name = name, .shape = member ? member : &shape_any };
    field.element = field.shape->element ? field.shape->element : &shape_any;
    if (f) {
        field.merges = f->patch & SHAPE_PATCH_MERGE;
        field.replaces = f->patch & SHAPE_PATCH_REPLACE;
        field.key = f->patch_key;
    }
    return field;
}

static int expect_list(struct strategic *w, str name, const struct json *v)
{
    if (!v || v->type == JSON_ARR)
        return 0;
    return err_set(w->e, EBADMSG,
                   "\"" STR_FMT "\" is ordered by the patch and must be a list, not %s",
                   STR_ARG(name), json_type_name(v));
}

/* "$setElementOrder/x", together with the patch's "x". */
static int ordered_list(struct strategic *w, const struct shape *shape, struct json *object,
                        const struct json *patch, const struct json_member *order)
{
    str name;
    if (!parse_directive(order->key, set_order, &name))
        return err_set(w->e, EINVAL,
                       "invalid patch format of setElementOrder list: \"" STR_FMT
                       "\" names no field, expected $setElementOrder/<field>",
                       STR_ARG(order->key));
    struct strategic_field field = field_at(shape, name);
    struct json *live = json_get_str(object, name), *merged = live;
    const struct json *change = json_get_str(patch, name);
    int result = expect_list(w, order->key, order->value);
    if (result == 0)
        result = expect_list(w, name, live);
    if (result == 0)
        result = expect_list(w, name, change);
    if (result == 0 && change)
        result = strategic_check_order(w, &field, change, order->value);
    if (result < 0 || (!live && !change))
        return result;
    if (json_len(live) + json_len(change) == 0)
        return err_set(w->e, EBADMSG, "no elements in any of the given slices for " STR_FMT,
                       STR_ARG(name));
    const struct json *server = strategic_server_order(w, &field, live, change);
    if (!server)
        return -w->e->code;
    if (!live)
        merged = strategic_clean(w->arena, change);
    else if (change && !field.merges)
        merged = strategic_as_is(w->arena, change);
    else if (change && !(merged = strategic_merge_list(w, &field, live, change)))
        return -w->e->code;
    merged = strategic_arrange(w, &field, merged, order->value, server);
    if (!merged)
        return -w->e->code;
    json_set(w->arena, object, name, merged);
    return 0;
}

static bool was_ordered(struct strategic *w, const struct json *patch, str name)
{
    str key = arena_printf(w->arena, STR_FMT "/" STR_FMT, STR_ARG(set_order), STR_ARG(name));
    return json_get_str(patch, key) != NULL;
}

static bool same_class(const struct json *a, const struct json *b)
{
    bool list = a->type == JSON_ARR, map = a->type == JSON_OBJ;
    return list == (b->type == JSON_ARR) && map == (b->type == JSON_OBJ);
}

/* Merges a member that both have, of the same class (map, list or scalar). NULL: an error. */
static struct json *merge_value(struct strategic *w, const struct strategic_field *field,
                                struct json *live, const struct json *change)
{
    if (live->type == JSON_OBJ && !field->replaces)
        return strategic_merge_map(w, field->shape, live, change);
    if (live->type == JSON_ARR && field->merges)
        return strategic_merge_list(w, field, live, change);
    return strategic_as_is(w->arena, change);
}

/* Applies one member of the patch that is not an ordering directive. */
static int merge_member(struct strategic *w, const struct shape *shape, struct json *object,
                        const struct json_member *m)
{
    str name = m->key;
    bool deleting = str_starts(m->key, delete_from);
    if (deleting && !parse_directive(m->key, delete_from, &name))
        return err_set(w->e, EINVAL,
                       "invalid patch format of primitive list: \"" STR_FMT
                       "\" names no field, expected $deleteFromPrimitiveList/<field>",
                       STR_ARG(m->key));
    if (m->value->type == JSON_NULL) {
        delete_member(object, name);
        return 0;
    }
    struct json *live = json_get_str(object, name), *merged;
    struct strategic_field field = field_at(shape, name);
    if (deleting) {
        if (!json_is(live, JSON_ARR) || m->value->type != JSON_ARR)
            return 0;
        merged = strategic_delete(w, live, m->value);
    } else if (live && same_class(live, m->value)) {
        merged = merge_value(w, &field, live, m->value);
        if (!merged)
            return -w->e->code;
    } else if (!(merged = strategic_clean(w->arena, m->value))) {
        delete_member(object, name);
        return 0;
    }
    json_set(w->arena, object, name, merged);
    return 0;
}

/* Ordered lists first: their members in the patch are then skipped. */
struct json *strategic_merge_map(struct strategic *w, const struct shape *shape,
                                 struct json *object, const struct json *patch)
{
    const struct json *directive = json_get(patch, "$patch");
    if (directive)
        return map_directive(w, directive, patch);
    int result = retain_keys(w, object, patch);
    for (uint32_t i = 0; i < patch->n && result == 0; i++)
        if (str_starts(patch->members[i].key, set_order))
            result = ordered_list(w, shape, object, patch, &patch->members[i]);
    for (uint32_t i = 0; i < patch->n && result == 0; i++) {
        const struct json_member *m = &patch->members[i];
        if (!str_starts(m->key, set_order) && !str_eq(m->key, S("$retainKeys")) &&
            !was_ordered(w, patch, m->key))
            result = merge_member(w, shape, object, m);
    }
    json_sweep(object);
    return result == 0 ? object : NULL;
}

int strategic_patch(struct arena *a, const struct shape *shape, struct json **object,
                    const struct json *patch, err_t *e)
{
    if (!json_is(patch, JSON_OBJ))
        return err_set(e, EINVAL, "a strategic merge patch is an object, not %s",
                       json_type_name(patch));
    err_t scratch;
    struct strategic w = { .arena = a, .e = e ? e : &scratch };
    struct json *copy = json_is(*object, JSON_OBJ) ? json_copy(a, *object) : json_new_obj(a);
    struct json *merged = strategic_merge_map(&w, shape, copy, patch);
    if (!merged)
        return -w.e->code;
    *object = merged;
    return 0;
}
