/* The watch of definitions: see kinds.h.
 *
 * Only metadata is requested (PartialObjectMetadata): the schemas of a cluster's definitions are tens of megabytes, their
 * names some kilobytes. A new definition is not served at once. Its status changes when it is, which is another event,
 * hence every_update; what remains is the moment until the server's own cache has it, see pause_announced(). */
#include "kinds.h"

struct kinds {
    struct kinds_options o;
    struct cache *names;
    struct listwatch *watch;
};

static const struct fields names_kept = { sizeof(struct record), NULL, 0 };
static const struct cache_spec names_spec = { .resource = &resource_crds,
                                              .need = CACHE_IF_ALLOWED,
                                              .keep = &names_kept,
                                              .every_update = true,
                                              .metadata_only = true };

static void on_definition(void *context, const struct record *old, const struct record *now)
{
    const struct kinds *k = context;
    (void)old;
    if (now)
        k->o.on_change(k->o.context, now->name);
}

struct kinds *kube_kinds_new(const struct kinds_options *options)
{
    struct kinds *k = mem_zero(1, sizeof(*k));
    k->o = *options;
    if (cache_new(k->o.projector, &names_spec, &k->names, NULL) < 0)
        return k; /* not watched */
    cache_handle(k->names, on_definition, k);
    k->watch = listwatch_start(&(struct listwatch_options){
        .kube = k->o.kube, .cache = k->names, .seed = k->o.seed, .total_max = k->o.total_max });
    return k;
}

void kube_kinds_free(struct kinds *k)
{
    if (!k)
        return;
    listwatch_stop(k->watch);
    cache_free(k->names);
    free(k);
}

bool kube_kinds_is_watched(const struct kinds *k)
{
    return k->watch && cache_synced(k->names) && !cache_absent(k->names);
}

bool kube_kinds_defines(str name, const struct resource *r)
{
    str plural = str_c(r->plural);
    return str_starts(name, plural) && name.n > plural.n && name.p[plural.n] == '.' &&
           str_eqc(str_from(name, plural.n + 1), r->group);
}
