/* PodAllocations and pods of any shape, through the whole reconcile path: see reconcile.h. */
#include "fuzz.h"
#include "market/market_controller.h"
#include "reconcile.h"

#define POD(name, uid, more)                                                                       \
    { "/api/v1", "pods",                                                                           \
      "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: shop, uid: " uid          \
      ", generation: 3, labels: {mbcas.io/managed: 'true'}, annotations: {mbcas.io/managed: "      \
      "'true'}}, spec: {nodeName: n1, containers: [{name: app, resources: {requests: {cpu: "       \
      "100m}, limits: {cpu: 500m}}, resizePolicy: [{resourceName: cpu, restartPolicy: "            \
      "NotRequired}]}, {name: side, resources: {requests: {cpu: 50m}, limits: {cpu: 100m}}}"       \
      "], initContainers: [{name: init, restartPolicy: Always}]}, status: {phase: Running, "       \
      "qosClass: Burstable, containerStatuses: [{name: app, allocatedResources: {cpu: 100m}"       \
      ", resources: {requests: {cpu: 100m}, limits: {cpu: 500m}}}, {name: side, resources: "       \
      "{requests: {cpu: 50m}, limits: {cpu: 100m}}}]" more "}}" }
#define ALLOCATION(name, uid, pod, limit)                                                          \
    { "/apis/allocation.mbcas.io/v1alpha1", "podallocations",                                      \
      "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, metadata: {name: " name     \
      ", namespace: shop, uid: a" uid ", generation: 2, ownerReferences: [{kind: Pod, "            \
      "name: " pod ", uid: " uid "}]}, spec: {namespace: shop, podName: " pod                      \
      ", desiredCPURequest: 200m, desiredCPULimit: " limit "}, status: {phase: Pending, "          \
      "appliedCPULimit: 500m, conditions: [{type: Applied}], originalResources: "                  \
      "{containers: [{container: app, cpuRequest: 100m, cpuLimit: 500m}]}, "                       \
      "lastAppliedTime: '2026-06-03T11:00:00Z', infeasibleCPULimit: 9, infeasibleUntil: "          \
      "'2026-06-03T13:00:00Z', shadowPriceCPU: 0.5}}" }

static const struct fuzz_object objects[] = {
    POD("web", "p1", ""),
    POD("db", "p2",
        ", conditions: [{type: PodResizePending, reason: Deferred, message: full, observedGeneration: 3, "
        "lastTransitionTime: '2026-06-03T11:59:00Z'}]"),
    ALLOCATION("web", "p1", "web", "700m"),
    ALLOCATION("db", "p2", "db", "300m"),
};

static const char *const words[] = { "100m",
                                     "1n",
                                     "9E",
                                     "Infeasible",
                                     "Deferred",
                                     "PodResizePending",
                                     "PodResizeInProgress",
                                     "Guaranteed",
                                     "BestEffort",
                                     "Succeeded",
                                     "RestartContainer",
                                     "mbcas.io/managed",
                                     "mbcas.io/allow-restart",
                                     "originalResources",
                                     "status",
                                     "web",
                                     "app",
                                     "side",
                                     "p1",
                                     "p2",
                                     "deletionTimestamp",
                                     NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_feature f = { &market_feature, NULL, objects, countof(objects),
                                           words };
    fuzz_reconcile(&f, data, size);
    return 0;
}
