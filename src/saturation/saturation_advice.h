/* Warnings about HPAs and ScaledObjects that do not follow decisions as their users expect. */
#ifndef FLYBALL_SATURATION_ADVICE_H
#define FLYBALL_SATURATION_ADVICE_H

#include "saturation_state.h"

/* Once per cycle: warns about each scaler that is new or changed, by an event on it. */
void saturation_advice_cycle(struct saturation *s);
void saturation_advice_done(struct saturation *s);

#endif
