/* See grants.h.
 *
 * A ReferenceGrant is served as v1beta1, since Gateway API 1.5 also as v1: the same objects twice. Only one
 * version is used, v1 where it is served. The cache of a version that is no longer served keeps its last
 * state, and with it grants that were deleted since. */
#include "grants.h"

const struct resource resource_grants = { "gateway.networking.k8s.io", "v1", "referencegrants",
                                          "ReferenceGrant", true };
const struct resource resource_grants_beta = { "gateway.networking.k8s.io", "v1beta1",
                                               "referencegrants", "ReferenceGrant", true };

enum { BY_NAMESPACE };

static void count_change(void *context, const struct record *old, const struct record *now)
{
    struct grants *g = context;
    (void)old;
    (void)now;
    g->changes++;
}

uint64_t grants_epoch(const struct grants *g)
{
    bool beta = g->grants && cache_absent(g->grants); /* which of the two versions is used */
    return 2 + g->changes * 2 + beta;
}

int grants_start(struct grants *g, struct manager *m, err_t *e)
{
    const struct cache_spec homes = { .resource = &resource_namespaces,
                                      .need = CACHE_IF_ALLOWED,
                                      .keep = &grant_home_fields };
    struct cache_spec grants = { .resource = &resource_grants,
                                 .need = CACHE_IF_ALLOWED,
                                 .keep = &grant_fields,
                                 .indexes = { offsetof(struct record, ns) } };
    if (manager_watch_namespace(m).n)
        return 0;
    int r = manager_cache(m, &homes, &g->homes, e);
    r = r < 0 ? r : manager_cache(m, &grants, &g->grants, e);
    grants.resource = &resource_grants_beta;
    r = r < 0 ? r : manager_cache(m, &grants, &g->beta, e);
    if (r < 0)
        return r;
    cache_handle(g->homes, count_change, g);
    cache_handle(g->grants, count_change, g);
    cache_handle(g->beta, count_change, g);
    return 0;
}

void grants_watch(const struct grants *g, struct controller *c, controller_map_fn *home_changed,
                  controller_map_fn *grant_changed)
{
    if (!g->homes)
        return;
    controller_watch(c, g->homes, home_changed);
    controller_watch(c, g->grants, grant_changed);
    controller_watch(c, g->beta, grant_changed);
}

bool grants_permit(const struct grants *g, const struct grant_reference *ref, str object_allow)
{
    if (str_eq(ref->from_ns, ref->to_ns))
        return true;
    if (!g->homes)
        return false;
    const struct grant_home_record *home = cache_get(g->homes, S(""), ref->to_ns);
    if (grant_list_has(object_allow, ref->from_ns) ||
        (home && grant_list_has(home->allow, ref->from_ns)))
        return true;
    const struct grant_record *grant;
    cache_each_in(grant, cache_absent(g->grants) ? g->beta : g->grants, BY_NAMESPACE, ref->to_ns)
        if (grant_permits(grant, ref))
            return true;
    return false;
}
