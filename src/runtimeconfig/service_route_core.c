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

static struct aim_service_route_fact make_waiting(str message)
{
    return (struct aim_service_route_fact){ SERVICE_ROUTE_WAITING, S("ConfiguringRoute"), message };
}

static bool is_stale(const struct json *condition, int64_t generation)
{
    return json_int(json_get(condition, "observedGeneration"), generation) < generation;
}

/* The answer of one parent. */
static struct aim_service_route_fact parent_fact(const struct json *parent, int64_t generation)
{
    static const char *const types[] = { "Accepted", "ResolvedRefs" };
    for (size_t i = 0; i < countof(types); i++) {
        const struct json *c = find_condition(parent, types[i]);
        str status = json_text(json_get(c, "status"));
        if (c && str_eqc(status, "False") && !is_stale(c, generation))
            return (struct aim_service_route_fact){ SERVICE_ROUTE_REJECTED,
                                                    json_text(json_get(c, "reason")),
                                                    json_text(json_get(c, "message")) };
        bool must = i == 0; /* not every gateway reports ResolvedRefs */
        if ((must || c) && (!str_eqc(status, "True") || is_stale(c, generation)))
            return make_waiting(S("Waiting for the gateway to accept the HTTPRoute"));
    }
    return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_READY };
}

/* A route without parents in its status has not been seen by any gateway controller yet. */
struct aim_service_route_fact aim_service_route_fact(const struct json *route)
{
    const struct json *parents = json_at(route, "status", "parents", NULL);
    int64_t generation = json_int(json_at(route, "metadata", "generation", NULL), 0);
    if (!route)
        return make_waiting(S("Waiting for HTTPRoute to be created"));
    if (!json_len(parents))
        return make_waiting(S("Waiting for the gateway to accept the HTTPRoute"));
    for (size_t i = 0; i < json_len(parents); i++) {
        struct aim_service_route_fact fact = parent_fact(json_item(parents, i), generation);
        if (fact.state != SERVICE_ROUTE_READY)
            return fact;
    }
    return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_READY };
}
