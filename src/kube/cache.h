/* What a watch keeps: packed records (json/project.h), found by namespace and name, and by indexes
 * that the feature declared.
 *
 *     static const struct cache_spec pods = {
 *         .resource = &resource_pods,
 *         .keep = FIELDS(struct pod, pod_fields),
 *         .indexes = { offsetof(struct pod, node) },                   // fields of type str
 *     };
 *     struct cache *cache = manager_cache(m, &pods, &e);
 *
 *     const struct pod *p = cache_get(cache, ns, name);
 *     cache_each_in(p, cache, 0, S("node-1")) use(p);                  // index 0: by node
 *
 * Read only while synced: before, cache_synced() is false and controllers are not started. Inside a
 * handler the cache already holds the new state. */
#ifndef FLYBALL_KUBE_CACHE_H
#define FLYBALL_KUBE_CACHE_H

#include "../json/project.h"
#include "resource.h"

enum { CACHE_INDEX_MAX = 4 };

/* `otherwise` is `struct record *` of the state before (NULL: added) and after (NULL: deleted). */
typedef void cache_handler_fn(void *context, const struct record *old, const struct record *now);

/* Must the kind be there? A required one that is not keeps the program from being ready. One that is not
 * required then reads as having no objects (cache_absent() tells), and is asked for again every 30 s. */
enum cache_need {
    CACHE_REQUIRED,
    CACHE_IF_KNOWN,   /* it may not be installed: 404 */
    CACHE_IF_ALLOWED, /* or we may not see it: 403 as well */
};

struct cache_spec {
    const struct resource *resource;
    enum cache_need need;
    const struct fields *keep;           /* FIELDS(struct, table): what a record holds */
    size_t indexes[CACHE_INDEX_MAX + 1]; /* offsets of str fields; 0 ends them */
    str ns;                              /* only this namespace; empty: all that we may watch */
    str label_selector, field_selector;
    /* An update that changes none of the declared fields is kept but not told to the handlers.
     * Set this to be told of all. */
    bool every_update;
};

struct cache;

int cache_new(struct projector *j, const struct cache_spec *spec, struct cache **ret, err_t *e);
void cache_free(struct cache *c);
const struct cache_spec *cache_spec(const struct cache *c);
struct projection *cache_projection(struct cache *c);

/* ---- reading. The pointers returned are to the feature's struct, whose first member is the record. */

const void *cache_get(const struct cache *c, str ns, str name); /* NULL: there is none */
size_t cache_count(const struct cache *c);
bool cache_synced(const struct cache *c);
bool cache_absent(const struct cache *c); /* the kind is not there, or not for us */

/* cache_each(p, cache): all, in no order. cache_each_in(p, cache, 0, value): those whose indexed
 * field number 0 is `value`, in no order. `p` is declared by the caller as a pointer to the struct.
 * The cache must not change meanwhile (it does not within a callback). */
const void *cache_next(const struct cache *c, size_t *at);
const void *cache_first_in(const struct cache *c, size_t index, str value);
const void *cache_next_in(const struct cache *c, size_t index, const void *record);
#define cache_each(p, cache) for (size_t p##_at = 0; ((p) = cache_next((cache), &p##_at));)
#define cache_each_in(p, cache, index, value)                                                      \
    for ((p) = cache_first_in((cache), (index), (value)); (p);                                     \
         (p) = cache_next_in((cache), (index), (p)))

/* ---- being told. A handler that is added late is told of everything that is there. */

void cache_handle(struct cache *c, cache_handler_fn *fn, void *context);

/* ---- filling (listwatch.h, and tests). Each takes over the reference. */

void cache_put(struct cache *c, struct record *r);
void cache_delete(struct cache *c, str ns, str name);
/* A new complete list: begin, put each, end. What was not put is deleted at the end; what is put
 * with the resourceVersion that is already there is no change. A list that is not ended changes
 * nothing but what was put. */
void cache_list_begin(struct cache *c);
void cache_list_end(struct cache *c);  /* the cache is synced from now on */
void cache_list_none(struct cache *c); /* the kind is not there: synced, and empty */
void cache_clear(struct cache *c);     /* a first list that cannot be: what came of it goes */

struct cache_sizes {
    size_t records, bytes; /* `bytes` without malloc's own overhead, with tables and indexes */
};
struct cache_sizes cache_sizes(const struct cache *c);

#endif
