/* Metrics of a controller, under the names that controller-runtime dashboards use. */
#ifndef FLYBALL_KUBE_CONTROLLER_METRICS_H
#define FLYBALL_KUBE_CONTROLLER_METRICS_H

#include "../base/metrics.h"

struct controller;
struct controller_metrics;

enum turn_result { TURN_SUCCESS, TURN_ERROR, TURN_AGAIN, TURN_RESULT_N };

struct controller_metrics *controller_metrics_new(struct metrics *m, const struct controller *c,
                                                  int workers);
void controller_metrics_free(struct controller_metrics *cm);
void controller_metrics_wait(struct controller_metrics *cm, int64_t ns); /* a key left the queue */
void controller_metrics_turn(struct controller_metrics *cm, enum turn_result result, int64_t ns);

#endif
