/* The market's controller on the embedded API server, in virtual time, with a kubelet that the
 * test controls. */
#include "market_world.h"

static void a_wish_is_applied_and_verified(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 3);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_expect_status(&c, "a", "Pending", "Applying");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"),
           S("500m")); /* what is in force, not what is desired */
    world_enact_and_verify(&c, "a");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("808m"));
    EQ_STR(world_status(&c, "a", "appliedCPURequest"), S("727m"));
    EQ_STR(world_status(&c, "a", "lastAppliedTime"), S("2026-06-03T12:00:01Z"));
    EQ_INT(world_count_events(&c, "CPUApplied"), 1);
    EQ_INT(world_count_requests(&c, "/pods/a/resize"), 1);
    size_t writes = c.operator_writes;
    world_pass_time(&c, 3600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

/* What the agent wrote about the pod explains the resize. */
static void the_event_names_the_numbers_that_decided(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "558m", "620m");
    world_patch(&c, &market_allocation_resource, "default-a", "status",
                S("{\"status\":{\"usageCPU\":\"480m\",\"needCPU\":\"560m\",\"throttling\":0.12,"
                  "\"weight\":1,\"guaranteedCPU\":\"100m\",\"shadowPriceCPU\":0.31,\"mode\":"
                  "\"congested\"}}"));
    world_pass_time(&c, 3);
    world_enact_and_verify(&c, "a");
    struct cluster_answer a = cluster_do(&c, KUBE_LIST, &resource_events, WORLD_NS, NULL, S(""));
    EQ_STR(json_text(json_get(json_item(json_get(a.object, "items"), 0), "message")),
           S("CPU limit 620m and request 558m are in force: uses 480m, needs 560m, throttled in 12 "
             "% of periods; weight 1, guaranteed 100m, node price 0.31 (congested)"));
    cluster_stop(&c);
}

static void nothing_to_do_is_said_once(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "250m", "500m");
    world_pass_time(&c, 5);
    world_expect_status(&c, "a", "Applied", "Applied");
    EQ_INT(world_count_requests(&c, "/resize"), 0);
    cluster_stop(&c);
}

/* Simulates a write of our own that was carried out, but whose response was lost. */
static void a_status_that_is_not_so_is_put_right(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "250m", "500m");
    world_pass_time(&c, 5);
    world_expect_status(&c, "a", "Applied", "Applied");
    world_patch(&c, &market_allocation_resource, "default-a", "status",
                S("{\"status\":{\"phase\":\"Pending\",\"reason\":\"Applying\"}}"));
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Applied", "Applied");
    size_t writes = c.operator_writes;
    world_pass_time(&c, 600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void the_next_resize_waits_five_seconds(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "540m", "600m");
    world_pass_time(&c, 1);
    world_enact_and_verify(&c, "a");
    world_set_desired(&c, "a", "630m", "700m");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Pending", "RateLimited");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    world_pass_time(&c, 4);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("700m/630m"));
    cluster_stop(&c);
}

static void a_step_too_large_is_taken_in_several(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "27000m", "30000m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("5/4500m"));
    world_expect_status(&c, "a", "Pending", "StepSizeExceeded");
    world_enact(&c, "a");
    world_pass_time(&c, 6);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("25/22500m"));
    world_enact(&c, "a");
    world_pass_time(&c, 6);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("30/27"));
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

static void what_cannot_be_read_is_said(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "727m", "lots");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "InvalidDesiredCPU");
    OK(str_find(world_status(&c, "a", "message"), S("desiredCPULimit")) != SIZE_MAX);
    world_set_desired(&c, "a", "900m", "808m");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "InvalidDesiredCPU");
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    EQ_INT(world_count_events(&c, "InvalidDesiredCPU"), 1);
    cluster_stop(&c);
}

static void a_deferred_resize_is_withdrawn_after_a_minute(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    world_set_resize_condition(&c, "a", "PodResizePending", "Deferred");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Pending", "Deferred");
    world_pass_time(&c, 50);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_pass_time(&c, 11);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_expect_status(&c, "a", "Failed", "Deferred");
    world_enact(&c, "a");
    world_pass_time(&c, 100);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_expect_status(&c, "a", "Failed", "Deferred");
    world_pass_time(&c, 30); /* another try, two minutes after the last */
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

static void an_infeasible_resize_is_not_tried_again(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "1800m", "2000m");
    world_pass_time(&c, 1);
    world_set_resize_condition(&c, "a", "PodResizePending", "Infeasible");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "Infeasible");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    EQ_STR(world_status(&c, "a", "infeasibleCPULimit"), S("2000m"));
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    world_set_desired(&c, "a", "2700m", "3000m"); /* a larger one needs no trying */
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Failed", "Infeasible");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_set_desired(&c, "a", "900m", "1000m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("1/900m"));
    world_enact_and_verify(&c, "a");
    EQ_STR(world_status(&c, "a", "infeasibleCPULimit"), S("2000m"));
    world_pass_time(&c, 600);
    world_set_desired(&c, "a", "1800m", "2000m"); /* the node may have changed */
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("2/1800m"));
    cluster_stop(&c);
}

/* As with a static CPU manager: every resize is rejected, even to less. */
static void who_cannot_be_resized_at_all_is_left_alone(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "270m", "300m");
    world_pass_time(&c, 1);
    world_set_resize_condition(&c, "a", "PodResizePending", "Infeasible");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "Infeasible");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    world_set_desired(&c, "a", "180m", "200m"); /* still less, and without effect */
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Failed", "Infeasible");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_set_desired(&c, "a", "250m", "500m");
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Applied", "Applied");
    world_pass_time(&c, 600);
    world_set_desired(&c, "a", "180m", "200m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("200m/180m"));
    cluster_stop(&c);
}

static void an_error_of_the_node_is_said_until_it_is_over(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    world_set_resize_condition(&c, "a", "PodResizeInProgress", "Error");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Pending", "ResizeError");
    EQ_INT(world_count_events(&c, "ResizeError"), 1);
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

static void a_pod_that_opts_out_gets_back_what_it_had(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    world_patch(&c, &resource_pods, "a", NULL,
                S("{\"metadata\":{\"annotations\":{\"mbcas.io/managed\":\"false\"}}}"));
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_enact(&c, "a");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Applied", "Excluded");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("500m"));
    EQ_INT(world_count_events(&c, "CPUSkipped"), 1);
    size_t writes = c.operator_writes;
    world_set_desired(&c, "a", "900m", "1000m"); /* without effect: the pod opted out */
    world_pass_time(&c, 60);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    OK(c.operator_writes <= writes + 1); /* observedGeneration */
    cluster_stop(&c);
}

static void deleting_the_allocation_gives_back_too(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "",
                                 "{limits: {memory: 64Mi}, requests: {memory: 64Mi, cpu: 100m}}"));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    cluster_do(&c, KUBE_DELETE, &market_allocation_resource, WORLD_NS, "default-a", S(""));
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"),
           S("256/100m")); /* a limit cannot be taken away again */
    world_enact(&c, "a");
    size_t writes = c.operator_writes;
    world_pass_time(&c, 600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void an_allocation_made_again_knows_what_the_pod_had(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    cluster_do(&c, KUBE_DELETE, &market_allocation_resource, WORLD_NS, "default-a", S(""));
    world_set_desired(&c, "a", "540m", "600m");
    world_pass_time(&c, 10);
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Applied", "Applied");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    const struct json *o = cluster_get(&c, &market_allocation_resource, WORLD_NS, "default-a");
    const struct json *first = json_item(json_at(o, "status", "originalResources", NULL), 0);
    EQ_STR(json_text(json_get(first, "limit")), S("500m"));
    cluster_stop(&c);
}

static void pods_that_cannot_be_resized_are_left(void)
{
    struct cluster c;
    world_start(&c, NULL);
    world_add_pod(&c, POD("best", "", "{}"));
    world_add_pod(&c, POD("full", "", "{limits: {cpu: 500m, memory: 64Mi}}"));
    world_add_pod(&c, POD("frail", "",
                          BURSTABLE ", resizePolicy: [{resourceName: cpu, restartPolicy: "
                                    "RestartContainer}]"));
    world_set_desired(&c, "best", "727m", "808m");
    world_set_desired(&c, "full", "727m", "808m");
    world_set_desired(&c, "frail", "727m", "808m");
    world_pass_time(&c, 5);
    world_expect_status(&c, "best", "Failed", "Unmanageable");
    world_expect_status(&c, "full", "Applied", "GuaranteedQoS");
    EQ_STR(world_status(&c, "full", "appliedCPULimit"), S("500m"));
    world_expect_status(&c, "frail", "Failed", "Unmanageable");
    EQ_INT(world_count_requests(&c, "/resize"), 0);
    world_patch(&c, &resource_pods, "full", NULL,
                S("{\"metadata\":{\"annotations\":{\"mbcas.io/skip-guaranteed\":\"false\"}}}"));
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "full", "app"), S("808m/808m")); /* Guaranteed it stays */
    cluster_stop(&c);
}

#define TWO_AND_A_SIDECAR                                                                          \
    "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, initContainers: "       \
    "[{name: proxy, image: x, restartPolicy: Always, resources: {limits: {cpu: 100m}, requests: "  \
    "{cpu: 50m}}}, {name: setup, image: x}], containers: [{name: app, image: x, resources: "       \
    "{limits: {cpu: 300m}, requests: {cpu: 200m}}}, {name: log, image: x, resources: {limits: "    \
    "{cpu: 200m}, requests: {cpu: 100m}}}]}}"

static void an_amount_is_split_by_what_the_containers_had(void)
{
    struct cluster c;
    world_start_with_pod(&c, TWO_AND_A_SIDECAR);
    world_set_desired(&c, "a", "900m", "1001m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/450m"));
    EQ_STR(world_container_cpu(&c, "a", "log"), S("334m/300m"));
    EQ_STR(world_container_cpu(&c, "a", "proxy"), S("167m/150m"));
    EQ_STR(world_container_cpu(&c, "a", "setup"), S("/"));
    world_enact_and_verify(&c, "a");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("1001m"));
    EQ_STR(world_status(&c, "a", "appliedCPURequest"), S("900m"));
    world_pass_time(&c, 10);
    world_apply_desired(&c, "a", "270m", "300m");
    world_set_desired(&c, "a", "900m", "1001m"); /* shares do not drift */
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/450m"));
    cluster_stop(&c);
}

/* Two containers and a sidecar: 33m is the least. */
static void growth_does_not_wait_for_what_cannot_be(void)
{
    struct cluster c;
    world_start_with_pod(&c, TWO_AND_A_SIDECAR);
    world_add_pod(&c, POD("b", "", BURSTABLE));
    world_apply_desired(&c, "a", "54m", "60m");
    world_apply_desired(&c, "a", "9m", "10m");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("33m"));
    world_set_desired(&c, "b", "675m", "750m");
    world_pass_time(&c, 3);
    EQ_STR(world_container_cpu(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void growth_waits_for_those_that_shrink(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_add_pod(&c, POD("b", "", BURSTABLE));
    world_set_desired(&c, "a", "225m", "250m");
    world_pass_time(&c, 1); /* sent, but not enacted */
    world_set_desired(&c, "b", "675m", "750m");
    world_pass_time(&c, 3);
    world_expect_status(&c, "b", "Pending", "WaitingForRoom");
    EQ_STR(world_container_cpu(&c, "b", "app"), S("500m/250m"));
    world_enact(&c, "a");
    world_pass_time(&c, 2);
    EQ_STR(world_container_cpu(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void growth_does_not_wait_for_ever(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_add_pod(&c, POD("b", "", BURSTABLE));
    world_set_desired(&c, "a", "225m", "250m"); /* its node never answers */
    world_set_desired(&c, "b", "675m", "750m");
    world_pass_time(&c, 40);
    EQ_STR(world_container_cpu(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void a_dry_run_changes_nothing(void)
{
    struct cluster c;
    world_start(&c, (const char *[]){ "market-dry-run", "true", NULL });
    world_add_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 60);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_expect_status(&c, "a", "Pending", "DryRun");
    EQ_STR(world_status(&c, "a", "message"),
           S("dry run: the CPU limit would change from 500m to 808m"));
    EQ_INT(world_count_requests(&c, "/resize"), 1);
    cluster_stop(&c);
}

static void restore_gives_all_pods_back(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    world_restart(&c, (const char *[]){ "market-restore", "true", NULL });
    world_pass_time(&c, 2);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_enact(&c, "a");
    world_pass_time(&c, 2);
    world_expect_status(&c, "a", "Applied", "Excluded");
    cluster_stop(&c);
}

static void a_restart_changes_nothing(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    size_t writes = c.operator_writes;
    for (int i = 0; i < 3; i++) {
        world_restart(&c, NULL);
        world_pass_time(&c, 10);
    }
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void what_belongs_to_another_pod_is_left(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_add_pod(&c, POD("b", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    const struct json *b = cluster_get(&c, &resource_pods, WORLD_NS, "b");
    world_patch(&c, &market_allocation_resource, "default-a", NULL,
                arena_printf(&c.arena,
                             "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                             "\"Pod\",\"name\":\"b\",\"uid\":\"%s\"}]},\"spec\":{"
                             "\"desiredCPULimit\":\"900m\"}}",
                             json_text(json_at(b, "metadata", "uid", NULL)).p));
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Failed", "PodNotFound");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_patch(
        &c, &market_allocation_resource, "default-a", NULL,
        S("{\"metadata\":{\"ownerReferences\":null},\"spec\":{\"namespace\":\"kube-system\"}}"));
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Failed", "NamespaceMismatch");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    cluster_stop(&c);
}

static void conflicts_are_outlived(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    c.failures = 7;
    c.fail_path = "/resize";
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 30);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

static void a_silent_server_is_outlived(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "540m", "600m");
    world_set_desired(&c, "a", "727m", "808m");
    c.deaf = true;
    cluster_until(&c, cluster_now(&c) + 60);
    c.deaf = false;
    world_pass_time(&c, 60);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

/* Replaces the schema of PodAllocations by one that stores anything, also as a status at creation. */
static void accept_any_allocation(struct cluster *c)
{
    struct cluster_answer crd = cluster_do(
        c, KUBE_MERGE_PATCH, &resource_crds, NULL, "podallocations.allocation.mbcas.io",
        S("{\"spec\":{\"versions\":[{\"name\":\"v1alpha1\",\"served\":true,\"storage\":true,"
          "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
          "\"x-kubernetes-preserve-unknown-fields\":true}}}]}}"));
    EQ_INT(crd.code, 200);
}

/* An allocation that is made again takes over what the deleted one knew. A status that is no object ended the process
 * there: json_set() is for objects. */
static void a_status_of_any_shape_is_survived(void)
{
    static const char *const shapes[] = { "\"broken\"", "[1,2]", "7", "true", "\"\"" };
    for (size_t i = 0; i < countof(shapes); i++) {
        struct cluster c;
        world_start_with_pod(&c, POD("a", "", BURSTABLE));
        world_apply_desired(&c, "a", "540m", "600m");
        accept_any_allocation(&c);
        struct cluster_answer old =
            cluster_do(&c, KUBE_GET, &market_allocation_resource, WORLD_NS, "default-a", S(""));
        struct json *again = json_copy(&c.arena, old.object), *status = NULL;
        struct json *meta = json_get(again, "metadata");
        json_del(meta, S("resourceVersion"));
        json_del(meta, S("uid"));
        err_t e;
        OK_CALL(json_parse(&c.arena, str_c(shapes[i]), &status, &e), &e);
        json_set(&c.arena, again, S("status"), status);
        c.operator_cut = true; /* what the pod had is not given back before there is another one */
        cluster_do(&c, KUBE_DELETE, &market_allocation_resource, WORLD_NS, "default-a", S(""));
        cluster_create(&c, &market_allocation_resource, WORLD_NS, again);
        c.operator_cut = false;
        world_pass_time(&c, 60);
        EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
        cluster_stop(&c);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_wish_is_applied_and_verified),
        TAP(the_event_names_the_numbers_that_decided),
        TAP(nothing_to_do_is_said_once),
        TAP(a_status_that_is_not_so_is_put_right),
        TAP(the_next_resize_waits_five_seconds),
        TAP(a_step_too_large_is_taken_in_several),
        TAP(what_cannot_be_read_is_said),
        TAP(a_deferred_resize_is_withdrawn_after_a_minute),
        TAP(an_infeasible_resize_is_not_tried_again),
        TAP(who_cannot_be_resized_at_all_is_left_alone),
        TAP(an_error_of_the_node_is_said_until_it_is_over),
        TAP(a_pod_that_opts_out_gets_back_what_it_had),
        TAP(deleting_the_allocation_gives_back_too),
        TAP(an_allocation_made_again_knows_what_the_pod_had),
        TAP(pods_that_cannot_be_resized_are_left),
        TAP(an_amount_is_split_by_what_the_containers_had),
        TAP(growth_does_not_wait_for_what_cannot_be),
        TAP(growth_waits_for_those_that_shrink),
        TAP(growth_does_not_wait_for_ever),
        TAP(a_dry_run_changes_nothing),
        TAP(restore_gives_all_pods_back),
        TAP(a_restart_changes_nothing),
        TAP(what_belongs_to_another_pod_is_left),
        TAP(conflicts_are_outlived),
        TAP(a_silent_server_is_outlived),
        TAP(a_status_of_any_shape_is_survived),
        { 0 },
    });
}
