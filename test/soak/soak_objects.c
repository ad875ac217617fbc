/* The population. A table has one row per kind: how many there are of 1,000 objects, the body of number `unit`,
 * and an edit. Units of different kinds with the same number belong together: the schedule "web-7" governs the HPA
 * "web-7", which scales the Deployment "web-7". Deleting one of them is therefore also a test of its neighbours.
 *
 * Most Deployments have no replicas: what the soak measures is flyball, not the simulated kubelets. */
#include "soak.h"

#include "base/buf.h"

#include <stdio.h>

enum { TEAMS = 20, EDIT_OF_4 = 3 };

#define AIM(plural, kind) { "aim.silogen.ai", "v1alpha1", plural, kind, true }

const struct resource soak_shpas = { "autoscaling.sarabala.io", "v1alpha1",
                                     "smarthorizontalpodautoscalers",
                                     "SmartHorizontalPodAutoscaler", true };
const struct resource soak_variants = { "llmd.ai", "v1alpha1", "variantautoscalings",
                                        "VariantAutoscaling", true };
const struct resource soak_services = AIM("aimservices", "AIMService");
const struct resource soak_allocations = { "allocation.mbcas.io", "v1alpha1", "podallocations",
                                           "PodAllocation", true };
static const struct resource configs = AIM("aimruntimeconfigs", "AIMRuntimeConfig"),
                             models = AIM("aimmodels", "AIMModel"),
                             templates = AIM("aimservicetemplates", "AIMServiceTemplate");

/* ---- bodies: what follows metadata */

static void put_deployment(struct buf *out, const char *name, const char *pool, int replicas,
                           const char *annotations, const char *cpu)
{
    buf_printf(
        out,
        "\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"},\"annotations\":{%s}},"
        "\"spec\":{\"nodeSelector\":{\"pool\":\"%s\"},\"containers\":[{\"name\":\"main\","
        "\"image\":\"example.invalid/x:1\",\"ports\":[{\"name\":\"metrics\",\"containerPort\":8000}],"
        "\"resources\":{\"requests\":{\"cpu\":\"%s\"},\"limits\":{\"cpu\":\"2\"}}}]}}}",
        replicas, name, name, annotations, pool, cpu);
}

static void put_web_deployment(struct buf *out, const char *name, int unit)
{
    put_deployment(out, name, "shop", unit % 25 == 0,
                   "\"testbed.flyball.dev/cpu-shared\":\"300m\",\"mbcas.io/managed\":\"false\"",
                   "100m");
}

static void put_web_hpa(struct buf *out, const char *name, int unit)
{
    (void)unit;
    buf_printf(
        out,
        "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"%s\"},"
        "\"minReplicas\":1,\"maxReplicas\":10,\"metrics\":[{\"type\":\"Resource\",\"resource\":"
        "{\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\",\"averageUtilization\":70}}}]}",
        name);
}

/* Windows are spread over the day, so that every hour sees as many of them begin and end. */
static void put_schedule(struct buf *out, const char *name, int unit)
{
    static const char *const zones[] = { "UTC", "Europe/Berlin", "America/New_York",
                                         "Asia/Kolkata" };
    int begin = unit % 23;
    buf_printf(
        out,
        "\"spec\":{\"HPAObjectRef\":{\"name\":\"%s\",\"namespace\":\"team-%d\"},\"triggers\":["
        "{\"name\":\"always\",\"priority\":1,\"timezone\":\"UTC\",\"interval\":{\"recurring\":"
        "\"M,TU,W,TH,F,SAT,SUN\"},\"startTime\":\"00:00:00\",\"endTime\":\"23:59:59\","
        "\"startHPAConfig\":{\"minReplicas\":2,\"maxReplicas\":6},"
        "\"endHPAConfig\":{\"minReplicas\":1,\"maxReplicas\":6}},"
        "{\"name\":\"window\",\"priority\":5,\"timezone\":\"%s\",\"interval\":{\"recurring\":"
        "\"M,TU,W,TH,F,SAT,SUN\"},\"startTime\":\"%02d:%02d:00\",\"endTime\":\"%02d:%02d:00\","
        "\"startHPAConfig\":{\"minReplicas\":3,\"maxReplicas\":8},"
        "\"endHPAConfig\":{\"minReplicas\":2,\"maxReplicas\":6}}]}",
        name, unit % TEAMS, zones[unit % 4], begin, unit % 60, begin + 1, unit % 60);
}

static void put_llm_deployment(struct buf *out, const char *name, int unit)
{
    char annotations[256];
    snprintf(
        annotations, sizeof(annotations),
        "\"testbed.flyball.dev/model\":\"org/model-%d\",\"testbed.flyball.dev/accelerator\":\"H100\","
        "\"mbcas.io/managed\":\"false\"",
        unit % 100);
    put_deployment(out, name, "gpu", unit % 10 == 0, annotations, "2");
}

static void put_variant(struct buf *out, const char *name, int unit)
{
    buf_printf(
        out,
        "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"%s\"},"
        "\"modelID\":\"org/model-%d\",\"variantCost\":\"%d.0\"}",
        name, unit % 100, 10 + unit % 40);
}

static void put_market_deployment(struct buf *out, const char *name, int unit)
{
    static const char *const demands[] = { "0s=1200m 60s=1600m 120s=1200m", "100m",
                                           "0s=50m 60s=50m 65s=1 100s=1 120s=50m" };
    char annotations[160];
    snprintf(annotations, sizeof(annotations), "\"testbed.flyball.dev/cpu\":\"%s\"",
             demands[unit % 3]);
    put_deployment(out, name, "market", 1, annotations, "200m");
}

static void put_config(struct buf *out, const char *name, int unit)
{
    (void)name, (void)unit;
    buf_put(
        out,
        S("\"spec\":{\"routing\":{\"enabled\":true,\"gatewayRef\":{\"name\":\"inference-gateway\","
          "\"namespace\":\"gateways\"},\"pathTemplate\":\"/ml/{.metadata.namespace}/"
          "{.metadata.labels['project']}\"}}"));
}

static void put_model(struct buf *out, const char *name, int unit)
{
    (void)name;
    /* A numeric address: virtual time would wait for the machine's name server otherwise. */
    buf_printf(out, "\"spec\":{\"image\":\"127.0.0.1:1/model:%d\"}", unit);
}

static void put_template(struct buf *out, const char *name, int unit)
{
    (void)name;
    buf_printf(
        out,
        "\"spec\":{\"modelName\":\"aim-%d\",\"metric\":\"latency\",\"precision\":\"fp16\",\"modelSources\":"
        "[{\"name\":\"org/model\",\"sourceUri\":\"hf://org/model\",\"size\":\"16Gi\"}]}",
        unit);
}

static void put_service(struct buf *out, const char *name, int unit)
{
    (void)name;
    buf_printf(out, "\"spec\":{\"model\":{\"ref\":\"aim-%d\"}}", unit % 40);
}

/* ---- edits: merge patches */

static void edit_replicas(struct buf *out, int unit, uint32_t r)
{
    (void)unit; /* only a label: replicas belong to the autoscalers */
    buf_printf(out, "{\"metadata\":{\"labels\":{\"touched\":\"%u\"}}}", r % 10);
}

static void edit_hpa(struct buf *out, int unit, uint32_t r)
{
    (void)unit; /* drift, which the schedule must undo */
    buf_printf(out, "{\"spec\":{\"minReplicas\":%u,\"maxReplicas\":%u}}", 1 + r % 3, 5 + r % 5);
}

static void edit_schedule(struct buf *out, int unit, uint32_t r)
{
    (void)unit;
    buf_printf(out,
               "{\"metadata\":{\"annotations\":{\"touched\":\"%u\"}},\"spec\":{\"suspend\":%s}}",
               r % 10, r % 8 ? "false" : "true");
}

static void edit_variant(struct buf *out, int unit, uint32_t r)
{
    (void)unit;
    buf_printf(out, "{\"spec\":{\"variantCost\":\"%u.5\"}}", 1 + r % 50);
}

static void edit_config(struct buf *out, int unit, uint32_t r)
{
    (void)unit;
    buf_printf(
        out,
        "{\"spec\":{\"routing\":{\"pathTemplate\":\"/v%u/{.metadata.namespace}/{.metadata.name}\"}}}",
        r % 10);
}

static void edit_service(struct buf *out, int unit, uint32_t r)
{
    (void)unit;
    buf_printf(out, "{\"metadata\":{\"labels\":{\"project\":\"p%u\"}}}", r % 10);
}

/* ---- the table */

static const struct kind {
    const struct resource *resource;
    const char *prefix;
    int per_thousand; /* of all objects */
    int weight;       /* of the churn: how often one of its objects is chosen */
    void (*body)(struct buf *out, const char *name, int unit);
    void (*edit)(struct buf *out, int unit, uint32_t r);
} kinds[] = {
    { &configs, "default", 2, 2, put_config, edit_config },
    { &models, "aim", 40, 4, put_model, edit_replicas },
    { &templates, "aim", 40, 4, put_template, edit_replicas },
    { &resource_deployments, "web", 120, 8, put_web_deployment, edit_replicas },
    { &resource_hpas, "web", 120, 8, put_web_hpa, edit_hpa },
    { &soak_shpas, "web", 120, 16, put_schedule, edit_schedule },
    { &resource_deployments, "llm", 150, 8, put_llm_deployment, edit_replicas },
    { &soak_variants, "llm", 150, 16, put_variant, edit_variant },
    { &resource_deployments, "cpu", 10, 8, put_market_deployment, edit_replicas },
    { &soak_services, "svc", 248, 24, put_service, edit_service },
};

static const char *name_of(const struct soak_object *o, char *name, size_t size)
{
    const struct kind *k = &kinds[o->kind];
    if (k->resource == &configs)
        snprintf(name, size, "%s", k->prefix); /* one per team */
    else
        snprintf(name, size, "%s-%d", k->prefix, o->unit);
    return name;
}

/* Services find their model and template where they are. */
static const char *team_of(const struct soak_object *o, char *ns, size_t size)
{
    snprintf(ns, size, "team-%d", o->unit % TEAMS);
    return ns;
}

static void send_create(struct soak_population *p, struct soak_world *w, struct soak_object *o)
{
    const struct kind *k = &kinds[o->kind];
    char name[32], ns[16];
    auto_buf struct buf body = { 0 };
    name_of(o, name, sizeof(name));
    team_of(o, ns, sizeof(ns));
    buf_printf(&body, "{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\",", k->resource->group,
               *k->resource->group ? "/" : "", k->resource->version, k->resource->kind);
    buf_printf(&body,
               "\"metadata\":{\"name\":\"%s\",\"labels\":{\"project\":\"p%d\","
               "\"inference.optimization/acceleratorName\":\"H100\"}},",
               name, o->unit % 10);
    k->body(&body, name, o->unit);
    buf_putc(&body, '}');
    world_send(w, &(struct kube_request){ .verb = KUBE_CREATE,
                                          .resource = k->resource,
                                          .ns = str_c(ns),
                                          .body = buf_str(&body) });
    o->absent = false;
    p->created++;
}

static void send_change(struct soak_population *p, struct soak_world *w, struct soak_object *o,
                        bool edit)
{
    const struct kind *k = &kinds[o->kind];
    char name[32], ns[16];
    auto_buf struct buf body = { 0 };
    if (edit)
        k->edit(&body, o->unit, random_u32(&p->random));
    else
        buf_put(&body, S("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}"));
    world_send(w, &(struct kube_request){ .verb = edit ? KUBE_MERGE_PATCH : KUBE_DELETE,
                                          .resource = k->resource,
                                          .ns = str_c(team_of(o, ns, sizeof(ns))),
                                          .name = str_c(name_of(o, name, sizeof(name))),
                                          .body = buf_str(&body) });
    o->absent = !edit;
    p->edited += edit;
    p->deleted += !edit;
}

/* ---- what everything else needs */

static void create_text(struct soak_world *w, const struct resource *resource, const char *ns,
                        str body)
{
    world_send(w, &(struct kube_request){
                      .verb = KUBE_CREATE, .resource = resource, .ns = str_c(ns), .body = body });
    world_drain(w);
}

static void create_node(struct soak_world *w, const char *name, const char *pool, int cpu)
{
    auto_buf struct buf body = { 0 };
    buf_printf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{\"pool\":\"%s\"}},"
        "\"status\":{\"allocatable\":{\"cpu\":\"%d\"},\"capacity\":{\"cpu\":\"%d\"}}}",
        name, pool, cpu, cpu);
    create_text(w, &resource_nodes, "", buf_str(&body));
}

static void create_config_map(struct soak_world *w, const char *ns, const char *name,
                              const char *more, const char *data)
{
    auto_buf struct buf body = { 0 };
    buf_printf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"%s},\"data\":{%s}}",
        name, more, data);
    create_text(w, &resource_configmaps, ns, buf_str(&body));
}

#define WVA_NS "workload-variant-autoscaler-system"

static void make_ground(struct soak_world *w)
{
    static const struct resource gateways = { "gateway.networking.k8s.io", "v1", "gateways",
                                              "Gateway", true };
    char name[32];
    for (int i = -3; i < TEAMS; i++) {
        auto_buf struct buf body = { 0 };
        static const char *const others[] = { WVA_NS, "mbcas-system", "gateways" };
        snprintf(name, sizeof(name), "team-%d", i);
        buf_printf(&body,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}",
                   i < 0 ? others[i + 3] : name);
        create_text(w, &resource_namespaces, "", buf_str(&body));
    }
    create_node(w, "shop-0", "shop", 2000);
    create_node(w, "gpu-0", "gpu", 4000);
    for (size_t i = 0; i < SOAK_NODES; i++)
        create_node(w, w->agents[i].node, "market", 16);
    create_config_map(w, WVA_NS, "workload-variant-autoscaler-variantautoscaling-config", "",
                      "\"GLOBAL_OPT_INTERVAL\":\"60s\"");
    create_config_map(
        w, WVA_NS, "saturation-scaling-config", "",
        "\"default\":\"kvCacheThreshold: 0.80\\nqueueLengthThreshold: 5\\nkvSpareTrigger: 0.10\\n"
        "queueSpareTrigger: 3\\n\"");
    create_config_map(
        w, "mbcas-system", "mbcas-agent-config", "",
        "\"samplingInterval\":\"5s\",\"fastLoopInterval\":\"10s\",\"slowLoopInterval\":\"30s\","
        "\"writeInterval\":\"30s\"");
    for (int i = 0; i < 10; i++) {
        char ns[16], data[160];
        snprintf(name, sizeof(name), "load-%d", i);
        snprintf(ns, sizeof(ns), "team-%d", i * 10 % TEAMS);
        snprintf(data, sizeof(data),
                 "\"model\":\"org/model-%d\",\"rate\":\"0s=0.02 600s=0.2 1200s=0.02\","
                 "\"promptTokens\":\"800\",\"outputTokens\":\"100\"",
                 i * 10);
        create_config_map(w, ns, name, ",\"labels\":{\"testbed.flyball.dev/load\":\"requests\"}",
                          data);
    }
    create_text(
        w, &gateways, "gateways",
        S("{\"apiVersion\":\"gateway.networking.k8s.io/v1\",\"kind\":\"Gateway\",\"metadata\":{\"name\":"
          "\"inference-gateway\"},\"spec\":{\"gatewayClassName\":\"simulated\",\"listeners\":[{\"name\":"
          "\"http\",\"port\":80,\"protocol\":\"HTTP\"}]}}"));
}

void population_make(struct soak_population *p, struct soak_world *w, size_t n, uint64_t seed)
{
    random_init(&p->random, seed, 1);
    make_ground(w);
    for (int k = 0; k < (int)countof(kinds); k++) {
        int count = (int)(n * (size_t)kinds[k].per_thousand / 1000);
        if (kinds[k].resource == &configs)
            count = TEAMS;
        for (int i = 0; i < count; i++)
            vec_push(&p->objects, ((struct soak_object){ kinds[k].resource, k, i, true }));
    }
    for (size_t i = 0; i < p->objects.n; i++) {
        send_create(p, w, &p->objects.at[i]);
        if (i % 64 == 63)
            world_drain(w);
    }
    world_drain(w);
}

/* Kinds by their weight, objects of one kind alike. */
static struct soak_object *choose(struct soak_population *p)
{
    int all = 0, at = 0;
    for (size_t k = 0; k < countof(kinds); k++)
        all += kinds[k].weight;
    int left = (int)random_below(&p->random, (uint32_t)all);
    while (left >= kinds[at].weight)
        left -= kinds[at++].weight;
    struct soak_object *chosen = NULL;
    uint32_t seen = 0;
    size_t first = 0;
    while (first < p->objects.n && p->objects.at[first].kind != at)
        first++;
    for (size_t i = first; i < p->objects.n && p->objects.at[i].kind == at; i++)
        seen++;
    if (seen)
        chosen = &p->objects.at[first + random_below(&p->random, seen)];
    return chosen;
}

void population_churn(struct soak_population *p, struct soak_world *w)
{
    while (p->absent.n)
        send_create(p, w, &p->objects.at[p->absent.at[--p->absent.n]]);
    struct soak_object *o = choose(p);
    if (!o)
        return;
    bool edit = random_below(&p->random, 4) < EDIT_OF_4;
    send_change(p, w, o, edit);
    if (!edit)
        vec_push(&p->absent, (size_t)(o - p->objects.at));
}

void population_edit_config(struct soak_population *p, struct soak_world *w)
{
    auto_buf struct buf body = { 0 };
    uint32_t r = random_u32(&p->random);
    bool broken = r % 4 == 0; /* the last good values stay in force */
    buf_printf(&body,
               "{\"data\":{\"default\":\"kvCacheThreshold: %s\\nqueueLengthThreshold: 5\\n"
               "kvSpareTrigger: 0.10\\nqueueSpareTrigger: 3\\n\"}}",
               broken  ? "many"
               : r % 2 ? "0.80"
                       : "0.75");
    world_send(w, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                          .resource = &resource_configmaps,
                                          .ns = S(WVA_NS),
                                          .name = S("saturation-scaling-config"),
                                          .body = buf_str(&body) });
    buf_clear(&body);
    buf_printf(&body, "{\"data\":{\"writeInterval\":\"%us\"}}", 20 + r % 20);
    world_send(w, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                          .resource = &resource_configmaps,
                                          .ns = S("mbcas-system"),
                                          .name = S("mbcas-agent-config"),
                                          .body = buf_str(&body) });
}

void population_done(struct soak_population *p)
{
    vec_done(&p->objects);
    vec_done(&p->absent);
}
