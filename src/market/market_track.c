/* State between turns: see market_track.h. */
#include "market_track.h"

static void free_track(struct market_track *track)
{
    if (track->deleted)
        record_unref(&track->deleted->meta);
    free(track->rv_before_status);
    free(track->status);
    free(track->pod_rv_before);
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
    auto_arena struct arena a = { 0 };
    return map_get(&t->by_key, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)));
}

struct market_track *market_track_make(struct market_tracks *t, str ns, str name)
{
    struct market_track *track = market_track_find(t, ns, name);
    if (track)
        return track;
    auto_arena struct arena a = { 0 };
    str key = arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name));
    track = mem_zero(1, sizeof(*track));
    track->key = mem_dup(key.p, key.n);
    track->ns = (str){ track->key, ns.n };
    track->name = (str){ track->key + ns.n + 1, name.n };
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

void market_track_set_status(struct market_track *track, str rv_before, str status)
{
    free(track->rv_before_status);
    free(track->status);
    track->rv_before_status = mem_dup(rv_before.p, rv_before.n);
    track->status = mem_dup(status.p, status.n);
}

const char *market_track_status(struct market_track *track, str cached_rv)
{
    if (!track->rv_before_status || str_eqc(cached_rv, track->rv_before_status))
        return track->status;
    free(take(track->rv_before_status));
    free(take(track->status));
    return NULL;
}

void market_track_set_resize(struct market_track *track, str pod_rv_before, int64_t limit_milli)
{
    free(track->pod_rv_before);
    track->pod_rv_before = mem_dup(pod_rv_before.p, pod_rv_before.n);
    track->sent_milli = limit_milli;
}

bool market_track_pod_lags(struct market_track *track, str cached_rv)
{
    if (track->pod_rv_before && str_eqc(cached_rv, track->pod_rv_before))
        return true;
    free(take(track->pod_rv_before));
    track->sent_milli = 0;
    return false;
}
