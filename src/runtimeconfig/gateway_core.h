/* Objects of the Gateway API that other clients wrote: which paths an HTTPRoute occupies, and the address of a
 * Gateway. Pure. */
#ifndef FLYBALL_GATEWAY_CORE_H
#define FLYBALL_GATEWAY_CORE_H

#include "claims_core.h"
#include "route_core.h"

struct aim_route_paths {
    struct aim_claim_place *at;
    size_t n;
};

/* Did the gateway of this place last refuse the route? A gateway decides which namespaces may use it
 * (allowedRoutes), and a route that it refused does not occupy the path. */
bool aim_route_is_refused(const struct json *route, const struct aim_claim_place *place);

/* "name: value" as claims compare it. */
str aim_route_header_key(struct arena *a, str name, str value);

/* The paths and headers that a route occupies entirely. More specific rules do not conflict with ours. */
struct aim_route_paths aim_route_paths(struct arena *a, const struct json *route);

/* The URL of a path: host and scheme of the listener that the plan names, or of the first one; the listener's
 * host name, or else the gateway's first address. `listeners` and `addresses` are JSON. "": no address. */
str aim_route_url(struct arena *a, str listeners, str addresses, const struct aim_route_plan *plan);

#endif
