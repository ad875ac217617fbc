/* metadata.managedFields as a list of managers with their sets of fields. Used by apply.c only.
 *
 * A manager is identified by name, operation, subresource and, for updates, version. Lists are
 * short (a dozen), so they are searched linearly. */
#ifndef FLYBALL_MANAGED_FIELDS_H
#define FLYBALL_MANAGED_FIELDS_H

#include "fieldset.h"

struct field_manager {
    str name, version, subresource;
    bool applied;     /* operation Apply; false: Update */
    const char *time; /* RFC 3339; NULL: none */
    struct fieldset set;
};

struct managed_fields {
    struct field_manager *at;
    size_t n, cap;
};

enum { MANAGED_FIELDS_UPDATERS_MAX = 10 };

/* `entries` may be NULL. -EINVAL: an entry is malformed. */
int managed_fields_parse(struct arena *a, const struct json *entries, struct managed_fields *ret,
                         err_t *e);
struct json *managed_fields_print(struct arena *a,
                                  struct managed_fields *m); /* sorts; NULL: no entries */

struct field_manager *managed_fields_find(struct managed_fields *m,
                                          const struct field_manager *like); /* NULL: not found */
/* Finds or creates the entry of that identity. Valid until the next one is created. */
struct field_manager *managed_fields_make(struct arena *a, struct managed_fields *m,
                                          const struct field_manager *like);
void managed_fields_drop_empty(struct managed_fields *m);

/* Merges the oldest update entries of a version into one until MANAGED_FIELDS_UPDATERS_MAX are
 * left. */
void managed_fields_cap(struct arena *a, struct managed_fields *m);

/* "alice" / "bob" with subresource "scale" using apps/v1 */
str managed_fields_describe(struct arena *a, const struct field_manager *m);

/* The order in which conflicts are reported: by name, operation, version, subresource. */
int managed_fields_cmp(const void *a, const void *b);

#endif
