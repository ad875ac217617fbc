/* Our own writes: see own_write.h. A hash of resource versions is kept instead of the text. The order of two versions of one
 * object is that of their numbers, as the Kubernetes API documents it. It matters where another client wrote between the
 * version that the cache has and ours: the watch delivers that one first, with the old values of what we wrote. Versions that
 * are no numbers are only compared for equality.
 *
 *     begin ... watch delivers v1 ... end (answer: v1)      one version, and it is ours: nothing to do
 *     begin ... watch delivers v1, v2 ... end (answer: v2)  v1 was written by another client: a turn is needed
 *     end (answer: v1) ... watch delivers v1                ours: ignored
 *
 * Not all of them need a turn, but one may be ours as well: a write that was carried out but whose answer was lost,
 * so that a later turn did not know about it; no other client would correct it. */
#include "own_write.h"

#include "../base/map.h"

static void forget_text(struct own_write *w)
{
    free(take(w->text));
    w->before = 0;
    w->until_ns = 0;
}

/* Several writes to the version that the cache still has: it delivers each of them, and only the last one is current. */
static void keep_between(struct own_write *w, uint64_t before)
{
    if (before != w->before) {
        memset(w->between, 0, sizeof(w->between));
        return;
    }
    memmove(w->between + 1, w->between, sizeof(w->between) - sizeof(w->between[0]));
    w->between[0] = w->version;
}

static int64_t read_number(str rv)
{
    int64_t number;
    return str_to_i64(rv, &number) == 0 && number > 0 ? number : 0;
}

void own_write_done(struct own_write *w)
{
    forget_text(w);
    *w = (struct own_write){ 0 };
}

void own_write_begin(struct own_write *w)
{
    w->is_under_way = true;
    w->seen_n = 0;
}

bool own_write_end(struct own_write *w, const struct kube_reply *reply, str before_rv, str text)
{
    w->is_under_way = false;
    if (!reply->failure) {
        str rv = json_text(json_at(reply->object, "metadata", "resourceVersion", NULL));
        keep_between(w, map_hash(before_rv));
        forget_text(w);
        w->version = map_hash(rv);
        w->number = read_number(rv);
        if (!str_eq(rv, before_rv)) { /* otherwise nothing changed, and no event comes */
            w->before = map_hash(before_rv);
            w->text = mem_dup(text.p, text.n);
        }
    }
    return w->seen_n > 1 || (w->seen_n == 1 && w->seen != w->version);
}

void own_write_hold(struct own_write *w, int64_t until_ns)
{
    w->until_ns = until_ns;
}

bool own_write_is_pending(struct own_write *w, str cached_rv, int64_t now_ns)
{
    if (!w->before)
        return false;
    uint64_t cached = map_hash(cached_rv);
    bool is_older = cached == w->before;
    for (size_t i = 0; i < OWN_WRITE_BETWEEN && w->between[i]; i++)
        is_older |= cached == w->between[i];
    int64_t number = read_number(cached_rv);
    if (number && w->number)
        is_older = number < w->number;
    if (w->until_ns ? cached != w->version && now_ns < w->until_ns : is_older)
        return true;
    forget_text(w);
    return false;
}

struct json *own_write_json(struct own_write *w, struct arena *a, str cached_rv, int64_t now_ns)
{
    struct json *tree = NULL;
    bool is_pending = own_write_is_pending(w, cached_rv, now_ns);
    return is_pending && json_parse(a, str_c(w->text), &tree, NULL) == 0 ? tree : NULL;
}

bool own_write_is_ours(struct own_write *w, const struct record *now)
{
    uint64_t version = map_hash(now->rv);
    if (!w->is_under_way)
        return version == w->version;
    w->seen = version;
    w->seen_n++;
    return true;
}
