/* AIMModel and AIMClusterModel: templates from the deployments that their image recommends, and their status. */
#ifndef FLYBALL_MODEL_CONTROLLER_H
#define FLYBALL_MODEL_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_model_hooks; /* of both kinds */

#endif
