/* The history: one event per committed write, kept for a bounded window.
 *
 * Watches do not copy events. They hold a cursor, the sequence number of the next event, and read from here
 * when their client has room. A cursor that falls out of the window has lost events, and its watch ends with
 * 410. The window is bounded by the number of events and by the bytes of old versions that only it keeps alive;
 * the newest event is never dropped.
 *
 * The same window answers lists as of an older version: the current state with the later events undone. */
#ifndef FLYBALL_HISTORY_H
#define FLYBALL_HISTORY_H

#include "tree.h"

struct event {
    struct object *now; /* owned reference; a tombstone when deleted */
    struct object *was; /* owned reference to the previous version; NULL: created */
};

struct history {
    struct event *ring; /* owned, cap slots */
    size_t cap;
    uint64_t first, next; /* sequence numbers: of the oldest event, of the next one to come */
    size_t bytes, bytes_max;
    int64_t compacted; /* all events with a higher version are in the window */
};

void history_init(struct history *h, size_t events_max, size_t bytes_max, int64_t compacted);
void history_done(struct history *h);

typedef void history_dropped(void *context, const struct event *e);

/* Takes both references. Drops events that no longer fit; `dropped` is called before each. */
void history_add(struct history *h, struct event e, history_dropped *dropped, void *context);
void history_drop(struct history *h, history_dropped *dropped, void *context); /* the oldest */

static inline const struct event *history_at(const struct history *h, uint64_t sequence)
{
    return sequence >= h->first && sequence < h->next ? &h->ring[sequence % h->cap] : NULL;
}

/* The sequence number of the first event after version rev. False: some of these events are gone. */
bool history_after(const struct history *h, int64_t rev, uint64_t *ret_sequence);

/* The objects under `prefix` as of version rev, from the key `from` on: an array of references in key order,
 * owned by the caller. NULL with *ret_n 0 is an empty list. False: that version is gone. */
bool history_state(const struct history *h, const struct tree *now, int64_t rev, str prefix,
                   str from, struct object ***ret_objects, size_t *ret_n);

#endif
