/* The cluster-wide view, against the embedded server: prices of all nodes, a recommended move in the
 * status and as an event on the pod, and its end. */
#include "market_world.h"

#include "market/market_cluster.h"

static void set_node(struct cluster *c, const char *name, const char *spec)
{
    if (!cluster_get(c, &resource_nodes, NULL, name))
        cluster_create(c, &resource_nodes, NULL,
                       world_parse_yaml(c, arena_printf(&c->arena,
                                                        "{apiVersion: v1, kind: Node, metadata: "
                                                        "{name: %s}, spec: {%s}}",
                                                        name, spec)
                                               .p));
    cluster_ask(c, (struct kube_request){ /* a new node is tainted until it is ready */
                                          .verb = KUBE_MERGE_PATCH,
                                          .resource = &resource_nodes,
                                          .name = str_c(name),
                                          .body = S("{\"spec\":{\"taints\":null}}") });
    cluster_ask(c, (struct kube_request){
                       .verb = KUBE_MERGE_PATCH,
                       .resource = &resource_nodes,
                       .name = str_c(name),
                       .subresource = "status",
                       .body = S("{\"status\":{\"allocatable\":{\"cpu\":\"4\"},\"conditions\":[{"
                                 "\"type\":\"Ready\",\"status\":\"True\"}]}}") });
}

/* The garbage collector deletes pods whose owner does not exist, so there is one. */
static const char *make_owner(struct cluster *c)
{

    struct cluster_answer a = cluster_do(
        c, KUBE_CREATE, &resource_replicasets, WORLD_NS, NULL,
        S("{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"web-5d4\"},"
          "\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":"
          "{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"x\",\"image\":\"x\"}]}}}}"));
    return arena_printf(&c->arena,
                        "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-5d4, "
                        "uid: %s, controller: true}]",
                        json_text(json_at(a.object, "metadata", "uid", NULL)).p)
        .p;
}

/* A pod on n1 and what its agent reports. */
static void add_bidder(struct cluster *c, const char *pod, const char *more, const char *bid)
{
    world_add_pod(c, arena_printf(&c->arena,
                                  "{apiVersion: v1, kind: Pod, metadata: {name: %s, %s}, spec: "
                                  "{nodeName: n1, containers: [{name: app, image: i, resources: "
                                  "{requests: {cpu: 250m}, limits: {cpu: 500m}}}]}}",
                                  pod, more)
                         .p);
    world_set_desired(c, pod, "250m", "500m");
    world_patch(c, &market_allocation_resource, arena_printf(&c->arena, "default-%s", pod).p,
                "status",
                arena_printf(&c->arena,
                             "{\"status\":{\"shadowPriceCPU\":0.25,\"priceRound\":7,"
                             "\"nodeCapacityCPU\":\"1500m\",\"bidMaxCPU\":\"%s\",\"shareCPU\":"
                             "\"400m\",\"usageCPU\":\"400m\",\"mode\":\"congested\"}}",
                             bid));
}

static const struct json *status_of(struct cluster *c)
{
    return json_get(cluster_get(c, &market_cluster_resource, NULL, "cluster"), "status");
}

static str node_state(struct cluster *c, size_t i)
{
    return json_text(json_get(json_item(json_get(status_of(c), "nodes"), i), "state"));
}

static void a_move_is_recommended_and_done(void)
{
    struct cluster c;
    world_start(&c, NULL);
    set_node(&c, "n1", "");
    set_node(&c, "n2", "");
    const char *owner = make_owner(&c);
    add_bidder(&c, "pinned",
               arena_printf(&c.arena, "%s, annotations: {mbcas.io/move: 'false'}", owner).p,
               "900m");
    add_bidder(&c, "web", owner, "850m");
    add_bidder(&c, "alone", "", "600m");
    world_pass_time(&c, 130);
    OK(json_len(json_get(status_of(&c), "nodes")) == 2);
    bool first_is_hot = str_eqc(node_state(&c, 0), "Hot");
    OK(first_is_hot || str_eqc(node_state(&c, 1), "Hot"));
    EQ_STR(node_state(&c, first_is_hot), S("Cold"));
    const struct json *advices = json_get(status_of(&c), "recommendations"),
                      *move = json_item(advices, 0);
    EQ_INT(json_len(advices), 1); /* not the pinned one, and not the one without a controller */
    EQ_STR(json_text(json_get(move, "kind")), S("Move"));
    EQ_STR(json_text(json_get(move, "name")), S("web"));
    EQ_STR(json_text(json_get(move, "target")), S("n2"));
    EQ_STR(json_text(json_get(move, "gainCPU")), S("850m"));
    EQ_INT(world_count_events(&c, "MarketMove"), 1);
    cluster_do(&c, KUBE_DELETE, &resource_pods, WORLD_NS, "web",
               S("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0}"));
    world_pass_time(&c, 130);
    EQ_STR(json_text(json_get(json_item(json_get(status_of(&c), "recommendations"), 0), "state")),
           S("Done"));
    cluster_stop(&c);
}

/* A node that takes no pods is no target, and a restarted controller keeps what it recommended. */
static void cordoned_nodes_are_left_out(void)
{
    struct cluster c;
    world_start(&c, NULL);
    set_node(&c, "n1", "");
    set_node(&c, "n2", "unschedulable: true");
    add_bidder(&c, "web", make_owner(&c), "1850m");
    world_pass_time(&c, 130);
    const struct json *advices = json_get(status_of(&c), "recommendations");
    EQ_INT(json_len(advices), 1);
    EQ_STR(json_text(json_get(json_item(advices, 0), "kind")), S("ScaleOut"));
    str since = json_text(json_get(json_item(advices, 0), "since"));
    world_restart(&c, NULL);
    world_pass_time(&c, 130);
    advices = json_get(status_of(&c), "recommendations");
    EQ_INT(json_len(advices), 1);
    EQ_STR(json_text(json_get(json_item(advices, 0), "since")), since);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_move_is_recommended_and_done), TAP(cordoned_nodes_are_left_out), { 0 } });
}
