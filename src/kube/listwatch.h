/* Fills a cache and keeps it true: list (or a streaming list), then watch, for ever.
 *
 * Streaming first: a watch with sendInitialEvents gives list and watch in one code path. A server that
 * refuses it is listed in pages instead, and watched from the list's version. One that ignores the
 * parameters is noticed by its silence: 10 s without the end of the initial events, and we list.
 *
 * No gap: a watch resumes from the version of the last event or bookmark that was applied. No
 * duplicate: an event whose version the cache already has changes nothing and is not told. 410 in any
 * place (list, continue token, watch, event) makes a new list, which is compared with the cache, so
 * that handlers get exactly the differences. Lists ask for the latest state ("" as version), so the
 * cache never goes back in time. Garbage, cuts and half objects end a stream; what came whole before
 * counts, the rest comes again.
 *
 * Failures wait 800 ms, doubling with jitter up to 30 s, and start over after 2 quiet minutes.
 *
 * The server is not trusted with our memory or time: an object, a list, all caches together, versions and tokens
 * have limits (listwatch.c). A limit that is reached is a failure of this kind alone; a first list that is too large
 * is dropped, a later one leaves what was known. */
#ifndef FLYBALL_KUBE_LISTWATCH_H
#define FLYBALL_KUBE_LISTWATCH_H

#include "cache.h"
#include "client.h"

struct listwatch;

struct listwatch_options {
    struct kube *kube;
    struct cache *cache;
    uint64_t seed;      /* of the jitter */
    int64_t page;       /* objects a page; 0: 500 */
    bool no_streaming;  /* list in pages at once */
    uint64_t items_max; /* objects a list; 0: a million */
    size_t total_max;   /* bytes of all caches of the projector; one may have half. 0: no limit */
    /* The cache is synced for the first time; a failure (one sentence, for the log). May be NULL. */
    void (*on_synced)(void *context);
    void (*on_trouble)(void *context, const char *trouble);
    void *context;
};

struct listwatch *listwatch_start(const struct listwatch_options *options);
/* The cache stays as it is. Not from inside a handler of the cache. */
void listwatch_stop(struct listwatch *w);

struct listwatch_stats {
    uint64_t lists, watches, events, bookmarks, failures, expired;
};
const struct listwatch_stats *listwatch_stats(const struct listwatch *w);

#endif
