/* State between turns: see market_track.h. */
#include "market_track.h"

#include "../kube/object_key.h"

static void free_track(struct market_track *track)
{
    if (track->deleted)
        record_unref(&track->deleted->meta);
    own_write_done(&track->status);
    own_write_done(&track->resize);
    free(track->key);
    free(track);
}

void market_tracks_done(struct market_tracks *t)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&t->by_key, slot));)
        free_track(slot->value);
    map_done(&t->by_key);
}

struct market_track *market_track_find(const struct market_tracks *t, str ns, str name)
{
    return object_key_find(&t->by_key, ns, name);
}

struct market_track *market_track_make(struct market_tracks *t, str ns, str name)
{
    struct market_track *track = market_track_find(t, ns, name);
    if (track)
        return track;
    track = mem_zero(1, sizeof(*track));
    track->key = object_key_new(ns, name, &track->ns, &track->name);
    map_put(&t->by_key, str_c(track->key), track);
    return track;
}

void market_track_drop(struct market_tracks *t, struct market_track *track)
{
    market_track_set_deleted(t, track, NULL);
    map_del(&t->by_key, str_c(track->key));
    free_track(track);
}

void market_track_set_deleted(struct market_tracks *t, struct market_track *track,
                              const struct allocation_record *deleted)
{
    if (track->deleted) {
        record_unref(&track->deleted->meta);
        t->deleted_n--;
    }
    track->deleted = deleted;
    if (deleted) {
        record_ref(&deleted->meta);
        t->deleted_n++;
    }
}
