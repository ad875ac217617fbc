/* What a watch event triggers: WVA's truth table. The source is the watch that delivered the event,
 * never a field of the object. */
#ifndef FLYBALL_DISPATCH_CORE_H
#define FLYBALL_DISPATCH_CORE_H

#include "../../base/base.h"

enum sat_source {
    SAT_FROM_VARIANT,
    SAT_FROM_WORKLOAD,
    SAT_FROM_CONFIGMAP,
    SAT_FROM_SERVICEMONITOR,
    SAT_FROM_ENGINE /* a decision was made */
};

enum sat_event_type { SAT_CREATED, SAT_UPDATED, SAT_DELETED, SAT_GENERIC };

enum sat_configmap { SAT_CONFIGMAP_OTHER, SAT_CONFIGMAP_OPTIMIZATION, SAT_CONFIGMAP_SATURATION };

struct sat_event {
    enum sat_source source;
    enum sat_event_type type;
    enum sat_configmap configmap; /* which of the controller's, by name */
    bool own;      /* ConfigMap: in the controller's namespace; ServiceMonitor: the controller's */
    bool deleting; /* it has a deletionTimestamp */
};

enum sat_action {
    SAT_DO_NOTHING,
    SAT_RECONCILE,           /* that variant */
    SAT_RECONCILE_TARGETING, /* the variants that target the workload */
    SAT_UPDATE_INTERVAL,
    SAT_REPLACE_CONFIG,
    SAT_ALERT /* Prometheus will no longer scrape the controller */
};

struct sat_dispatch {
    bool passes;
    enum sat_action action;
};

struct sat_dispatch sat_dispatch(const struct sat_event *event);

#endif
