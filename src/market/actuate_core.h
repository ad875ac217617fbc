/* One step of the controller for one PodAllocation, as a pure function: desired CPU and observed
 * pod in, patch and status out.
 *
 * A resize is complete when the node reports it: no PodResizePending or PodResizeInProgress for
 * the current generation, and the reported resources of every container equal its spec. Until
 * then the allocation is Pending. If the node will not do it, the allocation is Failed and the
 * spec returns to what the node admitted, because a pending resize reserves CPU that other pods
 * could use.
 *
 * The resources of each container before the first resize are the originals. They are recorded
 * in the status before the resize is sent; they are the weights by which the pod's amount is
 * split over its containers, and the values that are restored when the pod opts out. */
#ifndef FLYBALL_ACTUATE_CORE_H
#define FLYBALL_ACTUATE_CORE_H

#include "resize_core.h"

/* Memory of one container, in thousandths of a byte as quantities are kept; -1: none. */
struct actuate_bytes {
    int64_t request, limit;
};

struct actuate_container {
    str name;
    bool sidecar;                             /* an init container with restartPolicy Always */
    bool fixed;                               /* a resize would restart it, which is not allowed */
    int64_t request_milli, limit_milli;       /* of the spec; -1: none */
    int64_t now_request, now_limit;           /* in force; -1: not reported */
    int64_t allocated_milli;                  /* request the node admitted; -1: not reported */
    int64_t original_request, original_limit; /* -1: it had none */
    int64_t target_request, target_limit;     /* output; valid if the plan patches */
    struct actuate_bytes memory;              /* of the spec */
    struct actuate_bytes memory_now;          /* admitted request, limit in force */
    struct actuate_bytes memory_original;     /* before the first resize */
    struct actuate_bytes memory_desired;      /* of the allocation; limit 0: leave it alone */
    struct actuate_bytes memory_target;       /* output; valid if the plan patches */
    bool memory_fixed;                        /* a change of memory would restart it */
    bool memory_shrink;                       /* its limit may be lowered */
};

struct actuate_pod {
    bool found;  /* exists, and is the pod that the allocation was created for */
    bool ending; /* being deleted, succeeded or failed */
    bool running;
    bool opted_out; /* mbcas.io/managed: "false" */
    bool mirror;    /* a static pod */
    bool windows;
    bool guaranteed_too; /* mbcas.io/skip-guaranteed: "false" */
    enum qos qos;
    str pending, pending_message;         /* PodResizePending of the current generation; "": none */
    int64_t pending_since_ns;             /* wall clock; 0: not reported */
    bool progressing;                     /* PodResizeInProgress is set */
    str progress, progress_message;       /* its reason ("Error") and message */
    struct actuate_container *containers; /* borrowed; targets are written into them */
    size_t n;
};

/* What earlier steps found: read from the status, and from writes that the cache does not show
 * yet. */
struct actuate_memory {
    bool has_originals;          /* the containers' original_* are valid */
    int64_t patched_ns;          /* wall clock of the last resize; 0: never */
    int64_t attempted_ns;        /* wall clock of the last attempt, successful or not; 0: never */
    int64_t infeasible_milli;    /* a limit that the node rejected as infeasible; 0: none */
    int64_t infeasible_until_ns; /* wall clock; then it may be tried again */
    int64_t memory_until_ns;     /* wall clock: the node refused the desired memory until then */
    str refusal_reason,
        refusal_message; /* the current spec has Failed with these; "": it has not */
    bool dry_run_done;   /* the current spec was already sent as a dry run */
    int error_n;         /* consecutive resizes that failed on the node */
};

struct actuate_input {
    struct actuate_pod pod;
    struct actuate_memory memory;
    str desired_request, desired_limit; /* quantities of the spec, unchecked */
    int64_t room_milli;                 /* by how much the pod's limit may grow now */
    bool restore;                       /* restore the originals instead of following the spec */
    bool dry_run;
    int64_t now_ns;
};

enum actuate_phase { ACTUATE_PENDING, ACTUATE_APPLIED, ACTUATE_FAILED, ACTUATE_PHASE_N };
extern const char *const actuate_phase_names[ACTUATE_PHASE_N];

struct actuate_plan {
    enum actuate_phase phase;
    const char *reason;
    str message;
    bool patch;            /* send the containers' targets: see actuate_patch() */
    bool of_memory;        /* the patch changes memory, not CPU */
    bool memory_refused;   /* the node refused it: to be recorded */
    bool record_originals; /* record the originals in the status before sending */
    bool delete_originals; /* they are restored: remove them from the status */
    bool verified;         /* the desired resources are in force */
    bool skip_status;      /* write no status: the pod is ending */
    int64_t in_force_request, in_force_limit; /* of the whole pod; -1: unknown */
    int64_t from_milli, to_milli;             /* of the pod's limit, if the plan patches */
    int64_t infeasible_milli; /* limit newly found infeasible, to be recorded; 0: none */
    int64_t wake_ns;          /* reconcile again after this long; 0: on the next event */
};

#define ACTUATE_DEFERRED_NS INT64_C(60000000000)    /* then the resize is withdrawn */
#define ACTUATE_REFUSED_NS INT64_C(120000000000)    /* then it is tried again */
#define ACTUATE_INFEASIBLE_NS INT64_C(600000000000) /* the same after Infeasible */
#define ACTUATE_UNLIMITED_MILLI INT64_C(256000) /* instead of no limit: a limit cannot be removed */

/* actuate_memory_core.c. Memory and CPU never share a patch, because the kubelet admits a resize
 * whole or not at all; what the node refused is withdrawn for both. */
void actuate_keep_memory(const struct actuate_pod *pod);   /* targets := spec */
bool actuate_target_memory(const struct actuate_pod *pod); /* := desired; false: nothing to do */
void actuate_restore_memory(const struct actuate_pod *pod);
bool actuate_admit_memory(const struct actuate_pod *pod); /* := admitted; false: not reported */
bool actuate_memory_is_target(const struct actuate_container *c);
bool actuate_memory_is_enacted(const struct actuate_container *c);

/* Decides the next step. Writes the targets into the containers; messages live in the arena. */
struct actuate_plan actuate_decide(struct arena *a, const struct actuate_input *in);

/* The patch for the resize subresource that sets the targets. */
struct json *actuate_patch(struct arena *a, const struct actuate_pod *pod);

/* The limit of the whole pod by its spec, and the larger of spec and in force, which is what the
 * node must reserve. A container without a limit counts with its request. */
int64_t actuate_spec_limit(const struct actuate_pod *pod);
int64_t actuate_claimed_limit(const struct actuate_pod *pod);

/* The smallest limit that the pod can get: every container needs a minimum, and fixed ones keep
 * theirs. */
int64_t actuate_least_limit(const struct actuate_pod *pod);

#endif
