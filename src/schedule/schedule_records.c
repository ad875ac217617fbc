/* Which fields of schedules, HPAs and ScaledObjects are cached, and records as the plain structs that the cores
 * take; see schedule_records.h.
 *
 * A table has one row per field: its path in the object, its type, and where it goes in the record
 * (kube/cache.h). Spec and status are kept as raw JSON, because only the few schedules that are reconciled need
 * them parsed. Defaults are those of the API (minReplicas 1, KEDA's maxReplicaCount 100), so that an unset
 * field is never mistaken for zero.
 *
 * Converted structs borrow from the record, except for text in the arena of the turn: a turn may outlive the
 * record that it was started with. */
#include "schedule_records.h"

#include "../base/clock.h"
#include "../kube/controller.h"
#include "../kube/grant.h"

const struct resource schedule_resource = { "autoscaling.sarabala.io", "v1alpha1",
                                            "smarthorizontalpodautoscalers",
                                            "SmartHorizontalPodAutoscaler", true };

static const struct field schedule_fields[] = {
    { "spec", F_RAW, offsetof(struct schedule_record, spec) },
    { "status", F_RAW, offsetof(struct schedule_record, status) },
    { "metadata.finalizers", F_RAW, offsetof(struct schedule_record, finalizers) },
    { "metadata.annotations[\"" SCHEDULE_PAUSED "\"]", F_STR,
      offsetof(struct schedule_record, paused) },
    { "metadata.generation", F_INT, offsetof(struct schedule_record, generation) },
    { "metadata.creationTimestamp", F_TIME, offsetof(struct schedule_record, created_ns) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct schedule_record, deleting) },
};

static const struct field hpa_fields[] = {
    { "spec.minReplicas", F_INT, offsetof(struct schedule_hpa_record, min), .otherwise = 1 },
    { "spec.maxReplicas", F_INT, offsetof(struct schedule_hpa_record, max) },
    { "status.currentReplicas", F_INT, offsetof(struct schedule_hpa_record, replicas) },
    { "spec.metrics[type=Object].type", F_HAS,
      offsetof(struct schedule_hpa_record, has_object_metric) },
    { "spec.metrics[type=External].type", F_HAS,
      offsetof(struct schedule_hpa_record, has_external_metric) },
    { "metadata.annotations[\"" SCHEDULE_BASELINE "\"]", F_STR,
      offsetof(struct schedule_hpa_record, baseline) },
    { "metadata.annotations[\"" SCHEDULE_TEMPLATE "\"]", F_STR,
      offsetof(struct schedule_hpa_record, template_hash) },
    { OWNER_UID, F_STR, offsetof(struct schedule_hpa_record, owner_uid) },
    { "metadata.annotations[\"" GRANT_ANNOTATION "\"]", F_STR,
      offsetof(struct schedule_hpa_record, allow) },
    { "spec.scaleTargetRef.apiVersion", F_WORD,
      offsetof(struct schedule_hpa_record, target_api_version) },
    { "spec.scaleTargetRef.kind", F_WORD, offsetof(struct schedule_hpa_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, offsetof(struct schedule_hpa_record, target_name) },
    { "metadata.labels[\"scaledobject.keda.sh/name\"]", F_STR,
      offsetof(struct schedule_hpa_record, scaled_object) },
};

const struct resource schedule_scaled_resource = { "keda.sh", "v1alpha1", "scaledobjects",
                                                   "ScaledObject", true };

static const struct field scaled_fields[] = {
    { "spec.minReplicaCount", F_INT, offsetof(struct schedule_scaled_record, min) },
    { "spec.maxReplicaCount", F_INT, offsetof(struct schedule_scaled_record, max),
      .otherwise = 100 },
    { "spec.idleReplicaCount", F_INT, offsetof(struct schedule_scaled_record, idle) },
    { "spec.idleReplicaCount", F_HAS, offsetof(struct schedule_scaled_record, has_idle) },
    { "metadata.annotations[\"autoscaling.keda.sh/paused\"]", F_STR,
      offsetof(struct schedule_scaled_record, paused) },
    { "metadata.annotations[\"autoscaling.keda.sh/paused\"]", F_HAS,
      offsetof(struct schedule_scaled_record, has_paused) },
    { "metadata.annotations[\"autoscaling.keda.sh/paused-replicas\"]", F_HAS,
      offsetof(struct schedule_scaled_record, has_paused_replicas) },
    { "metadata.annotations[\"" SCHEDULE_BASELINE "\"]", F_STR,
      offsetof(struct schedule_scaled_record, baseline) },
    { "spec.scaleTargetRef.apiVersion", F_WORD,
      offsetof(struct schedule_scaled_record, target_api_version) },
    { "spec.scaleTargetRef.kind", F_WORD, offsetof(struct schedule_scaled_record, target_kind) },
    { "spec.scaleTargetRef.name", F_STR, offsetof(struct schedule_scaled_record, target_name) },
};
static const struct fields scaled_kept = { sizeof(struct schedule_scaled_record), scaled_fields,
                                           countof(scaled_fields) };
const struct cache_spec schedule_scaled_cache = { .resource = &schedule_scaled_resource,
                                                  .need = CACHE_IF_ALLOWED,
                                                  .keep = &scaled_kept };

static const struct fields schedule_kept = { sizeof(struct schedule_record), schedule_fields,
                                             countof(schedule_fields) };
static const struct fields hpa_kept = { sizeof(struct schedule_hpa_record), hpa_fields,
                                        countof(hpa_fields) };

const struct cache_spec schedule_cache = { .resource = &schedule_resource, .keep = &schedule_kept };
const struct cache_spec schedule_hpa_cache = {
    .resource = &resource_hpas,
    .keep = &hpa_kept,
    .indexes = { [SCHEDULE_HPA_BY_OWNER] = offsetof(struct schedule_hpa_record, owner_uid) }
};

static const struct json *parse_or_null(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static bool list_has(const struct json *finalizers, const char *name)
{
    for (size_t i = 0; i < json_len(finalizers); i++)
        if (str_eqc(json_text(json_item(finalizers, i)), name))
            return true;
    return false;
}

struct schedule_object schedule_record_object(struct arena *a, const struct schedule_record *r,
                                              struct schedule_defaults defaults)
{
    struct schedule_spec *spec = schedule_spec_read(a, parse_or_null(a, r->spec), defaults);
    schedule_spec_set_name(spec, r->meta.ns, r->meta.name);
    return (struct schedule_object){
        .ns = arena_str(a, r->meta.ns),
        .name = arena_str(a, r->meta.name),
        .uid = arena_str(a, r->meta.uid),
        .generation = r->generation,
        .created = r->created_ns / NS_PER_S,
        .deleting = r->deleting,
        .has_finalizer = list_has(parse_or_null(a, r->finalizers), SCHEDULE_FINALIZER),
        .paused = str_eqc(r->paused, "true"),
        .spec = spec,
        .status = parse_or_null(a, r->status),
    };
}

static int32_t to_replicas(int64_t value)
{
    return (int32_t)MAX((int64_t)0, MIN(value, (int64_t)INT32_MAX));
}

/* NULL: the HPA does not exist. `owner` is the uid of the schedule, to recognize an HPA that it created itself. */
struct schedule_hpa schedule_record_hpa(const struct schedule_hpa_record *r, str owner)
{
    if (!r)
        return (struct schedule_hpa){ .replicas = -1 };
    return (struct schedule_hpa){
        .found = true,
        .bounds = { to_replicas(r->min), to_replicas(r->max) },
        .may_be_zero = r->has_object_metric || r->has_external_metric,
        .ours = owner.n && str_eq(r->owner_uid, owner),
        .baseline = r->baseline,
        .template_hash = r->template_hash,
        .has_target = r->target_name.n > 0,
        .replicas = r->replicas,
    };
}

/* As in KEDA: any value pauses, also none at all, except for the words that Go reads as false. */
static bool is_paused(const struct schedule_scaled_record *r)
{
    static const char *const no[] = { "0", "f", "F", "false", "False", "FALSE" };
    for (size_t i = 0; i < countof(no); i++)
        if (str_eqc(r->paused, no[i]))
            return r->has_paused_replicas;
    return r->has_paused || r->has_paused_replicas;
}

/* A ScaledObject in the form of an HPA. */
struct schedule_hpa schedule_record_scaled(const struct schedule_scaled_record *r)
{
    if (!r)
        return (struct schedule_hpa){ .kind = SCHEDULE_TARGET_SCALED_OBJECT, .replicas = -1 };
    return (struct schedule_hpa){
        .kind = SCHEDULE_TARGET_SCALED_OBJECT,
        .found = true,
        .bounds = { to_replicas(r->min), to_replicas(r->max) },
        .may_be_zero = true,
        .paused = is_paused(r),
        .has_idle = r->has_idle,
        .idle = to_replicas(r->idle),
        .baseline = r->baseline,
        .has_target = r->target_name.n > 0,
        .replicas = -1,
    };
}

/* Whether a change matters to the schedule itself. Status is left out: it is our own write. */
bool schedule_record_has_changed(const struct schedule_record *old,
                                 const struct schedule_record *now)
{
    return !old || !now || old->generation != now->generation || old->deleting != now->deleting ||
           !str_eq(old->spec, now->spec) || !str_eq(old->finalizers, now->finalizers) ||
           !str_eq(old->paused, now->paused) || !str_eq(old->meta.uid, now->meta.uid);
}
