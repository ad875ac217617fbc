/* The observed state of an AIMService and of what it depends on: model, template, cache and InferenceService. Set by
 * aim_service_observe(), used by service_controller.c; lives as long as the turn. */
#ifndef FLYBALL_SERVICE_VIEW_H
#define FLYBALL_SERVICE_VIEW_H

#include "consumer.h"
#include "service_children_core.h"
#include "service_status_core.h"

struct aim_service_view {
    struct aim_service_basis basis;
    struct aim_service_facts facts;
    struct json *make_model;          /* to be created; NULL: none */
    struct json *make_template;       /* desired template with overrides; NULL: none */
    const struct json *live_template; /* the existing one; NULL: none */
    const struct json *model;         /* the model in use; NULL: unknown */
    str runtime_name;                 /* of the InferenceService */
    const struct json *runtime;       /* the InferenceService; NULL: none */
    const struct json *cache;         /* the AIMTemplateCache for the template; NULL: none */
};

void aim_service_observe(struct aim_turn *t, struct aim_service_view *v);

/* The object of that name in the turn's namespace (of kind `ns_kind`), else the cluster-scoped one (of the next kind). */
struct json *aim_service_find(const struct aim_turn *t, enum aim_kind ns_kind, str name);
/* The AIMTemplateCache that caches this template in the turn's namespace; NULL: none. */
struct json *aim_service_find_cache(const struct aim_turn *t, str template);

/* Registers the watches that enqueue services. */
void aim_service_watch(struct aim *aim);

#endif
