/* State that survives a restart: named texts in ConfigMaps that flyball owns.
 *
 *     keep_new(m, &(struct keep_options){ .ns = ns, .name = S("flyball-saturation-state") }, &k, e);
 *     ... all caches are synced before the first turn of a controller, and keep_is_loaded() ...
 *     str text = keep_get(k, key);               // of the last leader, or of this one
 *     keep_put(k, key, text);                    // when it changed; the same text costs nothing
 *
 * The leader writes: from its first keep_put() or keep_del() on, its texts are authoritative, and a ConfigMap that
 * is edited or deleted is restored. Other processes follow the cluster. A change waits 5 s for further ones; a
 * ConfigMap is written at most once per minute, with server-side apply and its own field manager.
 *
 * Bounded: a ConfigMap holds KEEP_SHARD_BYTES (the API server allows 1 MiB); there are `shards` of them, NAME, NAME-1,
 * NAME-2, ... When all are full, the least recently put text is evicted and logged.
 *
 * A process that is not permitted to read or write the ConfigMap works as if there were no saved state, and logs
 * that once. */
#ifndef FLYBALL_KUBE_KEEP_H
#define FLYBALL_KUBE_KEEP_H

#include "manager.h"

enum { KEEP_SHARD_BYTES = 900 << 10, KEEP_SHARDS_MAX = 16 };

struct keep;

struct keep_options {
    str ns, name;
    size_t shards;     /* 0: one */
    int64_t settle_ns; /* how long a change waits for further ones; 0: 5 s */
    int64_t period_ns; /* between two writes of one ConfigMap; 0: 60 s */
    str field_manager; /* empty: "flyball-state" */
    /* Texts were read from the cluster. Not called once this process writes. May be NULL. */
    void (*on_read)(void *context);
    void *context;
};

/* In a feature's start(): the caches are the manager's, so it is ready when they are synced. */
int keep_new(struct manager *m, const struct keep_options *options, struct keep **ret, err_t *e);
void keep_free(struct keep *k); /* unwritten changes are lost: see keep_flush() */

bool keep_is_loaded(const struct keep *k);
str keep_get(const struct keep *k, str key); /* .p NULL: not found; valid until it changes */
size_t keep_count(const struct keep *k);
void keep_each(const struct keep *k, void (*fn)(void *context, str key, str text), void *context);

/* `key` as a ConfigMap has them: letters, digits, '-', '_', '.'. False: larger than a ConfigMap; logged. */
bool keep_put(struct keep *k, str key, str text);
void keep_del(struct keep *k, str key);

/* Writes all changes now. True: a write is in flight; for struct feature's flush(). */
bool keep_flush(struct keep *k);

/* "PREFIX.HEX", from the SHA-256 of the parts: for names that are not valid ConfigMap keys. */
str keep_key(struct arena *a, const char *prefix, const str *parts, size_t n);

#endif
