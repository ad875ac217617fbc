/* AIMServiceTemplate and AIMClusterServiceTemplate: their ServingRuntime, their cache, and their status. */
#ifndef FLYBALL_TEMPLATE_CONTROLLER_H
#define FLYBALL_TEMPLATE_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_template_hooks; /* of both kinds */

#endif
