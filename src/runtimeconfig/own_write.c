/* Recognizing our own status writes: see own_write.h. Resource versions are opaque, so only equality is used; a hash is
 * kept instead of the text.
 *
 *     begin ... watch delivers v1 ... end (answer: v1)      one version, and it is ours: nothing to do
 *     begin ... watch delivers v1, v2 ... end (answer: v2)  v1 was written by another client: a turn is needed
 *     end (answer: v1) ... watch delivers v1                ours: ignored */
#include "own_write.h"

#include "../base/map.h"

void aim_own_write_begin(struct aim_own_write *w)
{
    w->under_way = true;
    w->seen_n = 0;
}

bool aim_own_write_is_ours(struct aim_own_write *w, const struct record *now)
{
    uint64_t version = map_hash(now->rv);
    if (!w->under_way)
        return version == w->version;
    w->seen = version;
    w->seen_n++;
    return true;
}

bool aim_own_write_end(struct aim_own_write *w, const struct kube_reply *reply)
{
    w->under_way = false;
    if (!reply->failure)
        w->version =
            map_hash(json_text(json_at(reply->object, "metadata", "resourceVersion", NULL)));
    return w->seen_n > 1 || (w->seen_n == 1 && w->seen != w->version);
}
