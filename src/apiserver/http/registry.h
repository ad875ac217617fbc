/* Which resources are served: the built-in kinds, and those of established definitions.
 *
 * A definition's kinds live in one counted set, because a watch may outlive the definition it came from;
 * whoever keeps a kind beyond the call keeps its set. */
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
    int64_t rev;        /* when this spec came: older objects are read anew by today's schema */
    bool terminating;   /* nothing may be created */
    struct kinds_list kinds;
};

struct registry {
    struct map sets;              /* definition name to struct kind_set */
    VEC(const struct kind *) all; /* every kind served, rebuilt on change */
    struct map by_path;           /* "group/version/plural" to kind */
    struct arena keys;            /* of by_path */
};

void registry_init(struct registry *r);
void registry_done(struct registry *r);

/* NULL: not served. `ret_set` gets the (borrowed) set of a custom kind, or NULL. */
const struct kind *registry_find(const struct registry *r, str group, str version, str plural,
                                 struct kind_set **ret_set);
/* The kind that objects under a key are stored as. */
const struct kind *registry_of_key(const struct registry *r, str key, struct kind_set **ret_set);
bool registry_has_group(const struct registry *r, str group);
/* A built-in group: what it lacks is a Status, what other groups lack is a page. */
bool registry_builtin_group(str group);

void registry_put(struct registry *r, struct kind_set *set); /* takes the reference */
void registry_drop(struct registry *r, str name);
struct kind_set *registry_set(const struct registry *r, str name);

struct kind_set *kind_set_new(const struct json *crd);
struct kind_set *kind_set_ref(struct kind_set *s);
void kind_set_unref(struct kind_set *s);

/* Where objects of a kind are kept: key_make() with the group and resource of its storage version. */
str kind_key(struct arena *a, const struct kind *k, str ns, str name);
str kind_prefix(struct arena *a, const struct kind *k, str ns); /* ns "": all namespaces */

#endif
