/* WVA's table of events and actions: see dispatch_core.h. test/golden/vectors/wva-events.json has
 * all cases. */
#include "dispatch_core.h"

static struct sat_dispatch make_dispatch(bool passes, enum sat_action action)
{
    return (struct sat_dispatch){ passes, passes ? action : SAT_DO_NOTHING };
}

static struct sat_dispatch dispatch_configmap(const struct sat_event *e)
{
    bool ours = e->own && e->configmap != SAT_CONFIGMAP_OTHER;
    bool changed = e->type == SAT_CREATED || e->type == SAT_UPDATED;
    return make_dispatch(ours && changed, e->configmap == SAT_CONFIGMAP_OPTIMIZATION
                                              ? SAT_UPDATE_INTERVAL
                                              : SAT_REPLACE_CONFIG);
}

static struct sat_dispatch dispatch_monitor(const struct sat_event *e)
{
    bool ends = e->type == SAT_DELETED || (e->type == SAT_UPDATED && e->deleting);
    return make_dispatch(e->own && (ends || e->type == SAT_CREATED),
                         ends ? SAT_ALERT : SAT_DO_NOTHING);
}

struct sat_dispatch sat_dispatch(const struct sat_event *e)
{
    switch (e->source) {
    case SAT_FROM_VARIANT:
        return make_dispatch(e->type == SAT_CREATED, SAT_RECONCILE);
    case SAT_FROM_WORKLOAD:
        return make_dispatch(e->type == SAT_CREATED, SAT_RECONCILE_TARGETING);
    case SAT_FROM_CONFIGMAP:
        return dispatch_configmap(e);
    case SAT_FROM_SERVICEMONITOR:
        return dispatch_monitor(e);
    case SAT_FROM_ENGINE:
        break;
    }
    return make_dispatch(true, SAT_RECONCILE);
}
