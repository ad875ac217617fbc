/* The kinds that the server serves: the built-in ones and those of established definitions.
 *
 * The kinds of a definition live in one reference-counted set, because a watch can outlive its definition.
 * Code that keeps a kind after the call must hold a reference to its set. */
#ifndef FLYBALL_CATALOG_H
#define FLYBALL_CATALOG_H

#include "../../base/map.h"
#include "../../base/vec.h"
#include "../kinds/kinds.h"

struct catalog_set {
    uint32_t refs;
    struct arena arena;
    str name;           /* of the definition: "widgets.example.com" */
    int64_t generation; /* of its spec */
    int64_t rev;        /* of this spec: objects with a lower one are read through the new schema */
    bool terminating;   /* the definition is being deleted: creates are refused */
    struct kinds_list kinds;
};

struct catalog {
    struct map sets;              /* definition name to struct catalog_set */
    VEC(const struct kind *) all; /* every kind served, rebuilt on change */
    struct map by_path;           /* "group/version/plural" to kind */
    struct arena keys;            /* owns the keys of by_path */
};

void catalog_init(struct catalog *r);
void catalog_done(struct catalog *r);

/* NULL: not served. `ret_set` receives the set of a custom kind (borrowed), else NULL. */
const struct kind *catalog_find(const struct catalog *r, str group, str version, str plural,
                                struct catalog_set **ret_set);
/* The kind in which the object with this key is stored. */
const struct kind *catalog_find_by_key(const struct catalog *r, str key,
                                       struct catalog_set **ret_set);
bool catalog_has_group(const struct catalog *r, str group);
/* Unknown resources of built-in groups are answered with a Status, those of other groups with plain text. */
bool catalog_is_builtin_group(str group);

void catalog_put(struct catalog *r, struct catalog_set *set); /* takes the reference */
void catalog_remove(struct catalog *r, str name);
struct catalog_set *catalog_find_set(const struct catalog *r, str name);

struct catalog_set *catalog_set_new(const struct json *crd);
struct catalog_set *catalog_set_ref(struct catalog_set *s);
void catalog_set_unref(struct catalog_set *s);

/* Keys in the store: store_key_make() with the group and resource of the kind's storage version. */
str catalog_key(struct arena *a, const struct kind *k, str ns, str name);
str catalog_prefix(struct arena *a, const struct kind *k, str ns); /* ns "": all namespaces */

#endif
