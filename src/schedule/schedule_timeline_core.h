/* What applies when: the decision of schedule_core, evaluated at every transition of a time range. */
#ifndef FLYBALL_SCHEDULE_TIMELINE_CORE_H
#define FLYBALL_SCHEDULE_TIMELINE_CORE_H

#include "schedule_core.h"

struct schedule_period {
    int64_t from, to; /* [from, to) */
    enum schedule_source source;
    int trigger;                   /* -1: none */
    struct schedule_config config; /* what the source sets */
    struct schedule_config
        bounds; /* min and max that apply: bounds that the source leaves unset stay as the
                                      periods before set them; unset: as the HPA had them */
};

struct schedule_timeline {
    const struct schedule_spec *spec; /* borrowed */
    int64_t from, to;
    struct schedule_period *periods; /* in the arena; neighbors differ */
    size_t n;
};

enum { SCHEDULE_PERIODS_MAX = 10000 }; /* then the timeline ends early, at `to` */

struct schedule_timeline schedule_timeline(struct arena *a, const struct schedule_spec *spec,
                                           int64_t created, int64_t from, int64_t to);

/* "min 5, max 50": the fields that are set, or "unchanged". */
str schedule_config_text(struct arena *a, const struct schedule_config *c);
/* What applies in a period: "min 5, max 50", with "(kept)" if its source sets neither. */
str schedule_period_text(struct arena *a, const struct schedule_period *s);

#endif
