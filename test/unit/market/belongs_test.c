/* Which allocation governs a pod: one of another node or for another namespace changes nothing,
 * reports that, and does not prevent the right one from governing. */
#include "market_world.h"

static void make(struct cluster *c, const char *name, const char *pod, const char *spec)
{
    const struct json *o = cluster_get(c, &resource_pods, WORLD_NS, pod);
    cluster_create(
        c, &market_allocation_resource, WORLD_NS,
        world_parse_yaml(
            c, arena_printf(&c->arena,
                            "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, "
                            "metadata: {name: %s, ownerReferences: [{apiVersion: v1, kind: Pod, "
                            "name: %s, uid: %s}]}, spec: {podName: %s, desiredCPURequest: 700m, "
                            "desiredCPULimit: 800m, %s}}",
                            name, pod, json_text(json_at(o, "metadata", "uid", NULL)).p, pod, spec)
                   .p));
}

static void the_node_must_be_the_pods(void)
{
    static const struct {
        const char *node, *phase, *reason, *limits;
    } table[] = {
        { "n1", "Pending", "Applying", "800m/700m" },
        { "n2", "Failed", "NodeMismatch", "500m/250m" },
        { "n", "Failed", "NodeMismatch", "500m/250m" },
        { "n11", "Failed", "NodeMismatch", "500m/250m" },
        { "N1", "Failed", "NodeMismatch", "500m/250m" },
        { "n1.", "Failed", "NodeMismatch", "500m/250m" },
        { " n1", "Failed", "NodeMismatch", "500m/250m" },
        { "n1,n2", "Failed", "NodeMismatch", "500m/250m" },
        { "*", "Failed", "NodeMismatch", "500m/250m" },
        { "", "Pending", "Applying", "800m/700m" }, /* by hand, or by MBCAS: as before */
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct cluster c;
        world_start_with_pod(&c, POD("a", "", BURSTABLE));
        make(&c, "default-a", "a",
             arena_printf(&c.arena, "namespace: default, nodeName: '%s'", table[i].node).p);
        world_pass_time(&c, 3);
        world_expect_status(&c, "a", table[i].phase, table[i].reason);
        EQ_STR(world_container_cpu(&c, "a", "app"), str_c(table[i].limits));
        cluster_stop(&c);
    }
}

static void another_namespace_is_refused(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: kube-system");
    world_pass_time(&c, 3);
    world_expect_status(&c, "a", "Failed", "NamespaceMismatch");
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    cluster_stop(&c);
}

/* The first by name governs, among those that may. */
static void a_stranger_is_in_nobodys_way(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    make(&c, "aaa", "a", "namespace: default, nodeName: n2");
    world_set_desired(&c, "a", "540m", "600m");
    world_pass_time(&c, 3);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("600m/540m"));
    world_expect_status(&c, "a", "Pending", "Applying");
    world_enact_and_verify(&c, "a");
    cluster_stop(&c);
}

/* Originals in the status of a foreign allocation are not restored when it is deleted. */
static void a_stranger_gives_nothing_back(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: default, nodeName: n2");
    world_patch(&c, &market_allocation_resource, "default-a", "status",
                S("{\"status\":{\"originalResources\":[{\"container\":\"app\",\"request\":\"400m\","
                  "\"limit\":\"900m\"}]}}"));
    world_pass_time(&c, 3);
    world_expect_status(&c, "a", "Failed", "NodeMismatch");
    cluster_do(&c, KUBE_DELETE, &market_allocation_resource, WORLD_NS, "default-a", S(""));
    world_pass_time(&c, 30);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    EQ_INT(world_count_requests(&c, "/resize"), 0);
    cluster_stop(&c);
}

/* A pod of the same name that started on another node is governed by the agent of that node. */
static void a_pod_that_moved_waits_for_its_new_node(void)
{
    struct cluster c;
    world_start_with_pod(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: default, nodeName: n1");
    world_pass_time(&c, 1);
    world_enact_and_verify(&c, "a");
    cluster_do(&c, KUBE_DELETE, &resource_pods, WORLD_NS, "a", S("{\"gracePeriodSeconds\":0}"));
    cluster_create(&c, &resource_nodes, NULL,
                   world_parse_yaml(&c, "{apiVersion: v1, kind: Node, metadata: {name: n2}}"));
    world_add_pod(
        &c, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n2, containers: "
            "[{name: app, image: x, resources: " BURSTABLE "}]}}");
    make(&c, "again", "a", "namespace: default, nodeName: n1");
    world_pass_time(&c, 10);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("500m/250m"));
    make(&c, "other", "a", "namespace: default, nodeName: n2");
    world_pass_time(&c, 10);
    EQ_STR(world_container_cpu(&c, "a", "app"), S("800m/700m"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(the_node_must_be_the_pods),
        TAP(another_namespace_is_refused),
        TAP(a_stranger_is_in_nobodys_way),
        TAP(a_stranger_gives_nothing_back),
        TAP(a_pod_that_moved_waits_for_its_new_node),
        { 0 },
    });
}
