/* metadata.managedFields: who set which field. Thin over json/apply: this gives it the shapes of kinds and
 * the names of managers. */
#ifndef FLYBALL_MANAGED_H
#define FLYBALL_MANAGED_H

#include "call.h"

/* After a create (old NULL) or an update by other means than apply: the manager owns what changed. */
void managed_update(struct call *c, const struct write_options *o, const struct json *old,
                    struct json *object);

/* The same for what the server does by itself. */
struct managed_change {
    str manager;
    enum kind_sub sub; /* KIND_MAIN or KIND_STATUS */
    const struct json *old;
    struct json *object;
};
void managed_by(struct server *s, struct arena *a, const struct kind *k,
                const struct managed_change *m);

/* Server-side apply of `config` on `live` (NULL: nothing there yet). NULL: answered (409, 500). */
struct json *managed_apply(struct call *c, const struct write_options *o, const struct json *live,
                           const struct json *config);

#endif
