/* AIMClusterModelSource: looks for images in registries and creates a model for each. */
#ifndef FLYBALL_MODELSOURCE_CONTROLLER_H
#define FLYBALL_MODELSOURCE_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_modelsource_hooks;

struct aim_sync;
void aim_sync_free(struct aim_sync *s); /* NULL is fine */

#endif
