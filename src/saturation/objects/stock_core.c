/* GPUs that the nodes have and that pods use, by product; see stock_core.h.
 *
 * A node's labels name its product, its allocatable resources the number; each vendor has its own names for
 * both (stock_resources). STOCK_WVA counts as WVA does; STOCK_OURS also knows the labels of GKE and of older
 * AMD drivers, and counts pods that are not bound to a node yet, which would otherwise be given the same GPUs
 * twice.
 *
 * stock_room_for() answers for one variant: which of these GPUs could the scheduler give it, considering
 * cordons, taints and its node selector? A replica of several pods needs room for all of them. */
#include "stock_core.h"

#include "../../base/quantity.h"
#include "../../json/json.h"

const struct stock_resource stock_resources[STOCK_RESOURCE_N] = {
    { "NVIDIA", "nvidia.com/gpu", "nvidia.com/gpu.product" },
    { "AMD", "amd.com/gpu", "amd.com/gpu.product-name" },
    { "Intel", "habana.ai/gaudi", "habana.ai/product.name" },
    { "Intel", "gpu.intel.com/i915", "gpu.intel.com/product" },
    { "Intel", "gpu.intel.com/xe", "gpu.intel.com/product" },
};

static const char gke_label[] = "cloud.google.com/gke-accelerator";
static const char old_amd_label[] = "amd.com/gpu.product";

bool stock_is_product_label(str label)
{
    for (size_t i = 0; i < STOCK_RESOURCE_N; i++)
        if (str_eqc(label, stock_resources[i].product_label))
            return true;
    return str_eqc(label, gke_label) || str_eqc(label, old_amd_label);
}

static const str *find_pair(const struct text_pair *pairs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(pairs[i].name, name))
            return &pairs[i].value;
    return NULL;
}

/* The product that a node's labels name for a resource; NULL: none. */
static const str *find_product(const struct stock_node *node, const struct stock_resource *r,
                               enum stock_rules rules)
{
    const str *found = find_pair(node->labels, node->label_n, r->product_label);
    if (found || rules == STOCK_WVA)
        return found;
    if (strcmp(r->vendor, "NVIDIA") == 0)
        return find_pair(node->labels, node->label_n, gke_label);
    if (strcmp(r->vendor, "AMD") == 0)
        return find_pair(node->labels, node->label_n, old_amd_label);
    return NULL;
}

static struct stock_item *find_item(const struct stock *s, str node, str product)
{
    for (size_t i = s->n; i > 0 && str_eq(s->items[i - 1].node, node); i--)
        if (str_eq(s->items[i - 1].product, product))
            return &s->items[i - 1];
    return NULL;
}

/* Intel's two drivers share a label: the one that the node has replaces the other. */
static void add_node(struct stock *s, const struct stock_node *node, enum stock_rules rules)
{
    for (size_t i = 0; i < STOCK_RESOURCE_N; i++) {
        const str *product = find_product(node, &stock_resources[i], rules);
        const str *amount =
            find_pair(node->allocatable, node->allocatable_n, stock_resources[i].resource);
        int64_t count = 0;
        if (!product)
            continue;
        if (amount && quantity_parse_value(*amount, &count, NULL) < 0)
            count = 0;
        struct stock_item *item = find_item(s, node->name, *product);
        if (item && count == 0)
            continue;
        if (!item)
            item = &s->items[s->n++];
        *item = (struct stock_item){
            .node = node->name,
            .product = *product,
            .type = sat_accelerator_name(*product),
            .vendor = stock_resources[i].vendor,
            .count = MAX(count, (int64_t)0),
            .at = node,
        };
    }
}

/* The pods of a node with several products are charged to the last one, as WVA does: a request for
 * GPUs does not name the product. */
static void charge_pod(struct stock *s, const struct stock_pod *pod)
{
    if (!pod->node.n || pod->done || pod->gpus <= 0)
        return;
    for (size_t i = s->n; i-- > 0;)
        if (str_eq(s->items[i].node, pod->node)) {
            s->items[i].used += pod->gpus;
            return;
        }
}

struct stock stock_count(struct arena *a, const struct stock_node *nodes, size_t node_n,
                         const struct stock_pod *pods, size_t pod_n, enum stock_rules rules)
{
    struct stock s = { arena_array(a, node_n * STOCK_RESOURCE_N, sizeof(*s.items)), 0 };
    for (size_t i = 0; i < node_n; i++)
        add_node(&s, &nodes[i], rules);
    for (size_t i = 0; i < pod_n; i++)
        charge_pod(&s, &pods[i]);
    if (rules == STOCK_OURS)
        for (size_t i = 0; i < pod_n; i++) {
            /* A pod that is not bound yet will take its GPUs from some node of its type. */
            int64_t left = pods[i].node.n || pods[i].done ? 0 : pods[i].gpus;
            for (size_t k = 0; k < s.n && left > 0; k++) {
                struct stock_item *item = &s.items[k];
                if (!str_eq_nocase(item->type, pods[i].type) || item->count - item->used < left)
                    continue;
                item->used += left;
                left = 0;
            }
        }
    return s;
}

/* ---- for one variant */

static bool tolerates(const struct stock_need *need, const struct stock_taint *taint)
{
    for (size_t i = 0; i < need->toleration_n; i++) {
        const struct stock_toleration *t = &need->tolerations[i];
        if (t->effect.n && !str_eq(t->effect, taint->effect))
            continue;
        if (!t->key.n ? t->exists
                      : str_eq(t->key, taint->key) && (t->exists || str_eq(t->value, taint->value)))
            return true;
    }
    return false;
}

/* matchExpressions about labels, or matchFields about the node's name. An operator that does not exist matches nothing. */
static bool match_requirement(const struct stock_node *node, const struct json *x, bool is_field)
{
    str key = json_text(json_get(x, "key")), op = json_text(json_get(x, "operator"));
    const struct json *values = json_get(x, "values");
    const str *has = is_field && str_eqc(key, "metadata.name") ? &node->name : NULL;
    for (size_t i = 0; i < node->label_n && !is_field; i++)
        if (str_eq(node->labels[i].name, key))
            has = &node->labels[i].value;
    bool in = false;
    for (size_t i = 0; i < json_len(values) && has; i++)
        in |= str_eq(json_text(json_item(values, i)), *has);
    if (str_eqc(op, "In") || str_eqc(op, "NotIn"))
        return in == str_eqc(op, "In");
    if (str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist"))
        return (has != NULL) == str_eqc(op, "Exists");
    int64_t is, bound;
    if (!has || str_to_i64(*has, &is) < 0 ||
        str_to_i64(json_text(json_item(values, 0)), &bound) < 0)
        return false;
    return str_eqc(op, "Gt") ? is > bound : str_eqc(op, "Lt") && is < bound;
}

/* One term must match, with all it has; an empty one matches nothing. */
static bool match_affinity(const struct stock_node *node, const struct json *terms)
{
    static const char *const parts[] = { "matchExpressions", "matchFields" };
    for (size_t i = 0; i < json_len(terms); i++) {
        bool all = true, any = false;
        for (size_t p = 0; p < countof(parts); p++) {
            const struct json *list = json_get(json_item(terms, i), parts[p]);
            any |= json_len(list) > 0;
            for (size_t k = 0; k < json_len(list); k++)
                all &= match_requirement(node, json_item(list, k), p == 1);
        }
        if (any && all)
            return true;
    }
    return !terms;
}

/* Why the scheduler would not place a pod of the variant on the node; NULL: it would. */
static const char *exclude_node(const struct stock_node *node, const struct stock_need *need)
{
    if (node->unschedulable)
        return "cordoned";
    if (node->ready != STOCK_READY)
        return "not ready";
    for (size_t i = 0; i < node->taint_n; i++) {
        bool hard = str_eqc(node->taints[i].effect, "NoSchedule") ||
                    str_eqc(node->taints[i].effect, "NoExecute");
        if (hard && !tolerates(need, &node->taints[i]))
            return "tainted";
    }
    for (size_t i = 0; i < need->node_selector_n; i++) {
        bool found = false;
        for (size_t k = 0; k < node->label_n; k++)
            found |= str_eq(node->labels[k].name, need->node_selector[i].name) &&
                     str_eq(node->labels[k].value, need->node_selector[i].value);
        if (!found)
            return "not selected";
    }
    return match_affinity(node, need->terms) ? NULL : "not selected";
}

struct stock_room stock_room_for(const struct stock *stock, const struct stock_need *need)
{
    struct stock_room room = { .why = "" };
    int64_t pods = 0, each = MAX(need->gpus_per_pod, (int64_t)1),
            group = MAX(need->pods_per_replica, (int64_t)1);
    str wanted = sat_accelerator_name(need->type);
    for (size_t i = 0; i < stock->n; i++) {
        const struct stock_item *item = &stock->items[i];
        if (!str_eq_nocase(item->type, wanted))
            continue;
        const char *why = exclude_node(item->at, need);
        if (why) {
            room.excluded += item->count;
            room.why = why;
            continue;
        }
        int64_t is_free = MAX(item->count - item->used, (int64_t)0);
        room.total += item->count;
        room.free += is_free;
        pods += is_free / each;
    }
    room.replicas = pods / group;
    room.fragmented = room.replicas == 0 && room.free >= each * group;
    return room;
}

int64_t stock_pod_gpus(const int64_t *containers, size_t n, const int64_t *init, size_t init_n)
{
    int64_t sum = 0, largest = 0;
    for (size_t i = 0; i < n; i++)
        sum += containers[i];
    for (size_t i = 0; i < init_n; i++)
        largest = MAX(largest, init[i]);
    return MAX(sum, largest);
}
