/* Who permitted references across namespaces (grant.h), kept up to date by watches: namespaces with their
 * annotation, and ReferenceGrants where that kind is served. Nothing is fetched to decide.
 *
 *     grants_start(&s->grants, m, e);
 *     grants_watch(&s->grants, controller, home_changed, grant_changed);
 *     ...
 *     if (!grants_permit(&s->grants, &ref, hpa->allow)) refuse(grant_refusal(a, &ref));
 *
 * Where namespaces or grants may not be seen (403), they permit nothing. An operator with --watch-namespace sees
 * one namespace only and permits no reference across. */
#ifndef FLYBALL_KUBE_GRANTS_H
#define FLYBALL_KUBE_GRANTS_H

#include "grant.h"
#include "manager.h"

extern const struct resource resource_grants, resource_grants_beta; /* referencegrants */

struct grants {
    struct cache *homes;         /* of struct grant_home_record; NULL: one namespace only */
    struct cache *grants, *beta; /* of struct grant_record: v1 and v1beta1; NULL likewise */
    uint64_t changes;            /* so far, of all of them */
};

/* `g` must stay where it is; the caches are the manager's. */
int grants_start(struct grants *g, struct manager *m, err_t *e);
/* The maps see records of struct grant_home_record and struct grant_record; see grant_concerns(). */
void grants_watch(const struct grants *g, struct controller *c, controller_map_fn *home_changed,
                  controller_map_fn *grant_changed);

/* `object_allow` is the annotation of the target itself, "" when it has none or does not exist. */
bool grants_permit(const struct grants *g, const struct grant_reference *ref, str object_allow);

/* A number for all that namespaces and grants permit now: while it is the same, so is every answer of
 * grants_permit() with no `object_allow`. A tenant can have thousands of grants, and looking at all of them takes
 * milliseconds; so an answer is worth keeping. Never 0. */
uint64_t grants_epoch(const struct grants *g);

#endif
