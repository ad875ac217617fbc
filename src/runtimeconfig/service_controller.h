/* AIMService: the objects it creates and its status. The turn, the configuration and the route are around it: see
 * consumer.h. */
#ifndef FLYBALL_SERVICE_CONTROLLER_H
#define FLYBALL_SERVICE_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_service_hooks;

#endif
