/* Limits on accelerators in the running feature: nodes, devices, quotas. */
#include "saturation_world.h"

/* A page of a server with a KV cache of 16,000 tokens. */
static const char *page(struct models *w, double kv, double waiting)
{
    return arena_printf(&w->c.arena,
                        "vllm:kv_cache_usage_perc{model_name=\"llama\"} %g\n"
                        "vllm:num_requests_waiting{model_name=\"llama\"} %g\n"
                        "vllm:cache_config_info{num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n",
                        kv, waiting)
        .p;
}

static void set_pages(struct models *w, double kv, double waiting)
{
    const char *text = page(w, kv, waiting);
    for (size_t i = 0; i < w->pod_n; i++)
        w->pods[i].page = text;
}

static str shown_desired(struct models *w, const char *variant)
{
    const struct json *v = cluster_get(&w->c, &saturation_variant_resource, MODELS_NS, variant);
    return json_to_str(&w->c.arena,
                       json_at(v, "status", "desiredOptimizedAlloc", "numReplicas", NULL));
}

static void start_web(struct models *w, const char *entry, const char *const *settings)
{
    models_start(w);
    models_config(w, MODELS_HOME, "saturation-scaling-config",
                  arena_printf(&w->c.arena, "{default: \"" MODELS_THRESHOLDS "%s\"}", entry).p);
    models_workload(w, "web", 2);
    models_variant(w, "web", "H100", "10", "");
    cluster_operator(&w->c, &saturation_feature, settings);
}

static void add_node(struct models *w, const char *name, const char *gpus, bool cordoned)
{
    models_create(w, &resource_nodes, "",
                  arena_printf(&w->c.arena,
                               "{apiVersion: v1, kind: Node, metadata: {name: %s, labels: "
                               "{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}, spec: "
                               "{unschedulable: %s}}",
                               name, cordoned ? "true" : "false"));
    cluster_ask(&w->c,
                (struct kube_request){
                    .verb = KUBE_MERGE_PATCH,
                    .resource = &resource_nodes,
                    .name = str_c(name),
                    .subresource = "status",
                    .body = arena_printf(&w->c.arena,
                                         "{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"%s\"},"
                                         "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"
                                         "}}",
                                         gpus) });
}

/* The API server taints a new node until a controller sees it ready. */
static void remove_taint(struct models *w, const char *name)
{
    cluster_ask(&w->c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &resource_nodes,
                                              .name = str_c(name),
                                              .body = S("{\"spec\":{\"taints\":null}}") });
}

static void growth_stops_at_the_stock(void)
{
    struct models w;
    start_web(&w, "analyzerName: saturation\\nenableLimiter: true\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    add_node(&w, "n1", "1", false);
    add_node(&w, "n2", "8", true);
    remove_taint(&w, "n1");
    remove_taint(&w, "n2");
    set_pages(&w, 1, 10);
    models_pass(&w, 200);
    /* the two pods are on no node here, and the one free GPU is not more than they will take */
    EQ_STR(shown_desired(&w, "web"), S("2"));
    OK(str_find(json_to_str(&w.c.arena,
                            cluster_get(&w.c, &saturation_variant_resource, MODELS_NS, "web")),
                S("limited by gpu-limiter")) != SIZE_MAX);
    cluster_ask(&w.c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                             .resource = &resource_nodes,
                                             .name = S("n2"),
                                             .body = S("{\"spec\":{\"unschedulable\":null}}") });
    models_pass(&w, 200);
    OK(!str_eq(shown_desired(&w, "web"), S("2")));
    models_stop(&w);
}

static void growth_stops_at_a_quota(void)
{
    struct models w;
    start_web(&w,
              "analyzerName: saturation\\nenableLimiter: true\\nlimiters: [{type: quota, name: "
              "team, scope: namespace, namespaceQuotas: {llm: {H100: 3}}}]\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    set_pages(&w, 1, 10);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("3"));
    models_stop(&w);
}

static void limited_mode_is_a_limiter(void)
{
    struct models w;
    setenv("WVA_LIMITED_MODE", "True", 1);
    start_web(&w, "analyzerName: saturation\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    unsetenv("WVA_LIMITED_MODE");
    add_node(&w, "n1", "1", false);
    remove_taint(&w, "n1");
    set_pages(&w, 1, 10);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("2"));
    MODELS_SAYS(&w, "web", "ResourceConstrained", "status", "True");
    MODELS_SAYS(&w, "web", "ResourceConstrained", "reason", "GPULimited");
    set_pages(&w, 0.5, 0);
    models_pass(&w, 120);
    MODELS_SAYS(&w, "web", "ResourceConstrained", "status", "False");
    models_stop(&w);
}

/* A template that selects another accelerator than the label, and nodes that its affinity excludes. */
static void the_template_selects_the_accelerator(void)
{
    struct models w;
    start_web(&w, "analyzerName: saturation\\nenableLimiter: true\\n",
              (const char *[]){ "wva-metrics-source", "pods", NULL });
    add_node(&w, "n1", "8", false); /* H100 */
    remove_taint(&w, "n1");
    models_patch(&w, &resource_deployments, "web", "",
                 S("{\"spec\":{\"template\":{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
                   "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
                   "\"matchExpressions\":[{\"key\":\"nvidia.com/gpu.product\",\"operator\":\"In\","
                   "\"values\":[\"NVIDIA-A100-SXM4-80GB\"]}]}]}}}}}}}"));
    set_pages(&w, 1, 10);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("2"));
    OK(str_find(models_condition(&w, "web", "ResourceConstrained", "message"),
                S("A100 0 free of 0")) != SIZE_MAX);
    models_patch(&w, &resource_deployments, "web", "",
                 S("{\"spec\":{\"template\":{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
                   "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
                   "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotIn\","
                   "\"values\":[\"n1\"]}]}]}}}}}}}"));
    models_pass(&w, 60);
    EQ_STR(shown_desired(&w, "web"), S("2"));
    OK(str_find(models_condition(&w, "web", "ResourceConstrained", "message"),
                S("8 on nodes that are not selected")) != SIZE_MAX);
    models_patch(&w, &resource_deployments, "web", "",
                 S("{\"spec\":{\"template\":{\"spec\":{\"affinity\":null}}}}"));
    models_pass(&w, 120);
    OK(!str_eq(shown_desired(&w, "web"), S("2")));
    models_stop(&w);
}

static void set_quota(struct models *w, const char *name, const char *hard)
{
    static const struct resource quotas = { "", "v1", "resourcequotas", "ResourceQuota", true };
    models_create(w, &quotas, MODELS_NS,
                  arena_printf(&w->c.arena,
                               "{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: "
                               "{hard: {requests.nvidia.com/gpu: '%s'}}}",
                               name, hard));
}

/* The API server would refuse the pods; --wva-resource-quota=false ignores that. */
static void a_resource_quota_limits(void)
{
    for (int ignored = 0; ignored < 2; ignored++) {
        struct models w;
        start_web(&w,
                  "analyzerName: saturation\\nenableLimiter: true\\nlimiters: [{type: quota, name: "
                  "all, scope: cluster, quotas: {H100: -1}}]\\n",
                  (const char *[]){ "wva-metrics-source", "pods", "wva-resource-quota",
                                    ignored ? "false" : "true", NULL });
        models_patch(&w, &resource_deployments, "web", "",
                     S("{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
                       "\"image\":\"i\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"},"
                       "\"requests\":{\"nvidia.com/gpu\":\"2\"}}}]}}}}"));
        set_quota(&w, "team", "1"); /* and a replica needs 2 */
        set_pages(&w, 1, 10);
        models_pass(&w, 120);
        EQ_STR(shown_desired(&w, "web"), ignored ? S("3") : S("2"));
        if (!ignored)
            OK(str_find(models_condition(&w, "web", "ResourceConstrained", "message"),
                        S("ResourceQuota team has 1 of 1 left (limited by resource-quota)")) !=
               SIZE_MAX);
        models_stop(&w);
    }
}

static void create_for_dra(struct models *w, const char *plural, const char *kind, bool namespaced,
                           const char *text)
{
    struct resource r = { "resource.k8s.io", "v1", plural, kind, namespaced };
    models_create(w, &r, namespaced ? MODELS_NS : "", str_c(text));
}

/* A node that publishes its GPUs only as devices, and a workload that claims two of them per pod. */
static void devices_are_accelerators(void)
{
    for (int devices = 4; devices <= 6; devices += 2) {
        struct models w;
        start_web(&w, "analyzerName: saturation\\nenableLimiter: true\\n",
                  (const char *[]){ "wva-metrics-source", "pods", "wva-dra", "true", NULL });
        add_node(&w, "n1", "0", false);
        remove_taint(&w, "n1");
        struct buf slice = { 0 };
        buf_put(&slice,
                S("{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s1}, "
                  "spec: {driver: gpu.nvidia.com, nodeName: n1, pool: {name: n1, generation: 1, "
                  "resourceSliceCount: 1}, devices: ["));
        for (int i = 0; i < devices; i++)
            buf_printf(&slice,
                       "%s{name: g%d, attributes: {productName: {string: NVIDIA H100 80GB HBM3}}}",
                       i ? ", " : "", i);
        buf_put(&slice, S("]}}"));
        create_for_dra(&w, "resourceslices", "ResourceSlice", false,
                       arena_str(&w.c.arena, buf_str(&slice)).p);
        buf_done(&slice);
        create_for_dra(
            &w, "resourceclaimtemplates", "ResourceClaimTemplate", true,
            "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: two}, "
            "spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: "
            "gpu.nvidia.com, allocationMode: ExactCount, count: 2}}]}}}}");
        models_patch(&w, &resource_deployments, "web", "",
                     S("{\"spec\":{\"template\":{\"spec\":{\"resourceClaims\":[{\"name\":\"g\","
                       "\"resourceClaimTemplateName\":\"two\"}]}}}}"));
        set_pages(&w, 1, 10);
        models_pass(&w, 120);
        /* its two pods, which have no node yet, will take 4 */
        EQ_STR(shown_desired(&w, "web"), devices == 4 ? S("2") : S("3"));
        if (devices == 4)
            OK(str_find(models_condition(&w, "web", "ResourceConstrained", "message"),
                        S("H100 4 free of 4")) != SIZE_MAX);
        models_stop(&w);
    }
}

/* As in WVA, if a user asks for it: the quota is the only limit. */
static void a_quota_may_replace_the_inventory(void)
{
    struct models w;
    start_web(&w,
              "analyzerName: saturation\\nenableLimiter: true\\nlimiters: [{type: gpu-inventory}, "
              "{type: quota, name: all, scope: cluster, quotas: {H100: 3}}]\\n",
              (const char *[]){ "wva-metrics-source", "pods", "wva-limiter-compose", "false",
                                NULL });
    add_node(&w, "n1", "1", false); /* too few, but not asked */
    remove_taint(&w, "n1");
    set_pages(&w, 1, 10);
    models_pass(&w, 120);
    EQ_STR(shown_desired(&w, "web"), S("3"));
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(growth_stops_at_the_stock),
                                        TAP(growth_stops_at_a_quota),
                                        TAP(limited_mode_is_a_limiter),
                                        TAP(the_template_selects_the_accelerator),
                                        TAP(a_resource_quota_limits),
                                        TAP(a_quota_may_replace_the_inventory),
                                        TAP(devices_are_accelerators),
                                        { 0 } });
}
