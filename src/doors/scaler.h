/* KEDA's external scaler: see doors.h. */
#ifndef FLYBALL_SCALER_H
#define FLYBALL_SCALER_H

#include "doors.h"

struct scaler;

int scaler_new(const struct doors_options *options, struct scaler **ret, err_t *e);
void scaler_notify(struct scaler *s);
void scaler_drain(struct scaler *s);
void scaler_free(struct scaler *s);
uint16_t scaler_port(const struct scaler *s);

#endif
