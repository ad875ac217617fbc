/* Permission for references across namespaces. An object may refer to an object in another namespace, but
 * flyball acts on it with its own permissions; so the owner of the *target* decides. A reference is permitted if
 *
 *   - both are in the same namespace, or
 *   - the target itself, or its namespace, has the annotation GRANT_ANNOTATION with the namespace of the
 *     referrer in its list ("team-a, team-b"; "*" is every namespace), or
 *   - a ReferenceGrant of the Gateway API in the target's namespace names both ends.
 *
 * Everything else is denied: a list or a grant that cannot be read permits nothing. Pure; grants.h has the
 * watches. */
#ifndef FLYBALL_KUBE_GRANT_H
#define FLYBALL_KUBE_GRANT_H

#include "../base/arena.h"
#include "../json/project.h"

#define GRANT_ANNOTATION "flyball.io/allow-references-from"
#define GRANT_REFUSED "RefNotPermitted" /* the reason of a condition, as in the Gateway API */

/* "Objects of this kind in this namespace refer to that object." */
struct grant_reference {
    str from_group, from_kind, from_ns;
    str to_group, to_kind, to_ns, to_name;
};

/* ---- cached fields of a ReferenceGrant and of a namespace */

struct grant_from {
    str group, kind, ns;
};

struct grant_to {
    str group, kind, name;
    bool has_name; /* false: every object of the kind */
};

struct grant_record {
    struct record meta;
    LIST(struct grant_from) from;
    LIST(struct grant_to) to;
    bool deleting;
};

struct grant_home_record {
    struct record meta;
    str allow; /* the annotation */
};

extern const struct fields grant_fields, grant_home_fields;

/* ---- deciding */

/* Is the namespace in the annotation's list? Names are separated by commas; spaces around them are ignored. */
bool grant_list_has(str list, str ns);
/* Does this ReferenceGrant, which must be of the target's namespace, permit the reference? NULL permits nothing. */
bool grant_permits(const struct grant_record *grant, const struct grant_reference *ref);

/* Could this change permit or forbid the reference? NULL: did not or does not exist. */
bool grant_concerns(const struct grant_record *old, const struct grant_record *now,
                    const struct grant_reference *ref);
bool grant_home_concerns(const struct grant_home_record *old, const struct grant_home_record *now,
                         const struct grant_reference *ref);

/* One sentence: what is not permitted, and what the target's owner can do about it. It contains nothing about
 * the target but its name, so it does not reveal whether the target exists. */
str grant_refusal(struct arena *a, const struct grant_reference *ref);

#endif
