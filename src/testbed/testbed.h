/* testbed: a simulated cluster, so that everything flyball does can be seen and tested on one machine.
 *
 * Models, pure and deterministic (no clock, no I/O; time is an argument):
 *   cfs_model    the kernel's CPU bandwidth control: demand and quota in, counters out
 *   replica_model   a vLLM server: requests in, KV cache, queue, latencies and token counts out
 *   hpa_model    the HorizontalPodAutoscaler's arithmetic: metrics in, replicas out
 *   vpa_model    the VerticalPodAutoscaler's recommender, as a yardstick: usage in, requests out
 *
 * Out of the same models, fleet.h simulates one model under a scaling policy in virtual time, for `flyball simulate`:
 * series and fleet_query are what Prometheus would know, policies what is compared, fleet_search the yardsticks.
 *
 * The simulated cluster (cluster.h) is made of them: Deployments, kubelets, autoscalers, servers under
 * traffic, as a feature of a manager of its own.
 *
 * Nothing here is used by the product's decisions: the testbed stands where a real cluster stands,
 * and reaches flyball only through the Kubernetes API, /metrics and cgroup-like files. It is a fake of
 * what cannot run here: kubelets, GPUs and traffic.
 *
 * Read first: cfs_run, replica_advance, hpa_model_decide. */
#ifndef FLYBALL_TESTBED_H
#define FLYBALL_TESTBED_H

#include "cfs_model.h"
#include "hpa_model.h"
#include "replica_model.h"
#include "vpa_model.h"

/* All of it: `flyball up` runs it beside the controllers. */
extern const struct feature testbed_feature;

#endif
