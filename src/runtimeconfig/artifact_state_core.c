/* The state of an AIMArtifact from its children; see artifact_core.h.
 *
 * Called with everything that was observed, returns the components of the status, its fields, and which
 * children to create next. Nothing is remembered between calls: each step is visible in a child or in the
 * status.
 *
 *   size unknown   CheckSizeJob, its pods, and the size that it printed
 *   size known     CachePvc, then DownloadJob and its pods; DownloadComplete as a condition
 *
 * An artifact that was ready stays so while the volume that was filled exists, even after its Job was cleaned up. If that volume is
 * gone, a Job of it is deleted, and the files are downloaded to the next one. */
#include "artifact_core.h"

#include "engine_children_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* A child that we create and that does not exist yet. */
static struct aim_engine_component missing_child(const char *name)
{
    return (struct aim_engine_component){
        .name = name,
        .errors = { { ENGINE_MISSING_DOWNSTREAM, S("ResourceNotReady"),
                      S("Downstream resource not found or being created") } }
    };
}

static void add_component(struct aim_artifact_state *s, const char *name,
                          struct aim_engine_component c)
{
    c.name = name;
    s->components[s->n++] = c;
}

/* Artifacts work without a configuration, so its absence is reported but is not a fault. */
static void add_config(struct aim_artifact_state *s, const struct aim_artifact_question *q)
{
    bool missing = q->config_default_missing;
    add_component(s, "RuntimeConfig",
                  (struct aim_engine_component){
                      .state = ENGINE_READY,
                      .reason = missing ? S("DefaultConfigNotFound") : S("ConfigFound"),
                      .message = missing ? S("Default config was not found") : S(""),
                      .has_reason = true,
                      .upstream = true });
}

/* The job that asks for the size, and what it answered. */
static void add_size(struct arena *a, struct aim_artifact_state *s,
                     const struct aim_artifact_facts *f)
{
    if (!f->size_job) {
        add_component(s, "CheckSizeJob", missing_child("CheckSizeJob"));
        s->make_size_job = true;
        return;
    }
    struct aim_engine_component job = aim_engine_job(f->size_job);
    int64_t bytes;
    err_t e;
    add_component(s, "CheckSizeJob", job);
    add_component(s, "CheckSizeJobPods", aim_engine_pods(a, f->size_pods, NULL, f->pod_log));
    if (aim_engine_component_state(&job) != ENGINE_READY)
        return;
    if (aim_artifact_parse_size(a, f->size_log, &bytes, &e) == 0) {
        json_set_int(a, s->fields, "discoveredSizeBytes", bytes);
        return;
    }
    str text = arena_str(a, str_c(e.text));
    add_component(s, "CheckSizeOutput",
                  (struct aim_engine_component){
                      .state = ENGINE_FAILED,
                      .reason = S("InvalidSizeOutput"),
                      .message = text,
                      .has_reason = true,
                      .errors = { { f->as_original ? ENGINE_INFRASTRUCTURE : ENGINE_INVALID,
                                    S("InvalidSizeOutput"), text } } });
}

/* Refused at once: taken for unset, it would end in a job and a volume of another size than the user meant. */
static void add_invalid_size(struct arena *a, struct aim_artifact_state *s, str size)
{
    enum { SHOWN_MAX = 64 };
    str text = arena_printf(a,
                            "spec.size " STR_FMT " is not a quantity of bytes above zero; use one "
                            "such as 16Gi, or leave it unset",
                            STR_ARG(str_upto(size, SHOWN_MAX)));
    add_component(s, "Size",
                  (struct aim_engine_component){
                      .state = ENGINE_FAILED,
                      .reason = S("InvalidSize"),
                      .message = text,
                      .has_reason = true,
                      .upstream = true,
                      .errors = { { ENGINE_INVALID, S("InvalidSize"), text } } });
}

static bool is_job_bad(const struct aim_engine_component *c)
{
    return aim_engine_component_state(c) <= ENGINE_DEGRADED;
}

/* DownloadComplete: the pod reports 100 % before it verifies what it has. */
static void set_complete(struct arena *a, struct aim_artifact_state *s,
                         const struct aim_artifact_facts *f, bool done, bool failed)
{
    int64_t percent = json_int(json_at(f->q.artifact, "status", "progress", "percentage", NULL), 0);
    const struct json *progress = json_at(f->q.artifact, "status", "progress", NULL);
    bool whole = done || percent >= 100;
    struct json *shown = json_is(progress, JSON_OBJ) ? json_copy(a, progress) : json_new_obj(a);
    s->complete = (struct aim_engine_condition){
        .type = S("DownloadComplete"),
        .truth = whole && !failed ? ENGINE_TRUE : ENGINE_FALSE,
        .reason = done              ? S("Verified")
                  : failed && whole ? S("VerificationFailed")
                  : whole           ? S("Verifying")
                                    : S("Downloading"),
        .message = done              ? S("Download and verification complete")
                   : failed && whole ? S("Download completed but verification failed")
                   : failed          ? S("Download failed before completion")
                   : whole           ? S("Download complete, verifying integrity...")
                                     : S("Download in progress"),
    };
    if (done) {
        json_set_int(a, shown, "percentage", 100);
        json_set_str(a, shown, "displayPercentage", S("100 %"));
    } else if (failed)
        json_set_str(a, shown, "displayPercentage", S("N/A"));
    if (shown->n)
        json_set(a, s->fields, S("progress"), shown);
}

static void put_filled(struct arena *a, struct aim_artifact_state *s,
                       const struct aim_artifact_facts *f)
{
    if (f->filling.uid.n)
        json_set_str(a, s->fields, AIM_FILLING_FIELD, f->filling.uid);
}

/* The files are gone with their volume: what was reported of the last download no longer holds. */
static void set_restart(struct arena *a, struct aim_artifact_state *s)
{
    struct json *progress = json_make(a, s->fields, "progress", NULL);
    json_set_int(a, progress, "percentage", 0);
    json_set_str(a, progress, "displayPercentage", S("0 %"));
    s->complete = (struct aim_engine_condition){
        .type = S("DownloadComplete"),
        .truth = ENGINE_FALSE,
        .reason = S("VolumeReplaced"),
        .message = S("The volume with the files was deleted; they are downloaded again"),
    };
}

/* Volume and download. */
static void add_download(struct arena *a, struct aim_artifact_state *s,
                         const struct aim_artifact_facts *f)
{
    bool was_ready =
        str_eqc(json_text(json_at(f->q.artifact, "status", "status", NULL)), "Ready") &&
        !f->filling.replaced;
    add_component(s, "CachePvc",
                  f->volume ? aim_engine_claim(a, f->volume) : missing_child("CachePvc"));
    s->make_volume = !f->volume;
    if (was_ready) {
        put_filled(a, s, f);
        return;
    }
    s->drop_job = f->filling.stale;
    if (!f->job || s->drop_job) {
        add_component(s, "DownloadJob", missing_child("DownloadJob"));
        s->make_job = f->volume && f->role_binding && !s->drop_job && !f->job_leaving;
        if (s->drop_job || f->filling.replaced)
            set_restart(a, s);
        return;
    }
    struct aim_engine_component job = aim_engine_job(f->job);
    struct aim_engine_component pods = aim_engine_pods(a, f->pods, NULL, f->pod_log);
    bool done = aim_engine_component_state(&job) == ENGINE_READY;
    add_component(s, "DownloadJob", job);
    if (done)
        put_filled(a, s, f);
    if (!done || f->pods)
        add_component(s, "DownloadJobPods", pods);
    set_complete(a, s, f, done, is_job_bad(&job) || is_job_bad(&pods));
}

/* Fields of the status that do not depend on the state. */
static void put_fields(struct arena *a, struct aim_artifact_state *s,
                       const struct aim_artifact_facts *f)
{
    const struct json *artifact = f->q.artifact, *status = json_get(artifact, "status");
    int64_t bytes = aim_artifact_bytes(artifact);
    str allocated = json_text(json_at(f->volume, "spec", "resources", "requests", "storage", NULL));
    bool owned = json_len(json_at(artifact, "metadata", "ownerReferences", NULL)) > 0;
    json_set_str(a, s->fields, "mode", owned ? S("Dedicated") : S("Shared"));
    json_set_str(a, s->fields, "allocatedSize", allocated.n ? allocated : S("0"));
    if (bytes > 0)
        json_set_str(a, s->fields, "displaySize", aim_artifact_display(a, bytes));
    if (json_get(status, "discoveredSizeBytes"))
        json_set(a, s->fields, S("discoveredSizeBytes"),
                 json_copy(a, json_get(status, "discoveredSizeBytes")));
    if (!f->volume)
        return;
    json_set_int(a, s->fields, "headroomPercent", aim_artifact_headroom_percent(f->q.config));
    json_set_str(a, s->fields, "persistentVolumeClaim",
                 text_of(json_get(f->volume, "metadata"), "name"));
}

struct aim_artifact_state aim_artifact_state(struct arena *a, const struct aim_artifact_facts *f)
{
    struct aim_artifact_state s = { .fields = json_new_obj(a) };
    put_fields(a, &s, f);
    add_config(&s, &f->q);
    str invalid = aim_artifact_invalid_size(a, f->q.artifact);
    /* a volume that exists keeps its size, and an artifact of the original may have 0 for unset */
    if (invalid.n && !f->as_original && !f->volume) {
        add_invalid_size(a, &s, invalid);
        return s;
    }
    if (aim_artifact_bytes(f->q.artifact) > 0)
        add_download(a, &s, f);
    else
        add_size(a, &s, f);
    s.make_role_binding = !f->role_binding;
    return s;
}
