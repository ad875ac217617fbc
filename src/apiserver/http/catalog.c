/* The index of served kinds; see catalog.h.
 *
 * The index (all, by_path) is rebuilt from the built-in kinds and all sets whenever a definition changes. That
 * takes a few microseconds per kind and needs no bookkeeping for removals. A lookup is one hash of
 * "group/version/plural". */
#include "catalog.h"

#include "../store/object.h"

#include <stdio.h>

static void index_kind(struct catalog *r, const struct kind *k)
{
    vec_push(&r->all, k);
    str path = arena_printf(&r->keys, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(k->group),
                            STR_ARG(k->version), STR_ARG(k->plural));
    map_put(&r->by_path, path, (void *)(uintptr_t)k);
}

static void rebuild_index(struct catalog *r)
{
    vec_clear(&r->all);
    map_done(&r->by_path);
    arena_reset(&r->keys, (struct arena_mark){ 0 });
    size_t n;
    const struct kind *const *builtin = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++)
        index_kind(r, builtin[i]);
    for (struct map_slot *slot = NULL; (slot = map_next(&r->sets, slot));) {
        const struct catalog_set *set = slot->value;
        for (size_t i = 0; i < set->kinds.n; i++)
            index_kind(r, set->kinds.at[i]);
    }
}

void catalog_init(struct catalog *r)
{
    *r = (struct catalog){ 0 };
    rebuild_index(r);
}

void catalog_done(struct catalog *r)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&r->sets, slot));)
        catalog_set_unref(slot->value);
    map_done(&r->sets);
    map_done(&r->by_path);
    vec_done(&r->all);
    arena_done(&r->keys);
}

/* The set of a custom kind, by the name of its definition ("plural.group"); NULL for built-in kinds. */
static struct catalog_set *find_set(const struct catalog *r, const struct kind *k)
{
    if (!k || !k->custom)
        return NULL;
    char name[600];
    int n =
        snprintf(name, sizeof(name), STR_FMT "." STR_FMT, STR_ARG(k->plural), STR_ARG(k->group));
    return n > 0 && (size_t)n < sizeof(name) ? map_get(&r->sets, (str){ name, (size_t)n }) : NULL;
}

/* The path is assembled on the stack; names that do not fit cannot be served. */
const struct kind *catalog_find(const struct catalog *r, str group, str version, str plural,
                                struct catalog_set **ret_set)
{
    char path[800];
    const str parts[] = { group, S("/"), version, S("/"), plural };
    size_t n = 0;
    for (size_t i = 0; i < countof(parts); n += parts[i++].n) {
        if (parts[i].n > sizeof(path) - n)
            return NULL;
        if (parts[i].n)
            memcpy(path + n, parts[i].p, parts[i].n);
    }
    const struct kind *k = map_get(&r->by_path, (str){ path, n });
    *ret_set = find_set(r, k);
    return k;
}

/* Keys have no version, so any version of the resource leads to its storage version. */
const struct kind *catalog_find_by_key(const struct catalog *r, str key,
                                       struct catalog_set **ret_set)
{
    struct store_key_parts parts = store_key_split(key);
    for (size_t i = 0; i < r->all.n; i++) {
        const struct kind *k = r->all.at[i];
        if (str_eq(k->storage->group, parts.group) && str_eq(k->storage->plural, parts.resource)) {
            *ret_set = find_set(r, k);
            return k->storage;
        }
    }
    return NULL;
}

bool catalog_has_group(const struct catalog *r, str group)
{
    for (size_t i = 0; i < r->all.n; i++)
        if (str_eq(r->all.at[i]->group, group))
            return true;
    return false;
}

bool catalog_is_builtin_group(str group)
{
    size_t n;
    const struct kind *const *builtin = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++)
        if (str_eq(builtin[i]->group, group))
            return true;
    return false;
}

struct catalog_set *catalog_find_set(const struct catalog *r, str name)
{
    return map_get(&r->sets, name);
}

void catalog_put(struct catalog *r, struct catalog_set *set)
{
    catalog_set_unref(map_put(&r->sets, set->name, set));
    rebuild_index(r);
}

void catalog_remove(struct catalog *r, str name)
{
    struct catalog_set *set = map_del(&r->sets, name);
    if (!set)
        return;
    rebuild_index(r);
    catalog_set_unref(set);
}

struct catalog_set *catalog_set_new(const struct json *crd)
{
    struct catalog_set *set = mem_zero(1, sizeof(*set));
    set->refs = 1;
    set->name = arena_str(&set->arena, json_text(json_at(crd, "metadata", "name", NULL)));
    set->generation = json_int(json_at(crd, "metadata", "generation", NULL), 0);
    kinds_from_crd(&set->arena, crd, &set->kinds);
    return set;
}

struct catalog_set *catalog_set_ref(struct catalog_set *s)
{
    if (s)
        s->refs++;
    return s;
}

void catalog_set_unref(struct catalog_set *s)
{
    if (!s || --s->refs)
        return;
    arena_done(&s->arena);
    free(s);
}

/* Keys use the group and plural of the storage version: all versions of an object are one object. */
str catalog_key(struct arena *a, const struct kind *k, str ns, str name)
{
    return store_key_make(a, (struct store_key_parts){ k->storage->group, k->storage->plural,
                                                       k->namespaced ? ns : S(""), name });
}

str catalog_prefix(struct arena *a, const struct kind *k, str ns)
{
    str all = arena_printf(a, STR_FMT "/" STR_FMT "/", STR_ARG(k->storage->group),
                           STR_ARG(k->storage->plural));
    return ns.n ? arena_printf(a, STR_FMT STR_FMT "/", STR_ARG(all), STR_ARG(ns)) : all;
}
