/* AIMService: what it brings into being and what it says of itself. The turn, the configuration and the route are
 * around it: see consumer.h. */
#ifndef FLYBALL_SERVICE_CONTROLLER_H
#define FLYBALL_SERVICE_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_service_hooks;

#endif
