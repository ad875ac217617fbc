/* See dispatch_core.h. */
#include "dispatch_core.h"

static struct sat_dispatch act(bool passes, enum sat_action action)
{
    return (struct sat_dispatch){ passes, passes ? action : SAT_DO_NOTHING };
}

static struct sat_dispatch dispatch_configmap(const struct sat_event *e)
{
    bool ours = e->own && e->configmap != SAT_CONFIGMAP_OTHER;
    bool news = e->happening == SAT_CREATED || e->happening == SAT_UPDATED;
    return act(ours && news, e->configmap == SAT_CONFIGMAP_OPTIMIZATION ? SAT_UPDATE_INTERVAL
                                                                        : SAT_REPLACE_CONFIG);
}

static struct sat_dispatch dispatch_monitor(const struct sat_event *e)
{
    bool ends = e->happening == SAT_DELETED || (e->happening == SAT_UPDATED && e->deleting);
    return act(e->own && (ends || e->happening == SAT_CREATED), ends ? SAT_ALERT : SAT_DO_NOTHING);
}

struct sat_dispatch sat_dispatch(const struct sat_event *e)
{
    switch (e->source) {
    case SAT_FROM_VARIANT:
        return act(e->happening == SAT_CREATED, SAT_RECONCILE);
    case SAT_FROM_WORKLOAD:
        return act(e->happening == SAT_CREATED, SAT_RECONCILE_TARGETING);
    case SAT_FROM_CONFIGMAP:
        return dispatch_configmap(e);
    case SAT_FROM_SERVICEMONITOR:
        return dispatch_monitor(e);
    case SAT_FROM_ENGINE:
        break;
    }
    return act(true, SAT_RECONCILE);
}
