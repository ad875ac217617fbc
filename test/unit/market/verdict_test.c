/* What the market's controller reports about pods that it cannot, may not or does not yet
 * resize, and how it reacts to rejections. */
#include "market_world.h"

#include "prom/exposition.h"

static void annotate(struct cluster *c, const char *pod, const char *annotation, const char *value)
{
    world_patch(c, &resource_pods, pod, NULL,
                arena_printf(&c->arena, "{\"metadata\":{\"annotations\":{\"%s\":\"%s\"}}}",
                             annotation, value));
}

static void refuse_resizes(struct cluster *c, int times)
{
    c->failures = times;
    c->fail_code = 403;
    c->fail_path = "/resize";
}

static double counted(const struct cluster *c, const char *series)
{
    auto_buf struct buf text = { 0 };
    exposition_write(&text, manager_metrics(c->manager));
    str line, rest = buf_str(&text);
    while (str_cut(&rest, '\n', &line))
        if (str_starts(line, str_c(series)))
            return strtod(line.p + strlen(series), NULL);
    return 0;
}

/* It has what it began with, and is left at that. */
static void is_given_back(struct cluster *c)
{
    EQ_STR(world_container_cpu(c, "a", "app"), S("500m/250m"));
    world_enact(c, "a");
    world_pass_time(c, 1);
    world_expect_status(c, "a", "Applied", "Excluded");
}

/* ---- memory */

#define ROOMY "{limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: 250m, memory: 32Mi}}"

static void desire_memory(struct cluster *c, const char *request, const char *limit,
                          const char *more)
{
    world_patch(c, &market_allocation_resource, "default-a", NULL,
                arena_printf(&c->arena,
                             "{\"spec\":{\"desiredMemory\":[{\"container\":\"app\",\"request\":"
                             "\"%s\",\"limit\":\"%s\"%s}]}}",
                             request, limit, more));
    world_pass_time(c, 1);
}

/* "limit/request" of the container's memory in the pod's spec. */
static str memory_of(struct cluster *c)
{
    const struct json *pod = cluster_get(c, &resource_pods, WORLD_NS, "a");
    const struct json *r =
        json_get(json_item(json_at(pod, "spec", "containers", NULL), 0), "resources");
    return arena_printf(&c->arena, STR_FMT "/" STR_FMT,
                        STR_ARG(json_text(json_at(r, "limits", "memory", NULL))),
                        STR_ARG(json_text(json_at(r, "requests", "memory", NULL))));
}

static void start_with_memory(struct cluster *c)
{
    world_start_with_pod(c, POD("a", "", ROOMY));
    world_set_desired(c, "a", "250m", "500m");
    world_pass_time(c, 6);
}

static void memory_grows_before_cpu_and_in_a_patch_of_its_own(void)
{
    struct cluster c;
    start_with_memory(&c);
    world_set_desired(&c, "a", "540m", "600m");
    desire_memory(&c, "80Mi", "96Mi", "");
    /* the CPU was sent before the memory was desired; the memory waits for it and for five seconds */
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    EQ_STR(memory_of(&c), S("64Mi/32Mi"));
    world_enact(&c, "a");
    world_pass_time(&c, 6);
    int cpu_events = (int)world_count_events(&c, "CPUApplied");
    EQ_STR(memory_of(&c), S("96Mi/80Mi"));
    world_expect_status(&c, "a", "Pending", "Applying");
    world_enact_and_verify(&c, "a");
    EQ_INT(world_count_events(&c, "MemoryApplied"), 1);
    EQ_INT(world_count_events(&c, "CPUApplied"), cpu_events); /* it did not change */
    const struct json *o = cluster_get(&c, &market_allocation_resource, WORLD_NS, "default-a");
    const struct json *original = json_item(json_at(o, "status", "originalResources", NULL), 0);
    EQ_STR(json_text(json_get(original, "memoryLimit")), S("67108864"));
    /* out of the market: the request returns, the limit is not lowered */
    annotate(&c, "a", "mbcas.io/managed", "false");
    world_pass_time(&c, 6);
    EQ_STR(memory_of(&c), S("96Mi/32Mi"));
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    cluster_stop(&c);
}

/* An allocation that outlived a change by the owner gets no container killed. */
static void a_memory_limit_is_not_lowered_unless_the_allocation_says_so(void)
{
    struct cluster c;
    start_with_memory(&c);
    desire_memory(&c, "16Mi", "48Mi", "");
    world_pass_time(&c, 6);
    EQ_STR(memory_of(&c), S("64Mi/16Mi"));
    world_enact(&c, "a");
    world_pass_time(&c, 6);
    desire_memory(&c, "16Mi", "48Mi", ",\"shrink\":true");
    world_pass_time(&c, 6);
    EQ_STR(memory_of(&c), S("48Mi/16Mi"));
    cluster_stop(&c);
}

static void memory_that_the_node_defers_is_withdrawn_and_cpu_goes_on(void)
{
    struct cluster c;
    start_with_memory(&c);
    desire_memory(&c, "1Gi", "2Gi", "");
    world_pass_time(&c, 2);
    EQ_STR(memory_of(&c), S("2Gi/1Gi"));
    world_set_resize_condition(&c, "a", "PodResizePending", "Deferred");
    world_pass_time(&c, 65);
    EQ_STR(memory_of(&c), S("64Mi/32Mi"));
    OK(world_status(&c, "a", "memoryRefusedUntil").n > 0);
    OK(!world_status(&c, "a", "infeasibleCPULimit").n);
    world_enact(&c, "a");
    world_pass_time(&c, 6);
    world_expect_status(&c, "a", "Applied", "Applied");
    world_set_desired(&c, "a", "540m", "600m");
    world_pass_time(&c, 6);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    EQ_STR(memory_of(&c), S("64Mi/32Mi"));
    world_enact(&c, "a");
    world_pass_time(&c, 600);
    EQ_STR(memory_of(&c), S("2Gi/1Gi")); /* tried again */
    cluster_stop(&c);
}

static void memory_is_left_alone_where_a_change_restarts(void)
{
    struct cluster c;
    world_start_with_pod(
        &c, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, containers: "
            "[{name: app, image: x, resizePolicy: [{resourceName: memory, restartPolicy: "
            "RestartContainer}], resources: " ROOMY "}]}}");
    world_set_desired(&c, "a", "250m", "500m");
    desire_memory(&c, "80Mi", "96Mi", "");
    world_pass_time(&c, 10);
    EQ_STR(memory_of(&c), S("64Mi/32Mi"));
    desire_memory(&c, "x", "-5", "");
    annotate(&c, "a", "mbcas.io/allow-restart", "true");
    world_pass_time(&c, 10);
    EQ_STR(memory_of(&c), S("64Mi/32Mi")); /* invalid amounts are ignored */
    desire_memory(&c, "80Mi", "96Mi", "");
    world_pass_time(&c, 10);
    EQ_STR(memory_of(&c), S("96Mi/80Mi"));
    cluster_stop(&c);
}

/* ---- the node follows */

#define TWO                                                                                        \
    "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, containers: [{name: "   \
    "app, image: x, resources: {limits: {cpu: 300m}, requests: {cpu: 200m}}}, {name: log, image: " \
    "x, resources: {limits: {cpu: 200m}, requests: {cpu: 100m}}%s}]}}"

static const char *two(struct cluster *c, const char *more)
{
    return arena_printf(&c->arena, TWO, more).p;
}

/* The node has followed in one container; the other still has what it had. */
static void enact_first(struct cluster *c, const char *limit, const char *request)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, "a");
    struct json *list = world_make_statuses(c, json_at(o, "spec", "containers", NULL));
    struct json *log = json_copy(&c->arena, json_item(list, 0)), *mixed = json_new_arr(&c->arena),
                *body = json_new_obj(&c->arena);
    json_set_str(&c->arena, json_make(&c->arena, log, "resources", "limits", NULL), "cpu",
                 str_c(limit));
    json_set_str(&c->arena, json_make(&c->arena, log, "resources", "requests", NULL), "cpu",
                 str_c(request));
    json_set_str(&c->arena, json_make(&c->arena, log, "allocatedResources", NULL), "cpu",
                 str_c(request));
    json_push(&c->arena, mixed, log);
    json_push(&c->arena, mixed, json_item(list, 1));
    json_set(&c->arena, json_make(&c->arena, body, "status", NULL), S("containerStatuses"), mixed);
    world_patch(c, &resource_pods, "a", "status", json_to_str(&c->arena, body));
}

static void it_is_done_when_every_container_followed(void)
{
    struct cluster c;
    world_start(&c, NULL);
    world_add_pod(&c, two(&c, ""));
    world_set_desired(&c, "a", "900m", "1000m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    EQ_STR(world_container_cpu(&c, "a", "log"), S("400m/360m"));
    enact_first(&c, "200m", "100m");
    world_pass_time(&c, 10);
    world_expect_status(&c, "a", "Pending", "Applying");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("800m"));
    EQ_REAL(counted(&c, "mbcas_controller_resize_verified_total "), 0);
    world_enact_and_verify(&c, "a");
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("1000m"));
    EQ_REAL(counted(&c, "mbcas_controller_resize_verified_total "), 1);
    cluster_stop(&c);
}

#define RESTARTS ", resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]"

static void nobody_is_restarted_unless_that_is_allowed(void)
{
    struct cluster c;
    world_start(&c, NULL);
    world_add_pod(&c, two(&c, RESTARTS));
    world_set_desired(&c, "a", "900m", "1000m");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("800m/799m") /* all that is left */);
    EQ_STR(world_container_cpu(&c, "a", "log"), S("200m/100m"));
    world_enact_and_verify(&c, "a");
    world_pass_time(&c, 10);
    annotate(&c, "a", "mbcas.io/allow-restart", "true");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    EQ_STR(world_container_cpu(&c, "a", "log"), S("400m/360m"));
    cluster_stop(&c);
}

/* 5, 10 and 20 s between resizes that fail on the node. */
static void a_node_that_fails_is_asked_less_and_less_often(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_set_desired(&c, "a", "540m", "600m");
    world_pass_time(&c, 1);
    int64_t sent[4] = { cluster_now(&c) };
    for (int n = 1; n < 4; n++) {
        world_set_resize_condition(&c, "a", "PodResizeInProgress", "Error");
        world_set_desired(&c, "a", "540m", n % 2 ? "700m" : "600m");
        while (world_count_requests(&c, "/pods/a/resize") <= (size_t)n && !tap_failures)
            world_pass_time(&c, 1), OK(cluster_now(&c) < sent[0] + 100);
        sent[n] = cluster_now(&c);
    }
    OK(sent[1] - sent[0] >= 5 && sent[1] - sent[0] <= 6);
    OK(sent[2] - sent[1] >= 10 && sent[2] - sent[1] <= 11);
    OK(sent[3] - sent[2] >= 20 && sent[3] - sent[2] <= 21);
    cluster_stop(&c);
}

/* ---- pods that are not resized */

static void what_cannot_be_resized_is_said_with_what_it_has(void)
{
    struct cluster c;
    world_start(&c, NULL);
    world_add_pod(&c, POD("static", ", annotations: {kubernetes.io/config.mirror: x}", BURSTABLE));
    world_add_pod(&c,
                  "{apiVersion: v1, kind: Pod, metadata: {name: windows}, spec: {nodeName: n1, os: "
                  "{name: windows}, containers: [{name: app, image: x, resources: " BURSTABLE
                  "}]}}");
    static const char *const pods[] = { "static", "windows" };
    for (size_t i = 0; i < countof(pods); i++) {
        world_set_desired(&c, pods[i], "727m", "808m");
        world_pass_time(&c, 5);
        world_expect_status(&c, pods[i], "Failed", "Unmanageable");
        EQ_STR(world_status(&c, pods[i], "appliedCPULimit"), S("500m"));
        EQ_STR(world_status(&c, pods[i], "appliedCPURequest"), S("250m"));
    }
    EQ_INT(world_count_requests(&c, "/resize"), 0);
    cluster_stop(&c);
}

static void who_does_not_run_is_waited_for(void)
{
    struct cluster c;
    world_start(&c, NULL);
    cluster_create(&c, &resource_pods, WORLD_NS, world_parse_yaml(&c, POD("a", "", BURSTABLE)));
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 60);
    world_expect_status(&c, "a", "Pending", "PodNotRunning");
    EQ_INT(world_count_requests(&c, "/resize"), 0);
    world_enact(&c, "a");
    world_pass_time(&c, 1);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    cluster_stop(&c);
}

static void who_has_ended_is_left(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_patch(&c, &resource_pods, "a", "status", S("{\"status\":{\"phase\":\"Succeeded\"}}"));
    world_set_desired(&c, "a", "727m", "808m");
    size_t writes = c.operator_writes;
    world_pass_time(&c, 600);
    EQ_INT(c.operator_writes, writes);
    cluster_do(&c, KUBE_DELETE, &resource_pods, WORLD_NS, "a",
               S("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0}"));
    world_pass_time(&c, 60);
    EQ_INT(c.operator_writes, writes); /* its allocation was deleted with it */
    cluster_stop(&c);
}

static void a_label_opts_out_as_well(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    world_patch(&c, &resource_pods, "a", NULL,
                S("{\"metadata\":{\"labels\":{\"mbcas.io/managed\":\"false\"}}}"));
    world_pass_time(&c, 1);
    is_given_back(&c);
    cluster_stop(&c);
}

static void of_two_for_one_pod_the_first_governs(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    cluster_create(&c, &market_allocation_resource, WORLD_NS,
                   world_parse_yaml(
                       &c,
                       "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, metadata: "
                       "{name: default-zzz}, spec: {namespace: default, podName: a, "
                       "desiredCPURequest: 90m, desiredCPULimit: 100m}}"));
    world_pass_time(&c, 60);
    world_expect_status(&c, "zzz", "Failed", "Duplicate");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    size_t writes = c.operator_writes;
    cluster_do(&c, KUBE_DELETE, &market_allocation_resource, WORLD_NS, "default-a", S(""));
    world_pass_time(&c, 10);
    world_enact(&c, "a");
    world_pass_time(&c, 10);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("100m/90m"));
    OK(c.operator_writes - writes < 8); /* the two do not undo each other's resizes */
    const struct json *status =
        json_get(cluster_get(&c, &market_allocation_resource, WORLD_NS, "default-zzz"), "status");
    OK(json_len(json_get(status, "originalResources")) > 0);
    cluster_stop(&c);
}

/* ---- refusals */

static void a_refusal_is_said_and_tried_again_later(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    refuse_resizes(&c, 1);
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "PatchError");
    OK(str_find(world_status(&c, "a", "message"), S("the test does not allow it")) != SIZE_MAX);
    OK(str_find(world_status(&c, "a", "message"), S("pods/resize")) !=
       SIZE_MAX); /* what may help */
    EQ_INT(world_count_events(&c, "PatchError"), 1);
    EQ_REAL(counted(&c, "mbcas_controller_pod_patch_errors_total{reason=\"Forbidden\"} "), 1);
    world_pass_time(&c, 115);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    world_pass_time(&c, 6);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

static void another_wish_need_not_wait_for_a_refused_one(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    refuse_resizes(&c, 1);
    world_set_desired(&c, "a", "727m", "808m");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "PatchError");
    world_apply_desired(&c, "a", "540m", "600m");
    cluster_stop(&c);
}

/* The API server knows the node's size: more is refused before any kubelet sees it. */
static void more_than_the_node_has_is_infeasible(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_patch(&c, &resource_nodes, "n1", "status",
                S("{\"status\":{\"allocatable\":{\"cpu\":\"1\"},\"capacity\":{\"cpu\":\"1\"}}}"));
    world_set_desired(&c, "a", "1800m", "2000m");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "Infeasible");
    EQ_STR(world_status(&c, "a", "infeasibleCPULimit"), S("2000m")); /* which the agent heeds */
    EQ_STR(world_status(&c, "a", "appliedCPULimit"), S("500m"));
    world_pass_time(&c, 300);
    EQ_REAL(counted(&c, "mbcas_controller_pod_patch_errors_total{reason=\"Forbidden\"} "), 1);
    world_apply_desired(&c, "a", "540m", "600m");
    cluster_stop(&c);
}

static void what_cannot_be_given_back_is_tried_again(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    refuse_resizes(&c, 1);
    annotate(&c, "a", "mbcas.io/managed", "false");
    world_pass_time(&c, 1);
    world_expect_status(&c, "a", "Failed", "RestoreFailed");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("808m/727m"));
    world_pass_time(&c, 121);
    is_given_back(&c);
    cluster_stop(&c);
}

/* ---- and nothing else */

/* Of a pod only its resources are touched, and of an allocation only the status. */
static void nothing_else_is_ever_written(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    world_apply_desired(&c, "a", "727m", "808m");
    annotate(&c, "a", "mbcas.io/managed", "false");
    world_pass_time(&c, 60);
    size_t pods = world_count_requests(&c, "/pods/"),
           allocations = world_count_requests(&c, "/podallocations/");
    OK(pods > 0 && allocations > 0);
    EQ_INT(world_count_requests(&c, "/pods/a/resize {\"spec\":{\"containers\":"), pods);
    EQ_INT(world_count_requests(&c, "/podallocations/default-a/status {\"status\":"), allocations);
    EQ_INT(pods + allocations + world_count_requests(&c, "/events"), c.operator_writes);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(memory_grows_before_cpu_and_in_a_patch_of_its_own),
        TAP(a_memory_limit_is_not_lowered_unless_the_allocation_says_so),
        TAP(memory_that_the_node_defers_is_withdrawn_and_cpu_goes_on),
        TAP(memory_is_left_alone_where_a_change_restarts),
        TAP(it_is_done_when_every_container_followed),
        TAP(nobody_is_restarted_unless_that_is_allowed),
        TAP(a_node_that_fails_is_asked_less_and_less_often),
        TAP(what_cannot_be_resized_is_said_with_what_it_has),
        TAP(who_does_not_run_is_waited_for),
        TAP(who_has_ended_is_left),
        TAP(a_label_opts_out_as_well),
        TAP(of_two_for_one_pod_the_first_governs),
        TAP(a_refusal_is_said_and_tried_again_later),
        TAP(another_wish_need_not_wait_for_a_refused_one),
        TAP(more_than_the_node_has_is_infeasible),
        TAP(what_cannot_be_given_back_is_tried_again),
        TAP(nothing_else_is_ever_written),
        { 0 },
    });
}
