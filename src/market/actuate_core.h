/* From what a pod should have and what it has to the next thing to do: one pure step of the controller.
 *
 * A resize is done when the node says so: no PodResizePending or PodResizeInProgress for the present
 * generation, and every container's reported resources are those of its spec. Until then the allocation
 * is Pending; what is never going to happen is Failed, and the spec goes back to what the node
 * admitted, because a resize that waits reserves room that others could use.
 *
 * What each container had before the first resize is remembered (in the status, before the resize is
 * sent) and is both the key by which the pod's amount is split and what opting out gives back. */
#ifndef FLYBALL_ACTUATE_CORE_H
#define FLYBALL_ACTUATE_CORE_H

#include "resize_core.h"

struct actuate_container {
    str name;
    bool sidecar;                             /* an init container that keeps running */
    bool fixed;                               /* a resize would restart it */
    int64_t request_milli, limit_milli;       /* of the spec; -1: none */
    int64_t now_request, now_limit;           /* in force; -1: not reported */
    int64_t allocated_milli;                  /* request the node admitted; -1: not reported */
    int64_t original_request, original_limit; /* -1: there was none */
    int64_t target_request, target_limit;     /* out; meaningful where the plan patches */
};

struct actuate_pod {
    bool found;  /* it exists and is the one the allocation was made for */
    bool ending; /* being deleted, or has ended */
    bool running;
    bool opted_out, mirror, windows, guaranteed_too;
    enum qos qos;
    str pending, pending_message; /* of the condition for the present generation; "": none */
    int64_t pending_since_ns;
    bool progressing;
    str progress, progress_message; /* reason ("Error") and words */
    struct actuate_container *containers;
    size_t n;
};

/* What is known from before: from the status, and from what was sent since. */
struct actuate_memory {
    bool has_originals;                  /* the containers' original_* are what was recorded */
    int64_t patched_ns;                  /* when the pod was last resized; 0: never */
    int64_t attempted_ns;                /* when a resize was last tried, also in vain; 0: never */
    int64_t infeasible_milli;            /* a limit that did not fit; 0: none */
    int64_t infeasible_until_ns;         /* how long that is believed */
    str refusal_reason, refusal_message; /* this very wish has Failed; "": it has not */
    bool dry_run_done;                   /* this very wish was tried without effect */
    int error_n;                         /* resizes in a row that the node failed to carry out */
};

struct actuate_input {
    struct actuate_pod pod;
    struct actuate_memory memory;
    str desired_request, desired_limit;
    int64_t room_milli; /* by how much the pod's limit may grow before others have shrunk */
    bool restore;       /* give back what the pod had, and leave it */
    bool dry_run;
    int64_t now_ns;
};

enum actuate_phase { ACTUATE_PENDING, ACTUATE_APPLIED, ACTUATE_FAILED, ACTUATE_PHASE_N };
extern const char *const actuate_phase_names[ACTUATE_PHASE_N];

struct actuate_plan {
    enum actuate_phase phase;
    const char *reason;
    str message;
    bool patch;                               /* send the containers' targets */
    bool record_originals;                    /* they must be recorded before it is sent */
    bool delete_originals;                    /* given back: the pod is its owner's again */
    bool verified;                            /* what is in force is what is desired */
    bool leave;                               /* nothing can be said: the pod is on its way out */
    int64_t in_force_request, in_force_limit; /* of the whole pod; -1: not known */
    int64_t from_milli, to_milli;             /* of the pod's limit, where the plan patches */
    int64_t infeasible_milli; /* newly found not to fit, to be remembered; 0: none */
    int64_t wake_ns;          /* look again after this long; 0: when told */
};

#define ACTUATE_DEFERRED_NS INT64_C(60000000000) /* then the wish is withdrawn */
#define ACTUATE_REFUSED_NS INT64_C(120000000000) /* and comes again after this long; Infeasible: */
#define ACTUATE_INFEASIBLE_NS INT64_C(600000000000)
#define ACTUATE_UNLIMITED_MILLI INT64_C(256000) /* instead of no limit, which cannot be had back */

/* Writes the targets into the containers. */
struct actuate_plan actuate_decide(struct arena *a, const struct actuate_input *in);

/* The patch for the resize subresource that makes the targets so. */
struct json *actuate_patch(struct arena *a, const struct actuate_pod *pod);

/* The limit of the whole pod: by its spec, in force, and the larger of both, which is what its node must
 * count with. A container without one counts with its request. */
int64_t actuate_spec_limit(const struct actuate_pod *pod);
int64_t actuate_claimed_limit(const struct actuate_pod *pod);

/* The smallest that it can get, whatever is wished: every container needs a little, and what is fixed stays. */
int64_t actuate_least_limit(const struct actuate_pod *pod);

#endif
