/* What the controller remembers of an allocation between turns. All of it may be lost: a restart reads the
 * status and the pod again. It is there because the caches lag behind our own writes. */
#ifndef FLYBALL_MARKET_TRACK_H
#define FLYBALL_MARKET_TRACK_H

#include "../base/arena.h"
#include "../base/map.h"
#include "market_records.h"

struct market_turn;

struct market_track {
    char *key;              /* owned "namespace/name" */
    str ns, name;           /* parts of it */
    char *rv_before_status; /* owned; while the cache shows this version, `status` holds instead */
    char *status;           /* owned; JSON */
    char *pod_rv_before;    /* owned; while the cache shows this version of the pod it is behind */
    int64_t sent_milli;     /* the pod's limit by the resize that the cache does not show yet */
    int64_t patched_ns, attempted_ns; /* of this process; 0: never */
    int64_t wish_generation, wish_ns; /* when the present wish was first seen */
    int error_n;                      /* resizes sent in a row while the node reported an error */
    int silent_n;                     /* writes in a row that nobody answered */
    bool still;                       /* it will not move, whatever is wished */
    const struct allocation_record *gone; /* reference; deleted while its pod had been resized */
    struct market_turn *turn;             /* under way, in the turn's arena; NULL: none */
};

struct market_tracks {
    struct map by_key; /* owned */
    size_t gone_n;     /* with `gone` */
};

void market_tracks_done(struct market_tracks *t);
struct market_track *market_track_find(const struct market_tracks *t, str ns, str name);
struct market_track *market_track_make(struct market_tracks *t, str ns, str name); /* or finds */
void market_track_drop(struct market_tracks *t, struct market_track *track);

void market_track_set_gone(struct market_tracks *t, struct market_track *track,
                           const struct allocation_record *gone); /* NULL: no longer */

/* The echo of a status write, and of a resize: kept until the cache shows another version. */
void market_track_set_status(struct market_track *track, str rv_before, str status);
const char *market_track_status(struct market_track *track, str cached_rv); /* NULL: no echo */
void market_track_set_resize(struct market_track *track, str pod_rv_before, int64_t limit_milli);
bool market_track_pod_lags(struct market_track *track, str cached_rv);

#endif
