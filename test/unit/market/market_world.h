/* Shared by the tests of the market's controller: the operator on the embedded API server, pods
 * on node n1 in the namespace default, and a kubelet that does what the test orders. */
#ifndef FLYBALL_MARKET_WORLD_H
#define FLYBALL_MARKET_WORLD_H

#include "base/log.h"
#include "cluster.h"
#include "market/market_controller.h"
#include "market/market_records.h"
#include "tap.h"

#define WORLD_NS "default"
#define NOON 1780488000 /* 2026-06-03T12:00:00Z */

/* Starts the cluster with one node and the operator; settings may be NULL. */
void world_start(struct cluster *c, const char *const *settings);
void world_start_with_pod(struct cluster *c, const char *pod);
void world_restart(struct cluster *c, const char *const *settings); /* the operator only */
void world_pass_time(struct cluster *c, int64_t seconds);

struct json *world_parse_yaml(struct cluster *c, const char *yaml);
struct cluster_answer world_patch(struct cluster *c, const struct resource *resource,
                                  const char *name, const char *subresource, str body);

/* ---- pods and the kubelet */

void world_add_pod(struct cluster *c, const char *yaml); /* already running */

/* The kubelet reports the resources of the spec as in force. */
void world_enact(struct cluster *c, const char *pod);
/* The kubelet reports a resize condition instead: "PodResizePending", "Deferred". */
void world_set_resize_condition(struct cluster *c, const char *pod, const char *type,
                                const char *reason);
/* One status per container, as the kubelet reports it: everything of the spec is in force. */
struct json *world_make_statuses(struct cluster *c, const struct json *containers);
/* "limit/request" of a container in the pod's spec. */
str world_container_cpu(struct cluster *c, const char *pod, const char *container);

/* ---- PodAllocations */

/* Creates or updates the PodAllocation of a pod. */
void world_set_desired(struct cluster *c, const char *pod, const char *request, const char *limit);
/* The same, and waits until it is enacted and the next step may be sent. */
void world_apply_desired(struct cluster *c, const char *pod, const char *request,
                         const char *limit);
/* Enacts the pod's spec, and expects status Applied. */
void world_enact_and_verify(struct cluster *c, const char *pod);

str world_status(struct cluster *c, const char *pod, const char *field);
void world_expect_status(struct cluster *c, const char *pod, const char *phase, const char *reason);
size_t world_count_events(struct cluster *c, const char *reason);
size_t world_count_requests(const struct cluster *c, const char *path); /* in the server's log */

#define POD(name, more, resources)                                                                 \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name more "}, spec: {nodeName: n1, "           \
    "containers: [{name: app, image: x, resources: " resources "}]}}"
#define BURSTABLE "{limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: 250m, memory: 64Mi}}"

#endif
