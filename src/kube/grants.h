/* The permissions of grant.h, kept up to date by watches: namespaces with their annotation, and
 * ReferenceGrants where they are served. A decision makes no request.
 *
 *     grants_start(&s->grants, m, e);
 *     grants_watch(&s->grants, controller, home_changed, grant_changed);
 *     ...
 *     if (!grants_permit(&s->grants, &ref, hpa->allow)) refuse(grant_refusal(a, &ref));
 *
 * If namespaces or grants are forbidden to us (403), they permit nothing. An operator with --watch-namespace
 * sees one namespace only and permits no reference to another. */
#ifndef FLYBALL_KUBE_GRANTS_H
#define FLYBALL_KUBE_GRANTS_H

#include "grant.h"
#include "manager.h"

extern const struct resource resource_grants, resource_grants_beta; /* referencegrants */

struct grants {
    struct cache *homes;         /* of struct grant_home_record; NULL: one namespace only */
    struct cache *grants, *beta; /* of struct grant_record: v1 and v1beta1; NULL likewise */
    uint64_t changes;            /* total number, of all three caches */
};

/* `g` must stay where it is; the caches are the manager's. */
int grants_start(struct grants *g, struct manager *m, err_t *e);
/* The maps see records of struct grant_home_record and struct grant_record; see grant_concerns(). */
void grants_watch(const struct grants *g, struct controller *c, controller_map_fn *home_changed,
                  controller_map_fn *grant_changed);

/* `object_allow` is the annotation of the target itself, "" when it has none or does not exist. */
bool grants_permit(const struct grants *g, const struct grant_reference *ref, str object_allow);

/* Changes whenever a namespace or grant does: while it is the same, so is every result of grants_permit() with
 * an empty `object_allow`. A tenant can have thousands of grants, and checking all of them takes milliseconds,
 * so callers cache results. Never 0. */
uint64_t grants_epoch(const struct grants *g);

#endif
