/* Families of saturation's later engines: wva-saturation-v2, wva-gpu-limiter, wva-vllm-args. */
#include "golden.h"

#include "saturation/limits/limiter_core.h"
#include "saturation/wva/token_core.h"

/* ---- wva-vllm-args */

/* Containers as a pod template has them: the vectors write the environment as a map. */
static struct json *read_containers(struct golden *g, const struct json *list)
{
    struct json *containers = json_new_arr(g->arena);
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *container = json_copy(g->arena, json_item(list, i)),
                    *env = json_new_arr(g->arena);
        json_each(m, json_get(container, "env")) {
            struct json *variable = json_new_obj(g->arena);
            json_set_str(g->arena, variable, "name", m->key);
            json_set(g->arena, variable, S("value"), m->value);
            json_push(g->arena, env, variable);
        }
        json_set(g->arena, container, S("env"), env);
        json_push(g->arena, containers, container);
    }
    return containers;
}

static void run_vllm_args(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expected");
    const struct json *list = json_at(c, "input", "containers", NULL);
    struct sat_vllm_args v = sat_vllm_args_parse(g->arena, read_containers(g, list));
    const struct {
        const char *name;
        int64_t got;
    } numbers[] = {
        { "BlockSize", v.block_size },
        { "TensorParallelSize", v.tensor_parallel },
        { "NumGpuBlocksOverride", v.gpu_blocks_override },
        { "MaxNumBatchedTokens", v.max_batched_tokens },
        { "MaxNumSeqs", v.max_seqs },
        { "MaxModelLen", v.max_model_len },
        { "EffectiveMaxBatchedTokens", sat_vllm_batched_tokens(&v) },
    };
    for (size_t i = 0; i < countof(numbers); i++)
        golden_eq_int(g, numbers[i].name, numbers[i].got, json_get(want, numbers[i].name));
    golden_eq_real(g, "GpuMemoryUtilization", v.gpu_memory_utilization,
                   json_get(want, "GpuMemoryUtilization"), (struct tolerance){ 1e-12, 0 });
    golden_eq_str(g, "KvCacheDtype", v.kv_cache_dtype, json_get(want, "KvCacheDtype"));
    golden_eq_bool(g, "EnforceEager", v.enforce_eager, json_get(want, "EnforceEager"));
    golden_eq_bool(g, "IsV1Engine", v.v1_engine, json_get(want, "IsV1Engine"));
    golden_eq_bool(g, "ChunkedPrefillEnabled", v.chunked_prefill,
                   json_get(want, "ChunkedPrefillEnabled"));
}

/* ---- wva-gpu-limiter */

static struct limiter_stock *read_stock(struct golden *g, const struct json *nodes, size_t *ret_n)
{
    size_t n = 0;
    json_each(node, nodes)
        n += json_len(node->value);
    struct limiter_stock *stock = arena_array(g->arena, n, sizeof(*stock));
    *ret_n = 0;
    json_each(node, nodes)
        json_each(product, node->value)
            stock[(*ret_n)++] = (struct limiter_stock){ product->key, json_int(product->value, 0) };
    return stock;
}

static void run_limiter(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *list = json_get(in, "decisions");
    struct limiter_demand *demands = arena_array(g->arena, json_len(list), sizeof(*demands));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *d = json_item(list, i);
        demands[i] = (struct limiter_demand){
            json_text(json_get(d, "variant")),          json_text(json_get(d, "accelerator")),
            json_int(json_get(d, "current"), 0),        json_int(json_get(d, "target"), 0),
            json_int(json_get(d, "gpusPerReplica"), 0), json_real(json_get(d, "spareCapacity"), 0),
            json_real(json_get(d, "cost"), 0),
        };
    }
    size_t stock_n;
    struct limiter_stock *stock = read_stock(g, json_get(in, "nodes"), &stock_n);
    const struct limiter_grant *grants =
        sat_limiter_apply(g->arena, stock, stock_n, demands, json_len(list));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *w = json_item(want, i);
        golden_eq_int(g, "target", grants[i].target, json_get(w, "target"));
        golden_eq_int(g, "gpusAllocated", grants[i].gpus, json_get(w, "gpusAllocated"));
        golden_eq_bool(g, "wasLimited", grants[i].limited, json_get(w, "wasLimited"));
        golden_eq_str(g, "stepReason", grants[i].reason, json_get(w, "stepReason"));
    }
}

/* ---- wva-saturation-v2 */

static const struct tolerance near = { 1e-6, 1e-6 };

void golden_load_templates(struct golden *g, struct sat_token_store *store, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *d = json_item(list, i);
        struct json *containers = json_new_arr(g->arena), *container = json_new_obj(g->arena);
        json_set(g->arena, container, S("args"), json_copy(g->arena, json_get(d, "args")));
        json_push(g->arena, containers, container);
        struct sat_vllm_args args = sat_vllm_args_parse(g->arena, containers);
        sat_token_store_template(
            store, (struct sat_token_variant){ S("ns"), S("m"), json_text(json_get(d, "variant")) },
            (struct sat_token_hardware){ json_text(json_get(d, "accelerator")),
                                         json_int(json_get(d, "gpusPerReplica"), 0) },
            &args);
    }
}

static struct sat_token_input read_step(struct golden *g, const struct json *step)
{
    const struct json *config = json_get(step, "config"), *list = json_get(step, "replicas"),
                      *waiting = json_get(step, "schedulerQueueSizeBytes");
    struct sat_token_replica *replicas = arena_array(g->arena, json_len(list), sizeof(*replicas));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *r = json_item(list, i);
        replicas[i] = (struct sat_token_replica){
            json_text(json_get(r, "variant")),
            json_text(json_get(r, "accelerator")),
            json_real(json_get(r, "cost"), 0),
            json_real(json_get(r, "queueLength"), 0),
            json_int(json_get(r, "totalKvCapacityTokens"), 0),
            json_int(json_get(r, "tokensInUse"), 0),
            json_real(json_get(r, "avgInputTokens"), 0),
            json_real(json_get(r, "avgOutputTokens"), 0),
            json_real(json_get(r, "prefixCacheHitRate"), 0),
        };
    }
    const struct json *known = json_get(step, "states");
    struct sat_token_state *states = arena_array(g->arena, json_len(known), sizeof(*states));
    for (size_t i = 0; i < json_len(known); i++) {
        const struct json *s = json_item(known, i);
        states[i] = (struct sat_token_state){ json_text(json_get(s, "variant")),
                                              json_int(json_get(s, "current"), 0),
                                              json_int(json_get(s, "pending"), 0),
                                              json_int(json_get(s, "gpusPerReplica"), 0) };
    }
    return (struct sat_token_input){
        .ns = S("ns"),
        .model = S("m"),
        .kv_threshold = json_real(json_get(config, "kvCacheThreshold"), 0),
        .queue_threshold = json_real(json_get(config, "queueLengthThreshold"), 0),
        .scale_up_at = json_real(json_get(config, "scaleUpThreshold"), 0),
        .scale_down_at = json_real(json_get(config, "scaleDownBoundary"), 0),
        .replicas = replicas,
        .replica_n = json_len(list),
        .states = states,
        .state_n = json_len(known),
        .waiting_requests = json_real(json_item(waiting, 0), 0),
        .waiting_bytes = json_real(json_item(waiting, 1), 0),
    };
}

static void check_capacity(struct golden *g, const struct sat_token_capacity *v,
                           const struct json *want)
{
    golden_eq_str(g, "variant", v->variant, json_get(want, "variant"));
    golden_eq_str(g, "accelerator", v->accelerator, json_get(want, "accelerator"));
    golden_eq_real(g, "cost", v->cost, json_get(want, "cost"), near);
    golden_eq_int(g, "replicaCount", v->ready, json_get(want, "replicaCount"));
    golden_eq_int(g, "pendingReplicas", v->pending, json_get(want, "pendingReplicas"));
    golden_eq_real(g, "perReplicaCapacity", (double)v->per_replica,
                   json_get(want, "perReplicaCapacity"), near);
    golden_eq_real(g, "totalCapacity", v->supply, json_get(want, "totalCapacity"), near);
    golden_eq_real(g, "totalDemand of a variant", v->demand, json_get(want, "totalDemand"), near);
    golden_eq_real(g, "utilization of a variant", v->utilization, json_get(want, "utilization"),
                   near);
}

static void check_step(struct golden *g, const struct sat_token_input *in,
                       const struct sat_token_analysis *t, const struct json *want)
{
    const struct json *variants = json_get(want, "variantCapacities");
    golden_ok(g, json_len(variants) == t->n, "%zu variants, want %zu", t->n, json_len(variants));
    for (size_t i = 0; i < t->n; i++)
        check_capacity(g, &t->variants[i], json_item(variants, i));
    golden_eq_real(g, "totalSupply", t->supply, json_get(want, "totalSupply"), near);
    golden_eq_real(g, "totalDemand", t->demand, json_get(want, "totalDemand"), near);
    golden_eq_real(g, "utilization", t->utilization, json_get(want, "utilization"), near);
    golden_eq_real(g, "requiredCapacity", t->required, json_get(want, "requiredCapacity"), near);
    golden_eq_real(g, "spareCapacity", t->spare, json_get(want, "spareCapacity"), near);
    const struct sat_token_target *targets = sat_token_decide(g->arena, t, in->states);
    for (size_t i = 0; i < t->n; i++) {
        const struct json *w = json_get_str(json_get(want, "decisions"), targets[i].variant);
        golden_eq_int(g, "target", targets[i].replicas, json_get(w, "target"));
        golden_eq_str(g, "reason", targets[i].reason, json_get(w, "reason"));
    }
}

static void run_tokens(struct golden *g, const struct json *c)
{
    const struct json *steps = json_get(c, "input"), *want = json_get(c, "expected");
    struct sat_token_store store = { 0 };
    for (size_t i = 0; i < json_len(steps); i++) {
        golden_load_templates(g, &store, json_get(json_item(steps, i), "deployments"));
        struct sat_token_input in = read_step(g, json_item(steps, i));
        struct sat_token_analysis t = sat_token_analyze(g->arena, &store, &in);
        check_step(g, &in, &t, json_item(want, i));
    }
    sat_token_store_done(&store);
}

const struct golden_family golden_saturation_tokens[] = { { "wva-saturation-v2", run_tokens },
                                                          { "wva-gpu-limiter", run_limiter },
                                                          { "wva-vllm-args", run_vllm_args },
                                                          { 0 } };
