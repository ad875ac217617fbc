/* Families of saturation: wva-saturation-v1, wva-hybrid-arbitration, wva-enforcer, wva-queue-seedera,
 * wva-queue-feb2026, wva-alloc-solver. The targets of wva-saturation-v1 are the original's, so they run in compat mode. */
#include "golden.h"

#include "saturation/saturation.h"

#include <math.h>

static const struct tolerance exact = { 1e-9, 0 };

/* ---- wva-saturation-v1 */

static struct sat_config read_config(const struct json *c)
{
    return (struct sat_config){
        .kv_threshold = json_real(json_get(c, "kvCacheThreshold"), 0),
        .queue_threshold = json_real(json_get(c, "queueLengthThreshold"), 0),
        .kv_spare_trigger = json_real(json_get(c, "kvSpareTrigger"), 0),
        .queue_spare_trigger = json_real(json_get(c, "queueSpareTrigger"), 0),
    };
}

static struct sat_replica *read_replicas(struct golden *g, const struct json *list)
{
    struct sat_replica *replicas = arena_array(g->arena, json_len(list), sizeof(*replicas));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *r = json_item(list, i);
        replicas[i] = (struct sat_replica){
            .pod = json_text(json_get(r, "pod")),
            .variant = json_text(json_get(r, "variant")),
            .accelerator = json_text(json_get(r, "accelerator")),
            .cost = json_real(json_get(r, "cost"), 0),
            .kv_usage = json_real(json_get(r, "kvCacheUsage"), 0),
            .queue = json_real(json_get(r, "queueLength"), 0),
        };
    }
    return replicas;
}

static struct sat_state *read_states(struct golden *g, const struct json *list)
{
    struct sat_state *states = arena_array(g->arena, json_len(list), sizeof(*states));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *s = json_item(list, i);
        states[i] = (struct sat_state){
            .variant = json_text(json_get(s, "variant")),
            .current = (int)json_int(json_get(s, "current"), 0),
            .desired = (int)json_int(json_get(s, "desired"), 0),
            .pending = (int)json_int(json_get(s, "pending"), 0),
        };
    }
    return states;
}

static void check_variant(struct golden *g, const struct sat_variant *v, const struct json *want)
{
    golden_eq_str(g, "variant", v->name, json_get(want, "variant"));
    golden_eq_int(g, "replicaCount", v->replicas, json_get(want, "replicaCount"));
    golden_eq_int(g, "nonSaturatedCount", v->non_saturated, json_get(want, "nonSaturatedCount"));
    golden_eq_real(g, "avgSpareKvCapacity", v->spare_kv, json_get(want, "avgSpareKvCapacity"),
                   exact);
    golden_eq_real(g, "avgSpareQueueLength", v->spare_queue, json_get(want, "avgSpareQueueLength"),
                   exact);
    golden_eq_real(g, "maxKvCacheUsage", v->max_kv, json_get(want, "maxKvCacheUsage"), exact);
    golden_eq_real(g, "maxQueueLength", v->max_queue, json_get(want, "maxQueueLength"), exact);
}

static void check_analysis(struct golden *g, const struct sat_analysis *a, const struct json *want)
{
    golden_eq_int(g, "totalReplicas", a->replicas, json_get(want, "totalReplicas"));
    golden_eq_int(g, "nonSaturatedCount", a->non_saturated, json_get(want, "nonSaturatedCount"));
    golden_eq_real(g, "avgSpareKvCapacity", a->spare_kv, json_get(want, "avgSpareKvCapacity"),
                   exact);
    golden_eq_real(g, "avgSpareQueueLength", a->spare_queue, json_get(want, "avgSpareQueueLength"),
                   exact);
    golden_eq_bool(g, "shouldScaleUp", a->scale_up, json_get(want, "shouldScaleUp"));
    golden_eq_bool(g, "scaleDownSafe", a->scale_down_safe, json_get(want, "scaleDownSafe"));
    const struct json *variants = json_get(want, "variants");
    if (golden_ok(g, a->variant_n == json_len(variants), "%zu variants, want %zu", a->variant_n,
                  json_len(variants)))
        for (size_t i = 0; i < a->variant_n; i++)
            check_variant(g, &a->variants[i], json_item(variants, i));
}

static void check_targets(struct golden *g, const char *era, const struct sat_targets *targets,
                          const struct json *want)
{
    golden_ok(g, targets->n == json_len(want), "%s: %zu targets, want %zu", era, targets->n,
              json_len(want));
    for (size_t i = 0; i < targets->n; i++)
        golden_eq_int(g, era, targets->at[i].replicas, json_get_str(want, targets->at[i].variant));
}

static void run_saturation_v1(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct sat_config config = read_config(json_get(in, "config"));
    const struct json *replicas = json_get(in, "replicas"), *states = json_get(in, "states");
    struct sat_analysis a =
        sat_analyze(g->arena, &config, read_replicas(g, replicas), json_len(replicas));
    check_analysis(g, &a, json_get(want, "analysis"));
    struct sat_state *known = read_states(g, states);
    struct sat_targets t = sat_decide_compat(g->arena, SAT_ERA_2026, &a, known, json_len(states));
    check_targets(g, "targetsFeb2026", &t, json_get(want, "targetsFeb2026"));
    a.scale_down_safe = json_bool(json_get(want, "scaleDownSafeSeedEra"), false);
    t = sat_decide_compat(g->arena, SAT_ERA_SEED, &a, known, json_len(states));
    check_targets(g, "targetsSeedEra", &t, json_get(want, "targetsSeedEra"));
}

/* ---- wva-hybrid-arbitration, wva-enforcer */

static void run_arbitration(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *states = json_get(in, "states"), *safe = json_get(in, "scaleDownSafe");
    for (size_t i = 0; i < json_len(states); i++) {
        str variant = json_text(json_get(json_item(states, i), "variant"));
        int current = (int)json_int(json_get(json_item(states, i), "current"), 0);
        struct hybrid_decision d = hybrid_arbitrate(
            g->arena,
            (struct hybrid_input){
                variant, current,
                (int)json_int(json_get_str(json_get(in, "saturationTargets"), variant), 0),
                (int)json_int(json_get_str(json_get(in, "modelBasedTargets"), variant), 0),
                json_bool(safe, true) }); /* null: there was no analysis to object */
        const struct json *w = json_item(want, i);
        golden_eq_int(g, "targetReplicas", d.replicas, json_get(w, "targetReplicas"));
        golden_eq_str(g, "action", str_c(sat_action_name(current, d.replicas)),
                      json_get(w, "action"));
        golden_eq_bool(g, "safetyOverride", d.safety_override, json_get(w, "safetyOverride"));
        golden_eq_bool(g, "saturationBased", d.capacity_based, json_get(w, "saturationBased"));
        golden_eq_bool(g, "modelBasedDecision", d.model_based, json_get(w, "modelBasedDecision"));
        golden_eq_str(g, "reason", d.reason, json_get(w, "reason"));
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct sat_target *)a)->variant,
                   ((const struct sat_target *)b)->variant);
}

static void run_enforcer(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *list = json_get(in, "targets"), *count = json_get(in, "requestCount");
    struct sat_target *targets = arena_array(g->arena, json_len(list), sizeof(*targets));
    double *costs = arena_array(g->arena, json_len(list), sizeof(*costs));
    size_t n = 0;
    json_each(m, list)
        targets[n++] = (struct sat_target){ m->key, (int)json_int(m->value, 0), S("") };
    qsort(targets, n, sizeof(*targets), by_name);
    for (size_t i = 0; i < n; i++)
        costs[i] = json_real(json_get_str(json_get(in, "costs"), targets[i].variant), NAN);
    struct hybrid_zero_input e = { json_bool(json_get(in, "enabled"), false),
                                   !json_is(count, JSON_NULL), json_real(count, 0), costs };
    bool applied = hybrid_enforce_zero(targets, n, &e);
    golden_eq_bool(g, "applied", applied, json_get(want, "applied"));
    for (size_t i = 0; i < n; i++)
        golden_eq_int(g, "target", targets[i].replicas,
                      json_get_str(json_get(want, "targets"), targets[i].variant));
}

/* ---- wva-queue-seedera, wva-queue-feb2026 */

static float number(const struct json *o, const char *key)
{
    return (float)json_real(json_get(o, key), 0);
}

static void check_metrics(struct golden *g, const struct queue_metrics *m, const struct json *want,
                          double relative)
{
    struct tolerance t = { 0, relative }, waiting = { 1e-6 * (double)m->response_ms, relative };
    golden_eq_real(g, "throughput", (double)m->throughput, json_get(want, "throughput"), t);
    golden_eq_real(g, "avgRespTime", (double)m->response_ms, json_get(want, "avgRespTime"), t);
    golden_eq_real(g, "avgWaitTime", (double)m->wait_ms, json_get(want, "avgWaitTime"), waiting);
    golden_eq_real(g, "avgNumInServ", (double)m->in_service, json_get(want, "avgNumInServ"), t);
    golden_eq_real(g, "avgPrefillTime", (double)m->prefill_ms, json_get(want, "avgPrefillTime"), t);
    golden_eq_real(g, "avgTokenTime", (double)m->token_ms, json_get(want, "avgTokenTime"), t);
    golden_eq_real(g, "avgTTFT", (double)m->ttft_ms, json_get(want, "avgTTFT"), waiting);
    golden_eq_real(g, "maxRate", (double)m->max_rate, json_get(want, "maxRate"), t);
    golden_eq_real(g, "rho", (double)m->utilization, json_get(want, "rho"), t);
}

static void check_size(struct golden *g, struct queue_model *model, const struct json *in,
                       const struct json *want)
{
    struct tolerance t = { 0, 5e-3 };
    struct queue_targets targets = { number(in, "targetTTFT"), number(in, "targetITL"),
                                     number(in, "targetTPS") };
    struct queue_size size;
    bool ok = queue_solve_size(model, targets, &size, NULL) == 0;
    if (!golden_eq_bool(g, "size.ok", ok, json_get(want, "ok")) || !ok)
        return;
    golden_eq_real(g, "rateTTFT", (double)size.rate_ttft, json_get(want, "rateTTFT"), t);
    golden_eq_real(g, "rateITL", (double)size.rate_itl, json_get(want, "rateITL"), t);
    golden_eq_real(g, "rateTPS", (double)size.rate_tps, json_get(want, "rateTPS"), t);
    check_metrics(g, &size.metrics, json_get(want, "metrics"), 5e-3);
    golden_eq_real(g, "achievedTPS", (double)size.achieved.tokens_per_s,
                   json_get(want, "achievedTPS"), t);
}

static void check_queue(struct golden *g, const struct json *c, enum queue_times times)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    struct queue_spec spec = {
        .batch_max = (int)json_int(json_get(in, "maxBatchSize"), 0),
        .queue_max = (int)json_int(json_get(in, "maxQueueSize"), 0),
        .times = times,
        .alpha = number(in, "alpha"),
        .beta = number(in, "beta"),
        .gamma = number(in, "gamma"),
        .delta = number(in, "delta"),
        .input_tokens = number(in, "avgInputTokens"),
        .output_tokens = number(in, "avgOutputTokens"),
        .compat = true,
    };
    struct queue_model model;
    bool valid = queue_init(&model, &spec, NULL) == 0;
    if (!golden_eq_bool(g, "configValid", valid, json_get(want, "configValid")) || !valid) {
        if (valid)
            queue_done(&model);
        return;
    }
    struct tolerance t = { 0, 1e-3 };
    golden_eq_real(g, "rateMin", (double)model.rate_min, json_get(want, "rateMin"), t);
    golden_eq_real(g, "rateMax", (double)model.rate_max, json_get(want, "rateMax"), t);
    const struct json *rates = json_get(want, "analyze");
    for (size_t i = 0; i < json_len(rates); i++) {
        const struct json *w = json_item(rates, i);
        struct queue_metrics m;
        bool ok = queue_analyze(&model, number(w, "rate"), &m, NULL) == 0;
        if (golden_eq_bool(g, "analyze.ok", ok, json_get(w, "ok")) && ok)
            check_metrics(g, &m, json_get(w, "metrics"), 1e-3);
    }
    check_size(g, &model, in, json_get(want, "size"));
    queue_done(&model);
}

static void run_queue_by_phase(struct golden *g, const struct json *c)
{
    check_queue(g, c, QUEUE_BY_PHASE);
}

static void run_queue_by_iteration(struct golden *g, const struct json *c)
{
    check_queue(g, c, QUEUE_BY_ITERATION);
}

/* ---- wva-alloc-solver */

static void read_hardware(struct golden *g, const struct json *in, struct alloc_system *s)
{
    const struct json *list = json_at(in, "acceleratorData", "accelerators", NULL);
    struct alloc_accelerator *accs = arena_array(g->arena, json_len(list), sizeof(*accs));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        accs[i] = (struct alloc_accelerator){ json_text(json_get(x, "name")),
                                              json_text(json_get(x, "type")),
                                              (int)json_int(json_get(x, "multiplicity"), 1),
                                              number(x, "cost") };
    }
    s->accelerators = accs;
    s->accelerator_n = json_len(list);
    list = json_at(in, "capacityData", "count", NULL);
    struct alloc_capacity *caps = arena_array(g->arena, json_len(list), sizeof(*caps));
    for (size_t i = 0; i < json_len(list); i++)
        caps[i] =
            (struct alloc_capacity){ json_text(json_get(json_item(list, i), "type")),
                                     (int)json_int(json_get(json_item(list, i), "count"), 0) };
    s->capacities = caps;
    s->capacity_n = json_len(list);
}

static void read_models(struct golden *g, const struct json *in, struct alloc_system *s)
{
    const struct json *list = json_at(in, "modelData", "models", NULL);
    struct alloc_profile *profiles = arena_array(g->arena, json_len(list), sizeof(*profiles));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        profiles[i] = (struct alloc_profile){
            .model = json_text(json_get(x, "name")),
            .accelerator = json_text(json_get(x, "acc")),
            .accelerators = (int)json_int(json_get(x, "accCount"), 1),
            .batch_max = (int)json_int(json_get(x, "maxBatchSize"), 0),
            .at_tokens = (int)json_int(json_get(x, "atTokens"), 0),
            .alpha = number(json_get(x, "decodeParms"), "alpha"),
            .beta = number(json_get(x, "decodeParms"), "beta"),
            .gamma = number(json_get(x, "prefillParms"), "gamma"),
            .delta = number(json_get(x, "prefillParms"), "delta"),
        };
    }
    s->profiles = profiles;
    s->profile_n = json_len(list);
}

static void read_classes(struct golden *g, const struct json *in, struct alloc_system *s)
{
    const struct json *list = json_at(in, "serviceClassData", "serviceClasses", NULL);
    struct alloc_class *classes = arena_array(g->arena, json_len(list), sizeof(*classes));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i), *slos = json_get(x, "modelTargets");
        struct alloc_target *targets = arena_array(g->arena, json_len(slos), sizeof(*targets));
        for (size_t k = 0; k < json_len(slos); k++) {
            const struct json *t = json_item(slos, k);
            targets[k] = (struct alloc_target){ json_text(json_get(t, "model")),
                                                { number(t, "slo-ttft"), number(t, "slo-itl"),
                                                  number(t, "slo-tps") } };
        }
        classes[i] = (struct alloc_class){ json_text(json_get(x, "name")),
                                           (int)json_int(json_get(x, "priority"), 0), targets,
                                           json_len(slos) };
    }
    s->classes = classes;
    s->class_n = json_len(list);
}

static void read_servers(struct golden *g, const struct json *in, struct alloc_system *s)
{
    const struct json *list = json_at(in, "serverData", "servers", NULL);
    struct alloc_server *servers = arena_array(g->arena, json_len(list), sizeof(*servers));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i), *now = json_get(x, "currentAlloc"),
                          *load = json_get(now, "load");
        servers[i] = (struct alloc_server){
            .name = json_text(json_get(x, "name")),
            .service_class = json_text(json_get(x, "class")),
            .model = json_text(json_get(x, "model")),
            .keep_accelerator = json_bool(json_get(x, "keepAccelerator"), false),
            .min_replicas = (int)json_int(json_get(x, "minNumReplicas"), 0),
            .batch_max = (int)json_int(json_get(x, "maxBatchSize"), 0),
            .current = { .accelerator = json_text(json_get(now, "accelerator")),
                         .replicas = (int)json_int(json_get(now, "numReplicas"), 0),
                         .cost = number(now, "cost") },
            .arrival_per_min = number(load, "arrivalRate"),
            .input_tokens = (int)json_int(json_get(load, "avgInTokens"), 0),
            .output_tokens = (int)json_int(json_get(load, "avgOutTokens"), 0),
        };
    }
    s->servers = servers;
    s->server_n = json_len(list);
}

static enum alloc_policy read_policy(str name)
{
    return str_eqc(name, "PriorityExhaustive")   ? ALLOC_PRIORITY_EXHAUSTIVE
           : str_eqc(name, "PriorityRoundRobin") ? ALLOC_PRIORITY_ROUND_ROBIN
           : str_eqc(name, "RoundRobin")         ? ALLOC_ROUND_ROBIN
                                                 : ALLOC_NONE;
}

static void check_allocation(struct golden *g, const char *what, const struct allocation *got,
                             const struct json *want)
{
    struct tolerance t = { 1e-6, 1e-3 };
    if (!golden_ok(g, json_is(want, JSON_OBJ), "%s: found one, want none", what))
        return;
    golden_eq_str(g, what, got->accelerator, json_get(want, "accelerator"));
    golden_eq_int(g, what, got->replicas, json_get(want, "numReplicas"));
    golden_eq_int(g, what, got->batch_max, json_get(want, "maxBatch"));
    golden_eq_real(g, what, (double)got->cost, json_get(want, "cost"), t);
    golden_eq_real(g, what, (double)got->value, json_get(want, "value"), t);
    golden_eq_real(g, what, (double)got->itl_ms, json_get(want, "itlAverage"), t);
    golden_eq_real(g, what, (double)got->ttft_ms, json_get(want, "ttftAverage"), t);
    golden_eq_real(g, what, (double)got->max_rate * 60000, json_get(want, "maxRPM"), t);
}

static void run_alloc(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    const struct json *optimizer = json_at(in, "optimizerData", "optimizer", NULL);
    struct alloc_system s = {
        .unlimited = json_bool(json_get(optimizer, "unlimited"), false),
        .delayed_best_effort = json_bool(json_get(optimizer, "delayedBestEffort"), false),
        .compat = true,
        .policy = read_policy(json_text(json_get(optimizer, "saturationPolicy"))),
    };
    read_hardware(g, in, &s);
    read_models(g, in, &s);
    read_classes(g, in, &s);
    read_servers(g, in, &s);
    struct alloc_answer answer = alloc_solve(g->arena, &s);
    for (size_t i = 0; i < s.server_n; i++) {
        const struct json *w = json_get_str(want, s.servers[i].name);
        const struct json *candidates = json_get(w, "candidates"),
                          *solution = json_get(w, "solution");
        golden_ok(g, answer.candidates[i].n == json_len(candidates),
                  STR_FMT ": %zu candidates, want %zu", STR_ARG(s.servers[i].name),
                  answer.candidates[i].n, json_len(candidates));
        for (size_t k = 0; k < answer.candidates[i].n; k++) {
            const struct allocation *got = &answer.candidates[i].at[k];
            if (got->accelerator.n) /* at zero load every candidate is "none" */
                check_allocation(g,
                                 arena_printf(g->arena, STR_FMT " on " STR_FMT,
                                              STR_ARG(s.servers[i].name), STR_ARG(got->accelerator))
                                     .p,
                                 got, json_get_str(candidates, got->accelerator));
        }
        if (answer.solved[i])
            check_allocation(
                g, arena_printf(g->arena, STR_FMT " solution", STR_ARG(s.servers[i].name)).p,
                &answer.solution[i], solution);
        else
            golden_ok(g, !json_is(solution, JSON_OBJ), "no solution for " STR_FMT ", want one",
                      STR_ARG(s.servers[i].name));
    }
}

const struct golden_family golden_saturation[] = {
    { "wva-saturation-v1", run_saturation_v1 },
    { "wva-hybrid-arbitration", run_arbitration },
    { "wva-enforcer", run_enforcer },
    { "wva-queue-seedera", run_queue_by_phase },
    { "wva-queue-feb2026", run_queue_by_iteration },
    { "wva-alloc-solver", run_alloc },
    { 0 },
};
