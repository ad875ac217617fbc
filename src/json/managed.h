/* metadata.managedFields as a list of managers with their sets. Used by apply.c only.
 *
 * A manager is known by name, operation, subresource and, for updates, version. Lists are short (a
 * dozen), so they are searched. */
#ifndef FLYBALL_MANAGED_H
#define FLYBALL_MANAGED_H

#include "fieldset.h"

struct manager {
    str name, version, subresource;
    bool applied;     /* Apply, else Update */
    const char *time; /* RFC 3339; NULL: none */
    struct fieldset set;
};

struct managed {
    struct manager *at;
    size_t n, cap;
};

enum { MANAGED_UPDATERS_MAX = 10 };

/* `entries` may be NULL. -EINVAL when an entry is malformed. */
int managed_parse(struct arena *a, const struct json *entries, struct managed *ret, err_t *e);
struct json *managed_print(struct arena *a, struct managed *m); /* sorts; NULL when empty */

struct manager *managed_find(struct managed *m, const struct manager *like); /* NULL: none */
/* The one like that, made where missing. Valid until the next is made. */
struct manager *managed_make(struct arena *a, struct managed *m, const struct manager *like);
void managed_drop_empty(struct managed *m);

/* Joins the oldest updaters of a version under one name until there are few enough. */
void managed_cap(struct arena *a, struct managed *m);

/* "alice" / "bob" with subresource "scale" using apps/v1 */
str managed_describe(struct arena *a, const struct manager *m);

/* The order in which conflicts are told: by name, operation, version, subresource. */
int managed_cmp(const void *a, const void *b);

#endif
