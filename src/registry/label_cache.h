/* Labels of images by digest, and the digests that tags pointed to, for the inspector. The least recently used entry
 * makes room. Keys are fingerprints of the question, credentials included. */
#ifndef FLYBALL_LABEL_CACHE_H
#define FLYBALL_LABEL_CACHE_H

#include "../base/list.h"
#include "../base/map.h"
#include "../base/sha256.h"

enum { LABEL_CACHE_ENTRIES = 512, LABEL_CACHE_BYTES = 1 << 20 };

struct label_cache {
    struct map entries; /* by key */
    struct list used;   /* most recently used first */
    size_t bytes;
};

/* `{0}` is an empty cache. */
void label_cache_done(struct label_cache *c);
/* Copied; a text that is larger than a quarter of the cache is not kept. `expires_ns` 0: never. */
void label_cache_put(struct label_cache *c, str key, str text, int64_t expires_ns);
/* Borrowed until the next put; .p NULL: not found, or expired. */
str label_cache_get(struct label_cache *c, str key, int64_t now_ns);

#endif
