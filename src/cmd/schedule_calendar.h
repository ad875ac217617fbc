/* Calendars for the commands: ConfigMaps with the label flyball.io/calendar, from a file or from the cluster. */
#ifndef FLYBALL_CMD_SCHEDULE_CALENDAR_H
#define FLYBALL_CMD_SCHEDULE_CALENDAR_H

#include "../schedule/schedule_spec.h"

struct explain;

struct command_calendars { /* `{0}`: none */
    struct command_calendar *first;
    const struct schedule_calendar **defaults; /* owned */
    size_t defaults_n;
    str ns;                  /* of the schedule that is read */
    const char *operator_ns; /* where shared calendars are; NULL: flyball-system */
    bool is_complete;        /* they are all that the cluster has; false: a file may lack some */
};

/* Adds the ConfigMaps among these objects that are calendars. Their texts are copied. */
void command_calendars_add(struct command_calendars *c, const struct json *objects);
/* Adds those of the cluster. Without permission to list ConfigMaps none is known, which the spec reports for each that it
 * names. */
void command_calendars_fetch(struct command_calendars *c, struct explain *x);
/* What schedule_spec_read() needs for a schedule of this namespace; `c` must exist until the spec was used. */
struct schedule_defaults command_calendars_use(struct command_calendars *c, str ns);
void command_calendars_done(struct command_calendars *c);

#endif
