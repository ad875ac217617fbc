/* Families of the optimizers of WVA 0.9: wva-limiter-priority, wva-quota-limiter and
 * wva-saturation-v2-aug2026. */
#include "golden.h"

#include "saturation/config/compat_core.h"
#include "saturation/limits/fair_core.h"
#include "saturation/limits/quota_core.h"
#include "saturation/objects/text_core.h"
#include "saturation/wva/hybrid_core.h"
#include "saturation/wva/token_core.h"

#include <math.h>

static const struct tolerance near = { 1e-9, 1e-9 };

static int64_t int_at(const struct json *o, const char *key)
{
    return json_int(json_get(o, key), 0);
}

static double real_at(const struct json *o, const char *key)
{
    return golden_real(json_get(o, key), 0);
}

static str text_at(const struct json *o, const char *key)
{
    return json_text(json_get(o, key));
}

/* ---- models */

static struct vote_variant read_variant(const struct json *v)
{
    return (struct vote_variant){
        .name = text_at(v, "variant"),
        .accelerator = text_at(v, "accelerator"),
        .role = text_at(v, "role"),
        .cost = real_at(v, "cost"),
        .current = int_at(v, "current"),
        .min = int_at(v, "min"),
        .max = int_at(v, "max"),
        .gpus = int_at(v, "gpusPerReplica"),
    };
}

struct sums {
    double supply, demand, anticipated;
};

static struct sums sum_variants(const struct json *variants, const str *role, const char *capacity,
                                const char *demand)
{
    struct sums s = { 0 };
    for (size_t i = 0; i < json_len(variants); i++) {
        const struct json *v = json_item(variants, i);
        str own = text_at(v, "role");
        if (role && !str_eq(own.n ? own : S("both"), *role))
            continue;
        int64_t current = int_at(v, "current"), ready = current - int_at(v, "pending");
        s.supply += (double)MAX(ready, (int64_t)0) * real_at(v, capacity);
        s.anticipated +=
            (double)(MAX(ready, (int64_t)0) + int_at(v, "pending")) * real_at(v, capacity);
        s.demand += real_at(v, demand);
    }
    return s;
}

static double required(struct sums s, double up)
{
    return fmax(s.demand / up - s.anticipated, 0);
}

static double spare(struct sums s, double down)
{
    return fmax(s.supply - s.demand / down, 0);
}

static void read_voter(struct golden *g, const struct json *model, bool second,
                       struct vote_voter *voter)
{
    const char *capacity = second ? "perReplicaCapacity2" : "perReplicaCapacity",
               *demand = second ? "demand2" : "demand";
    const struct json *variants = json_get(model, "variants");
    size_t n = json_len(variants);
    double up = real_at(model, "scaleUpThreshold"), down = real_at(model, "scaleDownBoundary");
    double *each = arena_array(g->arena, n, sizeof(double));
    struct vote_role *roles = arena_array(g->arena, n, sizeof(*roles));
    struct sums all = sum_variants(variants, NULL, capacity, demand);
    *voter = (struct vote_voter){
        .name = second ? S("throughput") : S("saturation"),
        .score = real_at(model, second ? "score2" : "score"),
        .votes = true,
        .live = !second || json_bool(json_get(model, "live2"), false),
        .per_replica = each,
        .required = required(all, up),
        .spare = spare(all, down),
        .demand = all.demand,
        .roles = roles,
    };
    bool split = false;
    for (size_t i = 0; i < n; i++) {
        const struct json *v = json_item(variants, i);
        str role = text_at(v, "role"), reason = text_at(v, "reason");
        split |= role.n && !str_eqc(role, "both");
        each[i] = real_at(v, capacity);
        voter->informative |= !str_eqc(reason, "no-data") && !str_eqc(reason, "error");
    }
    for (size_t i = 0; split && i < n; i++) {
        str role = text_at(json_item(variants, i), "role");
        role = role.n ? role : S("both");
        size_t at = 0;
        while (at < voter->role_n && !str_eq(roles[at].role, role))
            at++;
        if (at < voter->role_n)
            continue;
        struct sums s = sum_variants(variants, &role, capacity, demand);
        roles[voter->role_n++] =
            (struct vote_role){ role, required(s, up), spare(s, down), s.demand };
    }
}

static struct vote_model read_model(struct golden *g, const struct json *m)
{
    const struct json *list = json_get(m, "variants");
    struct vote_variant *variants = arena_array(g->arena, json_len(list), sizeof(*variants));
    struct vote_voter *voters = arena_array(g->arena, 2, sizeof(*voters));
    for (size_t i = 0; i < json_len(list); i++)
        variants[i] = read_variant(json_item(list, i));
    bool second = json_bool(json_get(m, "secondAnalyzer"), false);
    read_voter(g, m, false, &voters[0]);
    if (second)
        read_voter(g, m, true, &voters[1]);
    return (struct vote_model){ text_at(m, "namespace"), text_at(m, "modelID"),
                                real_at(m, "priority"),  variants,
                                json_len(list),          voters,
                                1 + (size_t)second };
}

/* ---- limits */

static struct quota_types read_types(struct golden *g, const struct json *map)
{
    struct quota_type *types = arena_array(g->arena, json_len(map), sizeof(*types));
    size_t n = 0;
    json_each(m, map)
        types[n++] = (struct quota_type){ m->key, json_int(m->value, 0) };
    return (struct quota_types){ types, n };
}

static struct quota read_quota(struct golden *g, const struct json *q)
{
    const struct json *spaces = json_get(q, "namespaceQuotas"), *exclude = json_get(q, "exclude");
    struct quota_namespace *list = arena_array(g->arena, json_len(spaces), sizeof(*list));
    str *names = arena_array(g->arena, json_len(exclude), sizeof(str));
    size_t n = 0;
    json_each(m, spaces)
        list[n++] = (struct quota_namespace){ m->key, read_types(g, m->value) };
    for (size_t i = 0; i < json_len(exclude); i++)
        names[i] = json_text(json_item(exclude, i));
    return (struct quota){ .name = text_at(q, "name"),
                           .by_namespace = str_eqc(text_at(q, "scope"), "namespace"),
                           .types = read_types(g, json_get(q, "quotas")),
                           .namespaces = list,
                           .namespace_n = n,
                           .exclude = names,
                           .exclude_n = json_len(exclude) };
}

static struct quota_usage *read_usage(struct golden *g, const struct vote_model *models, size_t n,
                                      size_t *ret_n)
{
    size_t most = n, at = 0;
    for (size_t i = 0; i < n; i++)
        most += models[i].variant_n;
    struct quota_usage *usage = arena_array(g->arena, most, sizeof(*usage));
    for (size_t i = 0; i < n; i++) {
        usage[at++] = (struct quota_usage){ models[i].ns, S(""), 0 };
        for (size_t v = 0; v < models[i].variant_n; v++) {
            const struct vote_variant *x = &models[i].variants[v];
            usage[at++] = (struct quota_usage){ models[i].ns, x->accelerator,
                                                x->current * MAX(x->gpus, (int64_t)1) };
        }
    }
    *ret_n = at;
    return usage;
}

/* The stock of nodes as a provider: WVA compares short names. */
static struct fair_provider read_stock(struct golden *g, const struct json *nodes,
                                       const struct quota_usage *usage, size_t usage_n)
{
    struct quota_type *types = arena_array(g->arena, 64, sizeof(*types));
    size_t n = 0;
    json_each(node, nodes)
        json_each(m, node->value) {
            str type = sat_accelerator_name(m->key);
            size_t at = 0;
            while (at < n && !str_eq(types[at].type, type))
                at++;
            types[at].type = type;
            types[at].limit += json_int(m->value, 0);
            n = MAX(n, at + 1);
        }
    struct quota q = { .types = { types, n } };
    return quota_provider(g->arena, &q, usage, usage_n);
}

static struct fair_provider *read_providers(struct golden *g, const struct json *limiter,
                                            const struct vote_model *models, size_t model_n,
                                            size_t *ret_n)
{
    size_t usage_n;
    struct quota_usage *usage = read_usage(g, models, model_n, &usage_n);
    const struct json *quotas = json_get(limiter, "quotas");
    struct fair_provider *providers =
        arena_array(g->arena, json_len(quotas) + 1, sizeof(*providers));
    size_t n = 0;
    if (json_get(limiter, "nodes"))
        providers[n++] = read_stock(g, json_get(limiter, "nodes"), usage, usage_n);
    for (size_t i = 0; i < json_len(quotas); i++) {
        struct quota q = read_quota(g, json_item(quotas, i));
        struct quota *kept = arena_new(g->arena, struct quota);
        *kept = q;
        providers[n++] = quota_provider(g->arena, kept, usage, usage_n);
    }
    *ret_n = n;
    return providers;
}

/* ---- wva-limiter-priority */

static void check_model(struct golden *g, const struct vote_model *m,
                        const struct vote_target *targets, const struct json *want, size_t *seen)
{
    for (size_t i = 0; targets && i < m->variant_n; i++) {
        str key = arena_printf(g->arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(m->ns),
                               STR_ARG(m->model), STR_ARG(m->variants[i].name));
        const struct json *w = json_get_str(want, key);
        const struct vote_target *t = &targets[i];
        ++*seen;
        golden_eq_int(g, key.p, t->replicas, json_get(w, "target"));
        golden_eq_str(g, key.p,
                      str_c(sat_action_name((int)m->variants[i].current, (int)t->replicas)),
                      json_get(w, "action"));
        golden_eq_str(g, key.p, t->category, json_get(w, "category"));
        golden_eq_str(g, key.p, t->reason, json_get(w, "reason"));
        golden_eq_real(g, key.p, t->required, json_get(w, "requiredCapacity"), near);
        golden_eq_real(g, key.p, t->spare, json_get(w, "spareCapacity"), near);
    }
}

static void run_priority(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want"),
                      *list = json_get(in, "models"), *limiter = json_get(in, "limiter"),
                      *rescale = json_get(in, "rescale"),
                      *spaces = json_get(rescale, "byNamespace");
    size_t n = json_len(list), seen = 0;
    struct vote_model *models = arena_array(g->arena, n, sizeof(*models));
    str *names = arena_array(g->arena, json_len(spaces), sizeof(str));
    struct fair_input fair = { .models = models, .model_n = n, .rescale_namespaces = names };
    for (size_t i = 0; i < n; i++)
        models[i] = read_model(g, json_item(list, i));
    json_each(m, spaces)
        if (json_bool(m->value, false))
            names[fair.rescale_namespace_n++] = m->key;
    fair.rescale_cluster = json_bool(json_get(rescale, "cluster"), false);
    bool limited = json_is(limiter, JSON_OBJ);
    struct vote_target **targets = arena_array(g->arena, n, sizeof(*targets));
    if (limited) {
        fair.providers = read_providers(g, limiter, models, n, &fair.provider_n);
        targets = fair_decide(g->arena, &fair);
    }
    for (size_t i = 0; i < n && !limited; i++)
        targets[i] = vote_decide(g->arena, &models[i]);
    golden_eq_str(g, "optimizer", limited ? S("greedy-by-score") : S("cost-aware"),
                  json_get(want, "optimizer"));
    for (size_t i = 0; i < n; i++)
        check_model(g, &models[i], targets[i], json_get(want, "decisions"), &seen);
    golden_ok(g, seen == json_len(json_get(want, "decisions")), "want %zu decisions, got %zu",
              json_len(json_get(want, "decisions")), seen);
}

/* ---- wva-quota-limiter */

static void check_steps(struct golden *g, const struct quota_decision *d, const struct json *want)
{
    struct json *steps = json_new_arr(g->arena);
    for (size_t i = 0; i < d->step_n; i++) {
        struct json *s = json_new_obj(g->arena);
        json_set_str(g->arena, s, "name", d->steps[i].name);
        json_set_str(g->arena, s, "reason", d->steps[i].reason);
        json_set_bool(g->arena, s, "constrained", d->steps[i].constrained);
        json_push(g->arena, steps, s);
    }
    golden_eq_json(g, "steps", steps, want);
}

static void run_quota(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *list = json_get(in, "decisions"),
                      *quotas = json_get(in, "quotas"),
                      *want = json_at(c, "want", "decisions", NULL);
    size_t n = json_len(list);
    struct quota *q = arena_array(g->arena, json_len(quotas), sizeof(*q));
    struct quota_decision *d = arena_array(g->arena, n, sizeof(*d));
    for (size_t i = 0; i < json_len(quotas); i++)
        q[i] = read_quota(g, json_item(quotas, i));
    for (size_t i = 0; i < n; i++) {
        const struct json *x = json_item(list, i);
        d[i] = (struct quota_decision){
            .variant = text_at(x, "variant"),
            .ns = text_at(x, "namespace"),
            .accelerator = text_at(x, "accelerator"),
            .current = int_at(x, "current"),
            .target = int_at(x, "target"),
            .gpus = int_at(x, "gpusPerReplica"),
            .spare = real_at(x, "spareCapacity"),
            .cost = real_at(x, "cost"),
            .min = int_at(x, "min"),
            .max = int_at(x, "max"),
            .limited_by = S(""),
        };
    }
    quota_limit(g->arena, q, json_len(quotas), d, n, false);
    golden_ok(g, json_len(want) == n, "want %zu decisions, got %zu", json_len(want), n);
    for (size_t i = 0; i < n; i++) {
        const struct json *w = json_item(want, i);
        golden_eq_str(g, "variant", d[i].variant, json_get(w, "variant"));
        golden_eq_str(g, "accelerator", d[i].accelerator, json_get(w, "accelerator"));
        golden_eq_int(g, "target", d[i].target, json_get(w, "target"));
        golden_eq_int(g, "gpusAllocated", d[i].granted, json_get(w, "gpusAllocated"));
        golden_eq_bool(g, "wasLimited", d[i].limited, json_get(w, "wasLimited"));
        golden_eq_str(g, "limitedBy", d[i].limited_by, json_get(w, "limitedBy"));
        check_steps(g, &d[i], json_get(w, "steps"));
    }
}

/* ---- wva-saturation-v2-aug2026 */

static struct sat_token_replica read_replica(const struct json *r)
{
    return (struct sat_token_replica){
        .variant = text_at(r, "variant"),
        .accelerator = text_at(r, "accelerator"),
        .cost = real_at(r, "cost"),
        .queue = real_at(r, "queueLength"),
        .capacity = int_at(r, "totalKvCapacityTokens"),
        .in_use = int_at(r, "tokensInUse"),
        .input_tokens = real_at(r, "avgInputTokens"),
        .output_tokens = real_at(r, "avgOutputTokens"),
        .hit_rate = real_at(r, "prefixCacheHitRate"),
        .kv_usage = real_at(r, "kvCacheUsage"),
    };
}

static struct sat_token_input read_step(struct golden *g, const struct json *step,
                                        const struct compat_entry *config)
{
    const struct json *list = json_get(step, "replicas"), *states = json_get(step, "states"),
                      *waiting = json_get(step, "schedulerQueueSizeBytes");
    struct sat_token_replica *r = arena_array(g->arena, json_len(list), sizeof(*r));
    struct sat_token_state *s = arena_array(g->arena, json_len(states), sizeof(*s));
    for (size_t i = 0; i < json_len(list); i++)
        r[i] = read_replica(json_item(list, i));
    for (size_t i = 0; i < json_len(states); i++) {
        const struct json *x = json_item(states, i);
        s[i] = (struct sat_token_state){ .variant = text_at(x, "variant"),
                                         .current = int_at(x, "current"),
                                         .pending = int_at(x, "pending"),
                                         .gpus_per_replica = int_at(x, "gpusPerReplica"),
                                         .role = text_at(x, "role") };
    }
    return (struct sat_token_input){
        .ns = S("ns"),
        .model = S("m"),
        .kv_threshold = config->number[SAT_KV_THRESHOLD],
        .queue_threshold = config->number[SAT_QUEUE_THRESHOLD],
        .scale_up_at = config->number[SAT_UP_THRESHOLD],
        .scale_down_at = config->number[SAT_DOWN_BOUNDARY],
        .replicas = r,
        .replica_n = json_len(list),
        .states = s,
        .state_n = json_len(states),
        .waiting_requests = golden_real(json_item(waiting, 0), 0),
        .waiting_bytes = golden_real(json_item(waiting, 1), 0),
        .rules = TOKEN_AUG2026,
    };
}

static void check_capacities(struct golden *g, const struct sat_token_analysis *t,
                             const struct json *want)
{
    const struct json *list = json_get(want, "variantCapacities");
    golden_ok(g, json_len(list) == t->n, "want %zu variants, got %zu", json_len(list), t->n);
    for (size_t i = 0; i < t->n; i++) {
        const struct sat_token_capacity *v = &t->variants[i];
        const struct json *w = json_item(list, i);
        golden_eq_str(g, "variant", v->variant, json_get(w, "variant"));
        golden_eq_str(g, "accelerator", v->accelerator, json_get(w, "accelerator"));
        golden_eq_real(g, "cost", v->cost, json_get(w, "cost"), near);
        golden_eq_str(g, "role", v->role, json_get(w, "role"));
        golden_eq_int(g, "replicaCount", v->ready, json_get(w, "replicaCount"));
        golden_eq_int(g, "pendingReplicas", v->pending, json_get(w, "pendingReplicas"));
        golden_eq_int(g, "perReplicaCapacity", v->per_replica, json_get(w, "perReplicaCapacity"));
        golden_eq_str(g, "reason", str_c(v->label), json_get(w, "reason"));
        golden_eq_real(g, "totalCapacity", v->supply, json_get(w, "totalCapacity"), near);
        golden_eq_real(g, "totalDemand", v->demand, json_get(w, "totalDemand"), near);
        golden_eq_real(g, "utilization", v->utilization, json_get(w, "utilization"), near);
    }
    const struct json *roles = json_get(want, "roles");
    golden_ok(g, json_len(roles) == t->role_n, "want %zu roles, got %zu", json_len(roles),
              t->role_n);
    for (size_t i = 0; i < t->role_n; i++) {
        const struct sat_token_role *r = &t->roles[i];
        const struct json *w = json_get_str(roles, r->role);
        golden_eq_real(g, "role supply", r->supply, json_get(w, "supply"), near);
        golden_eq_real(g, "role demand", r->demand, json_get(w, "demand"), near);
        golden_eq_real(g, "role anticipated", r->anticipated, json_get(w, "anticipated"), near);
        golden_eq_real(g, "role required", r->required, json_get(w, "required"), near);
        golden_eq_real(g, "role spare", r->spare, json_get(w, "spare"), near);
    }
}

/* The analysis as the only voter, and what it decides. */
static void check_decisions(struct golden *g, const struct sat_token_analysis *t,
                            const struct json *step, const struct json *want, bool live)
{
    const struct json *states = json_get(step, "states"), *decisions = json_get(want, "decisions");
    struct vote_variant *variants = arena_array(g->arena, t->n, sizeof(*variants));
    struct vote_role *roles = arena_array(g->arena, t->role_n, sizeof(*roles));
    double *each = arena_array(g->arena, t->n, sizeof(double));
    struct vote_voter voter = { S("saturation"), 1,        true,      live,  false,    each,
                                t->required,     t->spare, t->demand, roles, t->role_n };
    for (size_t i = 0; i < t->n; i++) {
        variants[i] = read_variant(json_item(states, i));
        variants[i].cost = t->variants[i].cost;
        variants[i].accelerator = t->variants[i].accelerator;
        each[i] = (double)t->variants[i].per_replica;
        voter.informative |= strcmp(t->variants[i].label, "no-data") != 0;
    }
    for (size_t i = 0; i < t->role_n; i++)
        roles[i] = (struct vote_role){ t->roles[i].role, t->roles[i].required, t->roles[i].spare,
                                       t->roles[i].demand };
    struct vote_model m = { S("ns"), S("m"), 1, variants, t->n, &voter, 1 };
    const struct vote_target *targets = vote_decide(g->arena, &m);
    golden_ok(g, json_len(decisions) == (targets ? t->n : 0), "want %zu decisions, got %zu",
              json_len(decisions), targets ? t->n : 0);
    for (size_t i = 0; targets && i < t->n; i++) {
        const struct json *w = json_get_str(decisions, variants[i].name);
        golden_eq_int(g, "target", targets[i].replicas, json_get(w, "target"));
        golden_eq_str(g, "decision", targets[i].reason, json_get(w, "reason"));
        golden_eq_real(g, "required", targets[i].required, json_get(w, "requiredCapacity"), near);
        golden_eq_real(g, "spare", targets[i].spare, json_get(w, "spareCapacity"), near);
    }
}

static void run_tokens(struct golden *g, const struct json *c)
{
    const struct json *steps = json_get(c, "input"), *want = json_get(c, "want");
    struct sat_token_store store = { 0 };
    bool seen = false; /* a result with data: within three intervals the analyzer is live */
    for (size_t i = 0; i < json_len(steps); i++) {
        const struct json *step = json_item(steps, i), *w = json_item(want, i);
        struct compat_entry entry, config;
        if (!golden_ok(g, compat_entry_load(g->arena, text_at(step, "config"), &entry, NULL) == 0,
                       "the configuration is invalid"))
            break;
        config = compat_resolve(g->arena, &entry, NULL);
        golden_load_templates(g, &store, json_get(step, "deployments"));
        struct sat_token_input in = read_step(g, step, &config);
        struct sat_token_analysis t = sat_token_analyze(g->arena, &store, &in);
        golden_eq_real(g, "totalSupply", t.supply, json_get(w, "totalSupply"), near);
        golden_eq_real(g, "totalDemand", t.demand, json_get(w, "totalDemand"), near);
        golden_eq_real(g, "anticipated", t.anticipated, json_get(w, "anticipatedSupply"), near);
        golden_eq_real(g, "utilization", t.utilization, json_get(w, "utilization"), near);
        golden_eq_real(g, "required", t.required, json_get(w, "requiredCapacity"), near);
        golden_eq_real(g, "spare", t.spare, json_get(w, "spareCapacity"), near);
        check_capacities(g, &t, w);
        for (size_t v = 0; v < t.n; v++)
            seen |= strcmp(t.variants[v].label, "no-data") != 0;
        golden_eq_bool(g, "live", seen, json_get(w, "live"));
        golden_eq_bool(g, "votes", policy_votes(&config.policy, S("saturation")),
                       json_get(w, "votes"));
        check_decisions(g, &t, step, w, seen);
    }
    sat_token_store_done(&store);
}

const struct golden_family golden_saturation_votes[] = {
    { "wva-limiter-priority", run_priority },
    { "wva-quota-limiter", run_quota },
    { "wva-saturation-v2-aug2026", run_tokens },
    { 0 },
};
