/* The cache of a watch: packed records (json/project.h), looked up by namespace and name, and by indexes
 * that the feature declares.
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
 * Read it only once cache_synced() is true; controllers do not start before that. Inside a handler the
 * cache already has the new state. */
#ifndef FLYBALL_KUBE_CACHE_H
#define FLYBALL_KUBE_CACHE_H

#include "../json/project.h"
#include "resource.h"

enum { CACHE_INDEX_MAX = 4 };

/* `old` is the state before the change (NULL: added), `now` the state after it (NULL: deleted). */
typedef void cache_handler_fn(void *context, const struct record *old, const struct record *now);

/* Must the resource be available? A required one that is not keeps the program from becoming ready. An
 * optional one then reads as empty (cache_absent() is true) until it is installed or permitted: see kinds.h. */
enum cache_need {
    CACHE_REQUIRED,
    CACHE_IF_KNOWN,   /* may not be installed: 404 */
    CACHE_IF_ALLOWED, /* may also be forbidden to us: 403 */
};

struct cache_spec {
    const struct resource *resource;
    enum cache_need need;
    const struct fields *keep;           /* FIELDS(struct, table): what a record holds */
    size_t indexes[CACHE_INDEX_MAX + 1]; /* offsets of str fields; 0 ends them */
    str ns;                              /* only this namespace; empty: all namespaces */
    str label_selector, field_selector;
    /* An update that changes none of the declared fields is stored without calling handlers. Set this to
     * call them for every update. */
    bool every_update;
    bool metadata_only; /* request no more than metadata: the other fields are not needed */
};

struct cache;

int cache_new(struct projector *j, const struct cache_spec *spec, struct cache **ret, err_t *e);
void cache_free(struct cache *c);
const struct cache_spec *cache_spec(const struct cache *c);
struct projection *cache_projection(struct cache *c);

/* ---- reading. The pointers returned are to the feature's struct, whose first member is the record. */

const void *cache_get(const struct cache *c, str ns, str name); /* NULL: not found */
size_t cache_count(const struct cache *c);
bool cache_synced(const struct cache *c);
bool cache_absent(const struct cache *c); /* the resource is not served, or forbidden to us */

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

/* ---- handlers. A new handler is called for every record that already exists. */

void cache_handle(struct cache *c, cache_handler_fn *fn, void *context);

/* ---- writing (listwatch.c and tests). cache_put() takes over the reference. */

void cache_put(struct cache *c, struct record *r);
/* Is it an object that was requested? A broken server may ignore the field selector; cache_put() drops what it adds. */
bool cache_is_requested(const struct cache *c, const struct record *r);
/* -ENOSPC: all caches together use `total_max` bytes, or this one two thirds of it. 0: no limit. */
int cache_check_room(const struct cache *c, size_t total_max, err_t *e);
void cache_delete(struct cache *c, str ns, str name);
/* A new complete list: begin, put each object, end. Records that were not put are deleted at the end; a
 * put with an unchanged resourceVersion is no change. A list that is never ended deletes nothing. */
void cache_list_begin(struct cache *c);
void cache_list_end(struct cache *c);  /* the cache is synced from now on */
void cache_list_none(struct cache *c); /* the resource is not available: synced and empty */
void cache_clear(struct cache *c);     /* drops the part of a first list that failed */

struct cache_sizes {
    size_t records, bytes; /* `bytes` without malloc's own overhead, with tables and indexes */
};
struct cache_sizes cache_sizes(const struct cache *c);

#endif
