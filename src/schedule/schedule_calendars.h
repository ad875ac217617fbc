/* The calendars of a cluster: ConfigMaps with the label flyball.io/calendar, read once per change.
 *
 * A schedule names a calendar of its own namespace or else of the operator's, whose calendars are shared by all. Those
 * of the operator's namespace with the label value "default" are excluded from every trigger. A ConfigMap that cannot
 * be read keeps its last good version, which is stored in flyball's own ConfigMap (kube/keep.h) to survive a restart. */
#ifndef FLYBALL_SCHEDULE_CALENDARS_H
#define FLYBALL_SCHEDULE_CALENDARS_H

#include "../base/list.h"
#include "../base/map.h"
#include "../kube/keep.h"
#include "schedule_spec.h"

struct schedule_calendars {
    bool enabled; /* --smarthpa-calendars; set before schedule_calendars_start() */
    struct manager *m;
    struct cache *maps;
    struct keep *keep;
    struct map by_key;   /* struct schedule_calendar_entry, owned */
    struct list retired; /* replaced calendars: turns in progress may still use them */
    const struct schedule_calendar **defaults; /* owned */
    size_t defaults_n;
    bool has_unkept; /* a good version is not stored yet */
    size_t unkept_n; /* bytes of those */
    bool is_full;    /* some have no room to be stored; reported */
};

int schedule_calendars_start(struct schedule_calendars *c, struct manager *m, err_t *e);
void schedule_calendars_done(struct schedule_calendars *c);
bool schedule_calendars_flush(struct schedule_calendars *c); /* for struct feature's flush() */

/* For schedule_spec_read(): the calendars that a schedule of this namespace can name. The scope must exist until the
 * spec was read; what it found stays valid for the turn. */
struct schedule_calendar_scope {
    struct schedule_calendars *calendars;
    str ns;
};
void schedule_calendars_set(struct schedule_calendar_scope *scope,
                            struct schedule_defaults *defaults);

/* Stores good versions that are new. The leader calls it. */
void schedule_calendars_store(struct schedule_calendars *c);

#endif
