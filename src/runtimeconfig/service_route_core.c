/* Acceptance of a route: see service_route_core.h. Gateways answer asynchronously; a condition whose observedGeneration is
 * older than the route describes the version before, so the route counts as waiting. */
#include "service_route_core.h"

static const struct json *find_condition(const struct json *parent, const char *type)
{
    const struct json *list = json_get(parent, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_item(list, i);
    return NULL;
}

static struct aim_service_route_fact make_waiting(str reason, str message)
{
    return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_WAITING,
                                            .reason = reason,
                                            .message = message };
}

static bool is_stale(const struct json *condition, int64_t generation)
{
    return json_int(json_get(condition, "observedGeneration"), generation) < generation;
}

/* Reason and message of a condition that does not hold; both have a default. */
static struct aim_service_route_fact fact_of(enum aim_service_route_state state,
                                             const struct json *condition)
{
    str reason = json_text(json_get(condition, "reason"));
    str message = json_text(json_get(condition, "message"));
    return (struct aim_service_route_fact){
        .state = state,
        .reason = reason.n ? reason : S("RouteFailed"),
        .message = message.n ? message : S("HTTPRoute not accepted by gateway"),
    };
}

/* ResolvedRefs; not every gateway reports it, and only False is a statement about the references. A backend that does not exist yet is a state of its own: it is normal until
 * the InferenceService is ready. */
static struct aim_service_route_fact refs_fact(const struct json *refs, int64_t generation)
{
    str status = json_text(json_get(refs, "status"));
    bool missing = str_eqc(json_text(json_get(refs, "reason")), "BackendNotFound");
    if (refs && is_stale(refs, generation))
        return make_waiting(S("ConfiguringRoute"),
                            S("Waiting for the gateway to accept the HTTPRoute"));
    if (str_eqc(status, "False"))
        return fact_of(missing ? SERVICE_ROUTE_NO_BACKEND : SERVICE_ROUTE_REJECTED, refs);
    return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_READY };
}

/* The answer of one parent. */
static struct aim_service_route_fact parent_fact(const struct json *parent, int64_t generation)
{
    const struct json *accepted = find_condition(parent, "Accepted");
    str status = json_text(json_get(accepted, "status"));
    if (accepted && is_stale(accepted, generation))
        return make_waiting(S("ConfiguringRoute"),
                            S("Waiting for the gateway to accept the HTTPRoute"));
    if (str_eqc(status, "False"))
        return fact_of(SERVICE_ROUTE_REJECTED, accepted);
    if (accepted && !str_eqc(status, "True"))
        return fact_of(SERVICE_ROUTE_WAITING, accepted);
    struct aim_service_route_fact refs =
        refs_fact(find_condition(parent, "ResolvedRefs"), generation);
    return accepted || refs.state != SERVICE_ROUTE_READY
               ? refs
               : make_waiting(S("ConfiguringRoute"), S("HTTPRoute Accepted condition not found"));
}

/* A route without parents in its status has not been seen by any gateway controller yet. */
struct aim_service_route_fact aim_service_route_fact(const struct json *route)
{
    const struct json *parents = json_at(route, "status", "parents", NULL);
    int64_t generation = json_int(json_at(route, "metadata", "generation", NULL), 0);
    if (!route)
        return make_waiting(S("ConfiguringRoute"), S("Waiting for HTTPRoute to be created"));
    if (!json_len(parents))
        return make_waiting(S("ConfiguringRoute"), S("HTTPRoute has no parent status"));
    for (size_t i = 0; i < json_len(parents); i++) {
        struct aim_service_route_fact fact = parent_fact(json_item(parents, i), generation);
        if (fact.state != SERVICE_ROUTE_READY)
            return fact;
    }
    return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_READY };
}
