/* Caches: an AIMTemplateCache wants every model source of its template in an AIMModelCache; an AIMModelCache is a volume
 * and a job that fills it.
 *
 * A volume is made once and never changed; neither is a job. A model that is downloaded is kept when what asked for it
 * goes: others may use it. Pure. */
#ifndef FLYBALL_CACHE_CORE_H
#define FLYBALL_CACHE_CORE_H

#include "runtimeconfig_spec.h"

/* Who fills volumes; what a model cache names itself comes first. */
#define AIM_CACHE_DOWNLOAD_IMAGE "kserve/storage-initializer:v0.15.2"

/* ---- AIMModelCache */

enum aim_cache_volume_phase {
    AIM_CACHE_VOLUME_ABSENT,
    AIM_CACHE_VOLUME_PENDING, /* waits to be bound */
    AIM_CACHE_VOLUME_LAZY,    /* is bound when a pod uses it */
    AIM_CACHE_VOLUME_BOUND,
    AIM_CACHE_VOLUME_LOST,
};

enum aim_cache_job_phase {
    AIM_CACHE_JOB_ABSENT,
    AIM_CACHE_JOB_RUNNING,
    AIM_CACHE_JOB_DONE,
    AIM_CACHE_JOB_FAILED
};

struct aim_cache_model_facts {
    bool config_missing;
    str config_message;
    bool was_available; /* its status said so before */
    bool size_known;
    enum aim_cache_volume_phase volume;
    enum aim_cache_job_phase job;
    str job_message; /* of a failure */
};

struct aim_cache_state {
    const char *status; /* Pending, Progressing, Available, Failed */
    const char *reason;
    str message;
    bool wants_volume, wants_job; /* to be made now */
};

struct aim_cache_state aim_cache_model_state(struct arena *a,
                                             const struct aim_cache_model_facts *facts);

enum aim_cache_volume_phase aim_cache_volume_phase(const struct json *claim,
                                                   bool waits_for_consumer);
enum aim_cache_job_phase aim_cache_job_phase(const struct json *job, str *ret_message);

/* The claim and the job of a model cache. */
struct json *aim_cache_claim(struct arena *a, const char *group, const struct json *cache,
                             const struct runtimeconfig_spec *config);
struct json *aim_cache_job(struct arena *a, const char *group, const struct json *cache,
                           const struct runtimeconfig_spec *config);
int64_t aim_cache_bytes(const struct json *cache); /* spec.size; -1: not known */

/* ---- AIMTemplateCache */

/* A model cache of the namespace that could serve. */
struct aim_cache_candidate {
    str name, source_uri, storage_class, status;
};

/* The one to use for a source; NULL: one has to be made. An empty class takes any. */
const struct aim_cache_candidate *aim_cache_choose(const struct aim_cache_candidate *candidates,
                                                   size_t n, str source_uri, str storage_class);
/* A model cache for a source of a template cache. */
struct json *aim_cache_model_cache(struct arena *a, const char *group,
                                   const struct json *template_cache, const struct json *source,
                                   const struct runtimeconfig_spec *config);

int aim_cache_rank(str status);          /* 0 is worst: Failed, Pending, Progressing, Available */
bool aim_cache_is_available(str status); /* under both of its names */

struct aim_cache_template_facts {
    bool config_missing;
    str config_message;
    bool template_found;
    str template_name;
    size_t sources, available; /* of the template */
    int worst;                 /* aim_cache_rank(); meaningful when there are sources */
};

struct aim_cache_state aim_cache_template_state(struct arena *a,
                                                const struct aim_cache_template_facts *facts);

/* Where a source is mounted: under its own name, if that is a path that stays below. */
str aim_cache_mount_path(struct arena *a, str source_name);

#endif
