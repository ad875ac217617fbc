/* See saturation_dra.h.
 *
 *     ResourceSlices, ResourceClaims ─► watch ─► changed? ─► dra_count ─► devices per node (kept) ─► stock of every decision
 *     ResourceClaimTemplates ─────────► watch ─► devices that a replica needs
 *
 * Slices are large and change rarely, so they are parsed when one changed, not in every cycle. A cluster without the
 * API, or without permission, has no devices. */
#include "saturation_dra.h"

#include "../base/log.h"
#include "objects/dra_core.h"

struct slice_record {
    struct record meta;
    str node, driver, pool;
    int64_t generation, slices;
    str devices; /* JSON */
};

struct claim_record { /* a ResourceClaim, or its template */
    struct record meta;
    str devices; /* JSON: what it has, or what it asks for */
};

struct sat_dra {
    struct cache *slices, *claims, *templates;
    bool changed;
    struct arena arena; /* of the items */
    struct dra_item *items;
    size_t n;
};

#define AT(type, member) offsetof(struct type, member)

static const struct field slice_fields[] = {
    { "spec.nodeName", F_STR, AT(slice_record, node) },
    { "spec.driver", F_WORD, AT(slice_record, driver) },
    { "spec.pool.name", F_STR, AT(slice_record, pool) },
    { "spec.pool.generation", F_INT, AT(slice_record, generation) },
    { "spec.pool.resourceSliceCount", F_INT, AT(slice_record, slices) },
    { "spec.devices", F_RAW, AT(slice_record, devices) },
};
static const struct field claim_fields[] = {
    { "status.allocation.devices.results", F_RAW, AT(claim_record, devices) },
};
static const struct field template_fields[] = {
    { "spec.spec.devices.requests", F_RAW, AT(claim_record, devices) },
};
#define KEPT(name, type)                                                                           \
    static const struct fields name##_kept = { sizeof(struct type), name##_fields,                 \
                                               countof(name##_fields) }
KEPT(slice, slice_record);
KEPT(claim, claim_record);
KEPT(template, claim_record);
static const struct resource slice_resource = { "resource.k8s.io", "v1", "resourceslices",
                                                "ResourceSlice", false };
static const struct resource claim_resource = { "resource.k8s.io", "v1", "resourceclaims",
                                                "ResourceClaim", true };
static const struct resource template_resource = { "resource.k8s.io", "v1",
                                                   "resourceclaimtemplates",
                                                   "ResourceClaimTemplate", true };
static const struct cache_spec slice_cache = { .resource = &slice_resource,
                                               .need = CACHE_IF_ALLOWED,
                                               .keep = &slice_kept };
static const struct cache_spec claim_cache = { .resource = &claim_resource,
                                               .need = CACHE_IF_ALLOWED,
                                               .keep = &claim_kept };
static const struct cache_spec template_cache = { .resource = &template_resource,
                                                  .need = CACHE_IF_ALLOWED,
                                                  .keep = &template_kept };

static void on_change(void *context, const struct record *old, const struct record *now)
{
    struct saturation *s = context;
    (void)old;
    (void)now;
    s->dra->changed = true;
}

static void watch(struct saturation *s, const struct cache_spec *spec, struct cache **ret)
{
    err_t e;
    if (manager_cache(s->manager, spec, ret, &e) < 0)
        log_error("cannot open a cache", KV_C("resource", spec->resource->plural),
                  KV_C("error", e.text));
    else if (spec != &template_cache)
        cache_handle(*ret, on_change, s);
}

static const struct json *parse(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static void count_again(struct sat_dra *d)
{
    auto_arena struct arena a = { 0 };
    struct dra_slice *slices = arena_array(&a, cache_count(d->slices), sizeof(*slices));
    const struct json **claims = arena_array(&a, cache_count(d->claims), sizeof(struct json *));
    const struct slice_record *r;
    const struct claim_record *c;
    struct dra_item *items;
    size_t slice_n = 0, claim_n = 0;
    cache_each(r, d->slices)
        slices[slice_n++] = (struct dra_slice){ r->node,       r->driver, r->pool,
                                                r->generation, r->slices, parse(&a, r->devices) };
    cache_each(c, d->claims)
        claims[claim_n++] = parse(&a, c->devices);
    d->n = dra_count(&a, slices, slice_n, claims, claim_n, &items);
    arena_done(&d->arena);
    d->arena = (struct arena){ 0 };
    d->items = arena_array(&d->arena, d->n, sizeof(*d->items));
    for (size_t i = 0; i < d->n; i++)
        d->items[i] = (struct dra_item){ arena_str(&d->arena, items[i].node),
                                         arena_str(&d->arena, items[i].product), items[i].count,
                                         items[i].used };
}

void saturation_dra_learn(struct saturation *s)
{
    if (!s->o.dra)
        return;
    if (!s->dra) {
        s->dra = mem_zero(1, sizeof(*s->dra));
        watch(s, &slice_cache, &s->dra->slices);
        watch(s, &claim_cache, &s->dra->claims);
        watch(s, &template_cache, &s->dra->templates);
    }
    struct sat_dra *d = s->dra;
    if (!d->slices || !d->claims || !d->changed || !cache_synced(d->slices) ||
        !cache_synced(d->claims))
        return;
    d->changed = false;
    count_again(d);
}

/* A claim that pods share by its name is not of one replica. */
int64_t saturation_dra_claimed(const struct saturation *s, const struct workload_record *w)
{
    auto_arena struct arena a = { 0 };
    int64_t sum = 0;
    if (!s->dra || !s->dra->templates || !w->claims.n)
        return 0;
    const struct json *list = parse(&a, w->claims);
    for (size_t i = 0; i < json_len(list); i++) {
        str name = json_text(json_get(json_item(list, i), "resourceClaimTemplateName"));
        const struct claim_record *t = cache_get(s->dra->templates, w->meta.ns, name);
        if (t)
            sum += dra_count_requests(parse(&a, t->devices));
    }
    return sum;
}

struct stock saturation_dra_merge(struct gathering *g, struct stock stock,
                                  const struct stock_node *nodes, size_t node_n)
{
    const struct sat_dra *d = g->s->dra;
    return d ? dra_merge(g->a, stock, nodes, node_n, d->items, d->n) : stock;
}

void saturation_dra_done(struct saturation *s)
{
    if (s->dra)
        arena_done(&s->dra->arena);
    free(take(s->dra));
}
