/* The configuration in force, as one immutable value.
 *
 * The controller is the only writer: it makes a new snapshot of what the ConfigMaps say and of what was
 * good before, and puts it in the place of the old one. A reader takes a reference and sees one state
 * for as long as it likes; nobody asks the API server. */
#ifndef FLYBALL_SATURATION_SNAPSHOT_H
#define FLYBALL_SATURATION_SNAPSHOT_H

#include "config_core.h"
#include "optimize_core.h"
#include "zero_core.h"

struct sat_local { /* of a namespace with ConfigMaps of its own */
    str ns;
    struct sat_table saturation;
    struct zero_table zero;
};

struct sat_ages { /* of metrics */
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

/* What a new one is made of. Texts are the ConfigMaps' data, JSON; "": there is none (yet). */
struct sat_local_source {
    str ns, saturation, zero;
};

struct sat_sources {
    str optimization, saturation, zero, costs, classes;
    str defaults;                          /* for what `optimization` does not say */
    const struct sat_local_source *locals; /* sorted by namespace */
    size_t local_n;
};

struct sat_local_report {
    struct sat_load saturation;
    str zero_problems; /* "": none */
};

struct sat_report { /* what there is to tell, in the snapshot's arena */
    struct sat_load global;
    str zero_problems, interval_problem, age_problems; /* "": none */
    struct sat_local_report *locals;                   /* as in the snapshot */
};

/* `before` NULL: the first one. Its last good values stay where the sources have bad ones. */
struct sat_snapshot *sat_snapshot_new(const struct sat_sources *from,
                                      const struct sat_snapshot *before,
                                      struct sat_report *ret_report);
struct sat_snapshot *sat_snapshot_ref(struct sat_snapshot *s);
void sat_snapshot_unref(struct sat_snapshot *s);

const struct sat_local *sat_snapshot_local(const struct sat_snapshot *s, str ns); /* NULL: none */
struct sat_resolved sat_snapshot_resolve(const struct sat_snapshot *s, const struct sat_lookup *q);
const struct zero_table *sat_snapshot_zero(const struct sat_snapshot *s, str ns);

#endif
