/* Services, configurations, routes and gateways of any shape: no crash, a path only if gateways take
 * it, and a problem is a sentence. The bytes are one JSON object {service, namespaced, cluster,
 * route, gateway}. */
#include "fuzz.h"

#include "gateway_path.h"
#include "runtimeconfig/aim_kinds.h"
#include "runtimeconfig/gateway_core.h"
#include "runtimeconfig/runtimeconfig_report_core.h"

static const struct json *object_of(const struct json *all, const char *key)
{
    const struct json *o = json_get(all, key);
    return json_is(o, JSON_OBJ) ? o : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf report = { 0 };
    struct json *all;
    struct aim_path_problem problem = { 0 };
    if (json_parse(&a, (str){ (const char *)data, size }, &all, NULL) < 0)
        return 0;
    struct runtimeconfig_case c = { .group = AIM_GROUP,
                                    .service = object_of(all, "service"),
                                    .operator_ns = S("kaiwo-system"),
                                    .in_namespace = object_of(all, "namespaced"),
                                    .in_cluster = object_of(all, "cluster"),
                                    .cluster_default = object_of(all, "cluster"),
                                    .template = { .ready = true, .name = S("t") } };
    struct runtimeconfig_answer answer = runtimeconfig_answer(&a, &c);
    runtimeconfig_report(&report, &c, &answer, true);
    if (answer.plan.path.n && !is_gateway_path(answer.plan.path))
        abort();
    if (answer.fails && answer.config.outcome != RESOLVE_MISSING && !answer.plan.message.n)
        abort();
    if (runtimeconfig_lint(&a, &answer.settings, &problem) < 0 && !problem.text[0])
        abort();
    const struct json *route = object_of(all, "route");
    aim_route_paths(&a, route);
    aim_route_read_status(&answer.plan, route);
    aim_route_url(&a, json_to_str(&a, json_get(all, "listeners")),
                  json_to_str(&a, json_get(all, "addresses")), &answer.plan);
    buf_done(&answer.trace);
    return 0;
}
