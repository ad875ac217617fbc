/* Children and states of AIM's kinds from untrusted objects. The bytes are choices: each takes, in a set of
 * whole and sound objects, one member away or puts something of another kind in its place. Whatever comes of it must
 * give objects that a server can at least read: names and label values within their bounds. */
#include "fuzz.h"

#include "runtimeconfig/cache_core.h"
#include "runtimeconfig/model_core.h"
#include "runtimeconfig/names_core.h"
#include "runtimeconfig/service_children_core.h"
#include "runtimeconfig/service_route_core.h"
#include "runtimeconfig/template_children_core.h"
#include "runtimeconfig/template_core.h"
#include "json/json.h"

static const char world[] =
    "{\"service\":{\"metadata\":{\"name\":\"chat\",\"namespace\":\"ml\",\"uid\":\"u\",\"labels\":{"
    "\"team/a\":\"x\"},\"annotations\":{\"n\":\"v\"}},\"spec\":{\"model\":{\"ref\":\"m\",\"image\":"
    "\"r/m:1\"},\"templateRef\":\"t\",\"template\":{\"name\":\"t\"},\"caching\":{\"mode\":\"Shared\"},"
    "\"cacheModel\":true,\"replicas\":2,\"minReplicas\":1,\"maxReplicas\":3,\"autoScaling\":{\"x\":1},"
    "\"overrides\":{\"metric\":\"latency\",\"precision\":\"fp8\",\"gpuSelector\":{\"count\":2,"
    "\"model\":\"MI300X\",\"resourceName\":\"amd.com/gpu\"},\"hardware\":{\"gpu\":{\"requests\":1,"
    "\"model\":\"A100\"}}},\"resources\":{\"requests\":{\"cpu\":1},\"limits\":{\"memory\":\"1Gi\"}},"
    "\"env\":[{\"name\":\"A\",\"value\":\"x\"}],\"imagePullSecrets\":[{\"name\":\"p\"}],"
    "\"serviceAccountName\":\"sa\",\"runtimeConfigName\":\"c\"}},"
    "\"template\":{\"metadata\":{\"name\":\"t\",\"namespace\":\"ml\",\"uid\":\"u2\",\"labels\":{"
    "\"aim.silogen.ai/derived-template\":\"true\"}},\"spec\":{\"modelName\":\"m\",\"metric\":"
    "\"latency\",\"precision\":\"fp8\",\"gpuSelector\":{\"count\":2,\"model\":\"MI300X\"},\"hardware\":{"
    "\"gpu\":{\"model\":\"A100\",\"requests\":2}},\"caching\":{\"enabled\":true,\"env\":[{\"name\":"
    "\"T\"}]},\"env\":[{\"name\":\"B\",\"value\":\"y\"}],\"modelSources\":[{\"name\":\"org/x\","
    "\"sourceUri\":\"hf://org/x\",\"size\":\"16Gi\"}],\"profile\":{\"metadata\":{\"gpu_count\":2}}},"
    "\"status\":{\"status\":\"Ready\",\"profile\":{\"metadata\":{\"metric\":\"latency\",\"gpu\":"
    "\"MI300X\",\"gpu_count\":2}},\"modelSources\":[{\"name\":\"org/x\",\"sourceUri\":\"hf://org/x\","
    "\"size\":17179869184}]}},"
    "\"model\":{\"metadata\":{\"name\":\"m\",\"namespace\":\"ml\"},\"spec\":{\"image\":\"r/m:1\","
    "\"discovery\":{\"enabled\":true,\"autoCreateTemplates\":true},\"imagePullSecrets\":[{\"name\":"
    "\"q\"}],\"imageMetadata\":{\"model\":{\"recommendedDeployments\":[{\"gpuModel\":\"MI300X\","
    "\"gpuCount\":1,\"metric\":\"latency\",\"precision\":\"fp8\"}]}}}},"
    "\"config\":{\"defaultStorageClassName\":\"s\",\"pvcHeadroomPercent\":5,\"env\":[{\"name\":\"C\"}],"
    "\"imagePullSecrets\":[{\"name\":\"r\"}],\"serviceAccountName\":\"sa2\",\"labelPropagation\":{"
    "\"enabled\":true,\"match\":[\"team/*\"]},\"model\":{\"autoDiscovery\":true}},"
    "\"cache\":{\"metadata\":{\"name\":\"k\",\"namespace\":\"ml\",\"labels\":{\"team/a\":\"x\"}},"
    "\"spec\":{\"sourceUri\":\"hf://org/x\",\"size\":\"3Gi\",\"storageClassName\":\"f\",\"templateRef\":"
    "\"t\",\"modelDownloadImage\":\"i\",\"env\":[{\"name\":\"E\"}]}},"
    "\"runtime\":{\"metadata\":{\"annotations\":{\"aim.silogen.ai/storage\":\"volume\"}},\"spec\":{"
    "\"predictor\":{\"volumes\":[{\"name\":\"model-cache-0\",\"persistentVolumeClaim\":{\"claimName\":"
    "\"c\"}}],\"model\":{\"volumeMounts\":[{\"name\":\"model-cache-0\",\"mountPath\":\"/x\"}]}}}},"
    "\"claim\":{\"status\":{\"phase\":\"Bound\"}},\"job\":{\"status\":{\"succeeded\":1,\"conditions\":[{"
    "\"type\":\"Failed\",\"status\":\"True\",\"message\":\"m\"}]}},"
    "\"route\":{\"metadata\":{\"generation\":2},\"status\":{\"parents\":[{\"conditions\":[{\"type\":"
    "\"Accepted\",\"status\":\"False\",\"observedGeneration\":2,\"reason\":\"R\"}]}]}},"
    "\"node\":{\"amd.com/gpu.product-name\":\"MI300X\",\"amd.com/gpu.device-id\":\"74a1\"}}";

struct choices {
    const uint8_t *at;
    size_t n;
};

static unsigned next(struct choices *c)
{
    if (!c->n)
        return 0;
    c->n--;
    return *c->at++;
}

static struct json *oddity(struct arena *a, struct choices *c)
{
    static const char *const texts[] = { "",   "..", "-", "a b", "\xc3\xa9", "99999999999Ei",
                                         "-1", "x/y" };
    static const int64_t numbers[] = { 0, -1, INT64_MAX, INT64_MIN, 1 << 20 };
    struct json *list;
    switch (next(c) % 7) {
    case 0:
        return json_new_null(a);
    case 1:
        return json_new_bool(a, true);
    case 2:
        return json_new_int(a, numbers[next(c) % countof(numbers)]);
    case 3:
        return json_new_real(a, 1e300);
    case 4:
        return json_new_str(a, str_c(texts[next(c) % countof(texts)]));
    case 5:
        list = json_new_arr(a);
        json_push(a, list, json_new_null(a));
        return list;
    default:
        return json_new_obj(a);
    }
}

/* Walks down the tree by choices and corrupts the value it reaches. */
static void spoil(struct arena *a, struct json *tree, struct choices *c)
{
    while (json_len(tree)) {
        uint32_t i = next(c) % tree->n;
        struct json **slot = tree->type == JSON_ARR ? &tree->items[i] : &tree->members[i].value;
        bool deeper = json_len(*slot) && next(c) % 4;
        if (deeper) {
            tree = *slot;
            continue;
        }
        if (tree->type == JSON_OBJ && next(c) % 2)
            json_del(tree, tree->members[i].key);
        else
            *slot = oddity(a, c);
        return;
    }
}

static void check(const struct json *object, bool named)
{
    const struct json *metadata = json_get(object, "metadata");
    if (!object)
        return;
    if (named && json_text(json_get(metadata, "name")).n > 253)
        abort();
    json_each(label, json_get(metadata, "labels")) {
        bool ours = str_starts(label->key, S("aim.silogen.ai/"));
        if (ours && (!json_is(label->value, JSON_STR) || label->value->n > NAMES_LABEL_MAX))
            abort();
    }
}

static void try_service(struct arena *a, const struct json *w, const struct aim_service_basis *b)
{
    static const struct aim_service_mount mount = { STR_INIT("c"), STR_INIT("/x") };
    struct aim_service_storage storage = { "volume", &mount, 1 }, live;
    aim_service_read_storage(a, b->group, json_get(w, "runtime"), "volume", &live);
    check(aim_service_inference_service(a, b, &storage), true);
    check(aim_service_model(a, b), true);
    if (aim_service_overrides(b->service))
        check(aim_service_derived_template(a, b, b->template), true);
    check(aim_service_template_cache(a, b), true);
    check(aim_service_volume(a, b), true);
    aim_service_route_fact(json_get(w, "route"));
}

static void try_model(struct arena *a, const struct json *w,
                      const struct runtimeconfig_spec *config)
{
    const struct json *model = json_get(w, "model");
    struct aim_model_facts f = { .object = model, .config = config };
    aim_model_state(a, &f);
    const struct json *list = aim_model_deployments(model, config);
    for (size_t i = 0; i < json_len(list); i++)
        check(aim_model_template(a, "aim.silogen.ai", model, json_item(list, i)), true);
}

static void try_template(struct arena *a, const struct json *w,
                         const struct runtimeconfig_spec *config)
{
    const struct json *template = json_get(w, "template");
    struct json *gpus = json_new_arr(a);
    aim_template_gpus_of_node(a, json_get(w, "node"), gpus);
    struct aim_template_candidate c = aim_template_candidate_of(a, "aim.silogen.ai", template);
    aim_template_select(a, S("m"), &c, 1, gpus);
    struct aim_template_state s =
        aim_template_state(a, &(struct aim_template_facts){ .object = template, .gpus = gpus });
    struct aim_template_basis b = { "aim.silogen.ai", template, s.profile, json_get(w, "model"),
                                    config };
    check(aim_template_serving_runtime(a, &b), true);
    check(aim_template_cache(a, &b), true);
}

static void try_cache(struct arena *a, const struct json *w,
                      const struct runtimeconfig_spec *config)
{
    const struct json *cache = json_get(w, "cache");
    const struct json *sources = aim_service_sources(json_get(w, "template"));
    str message = S("");
    check(aim_cache_claim(a, "aim.silogen.ai", cache, config), true);
    check(aim_cache_job(a, "aim.silogen.ai", cache, config), true);
    aim_cache_volume_phase(json_get(w, "claim"), false);
    aim_cache_job_phase(json_get(w, "job"), &message);
    for (size_t i = 0; i < json_len(sources); i++) {
        check(aim_cache_model_cache(a, "aim.silogen.ai", cache, json_item(sources, i), config),
              true);
        aim_cache_mount_path(a, json_text(json_get(json_item(sources, i), "name")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct choices c = { data, size };
    struct json *w;
    if (json_parse(&a, str_c(world), &w, NULL))
        abort();
    for (unsigned i = next(&c) % 8; i > 0; i--)
        spoil(&a, w, &c);
    const struct json *service = json_get(w, "service");
    struct runtimeconfig_spec config = runtimeconfig_spec_read(json_get(w, "config"), false);
    struct runtimeconfig_spec own = runtimeconfig_spec_read(json_get(service, "spec"), false);
    struct aim_service_basis b = { "aim.silogen.ai",     service, json_get(w, "template"),
                                   json_get(w, "model"), &config, &own };
    try_service(&a, w, &b);
    try_model(&a, w, &config);
    try_template(&a, w, &config);
    try_cache(&a, w, &config);
    return 0;
}
