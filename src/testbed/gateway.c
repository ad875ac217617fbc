/* A gateway and a model server platform, as far as their answers go: every HTTPRoute is accepted by all of its
 * parents, whether such Gateways exist or not, and every InferenceService is ready after the start delay
 * of pods. Both report it in their status as the real ones do. Neither kind needs to be installed. */
#include "cluster.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

#define CONTROLLER_NAME TESTBED_DOMAIN "/gateway"

static const struct resource route_resource = { "gateway.networking.k8s.io", "v1", "httproutes",
                                                "HTTPRoute", true };

struct route {
    struct record meta;
    int64_t generation;
    bool deleting;
    str parents, shown; /* raw: spec.parentRefs, status.parents */
};

static const struct field route_fields[] = {
    { "metadata.generation", F_INT, offsetof(struct route, generation) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct route, deleting) },
    { "spec.parentRefs", F_RAW, offsetof(struct route, parents) },
    { "status.parents", F_RAW, offsetof(struct route, shown) },
};

static const struct cache_spec route_cache = { .resource = &route_resource,
                                               .need = CACHE_IF_KNOWN,
                                               .keep = FIELDS(struct route, route_fields) };

static struct json *route_condition(struct reconcile *r, const struct route *route,
                                    const char *type, const char *reason)
{
    char text[RFC3339_TEXT_MAX];
    struct json *c = json_new_obj(r->arena);
    json_set_str(r->arena, c, "type", str_c(type));
    json_set_str(r->arena, c, "status", S("True"));
    json_set_str(r->arena, c, "reason", str_c(reason));
    json_set_str(r->arena, c, "message", S("the simulated gateway serves it"));
    json_set_str(r->arena, c, "lastTransitionTime", rfc3339_text(r->now_ns / NS_PER_S, text));
    json_set_int(r->arena, c, "observedGeneration", route->generation);
    return c;
}

static struct json *accept(struct reconcile *r, const struct route *route, const struct json *refs)
{
    struct json *parents = json_new_arr(r->arena);
    for (size_t i = 0; i < json_len(refs); i++) {
        struct json *parent = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
        json_push(r->arena, conditions, route_condition(r, route, "Accepted", "Accepted"));
        json_push(r->arena, conditions, route_condition(r, route, "ResolvedRefs", "ResolvedRefs"));
        json_push(r->arena, conditions, route_condition(r, route, "Programmed", "Programmed"));
        json_set(r->arena, parent, S("parentRef"), json_copy(r->arena, json_item(refs, i)));
        json_set_str(r->arena, parent, "controllerName", S(CONTROLLER_NAME));
        json_set(r->arena, parent, S("conditions"), conditions);
        json_push(r->arena, parents, parent);
    }
    return parents;
}

/* Every parent has its answer, about this generation? */
static bool is_answered(const struct route *route, const struct json *refs,
                        const struct json *shown)
{
    if (json_len(shown) != json_len(refs))
        return false;
    for (size_t i = 0; i < json_len(refs); i++) {
        const struct json *parent = json_item(shown, i);
        const struct json *first = json_item(json_get(parent, "conditions"), 0);
        if (!json_eq(json_get(parent, "parentRef"), json_item(refs, i)) ||
            json_int(json_get(first, "observedGeneration"), -1) != route->generation)
            return false;
    }
    return true;
}

static struct reconciled reconcile_route(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct route *route = cache_get(c->routes, r->ns, r->name);
    struct json *refs = NULL, *shown = NULL;
    if (!route || route->deleting || json_parse(r->arena, route->parents, &refs, NULL) < 0)
        return reconciled();
    if (route->shown.n)
        (void)json_parse(r->arena, route->shown, &shown, NULL);
    if (is_answered(route, refs, shown))
        return reconciled();
    struct json *status = json_new_obj(r->arena);
    json_set(r->arena, status, S("parents"), accept(r, route, refs));
    reconcile_status(r, &route_resource, status);
    return reconciled();
}

/* ---- InferenceServices */

static const struct resource inference_resource = { "serving.kserve.io", "v1beta1",
                                                    "inferenceservices", "InferenceService", true };

struct inference {
    struct record meta;
    int64_t created_ns;
    bool deleting;
    str ready;
};

static const struct field inference_fields[] = {
    { "metadata.creationTimestamp", F_TIME, offsetof(struct inference, created_ns) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct inference, deleting) },
    { "status.conditions[type=Ready].status", F_WORD, offsetof(struct inference, ready) },
};

static const struct cache_spec inference_cache = { .resource = &inference_resource,
                                                   .need = CACHE_IF_KNOWN,
                                                   .keep =
                                                       FIELDS(struct inference, inference_fields) };

static struct reconciled reconcile_inference(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct inference *service = cache_get(c->inferences, r->ns, r->name);
    if (!service || service->deleting || str_eqc(service->ready, "True"))
        return reconciled();
    int64_t left = service->created_ns + c->start_delay_ns - r->now_ns;
    if (left > 0 && left <= c->start_delay_ns)
        return reconciled_after(left);
    char text[RFC3339_TEXT_MAX];
    static const char *const types[] = { "IngressReady", "PredictorReady", "Ready" };
    struct json *status = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
    for (size_t i = 0; i < countof(types); i++) {
        struct json *condition = json_new_obj(r->arena);
        json_set_str(r->arena, condition, "type", str_c(types[i]));
        json_set_str(r->arena, condition, "status", S("True"));
        json_set_str(r->arena, condition, "lastTransitionTime",
                     rfc3339_text(r->now_ns / NS_PER_S, text));
        json_push(r->arena, conditions, condition);
    }
    json_set(r->arena, status, S("conditions"), conditions);
    json_set_str(r->arena, status, "url",
                 arena_printf(r->arena, "http://" STR_FMT "-predictor." STR_FMT ".svc",
                              STR_ARG(r->name), STR_ARG(r->ns)));
    reconcile_status(r, &inference_resource, status);
    return reconciled();
}

static int watch(struct cluster *c, const struct cache_spec *spec,
                 const struct controller_spec *controller, struct cache **ret, err_t *e)
{
    int failed = manager_cache(c->manager, spec, ret, e);
    if (failed)
        return failed;
    controller_watch(manager_controller(c->manager, controller), *ret, NULL);
    return 0;
}

int cluster_start_gateway(struct cluster *c, err_t *e)
{
    int failed = watch(c, &route_cache,
                       &(struct controller_spec){
                           .name = "testbed-gateway", .reconcile = reconcile_route, .context = c },
                       &c->routes, e);
    return failed ? failed
                  : watch(c, &inference_cache,
                          &(struct controller_spec){ .name = "testbed-inference",
                                                     .reconcile = reconcile_inference,
                                                     .context = c },
                          &c->inferences, e);
}
