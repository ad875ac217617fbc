/* Components of a service: see engine_service_core.h.
 *
 * A component is one thing that a service depends on, with a state, a reason and a message; the status of the
 * service is aggregated from all of them (engine_core.c). Each function here is one component:
 *
 *   upstream    Model, Template, RuntimeConfig      what the service was made from
 *   downstream  InferenceService, its pods, Cache, HTTPRoute, HPA      what was made for it
 *
 * The checks of a component are in the order of precedence: an error of the API first, then what is missing,
 * then what the object reports about itself. A model or template that is gone does not matter to a service that
 * runs: what it was made from is in its status (resolved_before).
 *
 * Reasons and messages are those of aim-engine, byte for byte; `as_original` also restores its faults, for the
 * golden vectors. */
#include "engine_service_core.h"

#include "engine_children_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static struct aim_engine_component make_failed(const char *name,
                                               const struct aim_engine_error *error)
{
    return (struct aim_engine_component){
        .name = name, .state = ENGINE_FAILED, .upstream = true, .errors = { *error }
    };
}

/* ---- model and template */

/* A service may bring its own image or custom model, for which a model is created unless one exists. */
bool aim_engine_service_creates_model(const struct aim_engine_service_facts *f)
{
    const struct json *model = json_at(f->service, "spec", "model", NULL);
    return !f->model.name.n && !f->model_error.class &&
           (text_of(model, "image").n || json_is(json_get(model, "custom"), JSON_OBJ));
}

/* "AIMModel m is ready": a found object by its status word. `kinds` are its namespaced and its cluster-scoped kind. */
static struct aim_engine_component describe_found(struct arena *a, const char *name,
                                                  const struct aim_engine_ref *r,
                                                  const char *const kinds[2], const char *ready,
                                                  const char *not_ready)
{
    str who = arena_printf(a, "%s " STR_FMT, kinds[r->cluster], STR_ARG(r->name));
    const char *text =
        str_eqc(r->status, "Ready")                                          ? "is ready"
        : str_eqc(r->status, "Pending") || str_eqc(r->status, "Progressing") ? "is not ready yet"
        : str_eqc(r->status, "Failed") || str_eqc(r->status, "Degraded")     ? "is in failed state"
                                                                             : NULL;
    enum aim_engine_state state = !text                                 ? ENGINE_PROGRESSING
                                  : !strcmp(text, "is ready")           ? ENGINE_READY
                                  : !strcmp(text, "is in failed state") ? ENGINE_FAILED
                                                                        : ENGINE_PROGRESSING;
    str message =
        text ? arena_printf(a, STR_FMT " %s", STR_ARG(who), text)
             : arena_printf(a, STR_FMT " status: " STR_FMT, STR_ARG(who), STR_ARG(r->status));
    return aim_engine_make(name, state, state == ENGINE_READY ? ready : not_ready, message);
}

/* What the running service was made from; false: it does not run, or that is not known. */
static bool resolved_before(struct arena *a, const struct aim_engine_service_facts *f,
                            const char *name, const char *key, const char *reason,
                            struct aim_engine_component *ret)
{
    const struct json *ref = json_at(f->service, "status", key, NULL);
    if (!f->inference_service || !text_of(ref, "name").n)
        return false;
    *ret = aim_engine_make(name, ENGINE_READY, reason,
                           arena_printf(a, STR_FMT " " STR_FMT " is ready",
                                        STR_ARG(text_of(ref, "scope")),
                                        STR_ARG(text_of(ref, "name"))));
    return true;
}

static struct aim_engine_component creating_model(struct arena *a, const struct json *model)
{
    const struct json *source = json_item(json_at(model, "custom", "modelSources", NULL), 0);
    str image = text_of(model, "image");
    return aim_engine_make("Model", ENGINE_PENDING, "CreatingModel",
                           image.n ? arena_printf(a, "Model will be created for image " STR_FMT,
                                                  STR_ARG(image))
                                   : arena_printf(a, "Custom model will be created for " STR_FMT,
                                                  STR_ARG(text_of(source, "modelId"))));
}

/* A model that is being created is pending, not missing: the service itself will provide it. */
static struct aim_engine_component model_component(struct arena *a,
                                                   const struct aim_engine_service_facts *f)
{
    static const char *const kinds[] = { "AIMModel", "AIMClusterModel" };
    struct aim_engine_component c;
    if (f->model_error.class)
        return make_failed("Model", &f->model_error);
    if (f->model.name.n)
        c = describe_found(a, "Model", &f->model, kinds, "ModelResolved", "ModelNotReady");
    else if (aim_engine_service_creates_model(f))
        return creating_model(a, json_at(f->service, "spec", "model", NULL));
    else if (!resolved_before(a, f, "Model", "resolvedModel", "ModelResolved", &c))
        c = aim_engine_make("Model", ENGINE_PENDING, "ModelNotFound",
                            S("No model found for service"));
    c.upstream = true;
    return c;
}

/* NotAvailable (no matching GPU) is a state of its own: waiting does not help, but neither is it a fault. */
static struct aim_engine_component template_component(struct arena *a,
                                                      const struct aim_engine_service_facts *f)
{
    static const char *const kinds[] = { "AIMServiceTemplate", "AIMClusterServiceTemplate" };
    const struct aim_engine_ref *t = &f->template;
    struct aim_engine_component c;
    if (f->template_error.class)
        return make_failed("Template", &f->template_error);
    if (t->name.n && str_eqc(t->status, "NotAvailable"))
        c = aim_engine_make("Template", ENGINE_NOT_AVAILABLE, "TemplateNotReady",
                            arena_printf(a, "%s " STR_FMT " is not available (no matching GPUs)",
                                         kinds[t->cluster], STR_ARG(t->name)));
    else if (t->name.n)
        c = describe_found(a, "Template", t, kinds, "Resolved", "TemplateNotReady");
    else if (f->selection_error.class)
        return make_failed("Template", &f->selection_error);
    else if (f->selection_not_ready)
        c = aim_engine_make("Template", ENGINE_PROGRESSING, "TemplateNotReady",
                            S("Templates exist but are not ready yet"));
    else if (!resolved_before(a, f, "Template", "resolvedTemplate", "Resolved", &c))
        c = aim_engine_make("Template", ENGINE_PENDING, "TemplateNotFound",
                            S("No template found for service"));
    c.upstream = true;
    return c;
}

static struct aim_engine_component config_component(struct arena *a,
                                                    const struct aim_engine_service_facts *f)
{
    if (!f->config_missing.n) {
        struct aim_engine_component c =
            aim_engine_make("RuntimeConfig", ENGINE_READY, "RuntimeConfigResolved", S(""));
        c.upstream = true;
        return c;
    }
    return (struct aim_engine_component){
        .name = "RuntimeConfig",
        .upstream = true,
        .errors = { { ENGINE_MISSING_UPSTREAM, S("ConfigNotFound"),
                      arena_printf(a, "RuntimeConfig " STR_FMT " not found",
                                   STR_ARG(f->config_missing)) } },
    };
}

/* ---- the runtime */

static bool is_condition_true(const struct json *object, const char *type)
{
    return str_eqc(text_of(aim_engine_find_condition(object, type), "status"), "True");
}

/* An event of KServe that explains why nothing comes up; conflicts of writers are skipped. */
static bool read_events(const struct json *events, struct aim_engine_component *ret)
{
    for (size_t i = 0; i < json_len(events); i++)
        if (str_eqc(text_of(json_item(events, i), "reason"), "ServerlessModeRejected")) {
            *ret = aim_engine_make(
                "InferenceService", ENGINE_FAILED, "ServerlessModeRejected",
                S("Knative is not available. Configure KServe to use RawDeployment mode."));
            return true;
        }
    for (size_t i = 0; i < json_len(events); i++) {
        const struct json *e = json_item(events, i);
        str message = text_of(e, "message");
        if (!str_eqc(text_of(e, "reason"), "InternalError") ||
            !str_eqc(text_of(e, "type"), "Warning") ||
            str_find(message, S("the object has been modified")) != SIZE_MAX ||
            str_find(message, S("Operation cannot be fulfilled")) != SIZE_MAX)
            continue;
        *ret = aim_engine_make("InferenceService", ENGINE_FAILED, "InternalError", message);
        return true;
    }
    return false;
}

/* The InferenceService by its own Ready condition. Events explain a service that does not come up; once it is
 * ready they are history. */
static struct aim_engine_component runtime_component(const struct aim_engine_service_facts *f)
{
    const struct aim_engine_error *error = &f->inference_service_error;
    struct aim_engine_component c;
    bool ready = is_condition_true(f->inference_service, "Ready");
    if (error->class && error->class != ENGINE_MISSING_DOWNSTREAM) {
        c = aim_engine_make("InferenceService", ENGINE_FAILED, "FetchError",
                            f->inference_service_failure.n ? f->inference_service_failure
                                                           : error->message);
        c.errors[0] = *error;
        return c;
    }
    if (!f->inference_service)
        return aim_engine_make("InferenceService", ENGINE_PROGRESSING, "CreatingRuntime",
                               S("InferenceService not found"));
    if ((f->as_original || !ready) && read_events(f->events, &c))
        return c;
    return ready ? aim_engine_make("InferenceService", ENGINE_READY, "RuntimeReady",
                                   S("InferenceService is ready"))
                 : aim_engine_make("InferenceService", ENGINE_PROGRESSING, "CreatingRuntime",
                                   S("InferenceService is not ready"));
}

static bool has_cache_volume(const struct json *inference_service)
{
    const struct json *volumes = json_at(inference_service, "spec", "predictor", "volumes", NULL);
    for (size_t i = 0; i < json_len(volumes); i++)
        if (json_get(json_item(volumes, i), "persistentVolumeClaim"))
            return true;
    return false;
}

/* Without a cache object, a mounted volume decides: a service that runs on a deleted cache is degraded, not
 * starting. */
static struct aim_engine_component cache_component(struct arena *a,
                                                   const struct aim_engine_service_facts *f)
{
    str mode = json_text(json_at(f->service, "spec", "caching", "mode", NULL));
    bool dedicated = str_eqc(mode, "Dedicated") || str_eqc(mode, "Never");
    str word = f->cache.status;
    if (f->cache.name.n)
        return str_eqc(word, "Ready") ? aim_engine_make("Cache", ENGINE_READY, "CacheReady",
                                                        S("Template cache is ready"))
               : str_eqc(word, "Progressing")
                   ? aim_engine_make("Cache", ENGINE_PROGRESSING, "CacheNotReady",
                                     S("Template cache is progressing"))
               : str_eqc(word, "Failed")
                   ? aim_engine_make("Cache", ENGINE_FAILED, "CacheFailed",
                                     S("Template cache failed"))
                   : aim_engine_make("Cache", ENGINE_PROGRESSING, "CacheCreating",
                                     arena_printf(a, "Template cache status: " STR_FMT,
                                                  STR_ARG(word)));
    if (!has_cache_volume(f->inference_service))
        return aim_engine_make("Cache", ENGINE_PROGRESSING, "CacheCreating",
                               S("Creating template cache"));
    return dedicated
               ? aim_engine_make("Cache", ENGINE_DEGRADED, "CacheCreating",
                                 S("Dedicated template cache is being recreated"))
               : aim_engine_make("Cache", ENGINE_DEGRADED, "CacheLost",
                                 S("Shared template cache was deleted but InferenceService still "
                                   "references cached storage volumes"));
}

/* ---- the route */

/* The service wins over its configuration, member by member. */
static const struct json *routing_member(const struct aim_engine_service_facts *f, const char *key)
{
    const struct json *own = json_at(f->service, "spec", "routing", key, NULL);
    return own ? own : json_at(f->config, "routing", key, NULL);
}

/* Only if routing is enabled. A missing gateway is a fault of the configuration, not of the route. */
static struct aim_engine_component route_component(struct arena *a,
                                                   const struct aim_engine_service_facts *f)
{
    struct aim_engine_component c;
    if (!json_is(routing_member(f, "gatewayRef"), JSON_OBJ)) {
        c = aim_engine_make(
            "HTTPRoute", ENGINE_FAILED, "GatewayNotConfigured",
            S("Routing is enabled but no gatewayRef is configured in service or runtime "
              "config"));
        c.errors[0] = (struct aim_engine_error){ ENGINE_INVALID, c.reason, c.message };
        return c;
    }
    if (f->route_error.class && f->route_error.class != ENGINE_MISSING_DOWNSTREAM) {
        c = aim_engine_make("HTTPRoute", ENGINE_FAILED, "HTTPRouteFetchError",
                            f->route_error.message);
        c.errors[0] = f->route_error;
        return c;
    }
    if (!f->route)
        return aim_engine_make("HTTPRoute", ENGINE_PROGRESSING, "HTTPRouteCreating",
                               S("HTTPRoute is being created"));
    c = aim_engine_route(a, f->route);
    c.name = "HTTPRoute";
    return c;
}

/* ---- the autoscaler */

static bool is_autoscaled(const struct json *service)
{
    const struct json *spec = json_get(service, "spec");
    return json_get(spec, "minReplicas") || json_get(spec, "maxReplicas") ||
           json_get(spec, "autoScaling");
}

/* Metrics cannot exist before the model serves, so their absence is a failure only afterwards. */
static struct aim_engine_component hpa_component(struct arena *a,
                                                 const struct aim_engine_service_facts *f)
{
    const struct json *active = aim_engine_find_condition(f->hpa, "ScalingActive");
    const struct json *able = aim_engine_find_condition(f->hpa, "AbleToScale");
    if (!f->hpa)
        return aim_engine_make("HPA", ENGINE_PROGRESSING, "HPANotFound",
                               S("Waiting for KEDA to create HorizontalPodAutoscaler"));
    if (!str_eqc(text_of(active, "status"), "True")) {
        if (!is_condition_true(f->inference_service, "Ready"))
            return aim_engine_make(
                "HPA", ENGINE_PROGRESSING, "WaitingForMetrics",
                S("Waiting for InferenceService to be ready before metrics are available"));
        return aim_engine_make("HPA", ENGINE_FAILED, "MetricsFailed",
                               active ? arena_printf(a, "HPA cannot get metrics: " STR_FMT,
                                                     STR_ARG(text_of(active, "message")))
                                      : S("HPA ScalingActive condition not found"));
    }
    if (able && !str_eqc(text_of(able, "status"), "True"))
        return aim_engine_make("HPA", ENGINE_PROGRESSING, "ScaleTargetNotReady",
                               arena_printf(a, "HPA cannot update scale target: " STR_FMT,
                                            STR_ARG(text_of(able, "message"))));
    return aim_engine_make("HPA", ENGINE_READY, "HPAOperational",
                           S("HorizontalPodAutoscaler is actively scaling"));
}

/* Without an HPA all four numbers are the fixed count. */
struct aim_engine_replicas aim_engine_service_replicas(const struct json *service,
                                                       const struct json *hpa)
{
    const struct json *spec = json_get(service, "spec"), *status = json_get(hpa, "status");
    int64_t fixed =
        json_int(json_get(spec, "minReplicas"), json_int(json_get(spec, "replicas"), 1));
    if (!hpa)
        return (struct aim_engine_replicas){ fixed, fixed, fixed, fixed };
    return (struct aim_engine_replicas){
        .min = json_int(json_at(hpa, "spec", "minReplicas", NULL), 1),
        .max = json_int(json_at(hpa, "spec", "maxReplicas", NULL), 1),
        .current = json_int(json_get(status, "currentReplicas"), 0),
        .desired = json_int(json_get(status, "desiredReplicas"), 0),
    };
}

str aim_engine_replicas_text(struct arena *a, const struct aim_engine_replicas *r)
{
    if (r->min == r->max)
        return arena_printf(a, "%lld", (long long)r->current);
    return arena_printf(a, "%lld/%lld (%lld-%lld)", (long long)r->current, (long long)r->desired,
                        (long long)r->min, (long long)r->max);
}

/* Services have their own words for two of the states. */
const char *aim_engine_service_word(enum aim_engine_state state)
{
    return state == ENGINE_READY         ? "Running"
           : state == ENGINE_PROGRESSING ? "Starting"
                                         : aim_engine_state_name(state);
}

/* ---- all */

size_t aim_engine_service_components(struct arena *a, const struct aim_engine_service_facts *f,
                                     struct aim_engine_component ret[ENGINE_SERVICE_COMPONENTS])
{
    size_t n = 0;
    ret[n++] = model_component(a, f);
    ret[n++] = template_component(a, f);
    if (f->config || f->config_missing.n)
        ret[n++] = config_component(a, f);
    ret[n++] = runtime_component(f);
    if (f->inference_service) {
        ret[n] = aim_engine_pods(a, f->pods, NULL, S(""));
        ret[n++].name = "InferenceServicePods";
    }
    ret[n++] = cache_component(a, f);
    if (json_bool(routing_member(f, "enabled"), false))
        ret[n++] = route_component(a, f);
    if (is_autoscaled(f->service))
        ret[n++] = hpa_component(a, f);
    return n;
}
