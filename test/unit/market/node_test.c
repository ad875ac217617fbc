/* A node of 200 pods end to end, in virtual time: the embedded server, the controller, the
 * testbed's kubelet, and an agent that changes all desired limits four times a minute, while
 * pods are added and removed and the server rejects requests, pauses and stops answering.
 * Nothing may be lost, and the sum of all limits never exceeds the capacity. */
#include "market_world.h"

#include "base/quantity.h"
#include "market/market.h"
#include "testbed/testbed.h"

enum { PODS = 200, CHURN = 10, CAPACITY = 36000, RESERVED = CHURN * 150 };

struct node {
    struct cluster c;
    struct kube *kubelet_kube;
    struct manager *kubelet;
    struct random random;
    struct clear_scratch scratch;
    int first, end; /* pods first .. end-1 live */
    int pods;
    int64_t wished[PODS + 20 * CHURN]; /* by pod; 0: nothing yet */
    int64_t most_milli;
};

static const char *pod_name(struct node *n, int pod)
{
    return arena_printf(&n->c.arena, "p%d", pod).p;
}

static void node_add_pod(struct node *n)
{
    struct json *pod = world_parse_yaml(
        &n->c,
        arena_printf(&n->c.arena,
                     "{apiVersion: v1, kind: Pod, metadata: {name: p%d}, spec: {nodeName: n1, "
                     "containers: [{name: app, image: x, resources: {limits: {cpu: 100m}, "
                     "requests: {cpu: 60m}}}, {name: log, image: x, resources: {limits: {cpu: "
                     "50m}, requests: {cpu: 30m}}}]}}",
                     n->end++)
            .p);
    cluster_create(&n->c, &resource_pods, WORLD_NS, pod);
}

static void node_drop_pod(struct node *n)
{
    cluster_do(&n->c, KUBE_DELETE, &resource_pods, WORLD_NS, pod_name(n, n->first++),
               S("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0}"));
}

static void node_start(struct node *n, int pods)
{
    *n = (struct node){ .pods = pods };
    random_init(&n->random, 5, 5);
    log_setup(LOG_ERROR, LOG_TEXT);
    cluster_start(&n->c, NOON);
    cluster_create(&n->c, &resource_nodes, NULL,
                   world_parse_yaml(&n->c,
                                    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: "
                                    "{allocatable: {cpu: '36'}, capacity: {cpu: '40'}}}"));
    for (int i = 0; i < pods; i++)
        node_add_pod(n);
    err_t e;
    n->kubelet_kube = cluster_client(&n->c, "kubelet");
    cluster_check(manager_new(&(struct manager_options){ .kube = n->kubelet_kube,
                                                         .identity = S("kubelet"),
                                                         .seed = 2,
                                                         .setting = cluster_setting,
                                                         .context = &n->c },
                              &n->kubelet, &e),
                  &e);
    cluster_check(manager_add(n->kubelet, &testbed_feature, &e), &e);
    cluster_check(manager_run(n->kubelet, &e), &e);
    cluster_operator(&n->c, &market_feature, NULL);
    world_pass_time(&n->c, 10);
}

static void node_stop(struct node *n)
{
    manager_free(n->kubelet);
    kube_free(n->kubelet_kube);
    clear_scratch_done(&n->scratch);
    cluster_stop(&n->c);
}

/* ---- looking */

static int64_t milli_at(const struct json *object, const char *kind)
{
    int64_t milli = 0;
    quantity_parse_milli(json_text(json_at(object, "resources", kind, "cpu", NULL)), &milli, NULL);
    return milli;
}

static int64_t sum_limits(const struct json *list)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(list); i++)
        sum += milli_at(json_item(list, i), "limits");
    return sum;
}

/* What all pods may use together, by their specs and by what is in force. */
static void observe_node(struct node *n)
{
    struct arena_mark mark = arena_mark(&n->c.arena);
    struct cluster_answer a = cluster_do(&n->c, KUBE_LIST, &resource_pods, WORLD_NS, NULL, S(""));
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(json_get(a.object, "items")); i++) {
        const struct json *pod = json_item(json_get(a.object, "items"), i);
        sum += MAX(sum_limits(json_at(pod, "spec", "containers", NULL)),
                   sum_limits(json_at(pod, "status", "containerStatuses", NULL)));
    }
    n->most_milli = MAX(n->most_milli, sum);
    arena_reset(&n->c.arena, mark);
}

static void watch(struct node *n, int seconds)
{
    for (int i = 0; i < seconds; i += 5) {
        world_pass_time(&n->c, 5);
        if (!n->c.deaf)
            observe_node(n);
    }
}

/* ---- the agent */

static int64_t has_wished(const struct node *n, int pod)
{
    return n->wished[pod] ? n->wished[pod] : 150;
}

static void wish_one(struct node *n, int pod, int64_t limit)
{
    struct arena_mark mark = arena_mark(&n->c.arena);
    str amount = arena_printf(&n->c.arena, "%lldm", (long long)limit);
    str request = arena_printf(&n->c.arena, "%lldm", (long long)limit_request(limit));
    str name = arena_printf(&n->c.arena, "default-p%d", pod);
    if (n->wished[pod])
        world_patch(
            &n->c, &market_allocation_resource, name.p, NULL,
            arena_printf(&n->c.arena,
                         "{\"spec\":{\"desiredCPURequest\":\"%s\",\"desiredCPULimit\":\"%s\"}}",
                         request.p, amount.p));
    else
        world_set_desired(&n->c, pod_name(n, pod), request.p, amount.p);
    n->wished[pod] = limit;
    arena_reset(&n->c.arena, mark);
}

/* New desired limits for all pods, within the capacity. */
static void wish(struct node *n)
{
    struct bid bids[PODS + CHURN];
    int64_t x[PODS + CHURN];
    size_t count = (size_t)(n->end - n->first);
    for (size_t i = 0; i < count; i++) {
        int64_t max = 30 + random_below(&n->random, random_below(&n->random, 10) ? 250 : 3000);
        bids[i] = (struct bid){ .min_milli = 22, .max_milli = max, .weight = 1 };
    }
    market_clear(CAPACITY - RESERVED, bids, count, &n->scratch, x);
    for (int grow = 0; grow < 2; grow++) /* shrinking pods first */
        for (size_t i = 0; i < count; i++)
            if ((x[i] > has_wished(n, n->first + (int)i)) == grow)
                wish_one(n, n->first + (int)i, x[i]);
}

static void churn(struct node *n)
{
    for (int i = 0; i < CHURN; i++) {
        node_drop_pod(n);
        node_add_pod(n);
    }
}

/* ---- the end */

static void agrees(struct node *n, int number)
{
    struct arena_mark mark = arena_mark(&n->c.arena);
    const char *name = pod_name(n, number);
    const struct json *pod = cluster_get(&n->c, &resource_pods, WORLD_NS, name);
    str allocation_name = arena_printf(&n->c.arena, "default-%s", name);
    const struct json *a =
        cluster_get(&n->c, &market_allocation_resource, WORLD_NS, allocation_name.p);
    int64_t limit = 0;
    quantity_parse_milli(json_text(json_at(a, "spec", "desiredCPULimit", NULL)), &limit, NULL);
    EQ_STR(json_text(json_at(a, "status", "phase", NULL)), S("Applied"));
    EQ_STR(json_text(json_at(a, "status", "appliedCPULimit", NULL)),
           json_text(json_at(a, "spec", "desiredCPULimit", NULL)));
    EQ_STR(json_text(json_at(a, "status", "appliedCPURequest", NULL)),
           json_text(json_at(a, "spec", "desiredCPURequest", NULL)));
    EQ_INT(sum_limits(json_at(pod, "spec", "containers", NULL)), limit);
    EQ_INT(sum_limits(json_at(pod, "status", "containerStatuses", NULL)), limit);
    arena_reset(&n->c.arena, mark);
}

static void all_agree(struct node *n)
{
    for (int i = n->first; i < n->end && !tap_failures; i++)
        agrees(n, i);
    OK(n->most_milli <= CAPACITY);
    struct cluster_answer a =
        cluster_do(&n->c, KUBE_LIST, &market_allocation_resource, WORLD_NS, NULL, S(""));
    EQ_INT(json_len(json_get(a.object, "items")), n->pods); /* those of ended pods were deleted */
}

static void pods_come_and_go(void)
{
    struct node n;
    node_start(&n, PODS);
    for (int round = 0; round < 3; round++) {
        wish(&n);
        watch(&n, 15);
        churn(&n);
        watch(&n, 6);
    }
    wish(&n);
    watch(&n, 60);
    all_agree(&n);
    node_stop(&n);
}

static void the_server_refuses_and_pauses(void)
{
    struct node n;
    node_start(&n, PODS / 4);
    wish(&n);
    watch(&n, 30);
    n.c.failures = 200;
    n.c.fail_path = "/resize";
    wish(&n);
    watch(&n, 30);
    n.c.failures = 150;
    n.c.fail_busy = true;
    n.c.fail_path = "/"; /* the status too */
    wish(&n);
    watch(&n, 120);
    EQ_INT(n.c.failures, 0);
    all_agree(&n);
    node_stop(&n);
}

static void the_server_is_silent_for_a_minute(void)
{
    struct node n;
    node_start(&n, PODS);
    wish(&n);
    watch(&n, 30);
    wish(&n); /* in progress when the server stops answering */
    n.c.deaf = true;
    watch(&n, 60);
    n.c.deaf = false;
    watch(&n, 90);
    all_agree(&n);
    cluster_operator_down(&n.c);
    wish(&n); /* while the operator is down */
    cluster_operator(&n.c, &market_feature, NULL);
    watch(&n, 60);
    all_agree(&n);
    node_stop(&n);
}

/* Desired limits beyond the node: the kubelet rejects them, pods keep what they have, later ones
 * are applied. */
static void a_node_that_says_no(void)
{
    struct node n;
    node_start(&n, PODS / 4);
    wish(&n);
    watch(&n, 30);
    for (int i = 0; i < 5; i++) /* each alone fits, not all of them */
        world_set_desired(&n.c, pod_name(&n, i), "20", "22");
    world_pass_time(&n.c, 20); /* steps of ten times each */
    size_t deferred = 0;
    for (int i = 0; i < 5; i++)
        deferred += str_eqc(world_status(&n.c, pod_name(&n, i), "reason"), "Deferred");
    OK(deferred > 0);
    world_pass_time(&n.c, 80);
    for (int i = 0; i < 5; i++)
        OK(!str_eqc(world_status(&n.c, pod_name(&n, i), "phase"), "Pending"));
    wish(&n);
    world_pass_time(&n.c, 60);
    n.most_milli = 0;
    observe_node(&n);
    all_agree(&n);
    node_stop(&n);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(pods_come_and_go),
        TAP(the_server_refuses_and_pauses),
        TAP(the_server_is_silent_for_a_minute),
        TAP(a_node_that_says_no),
        { 0 },
    });
}
