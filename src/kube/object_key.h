/* Objects of a feature by namespace and name: the key of a map is "namespace/name". The entry owns its key, which the map
 * borrows. */
#ifndef FLYBALL_KUBE_OBJECT_KEY_H
#define FLYBALL_KUBE_OBJECT_KEY_H

#include "../base/map.h"

/* The entry of this object; NULL: none. Allocates nothing for a valid name: it may run for every event. */
void *object_key_find(const struct map *m, str ns, str name);
/* "namespace/name", to be freed by the caller; `*ret_ns` and `*ret_name` are parts of it. */
char *object_key_new(str ns, str name, str *ret_ns, str *ret_name);

#endif
