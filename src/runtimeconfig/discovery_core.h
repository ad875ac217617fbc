/* Discovery: a Job that asks the image of a model which sources and settings it would use, how its answer is read, when it
 * is tried again, and whether the cluster has the GPUs at all. Pure. */
#ifndef FLYBALL_DISCOVERY_CORE_H
#define FLYBALL_DISCOVERY_CORE_H

#include "engine_core.h"

enum { DISCOVERY_LOG_BYTES = 1 << 20, DISCOVERY_JOBS_MAX = 10, DISCOVERY_HASH_DIGITS = 16 };

struct aim_discovery_question {
    const char *group;       /* the domain of labels */
    str ns;                  /* of the Job */
    str template;            /* name */
    bool cluster;            /* a cluster-scoped template: env is not passed */
    const struct json *spec; /* of the template */
    str model, image, service_account;
    const struct json *pull_secrets; /* a list of names; NULL: none */
};

/* The Job, without an owner. */
struct json *aim_discovery_job(struct arena *a, const struct aim_discovery_question *q);
/* status.discovery.specHash: another one resets the attempts. */
str aim_discovery_hash(struct arena *a, const struct aim_discovery_question *q);

/* ---- the answer */

struct aim_discovery_result {
    struct json *sources; /* status.modelSources; NULL: none */
    struct json *profile,
        *hardware; /* status.profile, status.resolvedHardware; hardware NULL: none */
    str summary;   /* "2 x MI300X", "GPU", "CPU", "" */
};

/* Reads the log of the discovery container. `as_original` takes any array of objects, and only the last one. -EINVAL. */
int aim_discovery_parse(struct arena *a, str log, const struct json *spec, bool as_original,
                        struct aim_discovery_result *ret, err_t *e);
/* The same from a spec with its sources in line. */
struct aim_discovery_result aim_discovery_inline(struct arena *a, const struct json *spec);

/* ---- attempts */

int64_t aim_discovery_backoff_s(int64_t attempts);

struct aim_discovery_attempts {
    int64_t attempts; /* failed so far */
    str spec_hash;
    double last_ago_s; /* since the last one */
};

/* May a Job be created? Otherwise `*ret_message` is how long to wait. `state` NULL: never tried. */
bool aim_discovery_may_create(struct arena *a, const struct aim_discovery_attempts *state,
                              str spec_hash, str *ret_message);

/* Is the Job over, and did it succeed? `*ret_reason` is why it failed. */
bool aim_discovery_is_complete(const struct json *job, bool *ret_succeeded, str *ret_reason);

/* ---- GPUs */

struct aim_discovery_gpu {
    bool available;
    struct aim_engine_component component; /* name NULL: no GPU is needed */
    struct json *node_affinity;            /* NULL: none */
};

/* `gpus` maps the models in the cluster to their memory ("192G"). */
struct aim_discovery_gpu aim_discovery_gpu(struct arena *a, const struct json *spec,
                                           const struct json *gpus);

#endif
