/* AIMTemplateCache and AIMModelCache: the model sources of a template, cached in volumes. */
#ifndef FLYBALL_CACHE_CONTROLLER_H
#define FLYBALL_CACHE_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_template_cache_hooks, aim_model_cache_hooks;

#endif
