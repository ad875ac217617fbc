/* One pass over one object: the known state and now go in; writes, status, events and the next wake-up
 * come out. Pure, so that every path is tested without a server, and a restart in between is just
 * another call.
 *
 * A plan contains at most one kind of write (create, patch, scale); `status` and `events` are set in the
 * plan that needs no write. The controller therefore plans, writes, records the result in the pass, and
 * plans again:
 *
 *     plan -> patch -> sent -> pass.hpa.bounds = new bounds, pass.changed_from = old bounds
 *     plan -> no write: status and events
 *
 * State that must survive a restart is kept in the object's status (what was applied last, by which
 * source, since when a condition is true) and in the HPA's baseline annotation. */
#ifndef FLYBALL_SCHEDULE_PLAN_CORE_H
#define FLYBALL_SCHEDULE_PLAN_CORE_H

#include "schedule_apply_core.h"
#include "schedule_core.h"

#define SCHEDULE_FINALIZER "autoscaling.sarabala.io/smarthpa-finalizer"
#define SCHEDULE_PAUSED "autoscaling.sarabala.io/paused"
#define SCHEDULE_TEMPLATE "autoscaling.sarabala.io/smarthpa-template"
#define SCHEDULE_BASELINE "autoscaling.sarabala.io/smarthpa-baseline"

enum {
    SCHEDULE_WAKE_MAX_S = 300,     /* longest sleep, in case a timer or the clock misbehaves */
    SCHEDULE_MISSING_RETRY_S = 30, /* the HPA does not exist */
    SCHEDULE_REVERTS_MAX = 5,      /* within SCHEDULE_CONTEND_S: another client writes too */
    SCHEDULE_CONTEND_S = 600,
    SCHEDULE_FORBIDDEN_MAX =
        6, /* refusals (about a minute) before a deletion leaves the bounds unchanged */
};

struct schedule_object {
    str ns, name, uid;
    int64_t generation, created;
    bool deleting, has_finalizer, paused;
    const struct schedule_spec *spec;
    const struct json *status; /* the current one; NULL: none yet */
};

/* What a schedule manages. */
enum schedule_target_kind {
    SCHEDULE_TARGET_HPA,
    SCHEDULE_TARGET_SCALED_OBJECT, /* of KEDA: its own bounds, never those of the HPA that it owns */
    SCHEDULE_TARGET_WORKLOAD, /* anything with a scale subresource: replicas, at each transition */
};

struct schedule_hpa { /* the target, of any kind */
    enum schedule_target_kind kind;
    bool found;
    bool paused;   /* ScaledObject: an annotation pauses it */
    bool has_idle; /* ScaledObject: idleReplicaCount is set... */
    int32_t idle;  /* ...to this, and minReplicaCount must be larger */
    struct schedule_bounds bounds;
    bool may_be_zero;  /* minReplicas 0 is valid: it has an Object or External metric */
    bool ours;         /* its controller reference is this schedule: we created it */
    str baseline;      /* the baseline annotation; "": none */
    str template_hash; /* the annotation with the hash of the template that was applied; "": none */
    bool has_target;   /* it has a scaleTargetRef */
    int64_t replicas;  /* status.currentReplicas; -1: unknown */
};

/* Counters that may be lost in a restart; they then start over. */
struct schedule_memory {
    int64_t reverts[SCHEDULE_REVERTS_MAX]; /* times of the last drift corrections, a ring */
    size_t next;                           /* oldest entry of the ring */
    unsigned forbidden;                    /* consecutive patches that RBAC denied */
    bool scale_failed;                     /* the last attempt to scale the workload failed */
};

enum schedule_scaled {
    SCHEDULE_SCALE_NOT_TRIED,
    SCHEDULE_SCALE_DONE,   /* written, or already at the wanted number */
    SCHEDULE_SCALE_FAILED, /* see pass.failure */
};

struct schedule_pass {
    struct schedule_object object;
    struct schedule_hpa hpa;
    bool template_found; /* the HPA of the template exists */
    str managed_by;      /* "namespace/name" of an older schedule with the same target, or "" */
    str refused; /* why this schedule may not manage the target, or ""; `hpa` is then hidden */
    const char *refused_reason; /* the condition's reason, set with `refused` */
    str query_problem;          /* why smartRecommendation.query is not sent, or "" */
    int64_t now;
    struct schedule_memory *memory;
    const struct json *recommendation; /* a new one to publish, borrowed; NULL: keep the old one */
    const char *advice_reason; /* why the last analysis has no result; NULL: unknown, or it has */
    str advice_problem;        /* the sentence that goes with it */

    /* results of the writes of this pass */
    bool changed;                        /* the HPA was patched... */
    struct schedule_bounds changed_from; /* ...from these bounds */
    bool create_failed;                  /* the server refused to create the template's HPA */
    bool template_applied;               /* the template's HPA was updated in this pass */
    bool rejected; /* the server refused the patch; a retry alone will not help */
    enum schedule_scaled scaled;
    str failure; /* one sentence; set with create_failed, rejected and SCALE_FAILED */
};

struct schedule_event {
    bool warning;
    const char *reason;
    str message;
};

/* Why bounds are written: the label `phase` of smarthpa_trigger_applied_total. */
enum schedule_phase {
    SCHEDULE_PHASE_START,   /* a window opened */
    SCHEDULE_PHASE_NEXT,    /* a window closed and another open one took over */
    SCHEDULE_PHASE_END,     /* the last open window closed */
    SCHEDULE_PHASE_RESTORE, /* back to the baseline */
    SCHEDULE_PHASE_N
};

struct schedule_plan {
    bool add_finalizer, remove_finalizer;
    const struct json *create; /* an HPA to create... */
    bool updates_template;     /* ...or, if this is set, to apply to the one that exists */
    const struct json *patch;  /* merge patch for the target HPA */
    struct schedule_bounds to; /* the bounds that the patch sets */
    bool reverts;              /* the patch reverts a change of another client */
    bool scale;                /* the workload must be scaled... */
    int32_t replicas;          /* ...to this many */
    bool scale_clamps;   /* ...or to as few changes as fit `target`, if it has more or fewer */
    bool scale_down_too; /* otherwise only scale up */
    const struct json *status; /* merge patch for the schedule's status; NULL: nothing changed */
    struct schedule_event *events;
    size_t events_n;
    int64_t wake; /* latest time of the next pass */

    /* for metrics, logs and `flyball explain` */
    struct schedule_effective effective;
    struct schedule_trigger_now *states;
    struct schedule_bounds target; /* the bounds that should apply */
    bool governed;                 /* a trigger or a default sets `target` */
    enum schedule_phase phase;
};

/* The HPA that a schedule manages: HPAObjectRef, or else the HPA of its template. */
struct schedule_target {
    str ns, name; /* name "": no target */
    enum schedule_target_kind kind;
    str api_version, kind_name; /* of a workload */
    bool from_template;         /* HPAObjectRef is not set */
};

struct schedule_target schedule_target(struct arena *a, const struct schedule_spec *spec, str ns,
                                       str name);

struct schedule_plan schedule_plan(struct arena *a, const struct schedule_pass *pass);

/* Records a drift correction that was written. */
void schedule_memory_revert(struct schedule_memory *m, int64_t now);

const char *schedule_phase_name(enum schedule_phase phase);

#endif
