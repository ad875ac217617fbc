/* See saturation_limits.h.
 *
 *     nodes, pods ──► stock_count ──► room of the variant on nodes that fit it ─┐
 *     quotas, other variants ───────► room in each quota ───────────────────────┴─► the smallest one
 *
 * All limiters compose: the smallest room counts. What other variants were promised but do not have
 * yet is reserved for them. While the nodes cannot be listed the stock does not limit, and a warning
 * explains it; a quota always limits. A change of (wanted, granted) is an event and a count, once. */
#include "saturation_limits.h"

#include "../base/log.h"
#include "saturation_tokens.h"

static const char stock_name[] = "gpu-limiter";

struct limit {
    int64_t most; /* replicas; INT64_MAX: none */
    str by, why;
};

/* ---- facts */

static int64_t count_gpus(const int64_t milli[static STOCK_RESOURCE_N])
{
    int64_t sum = 0;
    for (size_t i = 0; i < STOCK_RESOURCE_N; i++)
        sum += milli[i] / 1000;
    return sum;
}

static void find_most_gpus(void *context, const struct replica_record *pod)
{
    int64_t *most = context;
    *most = MAX(*most, count_gpus(pod->gpu_milli));
}

/* Of one replica, which may be a group of pods. */
int64_t saturation_limits_gpus(const struct saturation *s, const struct variant *v)
{
    const struct workload_record *w = saturation_get_workload(s, v);
    int64_t gpus = w ? count_gpus(w->gpu_milli) : 0;
    if (w && w->group_size > 1) /* a leader and its workers */
        gpus *= w->group_size - 1;
    if (w && w->group_size > 1)
        gpus += count_gpus(w->has_leader ? w->leader_milli : w->gpu_milli);
    if (w && !gpus && !saturation_is_built_in(v))
        saturation_each_pod(s, v, find_most_gpus, &gpus);
    return MAX(gpus, (int64_t)1);
}

/* The accelerator that the template selects, else the label of the variant. */
str saturation_limits_type(const struct saturation *s, const struct variant *v)
{
    const struct workload_record *w = saturation_get_workload(s, v);
    for (size_t i = 0; w && w->node_selector && i < w->node_selector->n; i++)
        if (stock_is_product_label(word_str(w->node_selector->at[i].key)))
            return sat_accelerator_name(word_str(w->node_selector->at[i].value));
    return sat_accelerator_name(v->accelerator);
}

/* The policy of the global default entry; NULL: nothing is limited. WVA_LIMITED_MODE counts where the
 * entry does not set enableLimiter. */
const struct sat_policy *saturation_limits_policy(const struct saturation *s)
{
    const struct sat_entry *entry = sat_table_find(&s->snapshot->saturation, S("default"));
    if (!entry)
        return s->o.limited ? &policy_none : NULL;
    bool on = entry->policy.has_limiter ? entry->policy.limiter : entry->limiter || s->o.limited;
    return on ? &entry->policy : NULL;
}

/* ---- who else needs accelerators */

struct contention {
    int64_t above; /* accelerators that models of higher priority lack */
    int64_t equal; /* variants of other models of the same priority that lack some */
};

/* Whether the accelerators of this cycle were divided among all models of the token analyzer. */
static bool is_shared(const struct variant *v)
{
    return v->model && v->model->turn && v->model->turn->granted;
}

/* Cuts of other models (of a namespace) that are recent: of a model that is no longer decided about
 * they are not. */
static struct contention find_contention(const struct gathering *g, const struct variant *self,
                                         str type, str ns)
{
    const struct saturation *s = g->s;
    struct contention c = { 0 };
    if (is_shared(self)) /* its share is what it may have */
        return c;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        int64_t lacks = v->limited_wants - v->limited_has;
        if (lacks <= 0 || v->model == self->model || (ns.n && !str_eq(v->ns, ns)) ||
            g->now_ns - v->limited_ns > 3 * s->snapshot->interval_ns ||
            !str_eq_nocase(saturation_limits_type(s, v), type))
            continue;
        if (v->model->priority > self->model->priority)
            c.above += lacks * saturation_limits_gpus(s, v);
        else
            c.equal += v->model->priority == self->model->priority;
    }
    return c;
}

/* Equals by key, so that the order does not depend on the hash table. */
static int by_priority(const void *a, const void *b)
{
    const struct sat_model *x = *(struct sat_model *const *)a, *y = *(struct sat_model *const *)b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return strcmp(x->key, y->key);
}

struct sat_model **saturation_limits_order(struct saturation *s, struct arena *a)
{
    struct sat_model **models = arena_array(a, s->models.n, sizeof(struct sat_model *));
    bool limited = saturation_limits_policy(s) != NULL;
    size_t n = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));)
        models[n++] = slot->value;
    for (size_t i = 0; limited && i < n; i++) {
        struct sat_lookup q = { models[i]->id, models[i]->ns, NULL, 0 };
        struct sat_resolved r = sat_snapshot_resolve(s->snapshot, &q);
        models[i]->priority =
            r.policy.has_priority && r.policy.priority > 0 ? r.policy.priority : 1;
    }
    if (limited && n)
        qsort(models, n, sizeof(struct sat_model *), by_priority);
    return models;
}

/* ---- the stock */

static void read_taints(struct arena *a, str text, struct stock_node *node)
{
    struct json *list = NULL;
    if (!text.n || json_parse(a, text, &list, NULL) < 0)
        return;
    struct stock_taint *taints = arena_array(a, json_len(list), sizeof(*taints));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *t = json_item(list, i);
        taints[i] =
            (struct stock_taint){ json_text(json_get(t, "key")), json_text(json_get(t, "value")),
                                  json_text(json_get(t, "effect")) };
    }
    node->taints = taints;
    node->taint_n = json_len(list);
}

/* All nodes and all pods of the cluster that have accelerators, from the watch caches. */
struct stock saturation_limits_stock(struct gathering *g)
{
    struct saturation *s = g->s;
    struct stock_node *nodes = arena_array(g->a, cache_count(s->nodes), sizeof(*nodes));
    struct stock_pod *pods = arena_array(g->a, cache_count(s->pods), sizeof(*pods));
    const struct node_record *r;
    const struct replica_record *p;
    size_t n = 0, pod_n = 0;
    cache_each(r, s->nodes) {
        struct stock_node *node = &nodes[n++];
        *node = (struct stock_node){ .name = r->meta.name,
                                     .unschedulable = r->unschedulable,
                                     .ready = str_eqc(r->ready, "True") ? STOCK_READY
                                                                        : STOCK_NOT_READY };
        node->labels = sat_label_pairs(g->a, r->labels, &node->label_n);
        node->allocatable = sat_label_pairs(g->a, r->allocatable, &node->allocatable_n);
        read_taints(g->a, r->taints, node);
    }
    cache_each(p, s->pods) {
        int64_t gpus = count_gpus(p->gpu_milli);
        bool done = str_eqc(p->phase, "Succeeded") || str_eqc(p->phase, "Failed");
        if (gpus && p->node.n)
            pods[pod_n++] =
                (struct stock_pod){ .node = p->node, .type = S(""), .done = done, .gpus = gpus };
    }
    return stock_count(g->a, nodes, n, pods, pod_n, STOCK_OURS);
}

static void read_tolerations(struct arena *a, str text, struct stock_need *need)
{
    struct json *list = NULL;
    if (!text.n || json_parse(a, text, &list, NULL) < 0)
        return;
    struct stock_toleration *t = arena_array(a, json_len(list), sizeof(*t));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        t[i] = (struct stock_toleration){ json_text(json_get(x, "key")),
                                          json_text(json_get(x, "value")),
                                          json_text(json_get(x, "effect")),
                                          str_eqc(json_text(json_get(x, "operator")), "Exists") };
    }
    need->tolerations = t;
    need->toleration_n = json_len(list);
}

struct bound_count {
    int64_t bound; /* pods that are on a node */
};

static void count_bound(void *context, const struct replica_record *pod)
{
    struct bound_count *c = context;
    c->bound += pod->node.n && !pod->deleting;
}

int64_t saturation_limits_bound(const struct saturation *s, const struct variant *v)
{
    struct bound_count c = { 0 };
    saturation_each_pod(s, v, count_bound, &c);
    return c.bound;
}

/* Accelerators of a type that other variants were promised and do not occupy yet. */
static int64_t count_reserved(const struct saturation *s, const struct variant *self, str type)
{
    int64_t sum = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        const struct variant *v = slot->value;
        if (v == self || v->desired <= 0 || (is_shared(self) && is_shared(v)) ||
            !str_eq_nocase(saturation_limits_type(s, v), type))
            continue;
        sum += MAX((int64_t)v->desired - saturation_limits_bound(s, v), (int64_t)0) *
               saturation_limits_gpus(s, v);
    }
    return sum;
}

/* Where pods of a variant could run. */
static struct stock_need need_of(struct gathering *g, const struct variant *v)
{
    const struct workload_record *w = saturation_get_workload(g->s, v);
    int64_t each = saturation_limits_gpus(g->s, v);
    struct stock_need need = { .type = saturation_limits_type(g->s, v),
                               .gpus_per_pod = each,
                               .pods_per_replica = 1 };
    if (w && w->group_size > 1) {
        need.pods_per_replica = w->group_size;
        need.gpus_per_pod = (each + w->group_size - 1) / w->group_size;
    }
    if (w) {
        need.node_selector = sat_label_pairs(g->a, w->node_selector, &need.node_selector_n);
        read_tolerations(g->a, w->tolerations, &need);
    }
    return need;
}

struct stock_room saturation_limits_room(struct gathering *g, const struct stock *stock,
                                         const struct variant *v)
{
    struct stock_need need = need_of(g, v);
    return stock_room_for(stock, &need);
}

/* The replicas that the free accelerators of the nodes allow: those that run, and those that still fit.
 * What was promised to others and has no pod on a node yet is not free. */
static struct limit limit_by_stock(struct gathering *g, const struct stock *stock,
                                   const struct variant *v)
{
    int64_t each = saturation_limits_gpus(g->s, v);
    struct stock_need need = need_of(g, v);
    struct stock_room room = stock_room_for(stock, &need);
    struct contention others = find_contention(g, v, need.type, S(""));
    int64_t reserved = (count_reserved(g->s, v, need.type) + others.above) / each;
    int64_t more = MAX(room.replicas - reserved, (int64_t)0);
    struct limit limit = { .by = str_c(stock_name) };
    more = (more + others.equal) / (others.equal + 1); /* a fair share, rounded up */
    limit.most = saturation_limits_bound(g->s, v) + more;
    limit.why =
        arena_printf(g->a, STR_FMT " %lld free of %lld%s", STR_ARG(need.type), (long long)room.free,
                     (long long)room.total, room.fragmented ? ", but no node has enough" : "");
    if (others.above)
        limit.why = arena_printf(g->a, STR_FMT ", %lld wanted by models of higher priority",
                                 STR_ARG(limit.why), (long long)others.above);
    if (room.excluded)
        limit.why = arena_printf(g->a, STR_FMT ", %lld on nodes that are %s", STR_ARG(limit.why),
                                 (long long)room.excluded, room.why);
    return limit;
}

bool saturation_limits_knows_stock(struct saturation *s)
{
    err_t e;
    if (!s->nodes && manager_cache(s->manager, &saturation_node_cache, &s->nodes, &e) < 0)
        log_error("cannot watch nodes", KV_C("error", e.text));
    bool known = s->nodes && cache_synced(s->nodes) && !cache_absent(s->nodes);
    struct metric_family *up =
        metrics_family(manager_metrics(s->manager),
                       &(struct metric_spec){ .name = "wva_gpu_discovery_up",
                                              .help =
                                                  "Whether the accelerators of the nodes are known",
                                              .kind = METRIC_GAUGE });
    metric_set(METRIC_ALONE(up), known);
    return known;
}

/* ---- quotas */

/* The replicas that a quota leaves to a variant. What others have or were promised counts as used,
 * whichever is more: a promise is kept even if its pods are not there yet. */
static struct limit limit_by_quota(struct gathering *g, const struct quota *q,
                                   const struct variant *v)
{
    struct limit limit = { INT64_MAX, q->name, S("") };
    if (quota_excludes(q, v->ns))
        return limit;
    struct quota_types types = q->by_namespace ? quota_for_namespace(q, v->ns) : q->types;
    str type = saturation_limits_type(g->s, v);
    int64_t most = 0, used = 0;
    for (size_t i = 0; i < types.n; i++)
        if (str_eq_nocase(sat_accelerator_name(types.at[i].type), type))
            most = types.at[i].limit;
    if (most == QUOTA_UNLIMITED)
        return limit;
    for (struct map_slot *slot = NULL; (slot = map_next(&g->s->by_key, slot));) {
        const struct variant *x = slot->value;
        if (x == v || (q->by_namespace && !str_eq(x->ns, v->ns)) ||
            !str_eq_nocase(saturation_limits_type(g->s, x), type))
            continue;
        bool promised = !is_shared(v) || !is_shared(x);
        used += (int64_t)MAX(promised ? x->desired : 0, x->seen_current) *
                saturation_limits_gpus(g->s, x);
    }
    struct contention others = find_contention(g, v, type, q->by_namespace ? v->ns : S(""));
    int64_t has = v->seen_current;
    int64_t more =
        MAX(most - used - others.above, (int64_t)0) / saturation_limits_gpus(g->s, v) - has;
    limit.most = has + (MAX(more, (int64_t)0) + others.equal) / (others.equal + 1);
    limit.why = arena_printf(g->a, STR_FMT " quota %lld, %lld used by others", STR_ARG(type),
                             (long long)most, (long long)used);
    return limit;
}

/* ---- applying */

static void report_limit(struct saturation *s, struct variant *v, const struct limit *limit,
                         str message)
{
    metric_add(METRIC(s->metrics.limited, v->name, v->ns, limit->by, s->metrics.instance), 1);
    saturation_emit(s, v, true, "ResourceConstrained", message);
}

/* Of a model with a share the target is what it got, which may be less. */
static int wants_of(const struct gathering *g, size_t i, const struct decide_answer *x)
{
    const struct sat_token_turn *turn = g->model->turn;
    if (!is_shared(g->variants[i]) || !turn->wanted)
        return x->target;
    int64_t wanted = MIN(turn->wanted[i].replicas, (int64_t)SAT_REPLICAS_MAX);
    return MAX(x->target, sat_clamp_to_bounds(&g->states[i], (int)wanted));
}

/* Cuts a target, never below what runs: a limiter does not remove replicas. Reported once per change
 * of what is wanted or given. */
static void apply_limit(struct gathering *g, size_t i, struct decide_answer *x,
                        const struct limit *limit)
{
    struct variant *v = g->variants[i];
    int wants = wants_of(g, i, x),
        has = (int)MAX((int64_t)x->current, MIN((int64_t)x->target, limit->most));
    bool cut = has < wants && x->target >= x->current;
    bool changed = cut && (v->limited_wants != wants || v->limited_has != has);
    v->limited_wants = cut ? wants : 0;
    v->limited_has = cut ? has : 0;
    v->limited_ns = g->now_ns;
    if (!cut)
        return;
    str message = arena_printf(g->a, "wants %d, may have %d: " STR_FMT " (limited by " STR_FMT ")",
                               wants, has, STR_ARG(limit->why), STR_ARG(limit->by));
    x->target = has;
    x->limited = message;
    x->reason = arena_printf(g->a, STR_FMT "; " STR_FMT, STR_ARG(x->reason), STR_ARG(message));
    if (changed)
        report_limit(g->s, v, limit, message);
}

static bool any_grows(const struct gathering *g, const struct decide_answers *answers)
{
    bool any = false;
    for (size_t i = 0; i < answers->n; i++) {
        bool grows = wants_of(g, i, &answers->at[i]) > answers->at[i].current;
        if (!grows)
            g->variants[i]->limited_wants = g->variants[i]->limited_has = 0;
        any |= grows;
    }
    return any;
}

struct sat_condition saturation_limits_condition(struct variant *v, const struct decide_answer *x)
{
    bool limited = x->limited.n > 0;
    v->was_limited |= limited;
    return (struct sat_condition){ .known = v->was_limited,
                                   .holds = limited,
                                   .reason = limited ? "GPULimited" : "NotLimited",
                                   .message =
                                       limited ? x->limited : S("No limiter reduces the target") };
}

struct limit_check saturation_limits_check(struct gathering *g, const struct variant *v)
{
    const struct sat_policy *policy = saturation_limits_policy(g->s);
    const struct quota *quotas;
    struct limit_check check = { .has_room = true };
    if (!policy)
        return check;
    size_t quota_n = policy_quotas(g->a, policy, &quotas);
    for (size_t q = 0; q < quota_n; q++)
        check.forbidden |= limit_by_quota(g, &quotas[q], v).most < 1;
    if (policy_uses_stock(policy) && saturation_limits_knows_stock(g->s)) {
        struct stock stock = saturation_limits_stock(g);
        check.has_room = limit_by_stock(g, &stock, v).most >= 1;
    }
    return check;
}

void saturation_limits_apply(struct gathering *g, struct decide_answers *answers)
{
    const struct sat_policy *policy = saturation_limits_policy(g->s);
    const struct quota *quotas;
    if (!policy || !any_grows(g, answers))
        return;
    size_t quota_n = policy_quotas(g->a, policy, &quotas);
    bool by_stock = policy_uses_stock(policy) && saturation_limits_knows_stock(g->s);
    struct stock stock = by_stock ? saturation_limits_stock(g) : (struct stock){ 0 };
    for (size_t i = 0; i < answers->n; i++) {
        struct decide_answer *x = &answers->at[i];
        struct limit least = { INT64_MAX, S("fair-share"), S("the rest is for other models") };
        if (wants_of(g, i, x) <= x->current)
            continue;
        if (by_stock)
            least = limit_by_stock(g, &stock, g->variants[i]);
        for (size_t q = 0; q < quota_n; q++) {
            struct limit limit = limit_by_quota(g, &quotas[q], g->variants[i]);
            least = limit.most < least.most ? limit : least;
        }
        apply_limit(g, i, x, &least);
    }
}
