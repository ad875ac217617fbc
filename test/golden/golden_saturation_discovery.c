/* Families of what WVA 0.9 discovers and configures: wva-annotations, wva-gpu-inventory,
 * wva-scale-target, wva-scale-from-zero, wva-v2-config and wva-zero-aug2026. Where flyball differs
 * on purpose, these run with WVA's rules. */
#include "golden.h"

#include "base/labels.h"
#include "prom/scrape.h"
#include "saturation/config/compat_core.h"
#include "saturation/objects/annotation_core.h"
#include "saturation/objects/stock_core.h"
#include "saturation/objects/workload_core.h"
#include "saturation/wva/hybrid_core.h"
#include "saturation/zero/wake_core.h"
#include "saturation/zero/zero_core.h"
#include "saturation/zero/zero_policy_core.h"

static const struct tolerance exact = { 1e-12, 0 };

static str text_at(const struct json *o, const char *key)
{
    return json_text(json_get(o, key));
}

static struct text_pair *read_pairs(struct golden *g, const struct json *map)
{
    struct text_pair *pairs = arena_array(g->arena, json_len(map), sizeof(*pairs));
    size_t n = 0;
    json_each(m, map)
        pairs[n++] = (struct text_pair){ m->key, json_text(m->value) };
    return pairs;
}

/* ---- wva-annotations */

static struct annotation_object read_object(const struct json *o)
{
    const struct json *notes = json_at(o, "metadata", "annotations", NULL),
                      *spec = json_get(o, "spec"), *target = json_get(spec, "scaleTargetRef");
    bool hpa = str_eqc(text_at(o, "kind"), "HorizontalPodAutoscaler");
    const struct json *min = json_get(spec, hpa ? "minReplicas" : "minReplicaCount"),
                      *max = json_get(spec, hpa ? "maxReplicas" : "maxReplicaCount");
    return (struct annotation_object){
        .kind = hpa ? ANNOTATION_HPA : ANNOTATION_SCALEDOBJECT,
        .ns = json_text(json_at(o, "metadata", "namespace", NULL)),
        .name = json_text(json_at(o, "metadata", "name", NULL)),
        .managed = text_at(notes, "llm-d.ai/managed"),
        .model = text_at(notes, "llm-d.ai/model-id"),
        .cost = text_at(notes, "llm-d.ai/variant-cost"),
        .deleting = json_at(o, "metadata", "deletionTimestamp", NULL) != NULL,
        .target_api = text_at(target, "apiVersion"),
        .target_kind = text_at(target, "kind"),
        .target = text_at(target, "name"),
        .has_min = json_is(min, JSON_INT),
        .min = json_int(min, 0),
        .has_max = json_is(max, JSON_INT),
        .max = json_int(max, 0),
    };
}

static struct json *show_variant(struct golden *g, const struct annotation_variant *v,
                                 const struct json *labels)
{
    struct json *out = json_new_obj(g->arena), *target = json_new_obj(g->arena);
    json_set_str(g->arena, target, "apiVersion", v->target_api);
    json_set_str(g->arena, target, "kind", v->target_kind);
    json_set_str(g->arena, target, "name", v->target);
    json_set_str(g->arena, out, "name", v->name);
    json_set_str(g->arena, out, "namespace", v->ns);
    json_set_str(g->arena, out, "modelID", v->model);
    json_set_str(g->arena, out, "variantCost", v->cost_text);
    json_set(g->arena, out, S("scaleTargetRef"), target);
    json_set(g->arena, out, S("minReplicas"),
             v->has_min ? json_new_int(g->arena, v->min) : json_new_null(g->arena));
    json_set_int(g->arena, out, "maxReplicas", v->max);
    if (labels)
        json_set(g->arena, out, S("labels"), json_copy(g->arena, labels));
    return out;
}

static void run_annotated_object(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *object = json_get(in, "object");
    struct annotation_object o = read_object(object);
    struct annotation_variant v;
    err_t e = { 0 };
    o.deleting = false; /* the list filters those */
    int r = annotation_read(&o, ANNOTATION_WVA, &v, &e);
    golden_eq_bool(g, "managed", annotation_is_managed(&o, ANNOTATION_WVA),
                   json_get(want, "managed"));
    golden_eq_bool(g, "ok", r == 0, json_get(want, "ok"));
    if (r < 0)
        golden_eq_str(g, "error", str_c(e.text), json_get(want, "error"));
    else
        golden_eq_json(g, "variant",
                       show_variant(g, &v, json_at(object, "metadata", "labels", NULL)),
                       json_get(want, "variant"));
}

/* Replicas of the target of a variant; -1: it does not exist, or WVA does not know its kind. */
static int64_t find_replicas(const struct json *targets, const struct annotation_variant *v)
{
    if (!str_eqc(v->target_kind, "Deployment") && !str_eqc(v->target_kind, "LeaderWorkerSet"))
        return -1;
    for (size_t i = 0; i < json_len(targets); i++) {
        const struct json *t = json_item(targets, i);
        if (str_eq(text_at(t, "kind"), v->target_kind) &&
            str_eq(json_text(json_at(t, "metadata", "namespace", NULL)), v->ns) &&
            str_eq(json_text(json_at(t, "metadata", "name", NULL)), v->target) &&
            !json_at(t, "metadata", "deletionTimestamp", NULL))
            return json_int(json_at(t, "spec", "replicas", NULL), 1);
    }
    return -1;
}

static bool is_in_list(const struct json *list, const struct annotation_variant *v)
{
    auto_arena struct arena scratch = { 0 };
    str target =
        arena_printf(&scratch, STR_FMT "/" STR_FMT, STR_ARG(v->target_kind), STR_ARG(v->target));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        if (str_eq(text_at(x, "name"), v->name) && str_eq(text_at(x, "namespace"), v->ns) &&
            str_eq(text_at(x, "modelID"), v->model) && str_eq(text_at(x, "target"), target))
            return true;
    }
    return false;
}

static void run_annotated_list(struct golden *g, const struct json *in, const struct json *want)
{
    const struct json *scalers = json_get(in, "scalers"), *active = json_get(want, "active"),
                      *inactive = json_get(want, "inactive");
    struct annotation_variant *v = arena_array(g->arena, json_len(scalers), sizeof(*v));
    size_t n = 0, counted[2] = { 0 };
    for (size_t i = 0; i < json_len(scalers); i++) {
        struct annotation_object o = read_object(json_item(scalers, i));
        n += annotation_read(&o, ANNOTATION_WVA, &v[n], NULL) == 0;
    }
    annotation_choose(v, n, ANNOTATION_WVA);
    for (size_t i = 0; i < n; i++) {
        int64_t replicas = find_replicas(json_get(in, "targets"), &v[i]);
        if (v[i].duplicate_of.n || replicas < 0)
            continue;
        counted[replicas > 0]++;
        golden_ok(g, is_in_list(replicas > 0 ? active : inactive, &v[i]),
                  STR_FMT "/" STR_FMT " is not wanted there", STR_ARG(v[i].ns), STR_ARG(v[i].name));
    }
    golden_ok(g, counted[1] == json_len(active), "want %zu active, got %zu", json_len(active),
              counted[1]);
    golden_ok(g, counted[0] == json_len(inactive), "want %zu inactive, got %zu", json_len(inactive),
              counted[0]);
}

static void run_annotations(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want");
    if (json_get(in, "object"))
        run_annotated_object(g, in, want);
    else
        run_annotated_list(g, in, want);
}

/* ---- wva-gpu-inventory */

static bool get_label(const void *labels, str key, str *ret)
{
    const struct json *v = json_get_str(labels, key);
    *ret = json_text(v);
    return v != NULL;
}

static int64_t sum_requests(const struct json *list)
{
    int64_t sum = 0;
    json_each(m, list)
        for (size_t i = 0; i < STOCK_RESOURCE_N; i++)
            if (str_eqc(m->key, stock_resources[i].resource)) {
                int64_t value;
                if (str_to_i64(json_text(m->value), &value) == 0)
                    sum += value;
            }
    return sum;
}

static struct stock_pod read_pod(struct golden *g, const struct json *p)
{
    const struct json *lists[] = { json_get(p, "requests"), json_get(p, "initRequests") };
    int64_t *gpus[2];
    for (size_t l = 0; l < countof(lists); l++) {
        gpus[l] = arena_array(g->arena, json_len(lists[l]), sizeof(int64_t));
        for (size_t i = 0; i < json_len(lists[l]); i++)
            gpus[l][i] = sum_requests(json_item(lists[l], i));
    }
    str phase = text_at(p, "phase");
    return (struct stock_pod){
        .node = text_at(p, "node"),
        .type = S(""),
        .done = str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed"),
        .gpus = stock_pod_gpus(gpus[0], json_len(lists[0]), gpus[1], json_len(lists[1])),
    };
}

static void add_count(struct golden *g, struct json *map, str key, int64_t count)
{
    const struct json *old = json_get_str(map, key);
    json_set(g->arena, map, key, json_new_int(g->arena, json_int(old, 0) + count));
}

static void run_inventory(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want"),
                      *nodes = json_get(in, "nodes"), *pods = json_get(in, "pods");
    struct labels_selector selector;
    bool bad = labels_parse(g->arena, text_at(in, "nodeSelector"), &selector, NULL) < 0;
    golden_ok(g, bad == json_is(json_get(want, "error"), JSON_STR), "the selector is%s valid",
              bad ? " not" : "");
    if (bad)
        return;
    struct stock_node *list = arena_array(g->arena, json_len(nodes), sizeof(*list));
    struct stock_pod *used = arena_array(g->arena, json_len(pods), sizeof(*used));
    size_t n = 0;
    for (size_t i = 0; i < json_len(nodes); i++) {
        const struct json *x = json_item(nodes, i), *labels = json_get(x, "labels"),
                          *allocatable = json_get(x, "allocatable");
        if (labels_match(&selector, get_label, labels))
            list[n++] = (struct stock_node){ .name = text_at(x, "name"),
                                             .labels = read_pairs(g, labels),
                                             .label_n = json_len(labels),
                                             .allocatable = read_pairs(g, allocatable),
                                             .allocatable_n = json_len(allocatable) };
    }
    for (size_t i = 0; i < json_len(pods); i++)
        used[i] = read_pod(g, json_item(pods, i));
    struct stock s = stock_count(g->arena, list, n, used, json_len(pods), STOCK_WVA);
    struct json *capacity = json_new_obj(g->arena), *types = json_new_obj(g->arena),
                *usage = json_new_obj(g->arena);
    for (size_t i = 0; i < s.n; i++) {
        struct json *node = json_get_str(capacity, s.items[i].node);
        if (!node) {
            node = json_new_obj(g->arena);
            json_set(g->arena, capacity, s.items[i].node, node);
        }
        add_count(g, node, s.items[i].product, s.items[i].count);
        add_count(g, types, s.items[i].type, s.items[i].count);
        if (s.items[i].used)
            add_count(g, usage, s.items[i].product, s.items[i].used);
    }
    golden_eq_json(g, "capacity", capacity, json_get(want, "capacity"));
    golden_eq_json(g, "limitByType", types, json_get(want, "limitByType"));
    golden_eq_json(g, "usageByProduct", usage, json_get(want, "usageByProduct"));
}

/* ---- wva-scale-target */

static void run_target(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want");
    struct workload_facts f = workload_read(g->arena, json_get(in, "object"),
                                            text_at(json_get(in, "variantLabels"),
                                                    "inference.optimization/acceleratorName"),
                                            WORKLOAD_WVA);
    golden_eq_int(g, "gpusPerReplica", f.gpus, json_get(want, "gpusPerReplica"));
    golden_eq_int(g, "groupSize", f.group_size, json_get(want, "groupSize"));
    golden_eq_str(g, "role", f.role, json_get(want, "role"));
    golden_eq_str(g, "accelerator", f.accelerator, json_get(want, "accelerator"));
    golden_eq_str(g, "acceleratorType", f.type, json_get(want, "acceleratorType"));
    golden_eq_str(g, "engine", f.sglang ? S("sglang") : S("vllm"), json_get(want, "engine"));
}

/* ---- wva-scale-from-zero */

struct samples {
    struct arena *arena;
    struct wake_sample at[64];
    size_t n;
};

static int keep_sample(void *context, const struct scrape_sample *s, err_t *e)
{
    struct samples *list = context;
    if (list->n == countof(list->at))
        return err_set(e, E2BIG, "too many samples");
    list->at[list->n++] = (struct wake_sample){
        arena_str(list->arena, s->name), arena_str(list->arena, scrape_label(s, S("model_name"))),
        arena_str(list->arena, scrape_label(s, S("target_model_name"))), s->value
    };
    return 0;
}

static enum wake_demand read_demand(struct golden *g, const struct json *pool, str model)
{
    struct samples list = { .arena = g->arena };
    int64_t status = json_int(json_get(pool, "httpStatus"), 200);
    if ((status && status != 200) || json_bool(json_get(pool, "noReadyPods"), false) ||
        scrape_read(text_at(pool, "metrics"), keep_sample, &list, NULL) < 0)
        return WAKE_UNKNOWN;
    return wake_read_demand(list.at, list.n, model, WAKE_WVA);
}

static void run_from_zero(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *list = json_get(in, "pools"),
                      *targets = json_get(in, "targets"),
                      *want = json_at(c, "want", "raised", NULL);
    struct wake_pool *pools = arena_array(g->arena, json_len(list), sizeof(*pools));
    size_t raised = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *p = json_item(list, i), *selector = json_get(p, "selector");
        pools[i] = (struct wake_pool){ text_at(p, "namespace"), text_at(p, "name"),
                                       read_pairs(g, selector), json_len(selector) };
    }
    for (size_t i = 0; i < json_len(targets); i++) {
        const struct json *t = json_item(targets, i), *labels = json_get(t, "podLabels");
        str ns = text_at(t, "namespace");
        const struct wake_pool *pool =
            wake_find_pool(pools, json_len(list), ns, read_pairs(g, labels), json_len(labels));
        if (json_int(json_get(t, "replicas"), 1) != 0 || !pool || !json_len(labels) ||
            read_demand(g, json_item(list, (size_t)(pool - pools)), text_at(t, "modelID")) !=
                WAKE_PENDING)
            continue;
        str name =
            arena_printf(g->arena, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(text_at(t, "name")));
        bool found = false;
        for (size_t k = 0; k < json_len(want); k++)
            found |= str_eq(text_at(json_item(want, k), "target"), name);
        golden_ok(g, found, STR_FMT " must not be raised", STR_ARG(name));
        raised++;
    }
    golden_ok(g, raised == json_len(want), "want %zu raised, got %zu", json_len(want), raised);
}

/* ---- wva-v2-config */

struct loaded {
    struct compat_entry base, override;
    bool has_base, has_override;
};

static struct loaded load_entries(struct golden *g, const struct json *data, str model, str ns,
                                  const struct json *want)
{
    struct loaded l = { 0 };
    str own = arena_printf(g->arena, STR_FMT "#" STR_FMT, STR_ARG(model), STR_ARG(ns));
    json_each(m, data) {
        struct compat_entry entry;
        err_t e = { 0 };
        int r = compat_entry_load(g->arena, json_text(m->value), &entry, &e);
        const struct json *w = json_get_str(want, m->key);
        if (want) {
            golden_eq_str(g, "status",
                          r == 0          ? S("accepted")
                          : r == -EBADMSG ? S("parse-error")
                                          : S("invalid"),
                          json_get(w, "status"));
            /* Texts of parse errors are not compared: they are those of the YAML library of Go, with its
             * types (`cannot unmarshal !!str into float64`), and "broken ones" are among the listed
             * differences of this family (saturation-next, L; D.1: the last good entry stays). */
            if (r == -EINVAL)
                golden_eq_str(g, "error", str_c(e.text), json_get(w, "error"));
        }
        if (r == 0 && str_eqc(m->key, "default")) {
            l.base = entry;
            l.has_base = true;
        } else if (r == 0 && str_eq(m->key, own)) {
            l.override = entry;
            l.has_override = true;
        }
    }
    return l;
}

static struct compat_entry resolve(struct golden *g, const struct loaded *l)
{
    return compat_resolve(g->arena, l->has_base ? &l->base : NULL,
                          l->has_override ? &l->override : NULL);
}

static void check_analyzers(struct golden *g, const struct sat_policy *p, const struct json *want)
{
    golden_ok(g, json_len(want) == p->analyzer_n, "want %zu analyzers, got %zu", json_len(want),
              p->analyzer_n);
    for (size_t i = 0; i < p->analyzer_n; i++) {
        const struct policy_analyzer *x = &p->analyzers[i];
        const struct json *w = json_item(want, i), *up = json_get(w, "scaleUpThreshold"),
                          *down = json_get(w, "scaleDownBoundary");
        golden_eq_str(g, "type", x->type, json_get(w, "type"));
        golden_eq_bool(g, "enabled", x->enabled, json_get(w, "enabled"));
        golden_eq_real(g, "score", x->score, json_get(w, "score"), exact);
        golden_ok(g, x->has_up != json_is(up, JSON_NULL), "scaleUpThreshold is set: %d", x->has_up);
        golden_ok(g, x->has_down != json_is(down, JSON_NULL), "scaleDownBoundary is set: %d",
                  x->has_down);
        if (x->has_up)
            golden_eq_real(g, "up", x->up, up, exact);
        if (x->has_down)
            golden_eq_real(g, "down", x->down, down, exact);
    }
}

static void check_voters(struct golden *g, const struct compat_entry *x, const struct json *want)
{
    static const char *const names[] = { "saturation", "throughput" };
    for (size_t i = 0; i < countof(names); i++) {
        str name = str_c(names[i]);
        const struct json *w = json_at(want, "voters", names[i], NULL),
                          *pair = json_at(want, "thresholds", names[i], NULL);
        const struct policy_analyzer *own = policy_find_analyzer(&x->policy, name);
        golden_eq_bool(g, "votes", policy_votes(&x->policy, name), json_get(w, "votes"));
        golden_eq_real(g, "score", policy_score(&x->policy, name), json_get(w, "score"), exact);
        golden_eq_real(g, "threshold up",
                       own && own->has_up ? own->up : x->number[SAT_UP_THRESHOLD],
                       json_item(pair, 0), exact);
        golden_eq_real(g, "threshold down",
                       own && own->has_down ? own->down : x->number[SAT_DOWN_BOUNDARY],
                       json_item(pair, 1), exact);
    }
}

static void check_limiters(struct golden *g, const struct loaded *l, const struct json *want)
{
    const struct quota *quotas = NULL;
    size_t n = l->has_base ? policy_quotas(g->arena, &l->base.policy, &quotas) : 0;
    const struct json *list = json_get(want, "quotaEntries");
    golden_eq_str(g, "limiterMode", n ? S("quota") : S("inventory"), json_get(want, "limiterMode"));
    golden_ok(g, json_len(list) == n, "want %zu quotas, got %zu", json_len(list), n);
    for (size_t i = 0; i < n; i++) {
        const struct json *w = json_item(list, i), *types = json_get(w, "quotas"),
                          *spaces = json_get(w, "namespaceQuotas");
        golden_eq_str(g, "name", quotas[i].name, json_get(w, "name"));
        golden_eq_str(g, "scope", quotas[i].by_namespace ? S("namespace") : S("cluster"),
                      json_get(w, "scope"));
        golden_ok(g, json_len(types) == quotas[i].types.n, "types: got %zu", quotas[i].types.n);
        for (size_t t = 0; t < quotas[i].types.n; t++)
            golden_eq_int(g, "quota", quotas[i].types.at[t].limit,
                          json_get_str(types, quotas[i].types.at[t].type));
        golden_ok(g, json_len(spaces) == quotas[i].namespace_n, "namespaces: got %zu",
                  quotas[i].namespace_n);
        golden_ok(g, json_len(json_get(w, "exclude")) == quotas[i].exclude_n, "excluded: got %zu",
                  quotas[i].exclude_n);
    }
}

static void run_config(struct golden *g, const struct json *c)
{
    static const char *const names[SAT_NUMBER_N] = {
        "kvCacheThreshold",  "queueLengthThreshold", "kvSpareTrigger",
        "queueSpareTrigger", "scaleUpThreshold",     "scaleDownBoundary",
    };
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want"),
                      *effective = json_get(want, "effective"),
                      *zero = json_get(effective, "scaleToZero");
    struct loaded l = load_entries(g, json_get(in, "data"), text_at(in, "modelID"),
                                   text_at(in, "namespace"), json_get(want, "entries"));
    struct compat_entry x = resolve(g, &l);
    golden_eq_str(g, "analyzer", compat_analyzer(l.has_base ? &l.base : NULL),
                  json_get(want, "analyzer"));
    for (int i = 0; i < SAT_NUMBER_N; i++)
        golden_eq_real(g, names[i], x.number[i], json_get(effective, names[i]), exact);
    golden_eq_real(g, "priority", x.priority, json_get(effective, "priority"), exact);
    golden_eq_bool(g, "enableLimiter", x.policy.limiter, json_get(effective, "enableLimiter"));
    golden_eq_bool(g, "enableRescale", x.policy.rescale, json_get(effective, "enableRescale"));
    golden_eq_bool(g, "rescaleCluster", l.has_base && l.base.policy.rescale,
                   json_get(want, "rescaleCluster"));
    golden_ok(g, x.policy.has_zero == json_is(zero, JSON_BOOL), "scaleToZero is set: %d",
              x.policy.has_zero);
    if (x.policy.has_zero)
        golden_eq_bool(g, "scaleToZero", x.policy.zero, zero);
    check_analyzers(g, &x.policy, json_get(effective, "analyzers"));
    check_voters(g, &x, want);
    check_limiters(g, &l, want);
}

/* ---- wva-zero-aug2026 */

static void run_zero(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want"),
                      *list = json_get(in, "decisions"), *count = json_get(in, "requestCount"),
                      *results = json_get(want, "decisions");
    size_t n = json_len(list);
    struct zero_decision *d = arena_array(g->arena, n, sizeof(*d));
    for (size_t i = 0; i < n; i++) {
        const struct json *x = json_item(list, i);
        d[i] = (struct zero_decision){ .variant = text_at(x, "variant"),
                                       .current = json_int(json_get(x, "current"), 0),
                                       .target = json_int(json_get(x, "target"), 0),
                                       .min = json_int(json_get(x, "min"), 0),
                                       .cost = json_real(json_get(x, "cost"), 0),
                                       .category = S("V2"),
                                       .reason = S("V2") };
    }
    struct loaded l = load_entries(g, json_get(in, "saturation"), S("m"), S("ns"), NULL);
    struct compat_entry x = resolve(g, &l);
    struct zero_table table = zero_table_load(g->arena, json_get(in, "scaleToZero"), NULL).table;
    bool env = str_eq_nocase(text_at(in, "env"), S("true"));
    struct zero_policy policy = { .enabled = x.policy.has_zero ? x.policy.zero
                                                               : zero_enabled(&table, S("m"), env),
                                  .counted = !json_is(count, JSON_NULL),
                                  .requests = golden_real(count, 0),
                                  .optimizer = "cost-aware" };
    int64_t asked =
        zero_policy_counts(d, n, &policy, ZERO_WVA) ? zero_retention_ns(&table, S("m")) : 0;
    bool applied = zero_policy_apply(g->arena, d, n, &policy, ZERO_WVA);
    golden_eq_bool(g, "applied", applied, json_get(want, "applied"));
    golden_eq_int(g, "askedRetentionNs", asked, json_get(want, "askedRetentionNs"));
    golden_ok(g, json_len(results) == n, "want %zu decisions, got %zu", json_len(results), n);
    for (size_t i = 0; i < n; i++) {
        const struct json *w = json_item(results, i);
        golden_eq_int(g, "target", d[i].target, json_get(w, "target"));
        golden_eq_str(g, "reason", d[i].reason, json_get(w, "reason"));
        golden_eq_str(g, "action", str_c(sat_action_name((int)d[i].current, (int)d[i].target)),
                      json_get(w, "action"));
    }
}

const struct golden_family golden_saturation_discovery[] = {
    { "wva-annotations", run_annotations },
    { "wva-gpu-inventory", run_inventory },
    { "wva-scale-from-zero", run_from_zero },
    { "wva-scale-target", run_target },
    { "wva-v2-config", run_config },
    { "wva-zero-aug2026", run_zero },
    { 0 },
};
