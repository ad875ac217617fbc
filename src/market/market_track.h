/* What the controller keeps of an allocation between turns, because the caches lag behind its
 * own writes. All of it may be lost: after a restart the status and the pod are read again. */
#ifndef FLYBALL_MARKET_TRACK_H
#define FLYBALL_MARKET_TRACK_H

#include "../base/arena.h"
#include "../base/map.h"
#include "market_records.h"

struct market_turn;

struct market_track {
    char *key;              /* owned "namespace/name" */
    str ns, name;           /* borrowed from key */
    char *rv_before_status; /* owned; while the cache shows this version, `status` is newer */
    char *status;           /* owned; JSON */
    char *pod_rv_before;    /* owned; while the cache shows this version, the pod is stale */
    int64_t sent_milli;     /* the pod's limit in the resize that the cache does not show yet */
    int64_t patched_ns, attempted_ns; /* wall clock, in this process; 0: never */
    int64_t spec_generation, spec_ns; /* when the current spec was first seen */
    int error_n;      /* consecutive resizes sent while the node reported an error */
    int unanswered_n; /* consecutive writes without a response */
    bool unmovable;   /* it will not be resized, whatever the spec */
    const struct allocation_record *deleted; /* reference to a deleted one whose pod is resized */
    struct market_turn *turn;                /* in progress, in the turn's arena; NULL: none */
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

/* Our last status write and our last resize: kept until the cache shows another version. */
void market_track_set_status(struct market_track *track, str rv_before, str status);
const char *market_track_status(struct market_track *track,
                                str cached_rv); /* NULL: use the cache */
void market_track_set_resize(struct market_track *track, str pod_rv_before, int64_t limit_milli);
bool market_track_pod_lags(struct market_track *track, str cached_rv);

#endif
