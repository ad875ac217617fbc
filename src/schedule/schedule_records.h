/* The fields of a schedule and of an HPA that the watch caches keep, and their conversion for a plan. */
#ifndef FLYBALL_SCHEDULE_RECORDS_H
#define FLYBALL_SCHEDULE_RECORDS_H

#include "../kube/cache.h"
#include "schedule_plan_core.h"

extern const struct resource schedule_resource; /* smarthorizontalpodautoscalers */

struct schedule_record {
    struct record meta;
    str spec, status, finalizers; /* JSON */
    str paused;                   /* annotation */
    int64_t generation, created_ns;
    bool deleting;
};

struct schedule_hpa_record {
    struct record meta;
    int64_t min, max, replicas;
    bool has_object_metric, has_external_metric;
    str baseline, template_hash; /* annotations */
    str owner_uid;
    str allow; /* annotation GRANT_ANNOTATION: namespaces that may refer to this HPA */
    str target_api_version, target_kind, target_name;
    str scaled_object; /* label of KEDA: the ScaledObject that owns this HPA */
};

extern const struct resource schedule_scaled_resource; /* ScaledObjects of KEDA */

struct schedule_scaled_record {
    struct record meta;
    int64_t min, max, idle;
    bool has_idle, has_paused, has_paused_replicas;
    str paused, baseline; /* annotations */
    str target_api_version, target_kind, target_name;
};

enum { SCHEDULE_HPA_BY_OWNER }; /* indexes of schedule_hpa_cache: uid of the controlling owner */
extern const struct cache_spec schedule_cache, schedule_hpa_cache, schedule_scaled_cache;

/* Everything in the result lives in the arena. */
struct schedule_object schedule_record_object(struct arena *a, const struct schedule_record *r,
                                              struct schedule_defaults defaults);

/* NULL: not found. `owner` is the schedule's uid. */
struct schedule_hpa schedule_record_hpa(const struct schedule_hpa_record *r, str owner);

struct schedule_hpa schedule_record_scaled(const struct schedule_scaled_record *r);

/* Did anything but the status change? Our own status writes need no new pass. */
bool schedule_record_has_changed(const struct schedule_record *old,
                                 const struct schedule_record *now);

#endif
