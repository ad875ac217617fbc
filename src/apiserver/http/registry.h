/* The kinds that the server serves: the built-in ones and those of established definitions.
 *
 * The kinds of a definition live in one reference-counted set, because a watch can outlive its definition.
 * Code that keeps a kind after the call must hold a reference to its set. */
#ifndef FLYBALL_REGISTRY_H
#define FLYBALL_REGISTRY_H

#include "../../base/map.h"
#include "../../base/vec.h"
#include "../kinds/kinds.h"

struct kind_set {
    uint32_t refs;
    struct arena arena;
    str name;           /* of the definition: "widgets.example.com" */
    int64_t generation; /* of its spec */
    int64_t rev;        /* of this spec: objects with a lower one are read through the new schema */
    bool terminating;   /* the definition is being deleted: creates are refused */
    struct kinds_list kinds;
};

struct registry {
    struct map sets;              /* definition name to struct kind_set */
    VEC(const struct kind *) all; /* every kind served, rebuilt on change */
    struct map by_path;           /* "group/version/plural" to kind */
    struct arena keys;            /* owns the keys of by_path */
};

void registry_init(struct registry *r);
void registry_done(struct registry *r);

/* NULL: not served. `ret_set` receives the set of a custom kind (borrowed), else NULL. */
const struct kind *registry_find(const struct registry *r, str group, str version, str plural,
                                 struct kind_set **ret_set);
/* The kind in which the object with this key is stored. */
const struct kind *registry_find_by_key(const struct registry *r, str key,
                                        struct kind_set **ret_set);
bool registry_has_group(const struct registry *r, str group);
/* Unknown resources of built-in groups are answered with a Status, those of other groups with plain text. */
bool registry_is_builtin_group(str group);

void registry_put(struct registry *r, struct kind_set *set); /* takes the reference */
void registry_remove(struct registry *r, str name);
struct kind_set *registry_set(const struct registry *r, str name);

struct kind_set *kind_set_new(const struct json *crd);
struct kind_set *kind_set_ref(struct kind_set *s);
void kind_set_unref(struct kind_set *s);

/* Keys in the store: key_make() with the group and resource of the kind's storage version. */
str registry_key(struct arena *a, const struct kind *k, str ns, str name);
str registry_prefix(struct arena *a, const struct kind *k, str ns); /* ns "": all namespaces */

#endif
