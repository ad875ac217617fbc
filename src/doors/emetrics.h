/* external.metrics.k8s.io/v1beta1: see doors.h. */
#ifndef FLYBALL_EMETRICS_H
#define FLYBALL_EMETRICS_H

#include "doors.h"

struct emetrics;

int emetrics_new(const struct doors_options *options, struct emetrics **ret, err_t *e);
void emetrics_drain(struct emetrics *m);
void emetrics_free(struct emetrics *m);
uint16_t emetrics_port(const struct emetrics *m);

#endif
