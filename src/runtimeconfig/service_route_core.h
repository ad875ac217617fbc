/* What the gateways say of a service's HTTPRoute, as a fact for its status. */
#ifndef FLYBALL_SERVICE_ROUTE_CORE_H
#define FLYBALL_SERVICE_ROUTE_CORE_H

#include "service_status_core.h"

/* `route` is the object, NULL while there is none. Every parent must have accepted it and found all that it
 * refers to; the first that did not decides. What was said of an older generation does not count. */
struct aim_service_route_fact aim_service_route_fact(const struct json *route);

#endif
