/* The gateways' answer to a service's HTTPRoute, as a fact for its status. */
#ifndef FLYBALL_SERVICE_ROUTE_CORE_H
#define FLYBALL_SERVICE_ROUTE_CORE_H

#include "service_status_core.h"

/* `route` is the object; NULL: none. Every parent must have accepted it and resolved its references; the first that
 * did not decides. Conditions of an older generation are ignored. */
struct aim_service_route_fact aim_service_route_fact(const struct json *route);

#endif
