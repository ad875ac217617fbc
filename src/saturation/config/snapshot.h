/* The configuration in force, as one immutable value.
 *
 * The controller is the only writer: it builds a new snapshot from the ConfigMaps and the last good
 * values, and replaces the old one. A reader holds a reference and sees one consistent state; it
 * never queries the API server. */
#ifndef FLYBALL_SATURATION_SNAPSHOT_H
#define FLYBALL_SATURATION_SNAPSHOT_H

#include "../wva/optimize_core.h"
#include "../zero/zero_core.h"
#include "config_core.h"

struct sat_local { /* of a namespace that has its own ConfigMaps */
    str ns;
    struct sat_table saturation;
    struct zero_table zero;
};

struct sat_ages { /* of metrics: time between fetches; younger is fresh; older is unavailable */
    int64_t fetch_ns, fresh_ns, unavailable_ns;
};

struct sat_snapshot {
    uint32_t refs;
    uint64_t generation; /* counts snapshots */
    struct arena arena;
    int64_t interval_ns;
    struct sat_ages ages;
    struct sat_table saturation;
    struct zero_table zero;
    struct optimize_catalog catalog;
    struct sat_local *locals; /* sorted by namespace */
    size_t local_n;
};

/* The sources of a snapshot: the data of ConfigMaps as JSON; "": none (yet). */
struct sat_local_source {
    str ns, saturation, zero;
};

struct sat_sources {
    str optimization, saturation, zero, costs, classes;
    str defaults;                          /* for keys that `optimization` does not have */
    const struct sat_local_source *locals; /* sorted by namespace */
    size_t local_n;
};

struct sat_local_report {
    struct sat_load saturation;
    str zero_problems; /* "": none */
};

struct sat_report { /* what to log; in the arena of the snapshot */
    struct sat_load global;
    str zero_problems, interval_problem, age_problems; /* "": none */
    struct sat_local_report *locals;                   /* as in the snapshot */
};

/* `before` NULL: the first one. Its values replace those that are invalid in the sources. */
struct sat_snapshot *sat_snapshot_new(const struct sat_sources *from,
                                      const struct sat_snapshot *before,
                                      struct sat_report *ret_report);
struct sat_snapshot *sat_snapshot_ref(struct sat_snapshot *s);
void sat_snapshot_unref(struct sat_snapshot *s);

const struct sat_local *sat_snapshot_local(const struct sat_snapshot *s, str ns); /* NULL: none */
struct sat_resolved sat_snapshot_resolve(const struct sat_snapshot *s, const struct sat_lookup *q);
const struct zero_table *sat_snapshot_zero(const struct sat_snapshot *s, str ns);

#endif
