/* What the watch caches keep of a schedule and of an HPA, and how that becomes what a plan wants. */
#ifndef FLYBALL_SCHEDULE_RECORDS_H
#define FLYBALL_SCHEDULE_RECORDS_H

#include "../kube/cache.h"
#include "schedule_plan.h"

extern const struct resource schedule_resource; /* smarthorizontalpodautoscalers */

struct schedule_record {
    struct record meta;
    str spec, status, finalizers; /* JSON */
    str paused;                   /* the annotation */
    int64_t generation, created_ns;
    bool deleting;
};

struct schedule_hpa_record {
    struct record meta;
    int64_t min, max, replicas;
    bool has_object_metric, has_external_metric;
    str baseline; /* the annotation */
    str owner_uid;
    str allow; /* the annotation GRANT_ANNOTATION: who may refer to it from elsewhere */
    str target_api_version, target_kind, target_name;
};

extern const struct cache_spec schedule_cache, schedule_hpa_cache;

/* The spec's and status' trees live in the arena. */
struct schedule_object schedule_record_object(struct arena *a, const struct schedule_record *r,
                                              struct schedule_defaults defaults);

/* NULL reads as "not found". `owner` is the object's uid. */
struct schedule_hpa schedule_record_hpa(const struct schedule_hpa_record *r, str owner);

/* Did anything change but the status? Our own writes there need no new pass. */
bool schedule_record_matters(const struct schedule_record *old, const struct schedule_record *now);

#endif
