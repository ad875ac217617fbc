/* One pass over one object: what is known and now go in; writes, status, events and the next wake-up
 * come out. Pure, so that every path is tested without a server, and a restart in between is one
 * more call.
 *
 * A plan asks for at most one kind of write to the outside (create, patch, scale); `status` and
 * `events` come with the plan that needs none. The controller therefore plans, writes, notes what came
 * of it in the pass, and plans again:
 *
 *     plan -> patch wanted -> sent -> pass.hpa.bounds = the new ones, pass.changed_from = the old ones
 *     plan -> nothing wanted: status and events
 *
 * What must survive a restart is read from and written to the object's status (what was applied last,
 * by which source, since when a condition holds) and the HPA's baseline annotation. */
#ifndef FLYBALL_SCHEDULE_PLAN_H
#define FLYBALL_SCHEDULE_PLAN_H

#include "schedule_apply.h"
#include "schedule_core.h"

#define SCHEDULE_FINALIZER "autoscaling.sarabala.io/smarthpa-finalizer"
#define SCHEDULE_PAUSED "autoscaling.sarabala.io/paused"
#define SCHEDULE_BASELINE "autoscaling.sarabala.io/smarthpa-baseline"

enum {
    SCHEDULE_WAKE_MAX_S = 300,     /* never sleep longer, whatever the clock does */
    SCHEDULE_MISSING_RETRY_S = 30, /* the HPA is not there */
    SCHEDULE_REVERTS_MAX = 5,      /* within SCHEDULE_CONTEND_S: somebody else writes too */
    SCHEDULE_CONTEND_S = 600,
    SCHEDULE_FORBIDDEN_MAX =
        6, /* refusals, about a minute, until a deletion leaves the bounds as they are */
};

struct schedule_object {
    str ns, name, uid;
    int64_t generation, created;
    bool deleting, has_finalizer, paused;
    const struct schedule_spec *spec;
    const struct json *status; /* as it is; NULL: none yet */
};

struct schedule_hpa {
    bool found;
    struct schedule_bounds bounds;
    bool may_be_zero; /* has an Object or External metric */
    bool ours;        /* its controller is our object: we created it */
    str baseline;     /* the annotation, "" when absent */
    bool has_target;  /* names a workload */
    int64_t replicas; /* status.currentReplicas; -1: not known */
};

/* May be lost: then counting begins again. */
struct schedule_memory {
    int64_t reverts[SCHEDULE_REVERTS_MAX]; /* drift corrections of the last minutes */
    size_t next;
    unsigned forbidden; /* patches in a row that were not allowed */
};

enum schedule_scaled {
    SCHEDULE_SCALE_NOT_TRIED,
    SCHEDULE_SCALE_DONE,   /* written, or not needed */
    SCHEDULE_SCALE_FAILED, /* see pass.trouble */
};

struct schedule_pass {
    struct schedule_object object;
    struct schedule_hpa hpa;
    bool template_found; /* the HPA that the template makes exists */
    str rival;           /* "namespace/name" of an older object with the same target, or "" */
    str refused;         /* why the target may not be governed, or ""; `hpa` is then hidden */
    str query_problem;   /* why smartRecommendation.query is not sent, or "" */
    int64_t now;
    struct schedule_memory *memory;
    const struct json *recommendation; /* a new one to publish; NULL: keep the old one */

    /* what came of the writes of this pass */
    bool changed;                        /* the HPA was patched... */
    struct schedule_bounds changed_from; /* ...from these bounds */
    bool create_failed;                  /* the template's HPA was refused: `trouble` */
    bool rejected;                       /* the server refuses the patch for good: `trouble` */
    enum schedule_scaled scaled;
    str trouble; /* one sentence */
};

struct schedule_event {
    bool warning;
    const char *reason;
    str message;
};

/* Why bounds are written: the label `phase` of smarthpa_trigger_applied_total. */
enum schedule_phase {
    SCHEDULE_PHASE_START,   /* a window opened */
    SCHEDULE_PHASE_NEXT,    /* one closed and another, still open, took over */
    SCHEDULE_PHASE_END,     /* the last open one closed */
    SCHEDULE_PHASE_RESTORE, /* back to the bounds from before */
    SCHEDULE_PHASE_N
};

struct schedule_plan {
    bool add_finalizer, remove_finalizer;
    const struct json *create; /* an HPA to create, complete */
    const struct json *patch;  /* merge patch of the target HPA */
    struct schedule_bounds to; /* what the patch sets */
    bool reverts;              /* the patch undoes somebody's change */
    bool scale;                /* the workload must be scaled: */
    int32_t replicas;          /* to this many */
    bool scale_down_too;       /* otherwise only up */
    const struct json *status; /* merge patch of our own status; NULL: nothing changed */
    struct schedule_event *events;
    size_t events_n;
    int64_t wake; /* when to look again at the latest */

    /* for metrics, logs and explain */
    struct schedule_effective effective;
    struct schedule_trigger_now *states;
    struct schedule_bounds target; /* bounds that should hold */
    bool governed;                 /* `target` means something */
    enum schedule_phase phase;
};

/* The HPA an object governs: its reference, or what its template makes. */
struct schedule_target {
    str ns, name;       /* name "": there is none */
    bool from_template; /* nothing else names it */
};

struct schedule_target schedule_target(struct arena *a, const struct schedule_spec *spec, str ns,
                                       str name);

struct schedule_plan schedule_plan(struct arena *a, const struct schedule_pass *pass);

/* Notes a drift correction that was written. */
void schedule_memory_revert(struct schedule_memory *m, int64_t now);

const char *schedule_phase_name(enum schedule_phase phase);

#endif
