/* What may be written for the children of an AIMService: see service_plan_core.c. Pure. */
#ifndef FLYBALL_SERVICE_PLAN_CORE_H
#define FLYBALL_SERVICE_PLAN_CORE_H

#include "service_status_core.h"

enum aim_service_act {
    SERVICE_KEEP, /* no request, whatever exists */
    SERVICE_CREATE,
    SERVICE_CHANGE, /* if the desired object differs */
    SERVICE_DELETE,
    SERVICE_ACT_N
};

struct aim_service_plan_question {
    const struct aim_service_facts
        *facts; /* route: what was planned, before the gateway's answer */
    bool deleting;
    bool unread;          /* a read of this turn failed: nothing that depends on it is known */
    bool storage_settled; /* the volumes of the InferenceService are known, and none is lost */
    bool route_exists;    /* an HTTPRoute of this service */
    bool foreign_runtime; /* the InferenceService of that name is not this service's */
};

struct aim_service_plan {
    enum aim_service_act runtime, route;
    const char *kept_because; /* why the InferenceService is not written; NULL: it may be */
};

struct aim_service_plan aim_service_plan(const struct aim_service_plan_question *q);

/* The last gate before a request: an InferenceService that could run. `*ret_lacks` names the first missing field. */
bool aim_service_is_complete(const struct json *inference_service, const char **ret_lacks);

#endif
