/* Which volume the files of a model were downloaded to; see filling_core.h.
 *
 *     annotation "<group>/volume-uid" of the Job    the volume that it fills
 *     status.volumeUid                              the volume that was filled; outlives the Job, which has a time to live
 *
 * Both are absent if another operator, or an older version, made the download. Such a download is trusted with the volume that is
 * there, as long as nothing shows that the volume was exchanged. */
#include "filling_core.h"

#include "names_core.h"

#define ANNOTATION "volume-uid"

static str uid_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "uid", NULL));
}

static str mark_of(struct arena *a, const char *group, const struct json *job)
{
    const struct json *notes = json_at(job, "metadata", "annotations", NULL);
    return json_text(json_get_str(notes, aim_names_label_key(a, group, ANNOTATION)));
}

/* A Job without the annotation may be that of the volume before this one, if there was one. */
struct aim_filling aim_filling(struct arena *a, const char *group, const struct json *status,
                               const struct json *volume, const struct json *job)
{
    str filled = json_text(json_get(status, AIM_FILLING_FIELD)), mark = mark_of(a, group, job);
    struct aim_filling f = { .uid = uid_of(volume) };
    f.replaced = filled.n && !str_eq(filled, f.uid);
    f.stale = job && (mark.n ? !str_eq(mark, f.uid) : f.replaced);
    return f;
}

void aim_filling_mark(struct arena *a, const char *group, struct json *job, str uid)
{
    struct json *notes = json_make(a, job, "metadata", "annotations", NULL);
    json_set(a, notes, aim_names_label_key(a, group, ANNOTATION), json_new_str(a, uid));
}
