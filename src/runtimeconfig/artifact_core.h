/* AIMArtifact: one model source on one volume. Its children (a job that asks for the size, a volume, a job that downloads),
 * its state from theirs, and sizes as people read them. Pure. */
#ifndef FLYBALL_ARTIFACT_CORE_H
#define FLYBALL_ARTIFACT_CORE_H

#include "engine_core.h"
#include "filling_core.h"

#define ARTIFACT_ROLE "aim-engine-artifact-status-updater"

struct aim_artifact_question {
    const char *group; /* the domain of labels */
    const struct json *artifact;
    const struct json *config;   /* effective runtime configuration; NULL: none */
    bool config_default_missing; /* there is none of the name "default" */
};

/* Without owners; of the download job and the volume, the size must be known. */
struct json *aim_artifact_size_job(struct arena *a, const struct aim_artifact_question *q);
struct json *aim_artifact_volume(struct arena *a, const struct aim_artifact_question *q);
struct json *aim_artifact_download_job(struct arena *a, const struct aim_artifact_question *q);
struct json *aim_artifact_role_binding(struct arena *a, const struct aim_artifact_question *q);

/* Bytes of a quantity or number in JSON; 0: absent or neither. */
int64_t aim_artifact_quantity(const struct json *v);
/* Bytes of the source: from the spec, else as discovered; 0: unknown. */
int64_t aim_artifact_bytes(const struct json *artifact);
/* A spec.size that is no quantity above zero, as text; empty: it is one, or unset. */
str aim_artifact_invalid_size(struct arena *a, const struct json *artifact);
int64_t aim_artifact_headroom_percent(const struct json *config);

/* The answer of the size job: its last line. -EINVAL with the words of the original. */
int aim_artifact_parse_size(struct arena *a, str log, int64_t *ret_bytes, err_t *e);
/* "42 GiB"; empty: it cannot be shown. */
str aim_artifact_display(struct arena *a, int64_t bytes);

/* ---- state */

struct aim_artifact_facts {
    struct aim_artifact_question q;
    const struct json *size_job, *size_pods, *volume, *job, *pods; /* NULL: do not exist */
    struct aim_filling filling;                                    /* zero: as the original */
    bool job_leaving; /* a download job is being deleted: its successor waits */
    bool role_binding;
    str size_log, pod_log; /* of the finished size job; of a failed pod */
    bool as_original; /* an unreadable size counts as infrastructure, an invalid one as unset */
};

enum { ARTIFACT_COMPONENTS = 5 };

struct aim_artifact_state {
    struct aim_engine_component components[ARTIFACT_COMPONENTS];
    size_t n;
    struct aim_engine_condition complete; /* DownloadComplete; type empty: not set */
    bool make_role_binding, make_size_job, make_volume, make_job;
    bool drop_job;       /* the download job belongs to another volume */
    struct json *fields; /* of the status, beside conditions and word */
};

struct aim_artifact_state aim_artifact_state(struct arena *a, const struct aim_artifact_facts *f);

#endif
