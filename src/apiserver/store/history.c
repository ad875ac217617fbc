/* The window of recent events: a ring of pairs of object versions; see history.h.
 *
 * Bytes are counted for what only the history keeps alive: the previous version of each event, and tombstones.
 * The current version is in the tree, or will be counted as the previous version of the event that replaces it. */
#include "history.h"

#include "../../base/map.h"
#include "../../base/vec.h"

static size_t event_bytes(const struct event *e)
{
    return sizeof(*e) + (e->was ? object_bytes(e->was) : 0) +
           (e->now->deleted ? object_bytes(e->now) : 0);
}

void history_init(struct history *h, size_t events_max, size_t bytes_max, int64_t compacted)
{
    *h = (struct history){ .cap = events_max, .bytes_max = bytes_max, .compacted = compacted };
    h->ring = mem_zero(events_max, sizeof(*h->ring));
}

static void drop_first(struct history *h)
{
    struct event *e = &h->ring[h->first++ % h->cap];
    h->bytes -= event_bytes(e);
    h->compacted = e->now->rev;
    object_unref(e->now);
    object_unref(e->was);
    *e = (struct event){ 0 };
}

void history_done(struct history *h)
{
    while (h->first < h->next)
        drop_first(h);
    free(h->ring);
    *h = (struct history){ 0 };
}

void history_drop(struct history *h, history_dropped *dropped, void *context)
{
    dropped(context, &h->ring[h->first % h->cap]);
    drop_first(h);
}

/* Makes room first, so that the limits hold at all times; the event itself is always added. */
void history_add(struct history *h, struct event e, history_dropped *dropped, void *context)
{
    assert(h->first == h->next || h->ring[(h->next - 1) % h->cap].now->rev < e.now->rev);
    while (h->next - h->first == h->cap ||
           (h->first < h->next && h->bytes + event_bytes(&e) > h->bytes_max))
        history_drop(h, dropped, context);
    h->ring[h->next++ % h->cap] = e;
    h->bytes += event_bytes(&e);
}

/* Binary search: versions increase with sequence numbers. */
bool history_after(const struct history *h, int64_t rev, uint64_t *ret_sequence)
{
    if (rev < h->compacted)
        return false;
    uint64_t low = h->first, high = h->next;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (h->ring[middle % h->cap].now->rev <= rev)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_sequence = low;
    return true;
}

static int by_key(const void *a, const void *b)
{
    return str_cmp(object_key(*(struct object *const *)a), object_key(*(struct object *const *)b));
}

/* Undoes the events after rev: for each key that they touch, the first one shows what was there at rev; all
 * other keys are as they are now. */
bool history_state(const struct history *h, const struct tree *now, int64_t rev, str prefix,
                   str from, struct object ***ret_objects, size_t *ret_n)
{
    uint64_t sequence;
    if (!history_after(h, rev, &sequence))
        return false;
    VEC(struct object *) found = { 0 };
    auto_map struct map touched = { 0 };
    for (const struct event *e; (e = history_at(h, sequence)); sequence++) {
        str key = object_key(e->now);
        if (!str_starts(key, prefix) || str_cmp(key, from) < 0 || map_get(&touched, key))
            continue;
        map_put(&touched, key, e->now);
        if (e->was) /* the first event after rev shows what was there at rev */
            vec_push(&found, object_ref(e->was));
    }
    struct tree_cursor c = tree_seek(now, from);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        if (!map_get(&touched, object_key(o)))
            vec_push(&found, object_ref(o));
    if (touched.n && found.n)
        qsort(found.at, found.n, sizeof(*found.at), by_key);
    *ret_objects = found.at;
    *ret_n = found.n;
    return true;
}
