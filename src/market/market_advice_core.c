/* What the nodes of a cluster could do for each other: see market_advice_core.h.
 *
 *      classify()       hot: short for ten minutes; cold: nothing lacks, and some CPU is left
 *      end_advices()    done when the pod has left the node, expired after 30 min
 *      advise_move()    at most one in five minutes: every move changes the prices
 *      advise_more()    only while no node is cold
 *
 * The pod to move is the one whose need is nearest to what its node lacks. Moving the largest was
 * rejected: it makes the target hot; moving small ones takes many moves.  */
#include "market_advice_core.h"

enum { MOVE_EVERY_S = 300, OPEN_S = 1800, AGAIN_S = 3600, LOW_S = 1800, MARKET_ADVICES_MAX = 64 };

static const double hot_price = 0.1, cold_price = 0.02;

const char *const market_advice_kind_names[MARKET_ADVICE_KIND_N] = { "Move", "ScaleOut", "ScaleIn",
                                                                     "RaiseMaxReplicas",
                                                                     "AddNode" };
const char *const market_advice_state_names[MARKET_ADVICE_STATE_N] = { "Open", "Done", "Expired" };

/* ---- nodes */

static void classify(struct market_advice_view *v)
{
    for (size_t i = 0; i < v->node_n; i++) {
        struct market_advice_node *n = &v->nodes[i];
        n->spare_milli = n->capacity_milli - n->wanted_milli;
        n->hot = !n->unknown && n->price > hot_price && n->spare_milli < 0;
        n->cold = !n->unknown && !n->closed && n->price < cold_price && n->spare_milli > 0;
    }
    for (size_t i = 0; i < v->pod_n; i++) {
        const struct market_advice_pod *p = &v->pods[i];
        if (p->workload == SIZE_MAX)
            continue;
        struct market_advice_workload *w = &v->workloads[p->workload];
        w->on_any++;
        w->on_hot += v->nodes[p->node].hot;
        w->rationed += v->nodes[p->node].hot && p->got_milli < p->bid_max_milli;
    }
}

/* The hottest node, or the one with most to spare; the first by name among equals. */
static const struct market_advice_node *find_node(const struct market_advice_view *v, bool hot)
{
    const struct market_advice_node *best = NULL;
    for (size_t i = 0; i < v->node_n; i++) {
        const struct market_advice_node *n = &v->nodes[i];
        if (hot ? !n->hot : !n->cold)
            continue;
        bool better = !best || (hot ? n->price > best->price : n->spare_milli > best->spare_milli);
        bool equal =
            best && (hot ? !(n->price < best->price) : n->spare_milli == best->spare_milli);
        if (better || (equal && str_cmp(n->name, best->name) < 0))
            best = n;
    }
    return best;
}

/* ---- what was recommended before */

static bool is_about(const struct market_advice *a, enum market_advice_kind kind, str ns, str name)
{
    return a->kind == kind && str_eq(a->ns, ns) && str_eq(a->name, name);
}

/* Was it recommended a short time ago, whether or not anybody followed? */
static bool is_known(const market_advice_list *advices, enum market_advice_kind kind, str ns,
                     str name, int64_t now_s)
{
    for (size_t i = 0; i < advices->n; i++)
        if (is_about(&advices->at[i], kind, ns, name) &&
            (advices->at[i].state == MARKET_ADVICE_OPEN ||
             now_s - advices->at[i].since_s < AGAIN_S))
            return true;
    return false;
}

static bool has_left(const struct market_advice_view *v, const struct market_advice *a)
{
    for (size_t i = 0; i < v->pod_n && a->kind == MARKET_ADVICE_MOVE; i++)
        if (str_eq(v->pods[i].ns, a->ns) && str_eq(v->pods[i].name, a->name) &&
            str_eq(v->nodes[v->pods[i].node].name, a->node))
            return false;
    return a->kind == MARKET_ADVICE_MOVE;
}

static void end_advices(const struct market_advice_view *v, market_advice_list *advices)
{
    size_t kept = 0;
    for (size_t i = 0; i < advices->n; i++) {
        struct market_advice a = advices->at[i];
        a.fresh = false;
        if (a.state == MARKET_ADVICE_OPEN && (has_left(v, &a) || v->now_s - a.since_s >= OPEN_S)) {
            a.state = has_left(v, &a) ? MARKET_ADVICE_DONE : MARKET_ADVICE_EXPIRED;
            a.ended_s = v->now_s;
        }
        if (a.state == MARKET_ADVICE_OPEN || v->now_s - a.since_s < AGAIN_S)
            advices->at[kept++] = a;
    }
    advices->n = kept;
}

static bool moved_recently(const market_advice_list *advices, int64_t now_s)
{
    for (size_t i = 0; i < advices->n; i++)
        if (advices->at[i].kind == MARKET_ADVICE_MOVE &&
            now_s - advices->at[i].since_s < MOVE_EVERY_S)
            return true;
    return false;
}

/* ---- new ones */

static const struct market_advice_pod *choose_pod(const struct market_advice_view *v,
                                                  const market_advice_list *advices,
                                                  const struct market_advice_node *from,
                                                  const struct market_advice_node *to)
{
    const struct market_advice_pod *best = NULL;
    int64_t lacks = -from->spare_milli, best_distance = INT64_MAX;
    for (size_t i = 0; i < v->pod_n; i++) {
        const struct market_advice_pod *p = &v->pods[i];
        bool fits = &v->nodes[p->node] == from && p->movable &&
                    p->bid_max_milli + p->bid_max_milli / 10 <= to->spare_milli &&
                    p->memory_need + p->memory_need / 10 <= to->memory_free &&
                    !is_known(advices, MARKET_ADVICE_MOVE, p->ns, p->name, v->now_s);
        if (!fits || (v->fits && !v->fits(v->context, i, (size_t)(to - v->nodes))))
            continue;
        int64_t distance =
            p->bid_max_milli > lacks ? p->bid_max_milli - lacks : lacks - p->bid_max_milli;
        if (distance < best_distance ||
            (distance == best_distance && str_cmp(p->name, best->name) < 0)) {
            best = p;
            best_distance = distance;
        }
    }
    return best;
}

static void add_advice(const struct market_advice_view *v, market_advice_list *advices,
                       struct market_advice one)
{
    if (advices->n >= MARKET_ADVICES_MAX)
        return;
    one.state = MARKET_ADVICE_OPEN;
    one.since_s = v->now_s;
    one.fresh = true;
    vec_push(advices, one);
}

static void advise_move(const struct market_advice_view *v, market_advice_list *advices,
                        struct arena *a)
{
    const struct market_advice_node *from = find_node(v, true), *to = find_node(v, false);
    if (!from || !to || moved_recently(advices, v->now_s))
        return;
    const struct market_advice_pod *pod = choose_pod(v, advices, from, to);
    if (!pod)
        return;
    int64_t lacks = -from->spare_milli, gain = MIN(lacks, pod->bid_max_milli);
    add_advice(v, advices,
               (struct market_advice){
                   .kind = MARKET_ADVICE_MOVE,
                   .ns = pod->ns,
                   .name = pod->name,
                   .object = S("Pod"),
                   .node = from->name,
                   .target = to->name,
                   .gain_milli = gain,
                   .reason =
                       arena_printf(a,
                                    "node " STR_FMT " lacks %lldm (price %.2f), node " STR_FMT
                                    " has %lldm free; moving this pod would free %lldm",
                                    STR_ARG(from->name), (long long)lacks, from->price,
                                    STR_ARG(to->name), (long long)to->spare_milli, (long long)gain),
               });
}

static void advise_workload(const struct market_advice_view *v, market_advice_list *advices,
                            enum market_advice_kind kind, const struct market_advice_workload *w,
                            str reason)
{
    if (is_known(advices, kind, w->ns, w->name, v->now_s))
        return;
    add_advice(
        v, advices,
        (struct market_advice){
            .kind = kind, .ns = w->ns, .name = w->name, .object = w->kind, .reason = reason });
}

/* While no node has room: what would help instead of a move. */
static void advise_more(const struct market_advice_view *v, market_advice_list *advices,
                        struct arena *a)
{
    for (size_t i = 0; i < v->workload_n; i++) {
        const struct market_advice_workload *w = &v->workloads[i];
        if (!w->rationed || 2 * w->rationed < w->on_any || (w->has_hpa && !w->at_max))
            continue;
        str reason =
            arena_printf(a,
                         "%zu of %zu pods get less CPU than they can use, and no node has "
                         "room%s",
                         w->rationed, w->on_any, w->has_hpa ? "; its HPA is at maxReplicas" : "");
        advise_workload(v, advices, w->has_hpa ? MARKET_ADVICE_RAISE_MAX : MARKET_ADVICE_SCALE_OUT,
                        w, reason);
    }
    size_t hot = 0;
    for (size_t i = 0; i < v->node_n; i++)
        hot += v->nodes[i].hot;
    if (hot && 3 * hot >= 2 * v->node_n &&
        !is_known(advices, MARKET_ADVICE_ADD_NODE, S(""), S(""), v->now_s))
        add_advice(v, advices,
                   (struct market_advice){
                       .kind = MARKET_ADVICE_ADD_NODE,
                       .object = S("Node"),
                       .reason = arena_printf(a, "%zu of %zu nodes have lacked CPU for ten minutes",
                                              hot, v->node_n) });
}

static void advise_less(const struct market_advice_view *v, market_advice_list *advices,
                        struct arena *a)
{
    for (size_t i = 0; i < v->workload_n; i++) {
        const struct market_advice_workload *w = &v->workloads[i];
        if (w->has_hpa || w->pods < 2 || w->on_hot || !w->low_since_s ||
            v->now_s - w->low_since_s < LOW_S)
            continue;
        advise_workload(v, advices, MARKET_ADVICE_SCALE_IN, w,
                        arena_printf(a,
                                     "%zu pods use %lldm of the %lldm that they request, for 30 "
                                     "minutes or longer",
                                     w->pods, (long long)w->used_milli,
                                     (long long)w->requested_milli));
    }
}

size_t market_advice_update(struct market_advice_view *v, market_advice_list *advices,
                            struct arena *a)
{
    classify(v);
    end_advices(v, advices);
    size_t before = advices->n;
    if (find_node(v, false))
        advise_move(v, advices, a);
    else
        advise_more(v, advices, a);
    advise_less(v, advices, a);
    return advices->n - before;
}
