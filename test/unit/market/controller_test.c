/* The market's controller on the embedded API server, on a clock of its own, with a kubelet that does as the
 * test says. */
#include "market_world.h"

static void a_wish_is_applied_and_verified(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "727m", "808m");
    pass(&c, 3);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    is_said(&c, "a", "Pending", "Applying");
    EQ_STR(said(&c, "a", "appliedCPULimit"), S("500m")); /* what is in force, not what is desired */
    follows(&c, "a");
    EQ_STR(said(&c, "a", "appliedCPULimit"), S("808m"));
    EQ_STR(said(&c, "a", "appliedCPURequest"), S("727m"));
    EQ_STR(said(&c, "a", "lastAppliedTime"), S("2026-06-03T12:00:01Z"));
    EQ_INT(events(&c, "CPUApplied"), 1);
    EQ_INT(writes_to(&c, "/pods/a/resize"), 1);
    size_t writes = c.operator_writes;
    pass(&c, 3600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void nothing_to_do_is_said_once(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "250m", "500m");
    pass(&c, 5);
    is_said(&c, "a", "Applied", "Applied");
    EQ_INT(writes_to(&c, "/resize"), 0);
    cluster_stop(&c);
}

/* As a write of our own does that comes to light late: it was carried out and its answer lost. */
static void a_status_that_is_not_so_is_put_right(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "250m", "500m");
    pass(&c, 5);
    is_said(&c, "a", "Applied", "Applied");
    patch(&c, &podallocation_resource, "default-a", "status",
          S("{\"status\":{\"phase\":\"Pending\",\"reason\":\"Applying\"}}"));
    pass(&c, 1);
    is_said(&c, "a", "Applied", "Applied");
    size_t writes = c.operator_writes;
    pass(&c, 600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void the_next_resize_waits_five_seconds(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "540m", "600m");
    pass(&c, 1);
    follows(&c, "a");
    want(&c, "a", "630m", "700m");
    pass(&c, 1);
    is_said(&c, "a", "Pending", "RateLimited");
    EQ_STR(has(&c, "a", "app"), S("600m/540m"));
    pass(&c, 4);
    EQ_STR(has(&c, "a", "app"), S("700m/630m"));
    cluster_stop(&c);
}

static void a_step_too_large_is_taken_in_several(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "27000m", "30000m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("5/4500m"));
    is_said(&c, "a", "Pending", "StepSizeExceeded");
    enact(&c, "a");
    pass(&c, 6);
    EQ_STR(has(&c, "a", "app"), S("25/22500m"));
    enact(&c, "a");
    pass(&c, 6);
    EQ_STR(has(&c, "a", "app"), S("30/27"));
    follows(&c, "a");
    cluster_stop(&c);
}

static void what_cannot_be_read_is_said(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "727m", "lots");
    pass(&c, 1);
    is_said(&c, "a", "Failed", "InvalidDesiredCPU");
    OK(str_find(said(&c, "a", "message"), S("desiredCPULimit")) != SIZE_MAX);
    want(&c, "a", "900m", "808m");
    pass(&c, 1);
    is_said(&c, "a", "Failed", "InvalidDesiredCPU");
    want(&c, "a", "727m", "808m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    EQ_INT(events(&c, "InvalidDesiredCPU"), 1);
    cluster_stop(&c);
}

static void a_deferred_resize_is_withdrawn_after_a_minute(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "727m", "808m");
    pass(&c, 1);
    object(&c, "a", "PodResizePending", "Deferred");
    pass(&c, 1);
    is_said(&c, "a", "Pending", "Deferred");
    pass(&c, 50);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    pass(&c, 11);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    is_said(&c, "a", "Failed", "Deferred");
    enact(&c, "a");
    pass(&c, 100);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    is_said(&c, "a", "Failed", "Deferred");
    pass(&c, 30); /* another try, two minutes after the last */
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    follows(&c, "a");
    cluster_stop(&c);
}

static void an_infeasible_resize_is_not_tried_again(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "1800m", "2000m");
    pass(&c, 1);
    object(&c, "a", "PodResizePending", "Infeasible");
    pass(&c, 1);
    is_said(&c, "a", "Failed", "Infeasible");
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    EQ_STR(said(&c, "a", "infeasibleCPULimit"), S("2000m"));
    enact(&c, "a");
    pass(&c, 10);
    want(&c, "a", "2700m", "3000m"); /* a larger one needs no trying */
    pass(&c, 10);
    is_said(&c, "a", "Failed", "Infeasible");
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    want(&c, "a", "900m", "1000m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("1/900m"));
    follows(&c, "a");
    EQ_STR(said(&c, "a", "infeasibleCPULimit"), S("2000m"));
    pass(&c, 600);
    want(&c, "a", "1800m", "2000m"); /* the node may have changed */
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("2/1800m"));
    cluster_stop(&c);
}

/* A static CPU manager, say: whatever is asked for is refused, less too. */
static void who_cannot_be_resized_at_all_is_left_alone(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "270m", "300m");
    pass(&c, 1);
    object(&c, "a", "PodResizePending", "Infeasible");
    pass(&c, 1);
    is_said(&c, "a", "Failed", "Infeasible");
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    enact(&c, "a");
    pass(&c, 10);
    want(&c, "a", "180m", "200m"); /* still less, and in vain */
    pass(&c, 10);
    is_said(&c, "a", "Failed", "Infeasible");
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    want(&c, "a", "250m", "500m");
    pass(&c, 10);
    is_said(&c, "a", "Applied", "Applied");
    pass(&c, 600);
    want(&c, "a", "180m", "200m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("200m/180m"));
    cluster_stop(&c);
}

static void an_error_of_the_node_is_said_until_it_is_over(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "727m", "808m");
    pass(&c, 1);
    object(&c, "a", "PodResizeInProgress", "Error");
    pass(&c, 1);
    is_said(&c, "a", "Pending", "ResizeError");
    EQ_INT(events(&c, "ResizeError"), 1);
    follows(&c, "a");
    cluster_stop(&c);
}

static void a_pod_that_opts_out_gets_back_what_it_had(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    get(&c, "a", "727m", "808m");
    patch(&c, &resource_pods, "a", NULL,
          S("{\"metadata\":{\"annotations\":{\"mbcas.io/managed\":\"false\"}}}"));
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    enact(&c, "a");
    pass(&c, 1);
    is_said(&c, "a", "Applied", "Excluded");
    EQ_STR(said(&c, "a", "appliedCPULimit"), S("500m"));
    EQ_INT(events(&c, "CPUSkipped"), 1);
    size_t writes = c.operator_writes;
    want(&c, "a", "900m", "1000m"); /* whatever is wished, it is out */
    pass(&c, 60);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    OK(c.operator_writes <= writes + 1); /* observedGeneration */
    cluster_stop(&c);
}

static void deleting_the_allocation_gives_back_too(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", "{limits: {memory: 64Mi}, requests: {memory: 64Mi, cpu: 100m}}"));
    want(&c, "a", "727m", "808m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    enact(&c, "a");
    pass(&c, 10);
    cluster_do(&c, KUBE_DELETE, &podallocation_resource, ns, "default-a", S(""));
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("256/100m")); /* a limit cannot be taken away again */
    enact(&c, "a");
    size_t writes = c.operator_writes;
    pass(&c, 600);
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void an_allocation_made_again_knows_what_the_pod_had(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    get(&c, "a", "727m", "808m");
    cluster_do(&c, KUBE_DELETE, &podallocation_resource, ns, "default-a", S(""));
    want(&c, "a", "540m", "600m");
    pass(&c, 10);
    enact(&c, "a");
    pass(&c, 10);
    enact(&c, "a");
    pass(&c, 10);
    is_said(&c, "a", "Applied", "Applied");
    EQ_STR(has(&c, "a", "app"), S("600m/540m"));
    const struct json *o = cluster_get(&c, &podallocation_resource, ns, "default-a");
    const struct json *first = json_item(json_at(o, "status", "originalResources", NULL), 0);
    EQ_STR(json_text(json_get(first, "limit")), S("500m"));
    cluster_stop(&c);
}

static void pods_that_cannot_be_resized_are_left(void)
{
    struct cluster c;
    start(&c, NULL);
    add_pod(&c, POD("best", "", "{}"));
    add_pod(&c, POD("full", "", "{limits: {cpu: 500m, memory: 64Mi}}"));
    add_pod(&c, POD("frail", "",
                    BURSTABLE ", resizePolicy: [{resourceName: cpu, restartPolicy: "
                              "RestartContainer}]"));
    want(&c, "best", "727m", "808m");
    want(&c, "full", "727m", "808m");
    want(&c, "frail", "727m", "808m");
    pass(&c, 5);
    is_said(&c, "best", "Failed", "Unmanageable");
    is_said(&c, "full", "Applied", "GuaranteedQoS");
    EQ_STR(said(&c, "full", "appliedCPULimit"), S("500m"));
    is_said(&c, "frail", "Failed", "Unmanageable");
    EQ_INT(writes_to(&c, "/resize"), 0);
    patch(&c, &resource_pods, "full", NULL,
          S("{\"metadata\":{\"annotations\":{\"mbcas.io/skip-guaranteed\":\"false\"}}}"));
    pass(&c, 1);
    EQ_STR(has(&c, "full", "app"), S("808m/808m")); /* Guaranteed it stays */
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
    start_with(&c, TWO_AND_A_SIDECAR);
    want(&c, "a", "900m", "1001m");
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("500m/450m"));
    EQ_STR(has(&c, "a", "log"), S("334m/300m"));
    EQ_STR(has(&c, "a", "proxy"), S("167m/150m"));
    EQ_STR(has(&c, "a", "setup"), S("/"));
    follows(&c, "a");
    EQ_STR(said(&c, "a", "appliedCPULimit"), S("1001m"));
    EQ_STR(said(&c, "a", "appliedCPURequest"), S("900m"));
    pass(&c, 10);
    get(&c, "a", "270m", "300m");
    want(&c, "a", "900m", "1001m"); /* shares do not drift */
    pass(&c, 1);
    EQ_STR(has(&c, "a", "app"), S("500m/450m"));
    cluster_stop(&c);
}

/* Two containers and a sidecar: 33m is the least. */
static void growth_does_not_wait_for_what_cannot_be(void)
{
    struct cluster c;
    start_with(&c, TWO_AND_A_SIDECAR);
    add_pod(&c, POD("b", "", BURSTABLE));
    get(&c, "a", "54m", "60m");
    get(&c, "a", "9m", "10m");
    EQ_STR(said(&c, "a", "appliedCPULimit"), S("33m"));
    want(&c, "b", "675m", "750m");
    pass(&c, 3);
    EQ_STR(has(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void growth_waits_for_those_that_shrink(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    add_pod(&c, POD("b", "", BURSTABLE));
    want(&c, "a", "225m", "250m");
    pass(&c, 1); /* sent, but not enacted */
    want(&c, "b", "675m", "750m");
    pass(&c, 3);
    is_said(&c, "b", "Pending", "WaitingForRoom");
    EQ_STR(has(&c, "b", "app"), S("500m/250m"));
    enact(&c, "a");
    pass(&c, 2);
    EQ_STR(has(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void growth_does_not_wait_for_ever(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    add_pod(&c, POD("b", "", BURSTABLE));
    want(&c, "a", "225m", "250m"); /* its node never answers */
    want(&c, "b", "675m", "750m");
    pass(&c, 40);
    EQ_STR(has(&c, "b", "app"), S("750m/675m"));
    cluster_stop(&c);
}

static void a_dry_run_changes_nothing(void)
{
    struct cluster c;
    start(&c, (const char *[]){ "market-dry-run", "true", NULL });
    add_pod(&c, POD("a", "", BURSTABLE));
    want(&c, "a", "727m", "808m");
    pass(&c, 60);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    is_said(&c, "a", "Pending", "DryRun");
    EQ_STR(said(&c, "a", "message"), S("the CPU limit would go from 500m to 808m"));
    EQ_INT(writes_to(&c, "/resize"), 1);
    cluster_stop(&c);
}

static void restore_gives_all_pods_back(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    get(&c, "a", "727m", "808m");
    restart(&c, (const char *[]){ "market-restore", "true", NULL });
    pass(&c, 2);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    enact(&c, "a");
    pass(&c, 2);
    is_said(&c, "a", "Applied", "Excluded");
    cluster_stop(&c);
}

static void a_restart_changes_nothing(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    get(&c, "a", "727m", "808m");
    size_t writes = c.operator_writes;
    for (int i = 0; i < 3; i++) {
        restart(&c, NULL);
        pass(&c, 10);
    }
    EQ_INT(c.operator_writes, writes);
    cluster_stop(&c);
}

static void what_belongs_to_another_pod_is_left(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    add_pod(&c, POD("b", "", BURSTABLE));
    get(&c, "a", "727m", "808m");
    const struct json *b = cluster_get(&c, &resource_pods, ns, "b");
    patch(&c, &podallocation_resource, "default-a", NULL,
          arena_printf(&c.arena,
                       "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                       "\"Pod\",\"name\":\"b\",\"uid\":\"%s\"}]},\"spec\":{"
                       "\"desiredCPULimit\":\"900m\"}}",
                       json_text(json_at(b, "metadata", "uid", NULL)).p));
    pass(&c, 10);
    is_said(&c, "a", "Failed", "PodNotFound");
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    patch(&c, &podallocation_resource, "default-a", NULL,
          S("{\"metadata\":{\"ownerReferences\":null},\"spec\":{\"namespace\":\"kube-system\"}}"));
    pass(&c, 10);
    is_said(&c, "a", "Failed", "NamespaceMismatch");
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    cluster_stop(&c);
}

static void conflicts_are_outlived(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    c.failures = 7;
    c.fail_path = "/resize";
    want(&c, "a", "727m", "808m");
    pass(&c, 30);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    follows(&c, "a");
    cluster_stop(&c);
}

static void a_silent_server_is_outlived(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    get(&c, "a", "540m", "600m");
    want(&c, "a", "727m", "808m");
    c.deaf = true;
    cluster_until(&c, cluster_now(&c) + 60);
    c.deaf = false;
    pass(&c, 60);
    EQ_STR(has(&c, "a", "app"), S("808m/727m"));
    follows(&c, "a");
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_wish_is_applied_and_verified),
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
        { 0 },
    });
}
