/* One look at an AIMService and what it stands on: model, template, cache and runtime. Filled in by aim_service_observe(),
 * used by service_controller.c; lives as long as the turn. */
#ifndef FLYBALL_SERVICE_VIEW_H
#define FLYBALL_SERVICE_VIEW_H

#include "consumer.h"
#include "service_children_core.h"
#include "service_status_core.h"

struct aim_service_view {
    struct aim_service_basis basis;
    struct aim_service_facts facts;
    struct json *make_model;          /* to be made; NULL: nothing */
    struct json *make_template;       /* derived by overrides, as it should be; NULL: nothing */
    const struct json *live_template; /* and as it is; NULL: not there */
    const struct json *model;         /* that serves, or will; NULL: not known */
    str runtime_name;                 /* of the InferenceService */
    const struct json *runtime;       /* it; NULL: not there */
    const struct json *cache;         /* the AIMTemplateCache for the template; NULL: none */
};

void aim_service_observe(struct aim_turn *t, struct aim_service_view *v);

/* The object of that name in the turn's namespace, else in the cluster; NULL: neither. `ns_kind` and the kind after it. */
struct json *aim_service_find(const struct aim_turn *t, enum aim_kind ns_kind, str name);
/* The AIMTemplateCache that caches this template in the turn's namespace; NULL: none. */
struct json *aim_service_find_cache(const struct aim_turn *t, str template);

/* What of the world leads to services: watches of the service's controller. */
void aim_service_watch(struct aim *aim);

#endif
