/* Any YAML as a saturation ConfigMap, a variant's spec and its status: all can be read, what holds for a
 * model always makes sense, and a status that was written needs no second write. */
#include "fuzz.h"
#include "saturation/config/config_core.h"
#include "saturation/wva/optimize_core.h"
#include "saturation/zero/zero_core.h"
#include "json/merge.h"
#include "json/yaml.h"

static void check_config(struct arena *a, const struct json *tree)
{
    static const str variants[][2] = { { STR_INIT("web"), STR_INIT("dep") } };
    struct sat_lookup q = { S("llama"), S("llm"), variants, 1 };
    const struct json *data = json_get(tree, "data"), *local = json_get(tree, "local");
    struct sat_load one = sat_table_load(a, data, NULL);
    struct sat_load two = sat_table_load(a, local, &one.table);
    struct sat_config c = sat_config_resolve(&one.table, &two.table, &q).config;
    if (sat_config_check(&c, NULL) < 0 || one.loaded + one.problem_n != json_len(data))
        abort();
    struct zero_load zero = zero_table_load(a, data, NULL);
    struct zero_load then = zero_table_load(a, local, &zero.table);
    if ((zero.table.n < json_len(data)) != (zero.problems.n > 0) ||
        zero_retention_ns(&then.table, S("llama")) <= 0)
        abort();
    optimize_catalog_read(a, data, local);
}

static void check_status(struct arena *a, const struct json *tree)
{
    struct variant_spec spec = saturation_spec_read(a, json_get(tree, "spec"));
    if ((spec.max && spec.min > spec.max) || !(spec.cost >= 0))
        abort();
    struct sat_view view = { .accelerator = S("A100"),
                             .has_current = true,
                             .current = 2,
                             .wanted = spec.min,
                             .cost = spec.cost,
                             .has_desired = true,
                             .desired = 3 };
    view.conditions[SAT_METRICS_AVAILABLE] =
        (struct sat_condition){ true, false, "MetricsMissing", S("none for 3 pods") };
    const struct json *status = json_get(tree, "status");
    if (!json_is(status, JSON_OBJ))
        return;
    struct json *patch = sat_status_patch(a, status, &view, 1, 1780473600);
    if (!patch)
        return;
    status = merge_patch(a, status, patch);
    if (sat_status_patch(a, status, &view, 1, 1780473601))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json_limits limits = { .depth = 20, .members = 50 };
    struct json *tree;
    if (yaml_parse_limited(&a, (str){ (const char *)data, size }, &limits, &tree, NULL) < 0)
        return 0;
    check_config(&a, tree);
    check_status(&a, tree);
    return 0;
}
