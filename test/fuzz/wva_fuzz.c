/* What others put into objects that the feature reads: metrics text of an endpoint picker, annotations of scalers, nodes,
 * triggers and command lines. Any bytes can be read, and what is read from them keeps its promises. */
#include "fuzz.h"
#include "prom/scrape.h"
#include "saturation/objects/annotation_core.h"
#include "saturation/objects/follow_core.h"
#include "saturation/objects/stock_core.h"
#include "saturation/objects/vllm_args_core.h"
#include "saturation/zero/wake_core.h"
#include "json/yaml.h"

#include <math.h>

/* ---- the page of an endpoint picker */

enum { SAMPLES_MAX = 64 };

struct page {
    struct arena a;
    struct wake_sample samples[SAMPLES_MAX];
    size_t n;
};

static int add_sample(void *context, const struct scrape_sample *s, err_t *e)
{
    struct page *p = context;
    (void)e;
    if (p->n == SAMPLES_MAX)
        return 0;
    struct wake_sample *to = &p->samples[p->n++];
    *to = (struct wake_sample){ .metric = arena_str(&p->a, s->name),
                                .model = S(""),
                                .target_model = S(""),
                                .value = s->value };
    for (size_t i = 0; i < s->label_n; i++) {
        if (str_eqc(s->labels[i].name, "model_name"))
            to->model = arena_str(&p->a, s->labels[i].value);
        if (str_eqc(s->labels[i].name, "target_model_name"))
            to->target_model = arena_str(&p->a, s->labels[i].value);
    }
    return 0;
}

/* Requests wait only if a sample of the queue has a positive number that is finite. */
static void check_page(str text)
{
    struct page p = { 0 };
    bool any = false;
    err_t e;
    if (scrape_read(text, add_sample, &p, &e) == 0) {
        for (size_t i = 0; i < p.n; i++)
            any |= wake_is_queue_metric(p.samples[i].metric) && p.samples[i].value > 0 &&
                   isfinite(p.samples[i].value);
        if (wake_read_demand(p.samples, p.n, S("llama"), WAKE_OURS) == WAKE_PENDING && !any)
            abort();
    }
    arena_done(&p.a);
}

/* ---- objects */

static void check_annotations(const struct json *tree)
{
    struct annotation_object o = { .kind = json_bool(json_get(tree, "keda"), false)
                                               ? ANNOTATION_SCALEDOBJECT
                                               : ANNOTATION_HPA,
                                   .ns = S("llm"),
                                   .name = S("web"),
                                   .managed = S("true"),
                                   .managed_label = S(""),
                                   .model = json_text(json_get(tree, "model")),
                                   .cost = json_text(json_get(tree, "cost")),
                                   .target_api = json_text(json_get(tree, "api")),
                                   .target_kind = json_text(json_get(tree, "kind")),
                                   .target = json_text(json_get(tree, "target")) };
    struct annotation_variant v;
    err_t e;
    if (annotation_read(&o, ANNOTATION_OURS, &v, &e) == 0 &&
        (!v.model.n || !v.target.n || !isfinite(v.cost) || v.cost < 0))
        abort();
}

static struct text_pair *read_pairs(struct arena *a, const struct json *from, size_t *ret_n)
{
    struct text_pair *pairs = arena_array(a, json_len(from), sizeof(*pairs));
    size_t n = 0;
    json_each(m, from)
        pairs[n++] = (struct text_pair){ m->key, json_text(m->value) };
    *ret_n = n;
    return pairs;
}

/* What fits is within what is free, and that within what is there. */
static void check_nodes(struct arena *a, const struct json *list)
{
    struct stock_node *nodes = arena_array(a, json_len(list), sizeof(*nodes));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *from = json_item(list, i), *taint = json_get(from, "taint");
        struct stock_taint *taints = arena_new(a, struct stock_taint);
        *taints = (struct stock_taint){ json_text(json_get(taint, "key")),
                                        json_text(json_get(taint, "value")),
                                        json_text(json_get(taint, "effect")) };
        nodes[i] =
            (struct stock_node){ .name = json_text(json_get(from, "name")),
                                 .unschedulable = json_bool(json_get(from, "unschedulable"), false),
                                 .ready = STOCK_READY,
                                 .taints = taints,
                                 .taint_n = taint ? 1 : 0 };
        nodes[i].labels = read_pairs(a, json_get(from, "labels"), &nodes[i].label_n);
        nodes[i].allocatable =
            read_pairs(a, json_get(from, "allocatable"), &nodes[i].allocatable_n);
    }
    struct stock_pod pod = { .node = S("n1"), .type = S(""), .gpus = 3 };
    struct stock stock = stock_count(a, nodes, json_len(list), &pod, 1, STOCK_OURS);
    for (int64_t gpus = 1; gpus <= 8; gpus *= 2) {
        struct stock_need need = { .type = S("H100"), .gpus_per_pod = gpus, .pods_per_replica = 2 };
        struct stock_room room = stock_room_for(&stock, &need);
        if (room.replicas < 0 || room.free < 0 || room.free > room.total ||
            room.replicas > room.free / (2 * gpus))
            abort();
    }
}

static void check_scaler(const struct json *tree)
{
    unsigned found =
        follow_check(&(struct follow_scaler){ .by_keda = json_bool(json_get(tree, "keda"), false),
                                              .managed = true,
                                              .readings = json_get(tree, "readings"),
                                              .has_fallback = json_get(tree, "fallback") != NULL,
                                              .fallback = json_int(json_get(tree, "fallback"), 0),
                                              .min = json_int(json_get(tree, "min"), 0) });
    if ((found & FOLLOW_NOT_CONSUMED) && found != FOLLOW_NOT_CONSUMED)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json_limits limits = { .depth = 20, .members = 50 };
    struct json *tree;
    str text = { (const char *)data, size };
    check_page(text);
    if (yaml_parse_limited(&a, text, &limits, &tree, NULL) < 0)
        return 0;
    check_annotations(tree);
    check_nodes(&a, json_get(tree, "nodes"));
    check_scaler(tree);
    const struct json *containers = json_get(tree, "containers");
    struct sat_vllm_args args = sat_is_sglang(&a, containers)
                                    ? sat_sglang_args_parse(&a, containers)
                                    : sat_vllm_args_parse(&a, containers);
    (void)sat_vllm_batched_tokens(&args);
    return 0;
}
