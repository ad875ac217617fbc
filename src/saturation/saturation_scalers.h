/* Variants without a VariantAutoscaling: HPAs and ScaledObjects whose annotations describe them. */
#ifndef FLYBALL_SATURATION_SCALERS_H
#define FLYBALL_SATURATION_SCALERS_H

#include "saturation_state.h"

/* Handlers of the caches of HPAs and ScaledObjects. */
cache_handler_fn saturation_scalers_on_hpa, saturation_scalers_on_scaled_object;
/* A VariantAutoscaling in the namespace came, changed or went: it wins over annotations. */
void saturation_scalers_refresh(struct saturation *s, str ns);

#endif
