/* Where flyball differs from WVA 0.9 on purpose; what it has in common is in test/golden. */
#include "base/clock.h"
#include "saturation/limits/quota_core.h"
#include "saturation/objects/annotation_core.h"
#include "saturation/objects/dra_core.h"
#include "saturation/objects/stock_core.h"
#include "saturation/objects/vllm_args_core.h"
#include "saturation/objects/workload_core.h"
#include "saturation/zero/wake_core.h"
#include "saturation/zero/zero_policy_core.h"
#include "tap.h"

/* ---- the stock */

static const struct text_pair h100[] = { { STR_INIT("nvidia.com/gpu.product"),
                                           STR_INIT("NVIDIA-H100-80GB-HBM3") } };
static const struct text_pair eight[] = { { STR_INIT("nvidia.com/gpu"), STR_INIT("8") } };
static const struct text_pair four[] = { { STR_INIT("nvidia.com/gpu"), STR_INIT("4") } };

static struct stock_node node(const char *name, const struct text_pair *gpus)
{
    return (struct stock_node){ .name = str_c(name),
                                .labels = h100,
                                .label_n = 1,
                                .allocatable = gpus,
                                .allocatable_n = 1,
                                .ready = STOCK_READY };
}

static struct stock_room room_on(const struct stock_node *nodes, size_t n, int64_t gpus)
{
    auto_arena struct arena a = { 0 };
    struct stock s = stock_count(&a, nodes, n, NULL, 0, STOCK_OURS);
    struct stock_need need = { .type = S("h100"), .gpus_per_pod = gpus, .pods_per_replica = 1 };
    return stock_room_for(&s, &need);
}

static void only_nodes_that_the_scheduler_would_use_count(void)
{
    static const struct stock_taint taint[] = { { STR_INIT("gpu"), STR_INIT("x"),
                                                  STR_INIT("NoSchedule") } };
    struct stock_node nodes[] = { node("a", eight), node("b", eight), node("c", eight) };
    EQ_INT(room_on(nodes, 3, 8).replicas, 3);
    nodes[0].unschedulable = true;
    EQ_INT(room_on(nodes, 3, 8).replicas, 2);
    nodes[1].ready = STOCK_NOT_READY;
    EQ_INT(room_on(nodes, 3, 8).replicas, 1);
    nodes[2].taints = taint;
    nodes[2].taint_n = 1;
    struct stock_room room = room_on(nodes, 3, 8);
    EQ_INT(room.replicas, 0);
    EQ_INT(room.excluded, 24);
    EQ_STR(str_c(room.why), S("tainted"));
}

static void a_pod_needs_its_gpus_on_one_node(void)
{
    struct stock_node nodes[] = { node("a", four), node("b", four) };
    struct stock_room room = room_on(nodes, 2, 8);
    EQ_INT(room.replicas, 0);
    EQ_INT(room.free, 8);
    OK(room.fragmented);
    EQ_INT(room_on(nodes, 2, 4).replicas, 2);
}

static void pods_of_others_and_pods_to_come_are_charged(void)
{
    auto_arena struct arena a = { 0 };
    struct stock_node nodes[] = { node("a", eight), node("b", eight) };
    struct stock_pod pods[] = { { .node = S("a"), .gpus = 6 },
                                { .node = S("b"), .gpus = 8, .done = true },
                                { .type = S("H100"), .gpus = 8 } };
    struct stock s = stock_count(&a, nodes, 2, pods, countof(pods), STOCK_OURS);
    struct stock_need need = { .type = S("H100"), .gpus_per_pod = 1, .pods_per_replica = 2 };
    EQ_INT(stock_room_for(&s, &need).free, 2);
    EQ_INT(stock_room_for(&s, &need).replicas, 1);
}

/* ---- devices of dynamic resource allocation */

static struct dra_slice slice(struct arena *a, const char *node, const char *pool,
                              int64_t generation, int64_t slices, const char *devices)
{
    struct json *tree = NULL;
    OK(json_parse(a, str_c(devices), &tree, NULL) == 0);
    return (struct dra_slice){ str_c(node), S("gpu.nvidia.com"), str_c(pool), generation, slices,
                               tree };
}

#define DEVICE(name)                                                                               \
    "{\"name\":\"" name                                                                            \
    "\",\"attributes\":{\"productName\":{\"string\":\"NVIDIA H100 80GB HBM3\"}}}"

static void the_newest_complete_generation_of_devices_counts(void)
{
    auto_arena struct arena a = { 0 };
    struct json *results = NULL;
    struct dra_item *items;
    struct dra_slice slices[] = {
        slice(&a, "a", "p", 1, 1, "[" DEVICE("g0") "," DEVICE("g1") "]"),
        slice(&a, "a", "p", 2, 1, "[" DEVICE("g0") "," DEVICE("g1") "," DEVICE("g2") "]"),
        slice(&a, "a", "p", 3, 2, "[" DEVICE("g0") "]"), /* the other slice is to come */
        slice(&a, "b", "q", 1, 1, "[" DEVICE("g0") ",{\"name\":\"odd\"},7,null]"),
        slice(&a, "c", "r", 1, 2, "[" DEVICE("g0") "]"), /* never complete */
        slice(&a, "d", "s", 1, 1, "[" DEVICE("g0") "]"),
    };
    slices[5].driver = S("other.example.com");
    OK(json_parse(&a,
                  S("[{\"driver\":\"gpu.nvidia.com\",\"pool\":\"p\",\"device\":\"g2\"},"
                    "{\"driver\":\"gpu.nvidia.com\",\"pool\":\"q\",\"device\":\"g9\"},"
                    "{\"driver\":\"other\",\"pool\":\"p\",\"device\":\"g0\"}]"),
                  &results, NULL) == 0);
    const struct json *all[] = { results, NULL };
    EQ_INT(dra_count(&a, slices, countof(slices), all, 2, &items), 2);
    EQ_STR(items[0].node, S("a"));
    EQ_INT(items[0].count, 3);
    EQ_INT(items[0].used, 1);
    EQ_STR(items[0].product, S("NVIDIA-H100-80GB-HBM3"));
    EQ_STR(items[1].node, S("b"));
    EQ_INT(items[1].count, 1);
    EQ_INT(items[1].used, 0);
}

static void a_node_has_its_devices_once(void)
{
    auto_arena struct arena a = { 0 };
    struct stock_node nodes[] = { node("a", four), node("b", four) };
    nodes[1].label_n = 0; /* no extended resource that is known */
    struct stock s = stock_count(&a, nodes, 2, NULL, 0, STOCK_OURS);
    struct dra_item items[] = { { S("a"), S("NVIDIA-H100-80GB-HBM3"), 8, 1 },
                                { S("b"), S("NVIDIA-H100-80GB-HBM3"), 2, 0 },
                                { S("gone"), S("NVIDIA-H100-80GB-HBM3"), 8, 0 } };
    s = dra_merge(&a, s, nodes, 2, items, 3);
    struct stock_need need = { .type = S("h100"), .gpus_per_pod = 1, .pods_per_replica = 1 };
    struct stock_room room = stock_room_for(&s, &need);
    EQ_INT(room.total, 10);
    EQ_INT(room.free, 9);
}

static void claims_count_their_devices(void)
{
    auto_arena struct arena a = { 0 };
    struct json *requests = NULL;
    OK(json_parse(&a,
                  S("[{\"name\":\"x\",\"exactly\":{\"count\":4}},{\"name\":\"y\",\"exactly\":{}},"
                    "{\"name\":\"z\",\"firstAvailable\":[{\"count\":2},{\"count\":8}]},"
                    "{\"exactly\":{\"count\":-3}},{\"exactly\":{\"count\":\"7\"}}]"),
                  &requests, NULL) == 0);
    EQ_INT(dra_count_requests(requests), 4 + 1 + 2 + 1 + 1);
    EQ_INT(dra_count_requests(NULL), 0);
}

/* ---- annotations */

static struct annotation_object scaler(enum annotation_kind kind, const char *name)
{
    return (struct annotation_object){ .kind = kind,
                                       .ns = S("ns"),
                                       .name = str_c(name),
                                       .managed_label = S("true"),
                                       .model = S("m"),
                                       .target = S("d") };
}

static void labels_count_and_children_do_not(void)
{
    struct annotation_object o = scaler(ANNOTATION_HPA, "h");
    struct annotation_variant v;
    EQ_INT(annotation_read(&o, ANNOTATION_OURS, &v, NULL), 0);
    EQ_INT(annotation_read(&o, ANNOTATION_WVA, &v, NULL), -ENOENT);
    o.child = true;
    EQ_INT(annotation_read(&o, ANNOTATION_OURS, &v, NULL), -ENOENT);
    o.child = false;
    o.cost = S("+Inf");
    EQ_INT(annotation_read(&o, ANNOTATION_OURS, &v, NULL), -EINVAL);
}

static void one_object_describes_a_workload(void)
{
    const char *names[] = { "b", "a", "so" };
    struct annotation_variant v[3];
    for (size_t i = 0; i < 3; i++) {
        struct annotation_object o =
            scaler(i == 2 ? ANNOTATION_SCALEDOBJECT : ANNOTATION_HPA, names[i]);
        EQ_INT(annotation_read(&o, ANNOTATION_OURS, &v[i], NULL), 0);
    }
    annotation_choose(v, 2, ANNOTATION_OURS);
    EQ_STR(v[0].duplicate_of, S("a"));
    EQ_STR(v[1].duplicate_of, S(""));
    annotation_choose(v, 3, ANNOTATION_OURS);
    EQ_STR(v[0].duplicate_of, S("so"));
    EQ_STR(v[1].duplicate_of, S("so"));
    EQ_STR(v[2].duplicate_of, S(""));
}

/* ---- from and to zero */

static void the_cheapest_variant_that_can_start_is_chosen(void)
{
    struct wake_candidate c[] = {
        { .variant = S("dear"), .cost = 40, .resolved = true, .has_room = true },
        { .variant = S("full"), .cost = 5, .resolved = true },
        { .variant = S("cheap"), .cost = 10, .resolved = true, .has_room = true, .min = 2 },
        { .variant = S("gone"), .cost = 1, .has_room = true },
    };
    struct wake_choice choice = wake_choose(c, countof(c));
    EQ_INT(choice.n, 1);
    EQ_INT(choice.at[0], 2);
    EQ_INT(wake_replicas(&c[2]), 2);
    c[2].waiting_ns = 60 * NS_PER_S; /* on its way */
    EQ_INT(wake_choose(c, countof(c)).n, 0);
    c[2].waiting_ns = 601 * NS_PER_S;
    choice = wake_choose(c, countof(c));
    EQ_INT(choice.n, 1);
    EQ_INT(choice.at[0], 0);
    OK(choice.slow);
}

static void roles_start_together(void)
{
    struct wake_candidate c[] = {
        { .variant = S("p"), .role = S("prefill"), .resolved = true },
        { .variant = S("d"), .role = S("decode"), .resolved = true, .has_room = true },
    };
    EQ_INT(wake_choose(c, 2).n, 2);
    EQ_INT(wake_choose(c, 1).n, 0);
    c[0].forbidden = true;
    EQ_INT(wake_choose(c, 2).n, 0);
}

static void new_names_and_aliases_wake_and_garbage_does_not(void)
{
    struct wake_sample s[] = { { S("llm_d_epp_flow_control_queue_size"), S("m"), S(""), 2 } };
    EQ_INT(wake_read_demand(s, 1, S("m"), WAKE_OURS), WAKE_PENDING);
    EQ_INT(wake_read_demand(s, 1, S("other"), WAKE_OURS), WAKE_IDLE);
    EQ_INT(wake_read_demand(s, 0, S("m"), WAKE_OURS), WAKE_UNKNOWN);
    s[0].value = INFINITY;
    EQ_INT(wake_read_demand(s, 1, S("m"), WAKE_OURS), WAKE_IDLE);
}

static void a_minimum_keeps_only_its_own_variant(void)
{
    auto_arena struct arena a = { 0 };
    struct zero_decision d[] = {
        { .variant = S("a"), .current = 2, .target = 2, .min = 1, .category = S("V2") },
        { .variant = S("b"), .current = 2, .target = 2, .category = S("V2") },
    };
    struct zero_policy policy = { .enabled = true, .counted = true, .optimizer = "cost-aware" };
    OK(zero_policy_apply(&a, d, 2, &policy, ZERO_OURS));
    EQ_INT(d[0].target, 1);
    EQ_INT(d[1].target, 0);
    policy.requests = -1; /* unknown */
    d[1].target = 2;
    OK(!zero_policy_apply(&a, d, 2, &policy, ZERO_OURS));
    EQ_INT(d[1].target, 2);
}

static void every_role_keeps_a_replica(void)
{
    auto_arena struct arena a = { 0 };
    struct zero_decision d[] = {
        { .variant = S("p"), .role = S("prefill"), .current = 1, .category = S("V2") },
        { .variant = S("d"), .role = S("decode"), .current = 1, .category = S("V2") },
    };
    struct zero_policy policy = { .optimizer = "cost-aware" };
    OK(!zero_policy_apply(&a, d, 2, &policy, ZERO_OURS));
    EQ_INT(d[0].target, 1);
    EQ_INT(d[1].target, 1);
}

/* ---- limits and workloads */

static void a_limit_never_removes_what_runs(void)
{
    auto_arena struct arena a = { 0 };
    static const struct quota_type types[] = { { STR_INIT("H100"), 8 } };
    struct quota q = { .name = S("q"), .types = { types, 1 } };
    struct quota_decision d = { .accelerator = S("H100"),
                                .current = 5,
                                .target = 6,
                                .gpus = 1,
                                .max = 3,
                                .limited_by = S("") };
    quota_limit(&a, &q, 1, &d, 1, true);
    EQ_INT(d.target, 5);
}

static void a_group_without_a_leader_template_counts_every_pod(void)
{
    auto_arena struct arena a = { 0 };
    struct json *lws;
    EQ_INT(json_parse(&a,
                      S("{\"spec\":{\"leaderWorkerTemplate\":{\"size\":4,\"workerTemplate\":{"
                        "\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
                        "\"nvidia.com/gpu\":\"8\"}}}]}}}}}"),
                      &lws, NULL),
           0);
    EQ_INT(workload_read(&a, lws, S(""), WORKLOAD_OURS).gpus, 32);
    EQ_INT(workload_read(&a, lws, S(""), WORKLOAD_WVA).gpus, 24);
}

static void sglang_has_its_own_flags(void)
{
    auto_arena struct arena a = { 0 };
    struct json *containers;
    EQ_INT(json_parse(&a,
                      S("[{\"command\":[\"python3\",\"-m\",\"SGLang.launch_server\"],\"args\":["
                        "\"--tp\",\"2\",\"--max-total-tokens=9000\",\"--chunked_prefill_size\","
                        "\"4096\"]}]"),
                      &containers, NULL),
           0);
    OK(sat_is_sglang(&a, containers));
    struct sat_vllm_args args = sat_sglang_args_parse(&a, containers);
    EQ_INT(args.tensor_parallel, 2);
    EQ_INT(args.kv_tokens_override, 9000);
    EQ_INT(sat_vllm_batched_tokens(&args), 4096);
    struct sat_vllm_args other = sat_vllm_args_parse(&a, containers);
    OK(!sat_vllm_args_alike(&args, &other));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(only_nodes_that_the_scheduler_would_use_count),
        TAP(a_pod_needs_its_gpus_on_one_node),
        TAP(pods_of_others_and_pods_to_come_are_charged),
        TAP(labels_count_and_children_do_not),
        TAP(one_object_describes_a_workload),
        TAP(the_cheapest_variant_that_can_start_is_chosen),
        TAP(roles_start_together),
        TAP(new_names_and_aliases_wake_and_garbage_does_not),
        TAP(a_minimum_keeps_only_its_own_variant),
        TAP(every_role_keeps_a_replica),
        TAP(the_newest_complete_generation_of_devices_counts),
        TAP(a_node_has_its_devices_once),
        TAP(claims_count_their_devices),
        TAP(a_limit_never_removes_what_runs),
        TAP(a_group_without_a_leader_template_counts_every_pod),
        TAP(sglang_has_its_own_flags),
        { 0 },
    });
}
