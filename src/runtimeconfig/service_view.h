/* The observed state of an AIMService and of what it depends on: model, template, cache and InferenceService. Set by
 * aim_service_observe(), used by service_controller.c; lives as long as the turn. */
#ifndef FLYBALL_SERVICE_VIEW_H
#define FLYBALL_SERVICE_VIEW_H

#include "consumer.h"
#include "service_children_core.h"
#include "service_plan_core.h"
#include "service_status_core.h"

struct aim_service_view {
    struct aim_service_basis basis;
    struct aim_service_facts facts;
    struct json *make_model;            /* to be created; NULL: none */
    struct json *make_template;         /* desired template with overrides; NULL: none */
    const struct json *live_template;   /* the existing one; NULL: none */
    const struct json *model;           /* the model in use; NULL: unknown */
    struct aim_service_storage storage; /* of the InferenceService, if `plan` writes it */
    struct json *claim;                 /* volume to create for it; NULL: none */
    bool make_cache;                    /* a template cache must be created */
    struct aim_service_plan plan;
    const char *refused;        /* field that the InferenceService lacked; NULL: none */
    bool adopted;               /* the InferenceService was created by the newer operator */
    bool foreign;               /* the InferenceService under our name has another owner, or none */
    str runtime_name;           /* of the InferenceService */
    const struct json *runtime; /* the InferenceService; NULL: none */
    const struct json *cache;   /* the AIMTemplateCache for the template; NULL: none */
};

void aim_service_observe(struct aim_turn *t, struct aim_service_view *v);

/* The object of that name in the turn's namespace (of kind `ns_kind`), else the cluster-scoped one (of the next kind). */
struct json *aim_service_find(const struct aim_turn *t, enum aim_kind ns_kind, str name);

/* The template that an InferenceService of ours was made from: the serving runtime has its name. Empty: unknown. */
str aim_service_runtime_template(const struct json *inference_service);
/* Does the annotation force-rebind ask for another selection? */
bool aim_service_is_rebinding(const struct aim_turn *t);

/* Registers the watches that enqueue services. */
void aim_service_watch(struct aim *aim);

#endif
