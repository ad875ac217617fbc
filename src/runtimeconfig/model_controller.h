/* AIMModel and AIMClusterModel: templates from what their image recommends, and how they are. */
#ifndef FLYBALL_MODEL_CONTROLLER_H
#define FLYBALL_MODEL_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_model_hooks; /* of both kinds */

#endif
