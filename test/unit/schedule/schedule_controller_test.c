/* The whole controller on the embedded API server, on a clock of its own. */
#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "schedule/schedule_controller.h"
#include "schedule/schedule_records.h"
#include "schedule/schedule_status_core.h"
#include "tap.h"

#define HPA                                                                                           \
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: "       \
    "{minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " \
    "web}}}"
#define DEPLOYMENT                                                                                  \
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: " \
    "{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: "     \
    "[{name: web, image: web}]}}}}"
#define SCHEDULE(name, fields)                                                                      \
    "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: " \
    "{name: " name "}, spec: {HPAObjectRef: {name: web}, " fields "}}"
#define DAY                                                                                          \
    "triggers: [{name: day, interval: {recurring: 'M,TU,W,TH,F'}, startTime: '09:00:00', endTime: "  \
    "'17:00:00', startHPAConfig: {minReplicas: 8, maxReplicas: 20}, endHPAConfig: {minReplicas: 2, " \
    "maxReplicas: 5}}]"

static const char ns[] = "default";

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static void create(struct cluster *c, const struct resource *resource, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(yaml), &tree, &e), &e);
    cluster_create(c, resource, ns, tree);
}

/* Wednesday 08:00 with an HPA, a workload and a running operator. */
static void start_world(struct cluster *c)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(c, at("2026-06-03T08:00:00Z"));
    cluster_install(c, manifests_shapes); /* kinds that are not there are asked for every 30 s */
    create(c, &resource_deployments, DEPLOYMENT);
    create(c, &resource_hpas, HPA);
    cluster_operator(c, &schedule_feature, NULL);
    cluster_until(c, cluster_now(c) + 1);
}

static void pass(struct cluster *c, int64_t seconds)
{
    cluster_until(c, cluster_now(c) + seconds);
}

static void has_bounds(struct cluster *c, int64_t min, int64_t max)
{
    const struct json *hpa = cluster_get(c, &resource_hpas, ns, "web");
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), -1), min);
    EQ_INT(json_int(json_at(hpa, "spec", "maxReplicas", NULL), -1), max);
}

static void has_condition(struct cluster *c, const char *name, const char *type, const char *reason)
{
    const struct json *o = cluster_get(c, &schedule_resource, ns, name);
    const struct json *one = schedule_condition_find(json_get(o, "status"), type);
    EQ_STR(json_text(json_get(one, "reason")), str_c(reason));
}

static int64_t replicas(struct cluster *c)
{
    const struct json *o = cluster_get(c, &resource_deployments, ns, "web");
    return json_int(json_at(o, "spec", "replicas", NULL), -1);
}

static size_t events(struct cluster *c, const char *reason)
{
    struct cluster_answer a = cluster_do(c, KUBE_LIST, &resource_events, ns, NULL, S(""));
    const struct json *list = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++)
        n += str_eqc(json_text(json_get(json_item(list, i), "reason")), reason);
    return n;
}

static size_t writes_to(const struct cluster *c, const char *path)
{
    size_t n = 0, found;
    for (str rest = buf_str(&c->log); (found = str_find(rest, str_c(path))) != SIZE_MAX; n++)
        rest = str_from(rest, found + 1);
    return n;
}

static void windows_are_applied_at_their_second(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T08:59:59Z"));
    has_bounds(&c, 2, 9);
    cluster_until(&c, at("2026-06-03T09:00:00Z"));
    pass(&c, 1);
    has_bounds(&c, 8, 20);
    cluster_until(&c, at("2026-06-03T17:00:01Z"));
    has_bounds(&c, 2, 5);
    EQ_INT(writes_to(&c, "PATCH /apis/autoscaling/v2/"), 2);
    EQ_INT(events(&c, "TriggerStarted"), 1);
    EQ_INT(events(&c, "TriggerEnded"), 1);
    EQ_INT(events(&c, "HPAUpdated"), 2);
    cluster_stop(&c);
}

/* What the HPA controller writes every 15 s costs us nothing. */
static void status_churn_costs_no_request(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    size_t before = c.operator_writes, requests = c.operator_requests;
    for (int i = 0; i < 60; i++) {
        str body = arena_printf(&c.arena,
                                "{\"status\":{\"currentReplicas\":%d,\"desiredReplicas\":%d,"
                                "\"lastScaleTime\":\"2026-06-03T10:%02d:00Z\"}}",
                                3 + i % 5, 3 + i % 7, i % 60);
        struct cluster_answer a = { .c = &c };
        kube_send(c.kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                  .resource = &resource_hpas,
                                                  .ns = S("default"),
                                                  .name = S("web"),
                                                  .subresource = "status",
                                                  .body = body,
                                                  .done = cluster_answered,
                                                  .context = &a });
        while (!a.done)
            loop_turn(c.loop);
        EQ_INT(a.code, 200);
        pass(&c, 4);
    }
    EQ_INT(c.operator_writes, before);
    OK(c.operator_requests <= requests + 3); /* watches that were renewed */
    cluster_stop(&c);
}

static void patch_status(struct cluster *c, const char *name, const char *body)
{
    struct cluster_answer a = { .c = c };
    kube_send(c->kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                               .resource = &schedule_resource,
                                               .ns = str_c(ns),
                                               .name = str_c(name),
                                               .subresource = "status",
                                               .body = str_c(body),
                                               .done = cluster_answered,
                                               .context = &a });
    while (!a.done)
        loop_turn(c->loop);
    EQ_INT(a.code, 200);
}

/* As a write of our own does that comes to light late: it was carried out and its answer lost. No schedule is left
 * without a look for longer than five minutes. */
static void a_status_that_is_not_so_is_put_right(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    size_t writes = writes_to(&c, "/status");
    patch_status(&c, "office",
                 "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
                 "\"TargetNotFound\",\"message\":\"\",\"lastTransitionTime\":"
                 "\"2026-06-03T09:30:00Z\"}]}}");
    pass(&c, 301);
    has_condition(&c, "office", "Ready", "Reconciled");
    pass(&c, 600);
    EQ_INT((int64_t)writes_to(&c, "/status"), (int64_t)writes + 1);
    cluster_stop(&c);
}

static void an_edit_in_an_open_window_counts_at_once(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    cluster_do(&c, KUBE_JSON_PATCH, &schedule_resource, ns, "office",
               S("[{\"op\":\"replace\",\"path\":\"/spec/triggers/0/startHPAConfig/minReplicas\","
                 "\"value\":11}]"));
    pass(&c, 1);
    has_bounds(&c, 11, 20);
    cluster_stop(&c);
}

static void an_hpa_that_goes_and_comes_back(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    cluster_do(&c, KUBE_DELETE, &resource_hpas, ns, "web", S(""));
    pass(&c, 1);
    has_condition(&c, "office", "Error", "HPANotFound");
    has_condition(&c, "office", "Ready", "HPANotFound");
    create(&c, &resource_hpas, HPA);
    pass(&c, 1);
    has_bounds(&c, 8, 20);
    has_condition(&c, "office", "Ready", "Reconciled");
    EQ_INT(events(&c, "HPANotFound"), 1);
    cluster_stop(&c);
}

static void a_storm_of_conflicts_is_outlived(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T08:30:00Z"));
    c.failures = 10;
    c.fail_path = "/horizontalpodautoscalers/";
    cluster_until(&c, at("2026-06-03T09:00:30Z"));
    EQ_INT(c.failures, 0);
    has_bounds(&c, 8, 20);
    EQ_INT(writes_to(&c, "PATCH /apis/autoscaling/v2/"), 1);
    cluster_stop(&c);
}

static void a_boundary_while_the_server_is_away(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T08:55:00Z"));
    c.deaf = true;
    cluster_until(&c, at("2026-06-03T09:20:00Z"));
    c.deaf = false;
    pass(&c, 2);
    has_bounds(&c, 8, 20);
    EQ_INT(writes_to(&c, "PATCH /apis/autoscaling/v2/"), 1);
    cluster_stop(&c);
}

static void a_right_that_comes_late_is_used_soon(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", "deletionPolicy: Restore, " DAY));
    cluster_until(&c, at("2026-06-03T08:59:59Z"));
    c.fail_path = "/horizontalpodautoscalers/";
    c.fail_code = 403;
    c.failures = 3;
    pass(&c, 3);
    has_condition(&c, "office", "Ready", "Rejected");
    pass(&c, 8);
    has_bounds(&c, 8, 20);
    has_condition(&c, "office", "Ready", "Reconciled");
    c.failures = 3;
    cluster_do(&c, KUBE_DELETE, &schedule_resource, ns, "office", S(""));
    pass(&c, 3);
    has_bounds(&c, 8, 20);
    pass(&c, 8);
    has_bounds(&c, 2, 9);
    cluster_stop(&c);
}

/* Without the notification, the controller would sleep for up to five minutes. */
static void the_wall_clock_is_set(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    pass(&c, 5);
    has_bounds(&c, 2, 9); /* older than no window */
    loop_set_wall(c.loop, at("2026-06-03T12:00:00Z") * NS_PER_S);
    pass(&c, 3);
    has_bounds(&c, 8, 20);
    loop_set_wall(c.loop, at("2026-06-03T16:59:50Z") * NS_PER_S);
    pass(&c, 5);
    has_bounds(&c, 8, 20);
    pass(&c, 8); /* the timer of the end was moved along */
    has_bounds(&c, 2, 5);
    loop_set_wall(c.loop, at("2026-06-03T11:00:00Z") * NS_PER_S);
    pass(&c, 3);
    has_bounds(&c, 8, 20);
    cluster_stop(&c);
}

static void the_older_of_two_governs(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("older", DAY));
    pass(&c, 2);
    create(&c, &schedule_resource,
           SCHEDULE("newer",
                    "triggers: [{name: day, interval: {recurring: W}, startTime: '00:00:00', "
                    "endTime: '23:59:59', startHPAConfig: {minReplicas: 1, maxReplicas: 1}}]"));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    has_bounds(&c, 8, 20);
    has_condition(&c, "newer", "Ready", "HPAAlreadyManaged");
    cluster_do(&c, KUBE_DELETE, &schedule_resource, ns, "older", S(""));
    pass(&c, 2);
    has_bounds(&c, 1, 1);
    has_condition(&c, "newer", "Ready", "Reconciled");
    cluster_stop(&c);
}

static void deletion_restores_when_asked_to(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", "deletionPolicy: Restore, " DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    has_bounds(&c, 8, 20);
    cluster_do(&c, KUBE_DELETE, &schedule_resource, ns, "office", S(""));
    pass(&c, 2);
    has_bounds(&c, 2, 9);
    OK(!cluster_get(&c, &schedule_resource, ns, "office"));
    EQ_INT(events(&c, "CleanupComplete"), 1);
    cluster_stop(&c);
}

/* A schedule "made" with a template for its HPA, whose metadata has these members. */
static void create_templated(struct cluster *c, const char *metadata)
{
    create(
        c, &schedule_resource,
        arena_printf(
            &c->arena,
            "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, "
            "metadata: {name: made}, spec: {HPASpecTemplate: {metadata: {%s}, spec: "
            "{minReplicas: 3, maxReplicas: 6, scaleTargetRef: {kind: Deployment, name: web}}}, " DAY
            "}}",
            metadata)
            .p);
}

static void a_template_makes_an_owned_hpa(void)
{
    struct cluster c;
    start_world(&c);
    create_templated(&c, "labels: {a: b}");
    pass(&c, 3);
    const struct json *hpa = cluster_get(&c, &resource_hpas, ns, "made-generated");
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), 0), 3);
    EQ_STR(json_text(json_at(hpa, "metadata", "labels", "a", NULL)), S("b"));
    EQ_STR(json_text(
               json_get(json_item(json_at(hpa, "metadata", "ownerReferences", NULL), 0), "kind")),
           S("SmartHorizontalPodAutoscaler"));
    has_condition(&c, "made", "Ready", "Reconciled");
    cluster_until(&c, at("2026-06-03T09:00:01Z"));
    hpa = cluster_get(&c, &resource_hpas, ns, "made-generated");
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), 0), 8);
    cluster_stop(&c);
}

/* An edit of the template reaches the HPA that exists, and what is removed from it is removed there; the bounds belong
 * to the windows. */
static void a_template_is_followed(void)
{
    struct cluster c;
    start_world(&c);
    create_templated(&c, "labels: {a: b}");
    cluster_until(&c, at("2026-06-03T09:00:02Z"));
    cluster_do(
        &c, KUBE_MERGE_PATCH, &schedule_resource, ns, "made",
        S("{\"spec\":{\"HPASpecTemplate\":{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"d\"}},\"spec\":{\"minReplicas\":1,"
          "\"behavior\":{\"scaleDown\":{\"stabilizationWindowSeconds\":60}}}}}}"));
    pass(&c, 3);
    const struct json *hpa = cluster_get(&c, &resource_hpas, ns, "made-generated");
    EQ_INT(json_int(json_at(hpa, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds",
                            NULL),
                    0),
           60);
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), 0), 8);
    EQ_INT(json_int(json_at(hpa, "spec", "maxReplicas", NULL), 0), 20);
    EQ_STR(json_text(json_at(hpa, "metadata", "labels", "c", NULL)), S("d"));
    OK(!json_at(hpa, "metadata", "labels", "a", NULL));
    cluster_do(&c, KUBE_MERGE_PATCH, &schedule_resource, ns, "made",
               S("{\"spec\":{\"HPASpecTemplate\":{\"spec\":{\"behavior\":null}}}}"));
    pass(&c, 3);
    hpa = cluster_get(&c, &resource_hpas, ns, "made-generated");
    OK(json_int(json_at(hpa, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds", NULL),
                0) != 60);
    size_t writes = c.operator_writes;
    pass(&c, 1000);
    EQ_INT(c.operator_writes, writes); /* and nothing is applied again */
    cluster_until(&c, at("2026-06-03T17:00:02Z"));
    hpa = cluster_get(&c, &resource_hpas, ns, "made-generated");
    EQ_INT(json_int(json_at(hpa, "spec", "maxReplicas", NULL), 0), 5);
    cluster_stop(&c);
}

/* A renamed template moves on to an HPA of the new name; the old one, which nothing would govern, is deleted. */
static void a_renamed_template_leaves_nothing_behind(void)
{
    struct cluster c;
    start_world(&c);
    create_templated(&c, "name: old");
    cluster_until(&c, at("2026-06-03T09:00:02Z"));
    OK(cluster_get(&c, &resource_hpas, ns, "old") != NULL);
    cluster_do(&c, KUBE_MERGE_PATCH, &schedule_resource, ns, "made",
               S("{\"spec\":{\"HPASpecTemplate\":{\"metadata\":{\"name\":\"new\"}}}}"));
    pass(&c, 3);
    const struct json *hpa = cluster_get(&c, &resource_hpas, ns, "new");
    EQ_INT(json_int(json_at(hpa, "spec", "minReplicas", NULL), 0), 8);
    OK(cluster_get(&c, &resource_hpas, ns, "old") == NULL);
    OK(cluster_get(&c, &resource_hpas, ns, "web") != NULL); /* not ours */
    EQ_INT(events(&c, "HPADeleted"), 1);
    size_t writes = c.operator_writes;
    pass(&c, 1000);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void a_night_at_zero(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource,
           SCHEDULE("office",
                    "triggers: [{name: day, interval: {recurring: 'M,TU,W,TH,F'}, startTime: "
                    "'09:00:00', endTime: '17:00:00', startHPAConfig: {minReplicas: 4, "
                    "maxReplicas: 20}, endHPAConfig: {minReplicas: 1, maxReplicas: 5, "
                    "desiredReplicas: 0}}]"));
    cluster_until(&c, at("2026-06-03T17:00:02Z"));
    EQ_INT(replicas(&c), 0);
    cluster_until(&c, at("2026-06-04T09:00:02Z"));
    EQ_INT(replicas(&c), 4);
    cluster_stop(&c);
}

static void every_problem_is_a_condition_and_an_event(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource,
           SCHEDULE(
               "office",
               "triggers: [{name: t1, startTime: '25:00:00', endTime: '17:00:00', interval: "
               "{recurring: M}}, {name: t2, startTime: '09:00:00', endTime: '09:00:00', interval: "
               "{recurring: M}}, {name: t3, startTime: '09:00:00', endTime: '10:00:00', interval: "
               "{startDate: '2026-02-30', endDate: '2026-03-01'}}, {name: t4, startTime: "
               "'09:00:00', endTime: '10:00:00'}, {name: t5, timezone: Mars/Base, startTime: "
               "'09:00:00', endTime: '10:00:00', interval: {recurring: 'M,X'}}, {name: t6}, {name: "
               "t6, startTime: '09:00:00', endTime: '10:00:00', interval: {recurring: SUN}, "
               "startHPAConfig: {minReplicas: 9, maxReplicas: 3}}, {name: good, interval: "
               "{recurring: W}, startTime: '08:00:00', endTime: '20:00:00', startHPAConfig: "
               "{minReplicas: 6, maxReplicas: 7}}]"));
    pass(&c, 2);
    has_bounds(&c, 6, 7);
    has_condition(&c, "office", "SpecValid", "InvalidTime");
    const struct json *o = cluster_get(&c, &schedule_resource, ns, "office");
    str message =
        json_text(json_get(schedule_condition_find(json_get(o, "status"), "SpecValid"), "message"));
    static const char *const said[] = { "t1: startTime",       "t2: startTime and endTime",
                                        "t3: interval",        "t4: interval selects no day",
                                        "t5: timezone",        "t5: interval",
                                        "t6: a later trigger", "t6: startHPAConfig" };
    for (size_t i = 0; i < countof(said); i++)
        OK(str_find(message, str_c(said[i])) != SIZE_MAX);
    EQ_INT(events(&c, "InvalidTrigger"), 7);
    EQ_INT(events(&c, "InvalidTimezone"), 1);
    pass(&c, 900);
    EQ_INT(events(&c, "InvalidTrigger"), 7);
    cluster_stop(&c);
}

static void a_restart_writes_nothing(void)
{
    struct cluster c;
    start_world(&c);
    create(&c, &schedule_resource, SCHEDULE("office", DAY));
    cluster_until(&c, at("2026-06-03T10:00:00Z"));
    size_t writes = c.operator_writes;
    for (int i = 0; i < 3; i++) {
        cluster_operator_down(&c);
        cluster_operator(&c, &schedule_feature, NULL);
        pass(&c, 10);
    }
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void another_namespace_can_be_forbidden(void)
{
    struct cluster c;
    start_world(&c);
    cluster_operator_down(&c);
    cluster_operator(&c, &schedule_feature,
                     (const char *[]){ "restrict-cross-namespace", "true", NULL });
    create(&c, &schedule_resource,
           "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, "
           "metadata: {name: far}, spec: {HPAObjectRef: {name: web, namespace: kube-system}, " DAY
           "}}");
    pass(&c, 2);
    has_condition(&c, "far", "Ready", "RefNotPermitted");
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(windows_are_applied_at_their_second),
        TAP(status_churn_costs_no_request),
        TAP(a_status_that_is_not_so_is_put_right),
        TAP(an_edit_in_an_open_window_counts_at_once),
        TAP(an_hpa_that_goes_and_comes_back),
        TAP(a_storm_of_conflicts_is_outlived),
        TAP(a_boundary_while_the_server_is_away),
        TAP(a_right_that_comes_late_is_used_soon),
        TAP(the_wall_clock_is_set),
        TAP(the_older_of_two_governs),
        TAP(deletion_restores_when_asked_to),
        TAP(a_template_makes_an_owned_hpa),
        TAP(a_template_is_followed),
        TAP(a_renamed_template_leaves_nothing_behind),
        TAP(a_night_at_zero),
        TAP(every_problem_is_a_condition_and_an_event),
        TAP(a_restart_writes_nothing),
        TAP(another_namespace_can_be_forbidden),
        { 0 },
    });
}
