/* Schedules, HPAs and workloads of any shape, through the whole reconcile path: see reconcile.h. */
#include "fuzz.h"
#include "reconcile.h"
#include "schedule/schedule_controller.h"

static const struct fuzz_object objects[] = {
    { "/apis/autoscaling.sarabala.io/v1alpha1", "smarthorizontalpodautoscalers",
      "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: {name: "
      "web, namespace: shop, uid: u1, generation: 1, creationTimestamp: '2026-06-01T00:00:00Z', "
      "finalizers: ['autoscaling.sarabala.io/finalizer']}, spec: {HPAObjectRef: {namespace: shop, name: web}, "
      "triggers: [{name: day, priority: 10, timezone: Europe/Berlin, interval: {recurring: 'M,TU,W,TH,F'}, "
      "startTime: '08:00:00', endTime: '20:00:00', startHPAConfig: {minReplicas: 5, maxReplicas: 9, "
      "desiredReplicas: 6}, endHPAConfig: {minReplicas: 1, maxReplicas: 3}}, {name: sale, priority: 20, "
      "timezone: UTC, cron: '0 12 * * 1-5', startTime: '2026-06-03T11:00:00', endTime: '23:00:00', "
      "startHPAConfig: {minReplicas: 7, maxReplicas: 20}}]}, status: {conditions: [{type: Ready, status: "
      "'True', reason: Applied, message: m, lastTransitionTime: '2026-06-01T00:00:00Z'}], triggers: [{name: "
      "day, status: Active, lastAppliedConfig: {minReplicas: 5, maxReplicas: 9}}], observedGeneration: 1}}" },
    { "/apis/autoscaling.sarabala.io/v1alpha1", "smarthorizontalpodautoscalers",
      "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: {name: "
      "made, namespace: shop, uid: u2, generation: 1, annotations: {a: b}}, spec: {HPASpecTemplate: "
      "{metadata: {name: made, namespace: shop, labels: {a: b}}, spec: {scaleTargetRef: {apiVersion: "
      "apps/v1, kind: Deployment, name: made}, minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource, "
      "resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}], behavior: "
      "{scaleDown: {stabilizationWindowSeconds: 60}}}}, smartRecommendation: {enabled: true, query: 'up', "
      "history: 2w, mode: advise}, triggers: [{name: t, timezone: UTC, startTime: '00:00:00', endTime: "
      "'23:59:59', interval: {recurring: all}, startHPAConfig: {minReplicas: 2, maxReplicas: 6}}]}}" },
    { "/apis/autoscaling/v2", "horizontalpodautoscalers",
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop, "
      "uid: h1, annotations: {autoscaling.sarabala.io/baseline: '{\"minReplicas\":1,\"maxReplicas\":3}'}}, "
      "spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "
      "web}, metrics: [{type: Object}]}, status: {currentReplicas: 2}}" },
    { "/apis/apps/v1", "deployments",
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d1}, spec: "
      "{replicas: 2}, status: {replicas: 2}}" },
    { "/apis/autoscaling.sarabala.io/v1alpha1", "smarthorizontalpodautoscalers",
      "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: {name: "
      "keda, namespace: shop, uid: u3, generation: 1, creationTimestamp: '2026-06-01T00:00:00Z'}, spec: "
      "{HPAObjectRef: {kind: ScaledObject, name: jobs}, triggers: [{name: work, timezone: UTC, schedule: "
      "'0 9 * * MON-FRI', duration: 8h, interval: {excludeDatesFrom: [holidays]}, startHPAConfig: "
      "{minReplicas: 3, maxReplicas: 9}}]}}" },
    { "/apis/keda.sh/v1alpha1", "scaledobjects",
      "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: jobs, namespace: shop, uid: s1, "
      "annotations: {autoscaling.keda.sh/paused: 'false'}}, spec: {minReplicaCount: 0, maxReplicaCount: 5, "
      "idleReplicaCount: 0, scaleTargetRef: {name: web}}}" },
    { "/api/v1", "configmaps",
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: holidays, namespace: shop, uid: c1, labels: "
      "{flyball.io/calendar: 'true'}}, data: {calendar.ics: \"BEGIN:VCALENDAR\\r\\nBEGIN:VEVENT\\r\\n"
      "UID:a\\r\\nDTSTART;VALUE=DATE:20260604\\r\\nRRULE:FREQ=YEARLY\\r\\nEND:VEVENT\\r\\nEND:VCALENDAR\"}}" },
};

static const char *const words[] = { "minReplicas",
                                     "maxReplicas",
                                     "desiredReplicas",
                                     "triggers",
                                     "startTime",
                                     "endTime",
                                     "recurring",
                                     "M,TU,W",
                                     "2026-06-03",
                                     "24:00:00",
                                     "Asia/Kathmandu",
                                     "*/5 * * * *",
                                     "HPAObjectRef",
                                     "HPASpecTemplate",
                                     "smartRecommendation",
                                     "autoscaling.sarabala.io/finalizer",
                                     "deletionTimestamp",
                                     "web",
                                     "shop",
                                     "excludeDatesFrom",
                                     "0 9 * * MON-FRI",
                                     "paused-replicas",
                                     "True",
                                     "Ready",
                                     NULL };

static const char *const settings[] = { "smarthpa-prometheus-url", "http://127.0.0.1:2",
                                        "smarthpa-calendars", "true", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_feature f = { &schedule_feature, settings, objects, countof(objects),
                                           words };
    fuzz_reconcile(&f, data, size);
    return 0;
}
