/* Schedules of other tools as manifests of ours, for `flyball schedule --from-keda`:
 *
 *     ScaledObject (keda.sh)                  its cron triggers
 *     CronHorizontalPodAutoscaler (Alibaba)   its jobs
 *     any workload                            the annotations of kube-downscaler (downscaler/uptime, downtime)
 *
 * A converted trigger is open exactly when the original one is active. Cron lines become times of day only where both
 * agree for years to come; otherwise the lines are kept (schedule and endSchedule), which are evaluated as KEDA does. */
#ifndef FLYBALL_SCHEDULE_CONVERT_CORE_H
#define FLYBALL_SCHEDULE_CONVERT_CORE_H

#include "schedule_spec.h"

struct schedule_conversion {
    struct json *manifest; /* NULL: nothing to convert, or nothing could be: see `skipped` */
    str *notes;            /* what could not be converted, or needs a decision; one sentence each */
    size_t notes_n;
    size_t skipped; /* parts of the original that the manifest lacks; each has a note */
};

struct schedule_convert_options {
    int64_t now; /* where the comparison of both forms begins */
    schedule_zone_fn *find_zone;
    bool keep_lines; /* never convert cron lines to times of day: what the original does */
};

/* An object of another kind gives an empty conversion. */
struct schedule_conversion schedule_convert(struct arena *a, const struct json *object,
                                            const struct schedule_convert_options *options);

#endif
