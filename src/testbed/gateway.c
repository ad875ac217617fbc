/* A Gateway API implementation and KServe, reduced to the status they write. Controllers that create
 * HTTPRoutes and InferenceServices wait for that status, so without these two reconcilers they would never
 * proceed on a simulated cluster.
 *
 *     HTTPRoute           accepted, resolved and programmed by every Gateway in spec.parentRefs that exists; one that was
 *                         deleted refuses it, and one that never existed does not answer, as in a real cluster
 *     InferenceService    ready after the start delay of pods, with a URL
 *
 * Both kinds are optional (CACHE_IF_KNOWN): a cluster without these CRDs starts without them. The status is
 * written once per generation; a status that is current is left alone, because writing it again would wake
 * every watcher.
 *
 * Left out: matching of listeners and hostnames, predictors (no pod is created), and any way to fail. */
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
    str parents, shown; /* raw JSON: spec.parentRefs, status.parents */
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

static const struct resource gateway_resource = { "gateway.networking.k8s.io", "v1", "gateways",
                                                  "Gateway", true };

struct gateway {
    struct record meta;
    bool deleting;
};

static const struct field gateway_fields[] = {
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct gateway, deleting) },
};

static const struct cache_spec gateway_cache = { .resource = &gateway_resource,
                                                 .need = CACHE_IF_KNOWN,
                                                 .keep = FIELDS(struct gateway, gateway_fields) };

/* Deleted Gateways are remembered, "namespace/name": they refuse what one that never existed would not answer. */
static void on_gateway_change(struct controller *routes, const struct record *old,
                              const struct record *now)
{
    struct cluster *c = controller_context(routes);
    const struct record *any = now ? now : old;
    auto_buf struct buf key = { 0 };
    const struct route *route;
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(any->ns), STR_ARG(any->name));
    free(map_del(&c->deleted_gateways, buf_str(&key)));
    if (!now) {
        char *kept = mem_dup(key.p, key.n);
        map_put(&c->deleted_gateways, (str){ kept, key.n }, kept);
    }
    cache_each(route, c->routes)
        controller_add(routes, route->meta.ns, route->meta.name);
}

/* The key of a parent's Gateway. */
static str gateway_of(struct reconcile *r, const struct json *ref, str *ret_ns)
{
    str ns = json_text(json_get(ref, "namespace"));
    *ret_ns = ns.n ? ns : r->ns;
    return json_text(json_get(ref, "name"));
}

/* Without the kind there is nothing to look up: every parent accepts. */
static bool is_accepted_by(struct reconcile *r, const struct json *ref)
{
    struct cluster *c = r->context;
    str ns, name = gateway_of(r, ref, &ns);
    return cache_absent(c->gateways) || cache_get(c->gateways, ns, name);
}

/* Does a controller answer for this parent: does its Gateway exist, or did it once? */
static bool is_answered(struct reconcile *r, const struct json *ref, const struct json *shown)
{
    struct cluster *c = r->context;
    str ns, name = gateway_of(r, ref, &ns);
    for (size_t i = 0; i < json_len(shown); i++)
        if (json_eq(json_get(json_item(shown, i), "parentRef"), ref))
            return true;
    return is_accepted_by(r, ref) ||
           map_get(&c->deleted_gateways,
                   arena_printf(r->arena, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)));
}

/* A condition about the route's current generation. */
static struct json *route_condition(struct reconcile *r, const struct route *route,
                                    const char *type, const char *reason)
{
    bool holds = strcmp(reason, "NoMatchingParent") != 0;
    char text[RFC3339_TEXT_MAX];
    struct json *c = json_new_obj(r->arena);
    json_set_str(r->arena, c, "type", str_c(type));
    json_set_str(r->arena, c, "status", holds ? S("True") : S("False"));
    json_set_str(r->arena, c, "reason", str_c(reason));
    json_set_str(r->arena, c, "message",
                 holds ? S("The simulated gateway serves this route")
                       : S("The Gateway was deleted"));
    json_set_str(r->arena, c, "lastTransitionTime", rfc3339_text(r->now_ns / NS_PER_S, text));
    json_set_int(r->arena, c, "observedGeneration", route->generation);
    return c;
}

/* status.parents: one entry per parent, in the order of spec.parentRefs, each with all conditions true unless its
 * Gateway was deleted. */
static struct json *accept_parents(struct reconcile *r, const struct route *route,
                                   const struct json *refs)
{
    struct json *parents = json_new_arr(r->arena);
    for (size_t i = 0; i < json_len(refs); i++) {
        struct json *parent = json_new_obj(r->arena), *conditions = json_new_arr(r->arena);
        static const char *const types[] = { "Accepted", "ResolvedRefs", "Programmed" };
        bool accepted = is_accepted_by(r, json_item(refs, i));
        for (size_t k = 0; k < countof(types); k++)
            json_push(r->arena, conditions,
                      route_condition(r, route, types[k],
                                      accepted || k == 1 ? types[k] : "NoMatchingParent"));
        json_set(r->arena, parent, S("parentRef"), json_copy(r->arena, json_item(refs, i)));
        json_set_str(r->arena, parent, "controllerName", S(CONTROLLER_NAME));
        json_set(r->arena, parent, S("conditions"), conditions);
        json_push(r->arena, parents, parent);
    }
    return parents;
}

/* True if status.parents has an entry per parent about the current generation. */
static bool is_status_current(struct reconcile *r, const struct route *route,
                              const struct json *refs, const struct json *shown)
{
    if (json_len(shown) != json_len(refs))
        return false;
    for (size_t i = 0; i < json_len(refs); i++) {
        const struct json *parent = json_item(shown, i);
        const struct json *first = json_item(json_get(parent, "conditions"), 0);
        if (!json_eq(json_get(parent, "parentRef"), json_item(refs, i)) ||
            json_int(json_get(first, "observedGeneration"), -1) != route->generation ||
            str_eqc(json_text(json_get(first, "status")), "True") !=
                is_accepted_by(r, json_item(refs, i)))
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
    struct json *answered = json_new_arr(r->arena);
    for (size_t i = 0; i < json_len(refs); i++)
        if (is_answered(r, json_item(refs, i), shown))
            json_push(r->arena, answered, json_copy(r->arena, json_item(refs, i)));
    if (is_status_current(r, route, answered, shown))
        return reconciled();
    struct json *status = json_new_obj(r->arena);
    json_set(r->arena, status, S("parents"), accept_parents(r, route, answered));
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

/* Waits for the start delay, then writes the three conditions that clients of KServe look at. */
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

int cluster_start_gateway(struct cluster *c, err_t *e)
{
    int failed = manager_cache(c->manager, &route_cache, &c->routes, e);
    failed = failed ? failed : manager_cache(c->manager, &gateway_cache, &c->gateways, e);
    failed = failed ? failed : manager_cache(c->manager, &inference_cache, &c->inferences, e);
    if (failed)
        return failed;
    struct controller *routes =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-gateway",
                                                                  .reconcile = reconcile_route,
                                                                  .context = c });
    controller_watch(routes, c->routes, NULL);
    controller_watch(routes, c->gateways, on_gateway_change);
    controller_watch(manager_controller(c->manager,
                                        &(struct controller_spec){ .name = "testbed-inference",
                                                                   .reconcile = reconcile_inference,
                                                                   .context = c }),
                     c->inferences, NULL);
    return 0;
}

void cluster_stop_gateway(struct cluster *c)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&c->deleted_gateways, slot));)
        free(slot->value);
    map_done(&c->deleted_gateways);
}
