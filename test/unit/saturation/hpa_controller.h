/* The HPA controller of a real kube-controller-manager between the operator's decisions and the Deployments, for
 * closed_loop_test.c. It asks for wva_desired_replicas through the aggregation layer, as with a Prometheus adapter:
 *
 *     operator ──gauge──► external.metrics.k8s.io (here, HTTPS) ◄── kube-apiserver ◄── HPA controller ──► Deployments
 *
 * No tolerance and no stabilization: what it does must be what was decided. */
#ifndef FLYBALL_TEST_HPA_CONTROLLER_H
#define FLYBALL_TEST_HPA_CONTROLLER_H

#include "saturation_world.h"

#include "base/rfc3339.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "testbed/fleet.h"

#define HPA_METRICS "/apis/external.metrics.k8s.io/v1beta1"

struct hpa_controller {
    struct models *w;
    struct http_server *server;
    struct tls *tls;
    const struct fleet_variant *variants;
    const char *const *accelerators;
    size_t variant_n;
    size_t asked; /* how often it read a decision */
};

/* The decision about a variant; -1: none yet. */
double hpa_controller_wanted(const struct hpa_controller *h, size_t v);
/* `folder` has a serving certificate. */
void hpa_controller_start(struct hpa_controller *h, const char *folder);
void hpa_controller_follow(struct hpa_controller *h, size_t v);
void hpa_controller_stop(struct hpa_controller *h);

#endif
