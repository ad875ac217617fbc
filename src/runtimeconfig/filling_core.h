/* Which volume the files of a model were downloaded to. A claim that was deleted is created again under its name, but it is another,
 * empty volume: a finished download counts only for the volume that it filled. Pure. */
#ifndef FLYBALL_FILLING_CORE_H
#define FLYBALL_FILLING_CORE_H

#include "../json/json.h"

#define AIM_FILLING_FIELD "volumeUid" /* of the status: the volume that has the files */

struct aim_filling {
    str uid;       /* of the volume; empty: there is none */
    bool replaced; /* the volume with the files is gone: this is another one, or none */
    bool stale;    /* the Job belongs to another volume */
};

/* `volume` and `job` as they were observed; NULL: do not exist. `group` is the domain of annotations. */
struct aim_filling aim_filling(struct arena *a, const char *group, const struct json *status,
                               const struct json *volume, const struct json *job);
/* Notes in a Job that is about to be created which volume it fills. */
void aim_filling_mark(struct arena *a, const char *group, struct json *job, str uid);

#endif
