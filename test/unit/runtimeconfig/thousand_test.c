/* A thousand services on one configuration: an edit that changes nothing writes nothing, one that
 * does touches each of them once, and no other object. */
#include "aim_world.h"

#define CONFIG                                                                                     \
    "{metadata: {name: default}, spec: {routing: {enabled: true, gatewayRef: {name: "              \
    "inference-gateway, namespace: gateways}, pathTemplate: \"/ml/{.metadata.namespace}/"          \
    "{.metadata.labels['project']}\"}}}"

enum { MANY = 1000 };

static void make_many(struct cluster *c)
{
    for (int i = 0; i < MANY; i++)
        aim_test_create(
            c, aim_test_kind(AIM_SERVICE), "ml-team",
            arena_printf(&c->arena,
                         "{metadata: {name: s%d, labels: {project: p%d}}, spec: {model: {ref: "
                         "meta-llama-3-8b}, templateRef: llama-latency}}",
                         i, i)
                .p);
}

static size_t count_in(str text, const char *needle)
{
    size_t n = 0;
    for (size_t at; (at = str_find(text, str_c(needle))) != SIZE_MAX; n++)
        text = str_from(text, at + 1);
    return n;
}

static void one_edit_reaches_a_thousand(void)
{
    struct cluster c;
    aim_test_start(&c);
    aim_test_create(&c, aim_test_kind(AIM_CONFIG), "ml-team", CONFIG);
    aim_test_create(&c, aim_test_kind(AIM_SERVICE), "other",
                    "{metadata: {name: bystander}, spec: {model: {ref: meta-llama-3-8b}}}");
    make_many(&c);
    aim_test_start_operator(&c);
    EQ_STR(aim_test_route_path(&c, "ml-team", "s999"), S("/ml/ml-team/p999"));
    size_t before = c.operator_writes;
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), "ml-team", "default",
                   "{metadata: {labels: {seen: 'true'}}}");
    aim_test_wait(&c);
    EQ_INT(c.operator_writes, before); /* the hash is the same: no writes */

    buf_clear(&c.log);
    int64_t start_ns = loop_mono_ns(c.loop);
    aim_test_patch(&c, aim_test_kind(AIM_CONFIG), "ml-team", "default",
                   "{spec: {routing: {pathTemplate: \"/new/{.metadata.labels['project']}\"}}}");
    while (c.operator_writes < before + 2 * MANY && loop_mono_ns(c.loop) < start_ns + NS_PER_S)
        loop_turn(c.loop);
    OK(loop_mono_ns(c.loop) - start_ns < 100 * NS_PER_MS);
    aim_test_wait(&c);
    EQ_INT(count_in(buf_str(&c.log), "/aimservices/s"), MANY);
    EQ_INT(count_in(buf_str(&c.log), "/httproutes/s"), MANY);
    EQ_INT(count_in(buf_str(&c.log), "bystander"), 0);
    EQ_STR(aim_test_route_path(&c, "ml-team", "s0"), S("/new/p0"));
    EQ_STR(aim_test_path(aim_test_status(&c, AIM_SERVICE, "ml-team", "s999")), S("/new/p999"));
    EQ_INT(json_int(json_at(aim_test_status(&c, AIM_CONFIG, "ml-team", "default"), "consumers",
                            "total", NULL),
                    -1),
           MANY);
    before = c.operator_writes;
    aim_test_wait(&c);
    EQ_INT(c.operator_writes, before);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(one_edit_reaches_a_thousand), { 0 } });
}
