/* What goes wrong around a schedule: rivals that name the same ScaledObject in two ways, an owner that cannot be read,
 * edits and ramps of plain workloads, status writes that fail. The whole controller on the embedded API server. */
#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "kube/grant.h"
#include "schedule/schedule_controller.h"
#include "schedule/schedule_records.h"
#include "schedule/schedule_status_core.h"
#include "tap.h"

static const char ns[] = "default";

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static const struct json *create(struct cluster *c, const struct resource *resource, str yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, yaml, &tree, &e), &e);
    cluster_create(c, resource, ns, tree);
    return cluster_get(c, resource, ns, json_text(json_at(tree, "metadata", "name", NULL)).p);
}

static void start_world(struct cluster *c)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, at("2026-06-03T08:00:00Z"));
    cluster_install(c, manifests_shapes);
}

static void run_operator(struct cluster *c)
{
    cluster_operator(c, &schedule_feature, NULL);
    cluster_until(c, cluster_now(c) + 1);
}

static void create_deployment(struct cluster *c)
{
    create(
        c, &resource_deployments,
        S("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, "
          "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: "
          "{containers: [{name: web, image: web}]}}}}"));
}

/* A schedule for work hours, with `more` fields of its trigger. */
static void create_schedule(struct cluster *c, const char *name, const char *ref, int min,
                            const char *more)
{
    create(c, &schedule_resource,
           arena_printf(
               &c->arena,
               "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: "
               "SmartHorizontalPodAutoscaler, metadata: {name: %s}, spec: {HPAObjectRef: {%s}, "
               "triggers: [{name: day, interval: {recurring: 'M,TU,W,TH,F'}, startTime: "
               "'09:00', endTime: '17:00', startHPAConfig: {minReplicas: %d, maxReplicas: 20}, "
               "endHPAConfig: {minReplicas: 1, maxReplicas: 2}%s}]}}",
               name, ref, min, more));
}

static str ready_reason(struct cluster *c, const char *name)
{
    const struct json *o = cluster_get(c, &schedule_resource, ns, name);
    return json_text(json_get(schedule_condition_find(json_get(o, "status"), "Ready"), "reason"));
}

static int64_t spec_of(struct cluster *c, const struct resource *resource, const char *name,
                       const char *field)
{
    return json_int(json_at(cluster_get(c, resource, ns, name), "spec", field, NULL), -1);
}

static size_t count(str text, str part)
{
    size_t n = 0;
    for (size_t i; (i = str_find(text, part)) != SIZE_MAX; n++)
        text = str_from(text, i + part.n);
    return n;
}

/* ---- KEDA */

/* A ScaledObject and the HPA that KEDA made for it, under a name of the user's choice. */
static void create_scaled_object(struct cluster *c, const char *hpa)
{
    const struct json *owner =
        create(c, &schedule_scaled_resource,
               S("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, spec: "
                 "{minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}"));
    create(c, &resource_hpas,
           arena_printf(
               &c->arena,
               "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s, "
               "labels: {scaledobject.keda.sh/name: shop}, ownerReferences: [{apiVersion: "
               "keda.sh/v1alpha1, kind: ScaledObject, name: shop, uid: %s, controller: true}]}, "
               "spec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, "
               "kind: Deployment, name: web}}}",
               hpa, json_text(json_at(owner, "metadata", "uid", NULL)).p));
}

/* One schedule names the ScaledObject, the other one its HPA: both mean the same bounds, and the older one sets them. */
static void rivals_are_found_behind_a_scaled_object(void)
{
    static const char *const refs[] = { "kind: ScaledObject, name: shop", "name: kept" };
    for (int older = 0; older < 2; older++) {
        struct cluster c;
        start_world(&c);
        create_scaled_object(&c, "kept");
        run_operator(&c);
        create_schedule(&c, "first", refs[older], 8, "");
        cluster_until(&c, cluster_now(&c) + 5);
        create_schedule(&c, "second", refs[!older], 5, "");
        cluster_until(&c, at("2026-06-03T10:00:00Z"));
        EQ_INT(spec_of(&c, &schedule_scaled_resource, "shop", "minReplicaCount"), 8);
        EQ_STR(ready_reason(&c, "first"), S("Reconciled"));
        EQ_STR(ready_reason(&c, "second"), S("HPAAlreadyManaged"));
        size_t writes = c.operator_writes;
        cluster_until(&c, at("2026-06-03T11:00:00Z"));
        EQ_INT(c.operator_writes, writes);
        cluster_do(&c, KUBE_DELETE, &schedule_resource, ns, "first", S(""));
        cluster_until(&c, at("2026-06-03T11:00:05Z"));
        EQ_INT(spec_of(&c, &schedule_scaled_resource, "shop", "minReplicaCount"), 5);
        cluster_stop(&c);
    }
}

/* A pause of the ScaledObject counts at once, whatever the name of its HPA. */
static void a_pause_is_seen_behind_an_hpa(void)
{
    struct cluster c;
    start_world(&c);
    create_scaled_object(&c, "kept");
    run_operator(&c);
    create_schedule(&c, "office", "name: kept", 8, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_STR(ready_reason(&c, "office"), S("Reconciled"));
    cluster_do(&c, KUBE_MERGE_PATCH, &schedule_scaled_resource, ns, "shop",
               S("{\"metadata\":{\"annotations\":{\"autoscaling.keda.sh/paused\":\"true\"}}}"));
    cluster_until(&c, at("2026-06-03T10:00:03Z"));
    EQ_STR(ready_reason(&c, "office"), S("TargetPaused"));
    cluster_stop(&c);
}

/* The words of KEDA, which reads them with Go's rules. */
static void pause_annotations_are_read_as_keda_does(void)
{
    static const struct {
        const char *text;
        bool paused;
    } cases[] = { { "true", true },   { "", true },   { "yes", true },    { "1", true },
                  { "false", false }, { "0", false }, { "False", false }, { "F", false } };
    struct cluster c;
    start_world(&c);
    create_scaled_object(&c, "kept");
    run_operator(&c);
    create_schedule(&c, "office", "kind: ScaledObject, name: shop", 8, "");
    for (size_t i = 0; i < countof(cases); i++) {
        cluster_do(
            &c, KUBE_MERGE_PATCH, &schedule_scaled_resource, ns, "shop",
            arena_printf(&c.arena,
                         "{\"metadata\":{\"annotations\":{\"autoscaling.keda.sh/paused\":\"%s\"}}}",
                         cases[i].text));
        cluster_until(&c, cluster_now(&c) + 5);
        EQ_STR(ready_reason(&c, "office"), cases[i].paused ? S("TargetPaused") : S("Reconciled"));
    }
    cluster_stop(&c);
}

/* A minimum of one would have KEDA start a pod within seconds. */
static void a_scaled_object_stays_at_zero(void)
{
    struct cluster c;
    start_world(&c);
    create_deployment(&c);
    create_scaled_object(&c, "kept");
    run_operator(&c);
    create_schedule(&c, "office", "kind: ScaledObject, name: shop", 8, "");
    cluster_do(&c, KUBE_JSON_PATCH, &schedule_resource, ns, "office",
               S("[{\"op\":\"add\",\"path\":\"/spec/triggers/0/endHPAConfig/desiredReplicas\","
                 "\"value\":0}]"));
    cluster_until(&c, at("2026-06-03T17:00:05Z"));
    EQ_INT(spec_of(&c, &schedule_scaled_resource, "shop", "minReplicaCount"), 0);
    EQ_INT(spec_of(&c, &schedule_scaled_resource, "shop", "maxReplicaCount"), 2);
    EQ_INT(spec_of(&c, &resource_deployments, "web", "replicas"), 0);
    cluster_until(&c, at("2026-06-04T09:00:05Z"));
    EQ_INT(spec_of(&c, &schedule_scaled_resource, "shop", "minReplicaCount"), 8);
    EQ_INT(spec_of(&c, &resource_deployments, "web", "replicas"), 8);
    cluster_stop(&c);
}

/* The operator may not read ScaledObjects: the HPA that one of them owns is not written either, because KEDA would revert
 * it, and it may be paused. */
static void an_hpa_of_an_unreadable_owner_is_left_alone(void)
{
    struct cluster c;
    start_world(&c);
    create_scaled_object(&c, "keda-hpa-shop");
    c.hidden = "/scaledobjects";
    run_operator(&c);
    create_schedule(&c, "office", "name: keda-hpa-shop", 8, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(spec_of(&c, &resource_hpas, "keda-hpa-shop", "minReplicas"), 2);
    EQ_STR(ready_reason(&c, "office"), S("OwnerNotFound"));
    cluster_stop(&c);
}

/* ---- plain workloads */

static int64_t replicas(struct cluster *c)
{
    return spec_of(c, &resource_deployments, "web", "replicas");
}

static void an_edit_of_an_open_window_scales_a_workload(void)
{
    struct cluster c;
    start_world(&c);
    create_deployment(&c);
    run_operator(&c);
    create_schedule(&c, "office", "kind: Deployment, name: web", 8, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(replicas(&c), 8);
    cluster_do(&c, KUBE_JSON_PATCH, &schedule_resource, ns, "office",
               S("[{\"op\":\"replace\",\"path\":\"/spec/triggers/0/startHPAConfig/minReplicas\","
                 "\"value\":11}]"));
    cluster_until(&c, at("2026-06-03T10:00:05Z"));
    EQ_INT(replicas(&c), 11);
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_deployments, ns, "web",
               S("{\"spec\":{\"replicas\":13}}"));
    cluster_until(&c, at("2026-06-03T12:00:00Z"));
    EQ_INT(replicas(&c), 13); /* between transitions it is free */
    cluster_stop(&c);
}

static void a_ramp_moves_a_workload(void)
{
    struct cluster c;
    start_world(&c);
    create_deployment(&c);
    run_operator(&c);
    create_schedule(&c, "office", "kind: Deployment, name: web", 10, ", rampMinutes: 8");
    cluster_until(&c, at("2026-06-03T16:59:00Z"));
    EQ_INT(replicas(&c), 10);
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_deployments, ns, "web",
               S("{\"spec\":{\"replicas\":20}}"));
    cluster_until(&c, at("2026-06-03T17:04:30Z"));
    EQ_INT(replicas(&c), 20); /* maxReplicas falls at the end of the ramp */
    cluster_until(&c, at("2026-06-03T17:08:05Z"));
    EQ_INT(replicas(&c), 2);
    cluster_until(&c, at("2026-06-04T08:56:05Z"));
    EQ_INT(replicas(&c), 6); /* half way from 1 to 10, rounded up */
    cluster_until(&c, at("2026-06-04T09:00:05Z"));
    EQ_INT(replicas(&c), 10);
    cluster_stop(&c);
}

/* A workload that does not exist is retried all the time, and reported once. */
static void a_missing_workload_is_reported_once(void)
{
    struct cluster c;
    start_world(&c);
    run_operator(&c);
    create_schedule(&c, "office", "kind: Deployment, name: web", 8, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_STR(ready_reason(&c, "office"), S("ScaleFailed"));
    EQ_INT(count(buf_str(&c.log), S("\"reason\":\"ScaleFailed\",\"")),
           3); /* two conditions, an event */
    EQ_INT(count(buf_str(&c.log), S("TriggerStarted")), 0);
    size_t writes = c.operator_writes;
    cluster_until(&c, at("2026-06-03T12:00:00Z"));
    EQ_INT(c.operator_writes, writes);
    create_deployment(&c);
    cluster_until(&c, at("2026-06-03T12:10:00Z"));
    EQ_INT(replicas(&c), 8);
    EQ_INT(count(buf_str(&c.log), S("TriggerStarted")), 1);
    cluster_stop(&c);
}

/* ---- names that are shared by chance */

/* A Deployment and a StatefulSet of one name are two targets. */
static void workloads_of_two_kinds_may_share_a_name(void)
{
    struct cluster c;
    start_world(&c);
    create_deployment(&c);
    create(&c, &resource_statefulsets,
           S("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {replicas: 3, "
             "serviceName: web, selector: {matchLabels: {app: db}}, template: {metadata: {labels: "
             "{app: db}}, spec: {containers: [{name: db, image: db}]}}}}"));
    run_operator(&c);
    create_schedule(&c, "first", "kind: Deployment, name: web", 8, "");
    create_schedule(&c, "second", "kind: StatefulSet, name: web", 5, "");
    create_schedule(&c, "third", "kind: Deployment, name: web", 4, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(replicas(&c), 8);
    EQ_INT(spec_of(&c, &resource_statefulsets, "web", "replicas"), 5);
    EQ_STR(ready_reason(&c, "second"), S("Reconciled"));
    EQ_STR(ready_reason(&c, "third"), S("HPAAlreadyManaged"));
    cluster_stop(&c);
}

/* Another namespace may manage this HPA, but names a ScaledObject of the same name, which it may not manage: that must not
 * keep the owner's own schedule from the HPA. */
static void a_refused_schedule_keeps_no_one_out(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &resource_hpas,
           S("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, "
             "annotations: {" GRANT_ANNOTATION ": other}}, spec: {minReplicas: 2, maxReplicas: 9, "
             "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"));
    cluster_do(
        &c, KUBE_CREATE, &resource_namespaces, "", "",
        S("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"other\"}}"));
    run_operator(&c);
    cluster_do(&c, KUBE_CREATE, &schedule_resource, "other", "",
               S("{\"apiVersion\":\"autoscaling.sarabala.io/v1alpha1\",\"kind\":"
                 "\"SmartHorizontalPodAutoscaler\",\"metadata\":{\"name\":\"first\"},\"spec\":"
                 "{\"HPAObjectRef\":{\"kind\":\"ScaledObject\",\"namespace\":\"default\",\"name\":"
                 "\"web\"}}}"));
    cluster_until(&c, cluster_now(&c) + 5);
    create_schedule(&c, "second", "name: web", 5, "");
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_STR(ready_reason(&c, "second"), S("Reconciled"));
    EQ_INT(spec_of(&c, &resource_hpas, "web", "minReplicas"), 5);
    cluster_stop(&c);
}

/* ---- failed status writes */

/* The status, which remembers what was reported, cannot be written for a while: the events are emitted once all the same. */
static void events_are_not_repeated_when_the_status_fails(void)
{
    struct cluster c;
    start_world(&c);
    create(
        &c, &resource_hpas,
        S("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: "
          "{minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, "
          "name: web}}}"));
    run_operator(&c);
    create_schedule(&c, "office", "name: web", 8, "");
    cluster_until(&c, at("2026-06-03T08:59:00Z"));
    c.fail_path = "/status";
    c.fail_code = 503;
    c.failures = 4;
    cluster_until(&c, at("2026-06-03T09:02:00Z"));
    EQ_INT(c.failures, 0);
    EQ_INT(spec_of(&c, &resource_hpas, "web", "minReplicas"), 8);
    EQ_STR(ready_reason(&c, "office"), S("Reconciled"));
    EQ_INT(count(buf_str(&c.log), S("\"TriggerStarted\"")), 1);
    EQ_INT(count(buf_str(&c.log), S("\"HPAUpdated\"")), 1);
    EQ_INT(count(buf_str(&c.log), S("\"count\":2")), 0);
    cluster_until(&c, at("2026-06-04T09:02:00Z")); /* the next morning is reported again */
    EQ_INT(count(buf_str(&c.log), S("\"TriggerEnded\"")), 1);
    OK(count(buf_str(&c.log), S("\"count\":2")) > 0 ||
       count(buf_str(&c.log), S("\"TriggerStarted\"")) > 1);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(rivals_are_found_behind_a_scaled_object),
        TAP(a_pause_is_seen_behind_an_hpa),
        TAP(pause_annotations_are_read_as_keda_does),
        TAP(a_scaled_object_stays_at_zero),
        TAP(an_hpa_of_an_unreadable_owner_is_left_alone),
        TAP(an_edit_of_an_open_window_scales_a_workload),
        TAP(a_ramp_moves_a_workload),
        TAP(a_missing_workload_is_reported_once),
        TAP(workloads_of_two_kinds_may_share_a_name),
        TAP(a_refused_schedule_keeps_no_one_out),
        TAP(events_are_not_repeated_when_the_status_fails),
        { 0 },
    });
}
