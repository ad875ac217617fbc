/* A cache of texts by key, bounded in bytes and entries; see label_cache.h. Entries are in the order of their
 * last use, and the least recently used one is dropped first. One text may take a quarter of the cache at most,
 * so that a single image cannot displace all others. */
#include "label_cache.h"

struct entry {
    struct list_item item;
    int64_t expires_ns; /* 0: never */
    size_t key_n, text_n;
    char bytes[]; /* key, then text */
};

static str key_of(const struct entry *e)
{
    return (str){ e->bytes, e->key_n };
}

static size_t size_of(const struct entry *e)
{
    return sizeof(*e) + e->key_n + e->text_n;
}

static void drop_entry(struct label_cache *c, struct entry *e)
{
    c->bytes -= size_of(e);
    map_del(&c->entries, key_of(e));
    list_remove(&e->item);
    free(e);
}

void label_cache_done(struct label_cache *c)
{
    for (struct entry *e; (e = list_first(&c->used, struct entry, item));)
        drop_entry(c, e);
    map_done(&c->entries);
}

void label_cache_put(struct label_cache *c, str key, str text, int64_t expires_ns)
{
    struct entry *old = map_get(&c->entries, key);
    if (old)
        drop_entry(c, old);
    if (text.n > LABEL_CACHE_BYTES / 4)
        return;
    struct entry *e = mem_alloc(sizeof(*e) + key.n + text.n);
    *e = (struct entry){ .expires_ns = expires_ns, .key_n = key.n, .text_n = text.n };
    memcpy(e->bytes, key.p, key.n);
    memcpy(e->bytes + key.n, text.p, text.n);
    map_put(&c->entries, key_of(e), e);
    list_prepend(&c->used, &e->item);
    c->bytes += size_of(e);
    while (c->bytes > LABEL_CACHE_BYTES || c->used.n > LABEL_CACHE_ENTRIES)
        drop_entry(c, container_of(c->used.last, struct entry, item));
}

str label_cache_get(struct label_cache *c, str key, int64_t now_ns)
{
    struct entry *e = map_get(&c->entries, key);
    if (e && e->expires_ns && e->expires_ns <= now_ns) {
        drop_entry(c, e);
        e = NULL;
    }
    if (!e)
        return (str){ 0 };
    list_remove(&e->item);
    list_prepend(&c->used, &e->item);
    return (str){ e->bytes + e->key_n, e->text_n };
}
