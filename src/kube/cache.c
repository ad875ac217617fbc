/* See cache.h. The primary table is a set of pointers (8 bytes a slot). An index is a map from a field's
 * text to the first record that has it; the others hang on it, linked through places inside the
 * records themselves, so adding, replacing and removing cost the same however many records share a
 * value (a namespace may hold 100,000).
 *
 * Invariant: the map's key is the text of the chain's first record, so it lives as long as that. */
#include "cache.h"

#include "../base/map.h"
#include "../base/vec.h"

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
    bool synced, listing, absent;
    size_t record_bytes;
};

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
    return *(const str *)(const void *)((const char *)r + c->spec.indexes[index]);
}

static void index_add(struct cache *c, struct record *r)
{
    for (size_t i = 0; i < c->index_count; i++) {
        struct record_link *link = &record_links(r)[i];
        *link = (struct record_link){ 0 };
        str text = index_value(c, r, i);
        if (!text.n)
            continue;
        /* behind the first, whose text is the map's key */
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

/* ---- being told */

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

void cache_put(struct cache *c, struct record *r)
{
    struct record *old = find_record(c, r->ns, r->name);
    r->mark = true;
    if (!old) {
        set_add(&c->records, &r->node);
        index_add(c, r);
        c->record_bytes += record_bytes(r);
        notify_handlers(c, NULL, r);
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
