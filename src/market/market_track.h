/* What the controller keeps of an allocation between turns, because the caches lag behind its
 * own writes. All of it may be lost: after a restart the status and the pod are read again. */
#ifndef FLYBALL_MARKET_TRACK_H
#define FLYBALL_MARKET_TRACK_H

#include "../base/arena.h"
#include "../base/map.h"
#include "../kube/own_write.h"
#include "market_records.h"

struct market_track {
    char *key;                        /* owned "namespace/name" */
    str ns, name;                     /* borrowed from key */
    struct own_write status;          /* the allocation's status, JSON */
    struct own_write resize;          /* of the pod */
    int64_t sent_milli;               /* the pod's limit in `resize` */
    int64_t patched_ns, attempted_ns; /* wall clock, in this process; 0: never */
    int64_t spec_generation, spec_ns; /* when the current spec was first seen */
    int error_n;      /* consecutive resizes sent while the node reported an error */
    bool sent_memory; /* the last resize was one of memory, and is not in force yet */
    bool unmovable;   /* it will not be resized, whatever the spec */
    const struct allocation_record *deleted; /* reference to a deleted one whose pod is resized */
};

struct market_tracks {
    struct map by_key; /* owned */
    size_t deleted_n;  /* tracks with `deleted` set */
};

void market_tracks_done(struct market_tracks *t);
struct market_track *market_track_find(const struct market_tracks *t, str ns, str name);
struct market_track *market_track_make(struct market_tracks *t, str ns, str name); /* or finds */
void market_track_drop(struct market_tracks *t, struct market_track *track);

void market_track_set_deleted(struct market_tracks *t, struct market_track *track,
                              const struct allocation_record *deleted); /* NULL: no longer */

#endif
