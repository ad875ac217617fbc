/* Targets other than HPAs, and calendars: the whole controller on the embedded API server, on a clock of its own. */
#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "kube/keep.h"
#include "schedule/schedule_controller.h"
#include "schedule/schedule_records.h"
#include "schedule/schedule_status_core.h"
#include "tap.h"

#define DEPLOYMENT                                                                                  \
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: " \
    "{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: "     \
    "[{name: web, image: web}]}}}}"
#define SCHEDULE(ref, interval)                                                                     \
    "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: " \
    "{name: office}, spec: {HPAObjectRef: {" ref                                                    \
    "}, triggers: [{name: day, interval: {recurring: "                                              \
    "'M,TU,W,TH,F'" interval                                                                        \
    "}, startTime: '09:00', endTime: '17:00', startHPAConfig: {minReplicas: "                       \
    "8, maxReplicas: 20}, endHPAConfig: {minReplicas: 0, maxReplicas: 5}}]}}"

static const char ns[] = "default";

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static const struct json *create(struct cluster *c, const struct resource *resource,
                                 const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(yaml), &tree, &e), &e);
    cluster_create(c, resource, ns, tree);
    str name = json_text(json_at(tree, "metadata", "name", NULL));
    return cluster_get(c, resource, ns, name.p);
}

static void start_world(struct cluster *c)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, at("2026-06-03T08:00:00Z"));
    cluster_install(c, manifests_shapes);
    create(c, &resource_deployments, DEPLOYMENT);
}

static void run_operator(struct cluster *c)
{
    cluster_operator(c, &schedule_feature, (const char *[]){ "smarthpa-calendars", "true", NULL });
    cluster_until(c, cluster_now(c) + 1);
}

static void has_counts(struct cluster *c, int64_t min, int64_t max)
{
    const struct json *o = cluster_get(c, &schedule_scaled_resource, ns, "shop");
    EQ_INT(json_int(json_at(o, "spec", "minReplicaCount", NULL), -1), min);
    EQ_INT(json_int(json_at(o, "spec", "maxReplicaCount", NULL), -1), max);
}

static void has_ready(struct cluster *c, const char *reason)
{
    const struct json *o = cluster_get(c, &schedule_resource, ns, "office");
    const struct json *one = schedule_condition_find(json_get(o, "status"), "Ready");
    EQ_STR(json_text(json_get(one, "reason")), str_c(reason));
}

static void a_scaled_object_is_a_target(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_scaled_resource,
           "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, spec: "
           "{minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}");
    run_operator(&c);
    create(&c, &schedule_resource,
           SCHEDULE("apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: shop", ""));
    cluster_until(&c, at("2026-06-03T09:00:02Z"));
    has_counts(&c, 8, 20);
    has_ready(&c, "Reconciled");
    cluster_until(&c, at("2026-06-03T17:00:02Z"));
    has_counts(&c, 0, 5); /* KEDA can scale to zero */
    cluster_do(
        &c, KUBE_MERGE_PATCH, &schedule_scaled_resource, ns, "shop",
        S("{\"metadata\":{\"annotations\":{\"autoscaling.keda.sh/paused-replicas\":\"1\"}}}"));
    cluster_until(&c, at("2026-06-04T09:00:02Z"));
    has_counts(&c, 0, 5);
    has_ready(&c, "TargetPaused");
    cluster_do(&c, KUBE_MERGE_PATCH, &schedule_scaled_resource, ns, "shop",
               S("{\"metadata\":{\"annotations\":{\"autoscaling.keda.sh/paused-replicas\":null}},"
                 "\"spec\":{\"idleReplicaCount\":0}}"));
    cluster_until(&c, at("2026-06-04T09:00:05Z"));
    has_counts(&c, 8, 20);
    cluster_until(&c, at("2026-06-04T17:00:02Z"));
    has_counts(&c, 1, 5); /* must be above idleReplicaCount */
    cluster_stop(&c);
}

/* The HPA that a ScaledObject owns is governed through its owner. */
static void the_owner_of_an_hpa_is_written(void)
{
    struct cluster c;
    start_world(&c);
    const struct json *owner =
        create(&c, &schedule_scaled_resource,
               "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, "
               "spec: {minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}");
    create(
        &c, &resource_hpas,
        arena_printf(
            &c.arena,
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: keda-hpa-shop, "
            "labels: {scaledobject.keda.sh/name: shop}, ownerReferences: [{apiVersion: keda.sh/v1alpha1, "
            "kind: ScaledObject, name: shop, uid: %s, controller: true}]}, spec: {minReplicas: 2, maxReplicas: "
            "9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
            json_text(json_at(owner, "metadata", "uid", NULL)).p)
            .p);
    run_operator(&c);
    create(&c, &schedule_resource, SCHEDULE("name: keda-hpa-shop", ""));
    cluster_until(&c, at("2026-06-03T09:00:02Z"));
    has_counts(&c, 8, 20);
    const struct json *hpa = cluster_get(&c, &resource_hpas, ns, "keda-hpa-shop");
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), -1),
           2); /* KEDA changes it, not we */
    cluster_stop(&c);
}

static int64_t replicas(struct cluster *c)
{
    return json_int(json_at(cluster_get(c, &resource_deployments, ns, "web"), "spec", "replicas",
                            NULL),
                    -1);
}

static void a_workload_without_an_hpa_is_a_target(void)
{
    struct cluster c;
    start_world(&c);
    run_operator(&c);
    create(&c, &schedule_resource, SCHEDULE("kind: Deployment, name: web", ""));
    cluster_until(&c, at("2026-06-03T08:30:00Z"));
    EQ_INT(replicas(&c), 3);
    cluster_until(&c, at("2026-06-03T09:00:02Z"));
    EQ_INT(replicas(&c), 8);
    has_ready(&c, "Reconciled");
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_deployments, ns, "web",
               S("{\"spec\":{\"replicas\":12}}"));
    cluster_until(&c, at("2026-06-03T12:00:00Z"));
    EQ_INT(replicas(&c), 12); /* within the bounds, and between transitions it is free */
    cluster_until(&c, at("2026-06-03T17:00:02Z"));
    EQ_INT(replicas(&c), 5);
    cluster_do(&c, KUBE_DELETE, &resource_deployments, ns, "web", S(""));
    cluster_until(&c, at("2026-06-04T09:00:02Z"));
    has_ready(&c, "ScaleFailed");
    create(&c, &resource_deployments, DEPLOYMENT);
    cluster_until(&c, at("2026-06-04T09:10:00Z"));
    EQ_INT(replicas(&c), 8); /* the transition is repeated until it succeeds */
    cluster_stop(&c);
}

#define ICS(dates)                                                                                 \
    "BEGIN:VCALENDAR\\r\\nBEGIN:VEVENT\\r\\nDTSTART;VALUE=DATE:" dates                             \
    "\\r\\nEND:VEVENT\\r\\nEND:VCALENDAR\\r\\n"

static void set_calendar(struct cluster *c, const char *text)
{
    cluster_do(c, KUBE_MERGE_PATCH, &resource_configmaps, ns, "holidays",
               arena_printf(&c->arena, "{\"data\":{\"de.ics\":\"%s\"}}", text));
}

static int64_t min_count(struct cluster *c)
{
    return json_int(json_at(cluster_get(c, &schedule_scaled_resource, ns, "shop"), "spec",
                            "minReplicaCount", NULL),
                    -1);
}

/* A calendar takes effect when it changes; a broken one keeps its last good version, also across a restart. */
static void calendars_are_followed(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_scaled_resource,
           "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, spec: "
           "{minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}");
    create(
        &c, &resource_configmaps,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: holidays, labels: {flyball.io/calendar: 'true'}}, data: {}}");
    set_calendar(&c, ICS("20260604"));
    run_operator(&c);
    create(&c, &schedule_resource,
           SCHEDULE("kind: ScaledObject, name: shop", ", excludeDatesFrom: [holidays]"));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(min_count(&c), 8);
    cluster_until(&c, at("2026-06-04T10:00:00Z"));
    EQ_INT(min_count(&c), 0); /* a holiday */
    set_calendar(&c, ICS("20260605"));
    cluster_until(&c, at("2026-06-04T10:00:05Z"));
    EQ_INT(min_count(&c), 8); /* no longer */
    cluster_until(&c, at("2026-06-04T10:05:00Z"));
    set_calendar(&c, "BEGIN:VCALENDAR\\r\\noops");
    cluster_until(&c, at("2026-06-05T10:00:00Z"));
    EQ_INT(min_count(&c), 0); /* the last good version has this day */
    cluster_operator_down(&c);
    run_operator(&c);
    cluster_until(&c, at("2026-06-05T10:10:00Z"));
    EQ_INT(min_count(&c), 0);
    cluster_stop(&c);
}

/* More text than there is room for: the calendars are used all the same, and an older version of one without room is
 * not taken for its last good one after a restart. */
static void calendars_without_room_are_used(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_scaled_resource,
           "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, spec: "
           "{minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}");
    create(
        &c, &resource_configmaps,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: holidays, labels: {flyball.io/calendar: 'true'}}, data: {}}");
    set_calendar(&c, ICS("20260611"));
    run_operator(&c);
    create(&c, &schedule_resource,
           SCHEDULE("kind: ScaledObject, name: shop", ", excludeDatesFrom: [holidays]"));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(min_count(&c), 8); /* the first version is stored */
    cluster_operator_down(&c);
    auto_buf struct buf long_text = { 0 };
    buf_put(&long_text, S("X-LONG:"));
    while (long_text.n <
           KEEP_SHARD_BYTES - 44) /* with the other lines: a few bytes are left of each shard */
        buf_putc(&long_text, 'x');
    for (int i = 0; i < 4; i++)
        create(
            &c, &resource_configmaps,
            arena_printf(&c.arena,
                         "{apiVersion: v1, kind: ConfigMap, metadata: {name: big-%d, labels: "
                         "{flyball.io/calendar: 'true'}}, data: {a: \"BEGIN:VCALENDAR\\r\\n" STR_FMT
                         "\\r\\n"
                         "END:VCALENDAR\\r\\n\"}}",
                         i, STR_ARG(buf_str(&long_text)))
                .p);
    set_calendar(&c, ICS("20260605"));
    run_operator(&c);
    cluster_until(&c, at("2026-06-05T08:00:00Z"));
    set_calendar(&c, "BEGIN:VCALENDAR\\r\\noops");
    cluster_operator_down(&c);
    run_operator(&c);
    cluster_until(&c, at("2026-06-05T10:00:00Z"));
    EQ_INT(min_count(&c), 8); /* its last good version was not stored... */
    cluster_until(&c, at("2026-06-11T10:00:00Z"));
    EQ_INT(min_count(&c), 8); /* ...and the one before is gone */
    cluster_stop(&c);
}

/* Off by default: the operator reads no ConfigMap, and the schedule's condition names the flag. */
static void calendars_are_off_by_default(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_scaled_resource,
           "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: shop}, spec: "
           "{minReplicaCount: 2, maxReplicaCount: 9, scaleTargetRef: {name: web}}}");
    create(
        &c, &resource_configmaps,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: holidays, labels: {flyball.io/calendar: 'true'}}, data: {}}");
    set_calendar(&c, ICS("20260603"));
    cluster_operator(&c, &schedule_feature, NULL);
    create(&c, &schedule_resource,
           SCHEDULE("kind: ScaledObject, name: shop", ", excludeDatesFrom: [holidays]"));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    EQ_INT(min_count(&c), 8); /* no calendar: the window opens */
    const struct json *o = cluster_get(&c, &schedule_resource, ns, "office");
    auto_buf struct buf status = { 0 };
    json_write(&status, json_get(o, "status"));
    OK(str_find(buf_str(&status), S("--smarthpa-calendars")) != SIZE_MAX);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_scaled_object_is_a_target),
                                        TAP(the_owner_of_an_hpa_is_written),
                                        TAP(a_workload_without_an_hpa_is_a_target),
                                        TAP(calendars_are_followed),
                                        TAP(calendars_without_room_are_used),
                                        TAP(calendars_are_off_by_default),
                                        { 0 } });
}
