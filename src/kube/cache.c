/* The cache of one watched resource. The interface is in cache.h.
 *
 * The problem. A feature needs 100,000 pods in memory, by name and by a few other fields (node, owner),
 * and must react to every change. The operator's memory limit is 128 MiB, so the cache cannot keep JSON
 * trees, and a lookup cannot scan.
 *
 * A record (json/project.h) is one allocation: the feature's struct, the texts it points to, and one link
 * per declared index. Around the records there are only tables of pointers:
 *
 *     records (set, 8 bytes per slot)          indexes[0] (map from text to first record)
 *     +---+---+---+---+---+                    "node-1" --+
 *     | * |   | * | * |   |                               |
 *     +-|-+---+-|-+-|-+---+                               v
 *       v       v   v                          record <-> record <-> record    links in the records
 *     record  record record                    all with node == "node-1"
 *
 * An index maps a field's text to the first record that has it; the others are linked behind it through
 * the records themselves. Add, replace and remove therefore cost the same no matter how many records
 * share a value (one namespace may hold 100,000); with a vector of records per value, a remove would have
 * to search it.
 *
 * Invariant: a map key is the text inside the first record of its chain, so the key lives as long as
 * that record. New records are linked behind the first, which keeps the key valid; when the first leaves,
 * the next one is put into the map and its text becomes the key.
 *
 * How data moves. listwatch.c calls cache_put() and cache_delete() for events, and wraps a complete list
 * in cache_list_begin() and cache_list_end(): begin clears the mark of every record, a put sets it, and
 * end deletes the unmarked ones. A list after an outage thus becomes the set of differences, and handlers
 * see nothing else:
 *
 *     put, name unknown                   handler(NULL, new)
 *     put, same uid and resourceVersion   nothing: the same state again
 *     put, declared fields are equal      stored, no handler (unless every_update). Usually not even a new record: the
 *                                         projection finds the old one by its text and sets its version
 *     put, otherwise                      handler(old, new)
 *     deleted, or not in the new list     handler(old, NULL)
 *
 * Tables are updated before handlers run, so a handler that reads the cache sees the new state. Handlers
 * must not change the cache.
 *
 * Ownership: the cache holds one reference to each record and releases it after the handlers have
 * returned; a handler that needs a record longer calls record_ref(). */
#include "cache.h"

#include "../base/map.h"
#include "../base/vec.h"
#include "protobuf_types.h"

struct handler {
    cache_handler_fn *fn;
    void *context;
};

struct cache {
    struct cache_spec spec;
    struct projection *projection; /* owned */
    struct set records;            /* one reference each */
    struct map indexes[CACHE_INDEX_MAX];
    size_t index_count;
    VEC(struct handler) handlers;
    bool synced;         /* a complete list was received */
    bool listing;        /* between list_begin and list_end */
    bool absent;         /* synced, but the resource is not served or not permitted */
    size_t record_bytes; /* of all records */
};

static struct record *find_held(void *context, str ns, str name);

int cache_new(struct projector *j, const struct cache_spec *spec, struct cache **ret, err_t *e)
{
    struct cache *c = mem_zero(1, sizeof(*c));
    c->spec = *spec;
    while (c->index_count < CACHE_INDEX_MAX && spec->indexes[c->index_count])
        c->index_count++;
    int r = projection_new(j, spec->keep, c->index_count, &c->projection, e);
    if (r < 0) {
        free(c);
        return err_wrap(e, "cache of %s", spec->resource->plural);
    }
    if (!spec->every_update)
        projection_set_find(c->projection, find_held, c);
    const struct resource *of = spec->resource;
    if (!spec->metadata_only) /* false for custom resources, which only come in JSON */
        projection_accept_protobuf(c->projection, &kube_protobuf_types, of->group, of->version,
                                   of->kind);
    *ret = c;
    return 0;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->index_count; i++)
        map_done(&c->indexes[i]);
    for (size_t at = 0; at < c->records.cap; at++)
        record_unref((struct record *)c->records.slots[at]);
    set_done(&c->records);
    vec_done(&c->handlers);
    projection_free(c->projection);
    free(c);
}

const struct cache_spec *cache_spec(const struct cache *c)
{
    return &c->spec;
}

struct projection *cache_projection(struct cache *c)
{
    return c->projection;
}

/* ---- reading */

struct key {
    str ns, name;
};

static bool same_key(const struct set_node *member, const void *wanted)
{
    const struct record *r = (const struct record *)member;
    const struct key *key = wanted;
    return str_eq(r->name, key->name) && str_eq(r->ns, key->ns);
}

static struct record *find_record(const struct cache *c, str ns, str name)
{
    return (struct record *)set_find(&c->records, record_hash(ns, name), same_key,
                                     &(struct key){ ns, name });
}

static struct record *find_held(void *context, str ns, str name)
{
    return find_record(context, ns, name);
}

const void *cache_get(const struct cache *c, str ns, str name)
{
    return find_record(c, ns, name);
}

size_t cache_count(const struct cache *c)
{
    return c->records.n;
}

bool cache_synced(const struct cache *c)
{
    return c->synced;
}

bool cache_absent(const struct cache *c)
{
    return c->absent;
}

const void *cache_next(const struct cache *c, size_t *at)
{
    return set_next(&c->records, at);
}

const void *cache_first_in(const struct cache *c, size_t index, str value)
{
    assert(index < c->index_count);
    return map_get(&c->indexes[index], value);
}

const void *cache_next_in(const struct cache *c, size_t index, const void *record)
{
    assert(index < c->index_count);
    (void)c;
    return record_links(record)[index].next;
}

/* ---- indexes */

static str index_value(const struct cache *c, const struct record *r, size_t index)
{
    return record_text(r, c->spec.indexes[index]);
}

/* Links the record into every index for which it has a value; an empty text is not indexed. */
static void index_add(struct cache *c, struct record *r)
{
    for (size_t i = 0; i < c->index_count; i++) {
        struct record_link *link = &record_links(r)[i];
        *link = (struct record_link){ 0 };
        str text = index_value(c, r, i);
        if (!text.n)
            continue;
        /* link behind the first record, whose text is the key of the map */
        struct record *first = map_get(&c->indexes[i], text);
        if (!first) {
            map_put(&c->indexes[i], text, r);
            continue;
        }
        struct record_link *head = &record_links(first)[i];
        link->previous = first;
        link->next = head->next;
        if (head->next)
            record_links(head->next)[i].previous = r;
        head->next = r;
    }
}

/* Unlinks the record from every index. If it was the first of its chain the next one takes over the map
 * entry, key included. */
static void index_remove(struct cache *c, struct record *r)
{
    for (size_t i = 0; i < c->index_count; i++) {
        struct record_link *link = &record_links(r)[i];
        str text = index_value(c, r, i);
        if (!text.n)
            continue;
        if (link->next)
            record_links(link->next)[i].previous = link->previous;
        if (link->previous)
            record_links(link->previous)[i].next = link->next;
        else if (link->next)
            map_put(&c->indexes[i], index_value(c, link->next, i), link->next);
        else
            map_del(&c->indexes[i], text);
        *link = (struct record_link){ 0 };
    }
}

/* ---- handlers */

static void notify_handlers(struct cache *c, const struct record *old, const struct record *now)
{
    for (size_t i = 0; i < c->handlers.n; i++)
        c->handlers.at[i].fn(c->handlers.at[i].context, old, now);
}

void cache_handle(struct cache *c, cache_handler_fn *fn, void *context)
{
    vec_push(&c->handlers, ((struct handler){ fn, context }));
    for (size_t at = 0; at < c->records.cap; at++)
        if (c->records.slots[at])
            fn(context, NULL, (struct record *)c->records.slots[at]);
}

/* ---- filling */

/* Features that ask for one object do work that would grow with the square of their number. */
bool cache_is_requested(const struct cache *c, const struct record *r)
{
    str name = c->spec.field_selector;
    return !str_starts(name, S("metadata.name=")) ||
           str_eq(str_from(name, S("metadata.name=").n), r->name);
}

/* Takes over the reference. The same version again, as after a new list, only marks the record as seen; a new
 * version without a difference in the declared fields replaces the record without notifying handlers. */
void cache_put(struct cache *c, struct record *r)
{
    struct record *old = find_record(c, r->ns, r->name);
    r->mark = true;
    if (!cache_is_requested(c, r)) {
        record_unref(r);
        return;
    }
    if (!old) {
        set_add(&c->records, &r->node);
        index_add(c, r);
        c->record_bytes += record_bytes(r);
        notify_handlers(c, NULL, r);
        record_forget_once(r);
        return;
    }
    if (str_eq(old->rv, r->rv) && str_eq(old->uid, r->uid)) {
        old->mark = true;
        record_unref(r);
        return;
    }
    index_remove(c, old);
    set_swap(&c->records, &old->node, &r->node);
    index_add(c, r);
    c->record_bytes += record_bytes(r) - record_bytes(old);
    if (c->spec.every_update || !record_same(old, r))
        notify_handlers(c, old, r);
    record_forget_once(r);
    record_unref(old);
}

static void remove_record(struct cache *c, struct record *old)
{
    set_remove(&c->records, &old->node);
    index_remove(c, old);
    c->record_bytes -= record_bytes(old);
    notify_handlers(c, old, NULL);
    record_unref(old);
}

void cache_delete(struct cache *c, str ns, str name)
{
    struct record *old = find_record(c, ns, name);
    if (old)
        remove_record(c, old);
}

void cache_list_begin(struct cache *c)
{
    c->listing = true;
    for (size_t at = 0; at < c->records.cap; at++)
        if (c->records.slots[at])
            ((struct record *)c->records.slots[at])->mark = false;
}

void cache_list_end(struct cache *c)
{
    assert(c->listing);
    /* collected first: removing a record moves the slots of the set */
    VEC(struct record *) gone = { 0 };
    for (size_t at = 0; at < c->records.cap; at++) {
        struct record *r = (struct record *)c->records.slots[at];
        if (r && !r->mark)
            vec_push(&gone, r);
    }
    for (size_t i = 0; i < gone.n; i++)
        remove_record(c, gone.at[i]);
    vec_done(&gone);
    c->listing = c->absent = false;
    c->synced = true;
}

void cache_clear(struct cache *c)
{
    bool synced = c->synced, absent = c->absent;
    cache_list_begin(c);
    cache_list_end(c);
    c->synced = synced, c->absent = absent;
}

void cache_list_none(struct cache *c)
{
    cache_list_begin(c);
    cache_list_end(c);
    c->absent = true;
}

struct cache_sizes cache_sizes(const struct cache *c)
{
    size_t tables = c->records.cap * sizeof(struct set_node *);
    for (size_t i = 0; i < c->index_count; i++)
        tables += c->indexes[i].cap * sizeof(struct map_slot);
    return (struct cache_sizes){ c->records.n, c->record_bytes + tables };
}

int cache_check_room(const struct cache *c, size_t total_max, err_t *e)
{
    size_t most_own = total_max / 3 * 2;
    if (!total_max || (projector_bytes(projection_projector(c->projection)) <= total_max &&
                       cache_sizes(c).bytes <= most_own))
        return 0;
    /* no current numbers in the text: identical messages are logged once */
    return err_set(
        e, ENOSPC,
        "cache is full: limit is %zu MiB for all caches and %zu MiB for one; raise the memory "
        "limit or watch fewer namespaces",
        total_max >> 20, most_own >> 20);
}
