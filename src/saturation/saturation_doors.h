/* Opens the doors that the flags ask for: --scaler-listen, --external-metrics-listen. */
#ifndef FLYBALL_SATURATION_DOORS_H
#define FLYBALL_SATURATION_DOORS_H

#include "saturation_state.h"

int saturation_doors_start(struct saturation *s, err_t *e);
/* After decisions of the leader: reports changes, and labels the pod so that Services select it. */
void saturation_doors_update(struct saturation *s);

#endif
