/* What objects of the Gateway API that others wrote mean to us: which paths an HTTPRoute takes, and
 * where a Gateway is reached. Pure. */
#ifndef FLYBALL_GATEWAY_CORE_H
#define FLYBALL_GATEWAY_CORE_H

#include "claims.h"
#include "route_core.h"

struct route_places {
    struct claim_place *at;
    size_t n;
};

/* Did the gateway of this place refuse the route when it last looked? Who may use a gateway of another namespace is the
 * gateway's to say (allowedRoutes), and a route that it does not take keeps nobody else from the path. */
bool route_is_refused(const struct json *route, const struct claim_place *place);

/* The paths that a route takes as a whole: rules by prefix without any other condition, of routes for
 * every host name. What is more specific than that takes nothing away from us. */
struct route_places route_places(struct arena *a, const struct json *route);

/* The address of a path: host and scheme of the listener that the plan names, or of the first; the
 * listener's host name or else the gateway's first address. `listeners` and `addresses` are JSON. ""
 * when it has none. */
str route_url(struct arena *a, str listeners, str addresses, const struct route_plan *plan);

#endif
