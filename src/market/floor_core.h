/* What every pod of a node is guaranteed, whatever the others ask for.
 *
 * The baseline comes first. Only what is left after every baseline is given out in stages: least
 * limits of pods whose request is held for an HPA, then `mbcas.io/min-cpu` annotations, then
 * startup boosts. So an annotation, an HPA or a boost can cost a neighbor what it would get on
 * top, but never its baseline. */
#ifndef FLYBALL_FLOOR_CORE_H
#define FLYBALL_FLOOR_CORE_H

#include "../base/arena.h"
#include "clear_core.h"

/* What was wrong with a pod's wishes; bits of floor_pod.problems. */
enum floor_problem {
    FLOOR_MIN_BAD_QUANTITY,         /* min-cpu is not a quantity: ignored */
    FLOOR_MIN_NOT_POSITIVE,         /* min-cpu <= 0: ignored */
    FLOOR_MIN_ABOVE_MAX,            /* lowered to max-cpu */
    FLOOR_MIN_ABOVE_ORIGINAL_LIMIT, /* lowered to the limit that the quota admitted */
    FLOOR_MIN_ABOVE_SHARE,          /* lowered to maxMinCPUShare of the node */
    FLOOR_MAX_BAD_QUANTITY,
    FLOOR_MAX_NOT_POSITIVE,
    FLOOR_HELD_REDUCED, /* the node has no room for the whole of it */
    FLOOR_MIN_REDUCED,
    FLOOR_BOOST_REDUCED,
    FLOOR_PROBLEM_N
};

#define FLOOR_ANNOTATION_PROBLEMS                                                                  \
    (1u << FLOOR_MIN_BAD_QUANTITY | 1u << FLOOR_MIN_NOT_POSITIVE | 1u << FLOOR_MAX_BAD_QUANTITY |  \
     1u << FLOOR_MAX_NOT_POSITIVE)

struct floor_problem_name {
    const char *source; /* "min_cpu", "max_cpu", "held" or "boost" */
    const char *code;   /* "above-share", ... */
};
struct floor_problem_name floor_problem_name(enum floor_problem problem);

struct floor_pod {
    int64_t min_milli, max_milli; /* of the annotations; 0: none */
    int64_t original_limit_milli; /* before the first resize; 0: none */
    int64_t held_milli;           /* least limit while an HPA's request is held; 0: not held */
    int64_t boost_milli;          /* limit of a startup boost; 0: none */
    double weight;
    uint32_t problems; /* bits of floor_problem; floor_guarantee() adds to them */

    /* results */
    int64_t bounded_milli;    /* min-cpu after its bounds; 0: none */
    int64_t baseline_milli;   /* of this pod */
    int64_t guaranteed_milli; /* under overload, the baseline that cannot be kept */
    int64_t overload_milli;   /* what it gets when the node is overloaded; else 0 */
};

struct floor_rules {
    int64_t capacity_milli; /* < 0 counts as 0 */
    int64_t baseline_milli, absolute_min_milli;
    double max_share; /* 0..1 of the node that an annotation or a boost may claim */
};

struct floor_result {
    bool overloaded;           /* the baselines alone exceed capacity: nothing else is guaranteed */
    bool below_kernel_minimum; /* even the kernel's least quotas do not fit: leave limits alone */
    int64_t room_milli;        /* what is left above all guarantees */
};

/* Reads an annotation's quantity into millicores, rounded up. Sets ret_milli to 0 and the problem's
 * bit if it is not a quantity or not positive. */
int64_t floor_read_min(str text, uint32_t *problems);
int64_t floor_read_max(str text, uint32_t *problems);

struct floor_result floor_guarantee(const struct floor_rules *rules, struct floor_pod *pods,
                                    size_t n, struct clear_scratch *scratch, struct arena *a);

#endif
