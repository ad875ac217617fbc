/* Fills a cache and keeps it current: list (or streaming list), then watch, until stopped.
 *
 * Streaming first: a watch with sendInitialEvents is list and watch in one code path. If the server
 * refuses it, the resource is listed in pages and watched from the list's version. A server that ignores
 * the parameters is detected by a timeout: after 10 s without the end of the initial events, we list.
 *
 * No gaps: a watch resumes from the version of the last event or bookmark that was applied. No
 * duplicates: an event whose version the cache already has changes nothing and notifies no handler. A 410
 * anywhere (list, continue token, watch, event) causes a new list, which is compared with the cache, so
 * handlers get exactly the differences. Lists ask for the latest state (resourceVersion ""), so the cache
 * never goes back in time. Garbage, broken connections and truncated objects end a stream; objects that
 * arrived whole before that are kept.
 *
 * Backoff after a failure is 800 ms, doubling with jitter up to 30 s, and resets after 2 minutes without
 * one, after a watch that ended normally, and when the resource is announced (listwatch_retry()).
 *
 * What a failed list has read counts for all watches of the client: beyond 256 MiB, the next attempt of any that fails waits
 * until it is paid off at 8 MiB/s (pause_core.h), so that lists without end do not keep a processor busy.
 *
 * The server is not trusted with our memory or time: objects, lists, all caches together, versions and
 * tokens have limits (listwatch.c). Reaching a limit fails this resource only: the cache drops a first
 * list that is too large, and keeps its contents if a later one is. */
#ifndef FLYBALL_KUBE_LISTWATCH_H
#define FLYBALL_KUBE_LISTWATCH_H

#include "cache.h"
#include "client.h"

struct listwatch;

struct listwatch_options {
    struct kube *kube;
    struct cache *cache;
    uint64_t seed;      /* for the jitter */
    int64_t page;       /* objects per page; 0: 500 */
    bool no_streaming;  /* always list in pages */
    uint64_t items_max; /* objects per list; 0: 1,048,576 */
    size_t total_max;   /* bytes of all caches of the projector; one cache gets half. 0: no limit */
    /* on_synced: the cache is synced for the first time. on_trouble: a failure, as one sentence for the
     * log. Both may be NULL. */
    /* is_announced: will listwatch_retry() be called when the resource is installed? NULL: no, it is polled. */
    bool (*is_announced)(void *context);
    void (*on_synced)(void *context);
    void (*on_trouble)(void *context, const char *trouble);
    void *context;
};

/* Owns its call and buffers; kube and cache must outlive it. */
struct listwatch *listwatch_start(const struct listwatch_options *options);
/* The resource may be available now: ends a pause, and a 404 is retried soon. No effect on a watch that works. */
void listwatch_retry(struct listwatch *w);
/* The cache keeps its contents. Must not be called from inside a handler of the cache. */
void listwatch_stop(struct listwatch *w);

struct listwatch_stats {
    uint64_t lists, watches, events, bookmarks, failures, expired, bytes;
};
const struct listwatch_stats *listwatch_stats(const struct listwatch *w);

#endif
