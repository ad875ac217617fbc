/* Whose word counts about a pod: an allocation of another node or for another namespace changes nothing, says
 * so, and does not keep the right one from governing. */
#include "market_world.h"

static void make(struct cluster *c, const char *name, const char *pod, const char *spec)
{
    const struct json *o = cluster_get(c, &resource_pods, ns, pod);
    cluster_create(
        c, &podallocation_resource, ns,
        from_yaml(c,
                  arena_printf(&c->arena,
                               "{apiVersion: allocation.mbcas.io/v1alpha1, kind: PodAllocation, "
                               "metadata: {name: %s, ownerReferences: [{apiVersion: v1, kind: Pod, "
                               "name: %s, uid: %s}]}, spec: {podName: %s, desiredCPURequest: 700m, "
                               "desiredCPULimit: 800m, %s}}",
                               name, pod, json_text(json_at(o, "metadata", "uid", NULL)).p, pod,
                               spec)
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
        start_with(&c, POD("a", "", BURSTABLE));
        make(&c, "default-a", "a",
             arena_printf(&c.arena, "namespace: default, nodeName: '%s'", table[i].node).p);
        pass(&c, 3);
        is_said(&c, "a", table[i].phase, table[i].reason);
        EQ_STR(has(&c, "a", "app"), str_c(table[i].limits));
        cluster_stop(&c);
    }
}

static void another_namespace_is_refused(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: kube-system");
    pass(&c, 3);
    is_said(&c, "a", "Failed", "NamespaceMismatch");
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    cluster_stop(&c);
}

/* The first by name governs, but only of those that have a say. */
static void a_stranger_is_in_nobodys_way(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    make(&c, "aaa", "a", "namespace: default, nodeName: n2");
    want(&c, "a", "540m", "600m");
    pass(&c, 3);
    EQ_STR(has(&c, "a", "app"), S("600m/540m"));
    is_said(&c, "a", "Pending", "Applying");
    follows(&c, "a");
    cluster_stop(&c);
}

/* What a stranger claims the pod had is not given back when the stranger's allocation goes. */
static void a_stranger_gives_nothing_back(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: default, nodeName: n2");
    patch(&c, &podallocation_resource, "default-a", "status",
          S("{\"status\":{\"originalResources\":[{\"container\":\"app\",\"request\":\"400m\","
            "\"limit\":\"900m\"}]}}"));
    pass(&c, 3);
    is_said(&c, "a", "Failed", "NodeMismatch");
    cluster_do(&c, KUBE_DELETE, &podallocation_resource, ns, "default-a", S(""));
    pass(&c, 30);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    EQ_INT(writes_to(&c, "/resize"), 0);
    cluster_stop(&c);
}

/* A pod of the same name that came up on another node is governed by that node's agent. */
static void a_pod_that_moved_waits_for_its_new_node(void)
{
    struct cluster c;
    start_with(&c, POD("a", "", BURSTABLE));
    make(&c, "default-a", "a", "namespace: default, nodeName: n1");
    pass(&c, 1);
    follows(&c, "a");
    cluster_do(&c, KUBE_DELETE, &resource_pods, ns, "a", S("{\"gracePeriodSeconds\":0}"));
    cluster_create(&c, &resource_nodes, NULL,
                   from_yaml(&c, "{apiVersion: v1, kind: Node, metadata: {name: n2}}"));
    add_pod(&c, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n2, containers: "
                "[{name: app, image: x, resources: " BURSTABLE "}]}}");
    make(&c, "again", "a", "namespace: default, nodeName: n1");
    pass(&c, 10);
    EQ_STR(has(&c, "a", "app"), S("500m/250m"));
    make(&c, "other", "a", "namespace: default, nodeName: n2");
    pass(&c, 10);
    EQ_STR(has(&c, "a", "app"), S("800m/700m"));
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
