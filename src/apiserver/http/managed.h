/* metadata.managedFields: which manager set which field. A thin layer over json/apply.h that supplies the
 * shapes of the kinds and the name of the manager. */
#ifndef FLYBALL_MANAGED_H
#define FLYBALL_MANAGED_H

#include "call.h"

/* After a create (old NULL) or an update other than apply: makes the manager own the fields that changed. */
void managed_update(struct call *c, const struct write_options *o, const struct json *old,
                    struct json *object);

/* The same for a write by a controller. */
struct managed_change {
    str manager;
    enum kind_sub sub; /* KIND_MAIN or KIND_STATUS */
    const struct json *old;
    struct json *object;
};
void managed_update_as(struct server *s, struct arena *a, const struct kind *k,
                       const struct managed_change *m);

/* Server-side apply of `config` to `live` (NULL: the object does not exist). NULL: answered (400, 409, 500). */
struct json *managed_apply(struct call *c, const struct write_options *o, const struct json *live,
                           const struct json *config);

#endif
