/* Caches: an AIMTemplateCache requires an AIMModelCache for every model source of its template; an AIMModelCache is
 * a volume and a job that fills it.
 *
 * Volumes and jobs are created once and never changed. A downloaded model is kept when the object that requested it is
 * deleted: others may use it. Pure. */
#ifndef FLYBALL_CACHE_CORE_H
#define FLYBALL_CACHE_CORE_H

#include "filling_core.h"
#include "runtimeconfig_spec.h"

/* Default image of the download job; spec.modelDownloadImage takes precedence. */
#define AIM_CACHE_DOWNLOAD_IMAGE "kserve/storage-initializer:v0.15.2"

/* ---- AIMModelCache */

enum aim_cache_volume_phase {
    AIM_CACHE_VOLUME_ABSENT,
    AIM_CACHE_VOLUME_PENDING, /* not bound yet */
    AIM_CACHE_VOLUME_LAZY,    /* will be bound when a pod uses it */
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
    bool was_available; /* according to its last status */
    bool size_known;
    enum aim_cache_volume_phase volume;
    enum aim_cache_job_phase job;
    str job_message; /* why it failed */
    struct aim_filling filling;
    bool job_leaving; /* it is being deleted: its successor waits */
};

struct aim_cache_state {
    const char *status; /* Pending, Progressing, Available, Failed */
    const char *reason;
    str message;
    bool wants_volume, wants_job; /* must be created now */
    bool drops_job;               /* belongs to another volume: must be deleted now */
};

struct aim_cache_state aim_cache_model_state(struct arena *a,
                                             const struct aim_cache_model_facts *facts);

enum aim_cache_volume_phase aim_cache_volume_phase(const struct json *claim,
                                                   bool waits_for_consumer);
enum aim_cache_job_phase aim_cache_job_phase(const struct json *job, str *ret_message);

/* The PersistentVolumeClaim and the Job of a model cache. */
struct json *aim_cache_claim(struct arena *a, const char *group, const struct json *cache,
                             const struct runtimeconfig_spec *config);
struct json *aim_cache_job(struct arena *a, const char *group, const struct json *cache,
                           const struct runtimeconfig_spec *config);
int64_t aim_cache_bytes(const struct json *cache); /* spec.size; -1: unknown */

/* ---- AIMTemplateCache */

/* A model cache of the namespace that may be used. */
struct aim_cache_candidate {
    str name, source_uri, storage_class, status;
};

/* The one to use for a source; NULL: one must be created. An empty storage class matches any. */
const struct aim_cache_candidate *aim_cache_choose(const struct aim_cache_candidate *candidates,
                                                   size_t n, str source_uri, str storage_class);
/* A model cache for a source of a template cache. */
struct json *aim_cache_model_cache(struct arena *a, const char *group,
                                   const struct json *template_cache, const struct json *source,
                                   const struct runtimeconfig_spec *config);

int aim_cache_rank(str status); /* 0 (worst) to 3: Failed, Pending, Progressing, Available */
bool aim_cache_is_available(str status); /* "Available" or "Ready" */

struct aim_cache_template_facts {
    bool config_missing;
    str config_message;
    bool template_found;
    str template_name;
    size_t sources, available; /* model sources of the template */
    int worst; /* lowest aim_cache_rank() of its caches; valid if there are sources */
};

struct aim_cache_state aim_cache_template_state(struct arena *a,
                                                const struct aim_cache_template_facts *facts);

/* Where a source is mounted: under its own name, unless that would leave the cache directory. */
str aim_cache_mount_path(struct arena *a, str source_name);

#endif
