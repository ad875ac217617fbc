/* Whether an image that a model source names, or that a registry lists, may become a model. */
#ifndef FLYBALL_MODELSOURCE_CHECK_H
#define FLYBALL_MODELSOURCE_CHECK_H

#include "../base/err.h"
#include "modelsource_core.h"

/* May the image be the image of a model? -EINVAL with a sentence that never contains credentials. */
int aim_modelsource_check(struct arena *a, const struct aim_modelsource_image *image, err_t *e);
/* Credentials in the image pattern of a filter, or no digest after "@"? */
int aim_modelsource_check_pattern(str image, err_t *e);

#endif
