/* Never degrade what runs.
 *
 * The fault that this file rules out: a template is deleted, the facts about it stay at their zero value, the zero is
 * taken for "ready", and server-side apply of an InferenceService built from nothing removes the runtime of a service
 * that was serving. Two rules prevent it, and both are needed:
 *
 *   - a child is written only if everything that it is made of was read in this turn and is good; "unknown" is the
 *     zero of every state and never good;
 *   - the object itself is checked before the request (aim_service_is_complete), so that a mistake in the first rule sends
 *     nothing instead of something incomplete.
 *
 * An InferenceService is never deleted here: it goes with its service (owner reference). A route is deleted only when
 * routing is known to be off. A route is created only for an InferenceService that exists or is created in the same turn;
 * once it exists, its path may change although model and template are in trouble, because the name of its backend does
 * not depend on them. */
#include "service_plan_core.h"

/* Why the InferenceService must not be written now; NULL: it may be. In the order of the status, so that `explain` and the
 * condition name the same cause. */
static const char *find_obstacle(const struct aim_service_plan_question *q)
{
    const struct aim_service_facts *f = q->facts;
    return q->deleting          ? "the service is being deleted"
           : q->unread          ? "the API server did not answer"
           : q->foreign_runtime ? "an InferenceService of that name does not belong to this service"
           : f->config == SERVICE_CONFIG_MISSING           ? "the configuration does not exist"
           : f->config != SERVICE_CONFIG_FOUND             ? "the configuration was not read"
           : f->model.state == SERVICE_MODEL_UNKNOWN       ? "the model was not read"
           : f->model.state != SERVICE_MODEL_READY         ? "the model is not ready"
           : f->template.state == SERVICE_TEMPLATE_UNKNOWN ? "the template was not read"
           : f->template.state == SERVICE_TEMPLATE_EMPTY   ? "the template has no model sources"
           : f->template.state != SERVICE_TEMPLATE_READY   ? "the template is not ready"
           : !q->storage_settled                           ? "its storage is not ready"
                                                           : NULL;
}

/* `runtime` is what happens to the InferenceService in the same turn. */
static enum aim_service_act plan_route(const struct aim_service_plan_question *q,
                                       enum aim_service_act runtime)
{
    const struct aim_service_facts *f = q->facts;
    if (q->deleting || q->unread || f->config != SERVICE_CONFIG_FOUND)
        return SERVICE_KEEP;
    if (f->route.state == SERVICE_ROUTE_OFF)
        return q->route_exists ? SERVICE_DELETE : SERVICE_KEEP;
    bool valid = f->route.state == SERVICE_ROUTE_WAITING || f->route.state == SERVICE_ROUTE_READY ||
                 f->route.state == SERVICE_ROUTE_NO_BACKEND;
    if (!valid)
        return SERVICE_KEEP;
    if (q->route_exists)
        return f->runtime.found ? SERVICE_CHANGE : SERVICE_KEEP;
    return f->runtime.found || runtime == SERVICE_CREATE ? SERVICE_CREATE : SERVICE_KEEP;
}

struct aim_service_plan aim_service_plan(const struct aim_service_plan_question *q)
{
    struct aim_service_plan plan = { .kept_because = find_obstacle(q) };
    if (!plan.kept_because)
        plan.runtime = q->facts->runtime.found ? SERVICE_CHANGE : SERVICE_CREATE;
    plan.route = plan_route(q, plan.runtime);
    return plan;
}

/* Both forms: a model with its serving runtime, or (newer generation of AIM) a container with an image. */
bool aim_service_is_complete(const struct json *inference_service, const char **ret_lacks)
{
    const struct json *predictor = json_at(inference_service, "spec", "predictor", NULL);
    const struct json *model = json_get(predictor, "model");
    const struct json *container = json_item(json_get(predictor, "containers"), 0);
    const struct json *form = container ? container : model;
    *ret_lacks =
        !json_text(json_at(inference_service, "metadata", "name", NULL)).n ? "metadata.name"
        : container && !json_text(json_get(container, "image")).n
            ? "spec.predictor.containers[0].image"
        : !container && !json_text(json_get(model, "runtime")).n ? "spec.predictor.model.runtime"
        : !container && !json_text(json_at(model, "modelFormat", "name", NULL)).n
            ? "spec.predictor.model.modelFormat"
        : !json_is(json_get(form, "resources"), JSON_OBJ) ? "resources"
                                                          : NULL;
    return !*ret_lacks;
}
