/* What a workload states about its replicas: how many GPUs one needs, on which accelerator it runs,
 * which role it has, and which inference engine. Read from a Deployment, a StatefulSet or a
 * LeaderWorkerSet, whose replica is a group of pods. */
#ifndef FLYBALL_WORKLOAD_CORE_H
#define FLYBALL_WORKLOAD_CORE_H

#include "../../json/json.h"

struct workload_facts {
    int64_t gpus;       /* per replica, of all its pods; at least 1 */
    int64_t group_size; /* pods of one replica */
    str role;           /* both, prefill, decode */
    str accelerator;    /* as the template selects it, else from the label; "unknown" */
    str type;           /* its short name */
    bool sglang;        /* else vLLM */
    bool names_type;    /* the template selects the accelerator itself */
};

/* WVA counts the leader of a LeaderWorkerSet without a template of its own as no pod, takes a size
 * below 1 as it is, and does not know the resource intel.com/gpu. */
enum workload_rules { WORKLOAD_OURS, WORKLOAD_WVA };

/* `label`: inference.optimization/acceleratorName of the variant, "" if it has none. Texts are
 * slices of `object`. */
struct workload_facts workload_read(struct arena *a, const struct json *object, str label,
                                    enum workload_rules rules);

/* The product that a nodeAffinity names first, required before preferred; "": none. */
str workload_affinity_product(const struct json *affinity);

#endif
