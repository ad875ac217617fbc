/* runtimeconfig: rendering a path of three placeholders (budget: 2 us), and deciding again about
 * 10,000 services whose one configuration was edited (budget: 200 ms of CPU): from the cached record
 * to the configuration, the path, the HTTPRoute, and the patch of the status. What the server then
 * does with the writes is not in it.
 *
 * Beside it client-go's JSONPath on the same template and object, where there is Go:
 * bench/runtimeconfig.sh. */
#include "base/clock.h"
#include "base/map.h"
#include "budget.h"
#include "runtimeconfig/aim_records.h"
#include "runtimeconfig/resolve_core.h"
#include "runtimeconfig/route_core.h"
#include "runtimeconfig/status_core.h"

#include <stdio.h>

enum { RENDERS = 200000, SERVICES = 10000, ROUNDS = 5 };

static const char template_text[] =
    "/{.metadata.namespace}/{.metadata.labels['team']}/{.spec.model.ref}";
static const char service_text[] =
    "{\"apiVersion\":\"aim.silogen.ai/v1alpha1\",\"kind\":\"AIMService\",\"metadata\":{\"name\":"
    "\"llama-chat\",\"namespace\":\"ml-team\",\"uid\":\"9c0f7a52-1d7e-4b7a-8f3e-2f1f3f6f7a01\","
    "\"labels\":{\"project\":\"conversational-ai\",\"team\":\"Blue Team\"}},\"spec\":{\"model\":{"
    "\"ref\":\"meta-llama-3-8b\"},\"replicas\":1,\"runtimeConfigName\":\"default\"}}";
static const char config_text[] =
    "{\"metadata\":{\"name\":\"default\",\"namespace\":\"ml-team\",\"uid\":\"u1\"},\"spec\":{"
    "\"defaultStorageClassName\":\"fast\",\"routing\":{\"enabled\":true,\"gatewayRef\":{\"group\":"
    "\"gateway.networking.k8s.io\",\"kind\":\"Gateway\",\"name\":\"inference\",\"namespace\":"
    "\"gateways\"},\"pathTemplate\":"
    "\"/{.metadata.namespace}/{.metadata.labels['team']}/{.metadata.name}\"}}}";

static struct json *parse(struct arena *a, const char *text)
{
    struct json *tree = NULL;
    if (json_parse(a, str_c(text), &tree, NULL) < 0)
        abort();
    return tree;
}

static double render_ns(void)
{
    auto_arena struct arena a = { 0 }, scratch = { 0 };
    auto_buf struct buf path = { 0 };
    const struct json *service = parse(&a, service_text);
    struct aim_path_template t;
    struct aim_path_problem problem;
    if (aim_path_compile(&a, str_c(template_text), &t, &problem) < 0)
        abort();
    int64_t before = clock_cpu_ns();
    for (int i = 0; i < RENDERS; i++) {
        buf_clear(&path);
        if (aim_path_render(&t, service, &scratch, &path, &problem) < 0)
            abort();
    }
    double ns = (double)(clock_cpu_ns() - before) / RENDERS;
    if (!str_eqc(buf_str(&path), "/ml-team/blue%20team/meta-llama-3-8b"))
        abort();
    return ns;
}

/* ---- one edit */

static struct aim_record make_record(struct arena *a, int i)
{
    return (struct aim_record){
        .meta = { .ns = S("ml-team"),
                  .name = arena_printf(a, "service-%d", i),
                  .uid = S("u"),
                  .rv = S("1") },
        .labels = S("{\"project\":\"conversational-ai\",\"team\":\"blue\"}"),
        .spec = S("{\"model\":{\"ref\":\"meta-llama-3-8b\"},\"replicas\":1,\"runtimeConfigName\":"
                  "\"default\",\"templateRef\":\"llama-latency\"}"),
        .status =
            S("{\"observedGeneration\":1,\"status\":\"Running\",\"conditions\":[{\"type\":"
              "\"ConfigResolved\",\"status\":\"True\",\"reason\":\"RuntimeConfigResolved\","
              "\"message\":\"m\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"},{\"type\":"
              "\"RoutingReady\",\"status\":\"True\",\"reason\":\"RouteReady\",\"message\":\"m\","
              "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}],\"effectiveRuntimeConfig\":{"
              "\"hash\":\"0\",\"namespaceRef\":{\"kind\":\"AIMRuntimeConfig\",\"name\":"
              "\"default\",\"namespace\":\"ml-team\",\"scope\":\"Namespace\",\"uid\":\"u1\"}},"
              "\"routing\":{\"path\":\"/old\"}}"),
        .config_name = S("default"),
        .created = S("2026-01-01T00:00:00Z"),
        .generation = 1,
    };
}

static size_t decide(struct arena *a, const struct aim_record *record,
                     const struct aim_resolve_config *config)
{
    static const struct aim_route_template template = { .ready = true,
                                                        .name = STR_INIT("llama-latency"),
                                                        .model_name = STR_INIT("meta-llama-3-8b") };
    const struct resource *resource = &aim_kinds(AIM_GROUP)->at[AIM_SERVICE];
    struct json *object = aim_record_object(a, resource, record);
    struct aim_resolve_question q = { record->config_name, record->meta.ns, S("kaiwo-system") };
    struct aim_resolve_config own_config = *config;
    own_config.object = json_copy(a, config->object);
    struct aim_resolved resolved = aim_resolve_hashed(&q, &own_config, NULL);
    struct runtimeconfig_spec settings = runtimeconfig_spec_read(resolved.spec, false),
                              own = runtimeconfig_spec_read(json_get(object, "spec"), false);
    struct aim_route_question route = { .group = AIM_GROUP,
                                        .service = object,
                                        .own = &own,
                                        .config = &settings,
                                        .template = &template };
    struct aim_route_plan plan = aim_route_plan(a, &route);
    struct json *desired = aim_route_object(a, &route, &plan);
    str body = json_to_str(a, desired);
    size_t bytes = body.n + map_hash(body) % 2;
    struct aim_status s;
    aim_status_begin(&s, a, json_get(object, "status"), 1780000000, record->generation);
    json_set(a, s.next, S("effectiveRuntimeConfig"), aim_resolve_effective(a, &resolved));
    json_set_str(a, json_make(a, s.next, "routing", NULL), "path", plan.served);
    aim_status_condition(&s, &(struct aim_condition){ "ConfigResolved", AIM_TRUE,
                                                      "RuntimeConfigResolved", S("m") });
    aim_status_condition(&s, &(struct aim_condition){ "RoutingReady", AIM_FALSE, "ConfiguringRoute",
                                                      S("waiting") });
    return bytes + json_to_str(a, aim_status_patch(&s)).n;
}

static double edit_ms(size_t *ret_bytes)
{
    auto_arena struct arena kept = { 0 }, turn = { 0 };
    struct aim_resolve_config config = { .object = parse(&kept, config_text) };
    struct aim_record *records = mem_zero(SERVICES, sizeof(*records));
    for (int i = 0; i < SERVICES; i++)
        records[i] = make_record(&kept, i);
    *ret_bytes = 0;
    int64_t before = clock_cpu_ns();
    aim_resolve_hash(config.object, config.hash);
    for (int i = 0; i < SERVICES; i++) {
        *ret_bytes += decide(&turn, &records[i], &config);
        arena_reset(&turn, (struct arena_mark){ 0 });
    }
    double ms = (double)(clock_cpu_ns() - before) / NS_PER_MS;
    free(records);
    return ms;
}

int main(void)
{
    double render = 1e9, edit = 1e9;
    size_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double ns = render_ns(), ms = edit_ms(&bytes);
        render = MIN(render, ns);
        edit = MIN(edit, ms);
    }
    printf("a path of three placeholders      %8.0f ns\n", render);
    printf("%d services after one edit     %8.1f ms (%.1f us each, %zu bytes to write)\n", SERVICES,
           edit, edit * 1000 / SERVICES, bytes);
    budget("a path of three placeholders", render / 1000, 2, "us");
    budget("10,000 services decided anew after one edit", edit, 200, "ms");
    return EXIT_SUCCESS;
}
