/* Which pods a scale-down removes: see saturation_victims.h.
 *
 * A ReplicaSet that shrinks removes the pods with the lowest annotation
 * controller.kubernetes.io/pod-deletion-cost; without one (cost 0) it removes the newest, however
 * busy. So before a lower target is published, the k least busy pods get a negative cost:
 *
 *     target < current ─► k least busy pods ─► patch ─► seen in the watch, requests drained ─► publish
 *                                                                     └─ or after --wva-drain-timeout
 *
 * Rejected: a cost for every pod. Pods without one would have to be patched too, because 0 is lower
 * than any positive cost; with negative costs, k patches are enough.
 *
 * The invariant: a cost that flyball did not write is left alone (the annotation
 * flyball.dev/deletion-cost-at marks ours), a pod with the annotation flyball.dev/do-not-remove is no
 * candidate, and an unknown load counts as the busiest. StatefulSets and LeaderWorkerSets remove the
 * highest ordinal; nothing is written for them. */
#include "saturation_victims.h"

#include "../base/log.h"
#include "../base/rfc3339.h"

#include <math.h>

enum { BUSIEST = 100000, PATCHES_MAX = 20 };
static const int64_t look_again_ns = 2 * NS_PER_S, patch_again_ns = 10 * NS_PER_S;

struct candidate {
    const struct replica_record *pod;
    int64_t cost;
    double requests; /* running and waiting; NaN: unknown */
};

struct candidates {
    struct gathering *g;
    struct candidate *at;
    size_t n, cap;
};

/* How much a removal would break: tokens in the KV cache, and requests. */
static int64_t cost_of(const struct sat_sample *s, double *ret_requests)
{
    *ret_requests = s ? s->queue + (isnan(s->traffic.running) ? 0 : s->traffic.running) : NAN;
    if (!s || isnan(s->kv) || isnan(s->queue))
        return BUSIEST;
    double running = isnan(s->traffic.running) ? 0 : s->traffic.running;
    double cost = floor(1000 * s->kv) + 10 * running + 5 * s->queue;
    return (int64_t)fmax(0, fmin(cost, BUSIEST));
}

static void on_patched(void *context, const struct kube_reply *reply)
{
    (void)context;
    if (reply->failure && reply->reason != KUBE_NOT_FOUND)
        log_warn("cannot set the deletion cost of a pod; the scale-down may remove a busy one",
                 KV_C("error", reply->failure));
}

/* `cost` 0: removes ours. */
static void patch_pod(struct gathering *g, const struct replica_record *pod, int64_t cost)
{
    char at[RFC3339_TEXT_MAX];
    struct loop *loop = manager_loop(g->s->manager);
    str since = rfc3339_text(loop_wall_ns(loop) / NS_PER_S, at);
    str body = cost ? arena_printf(g->a,
                                   "{\"metadata\":{\"annotations\":{"
                                   "\"controller.kubernetes.io/pod-deletion-cost\":\"%lld\","
                                   "\"flyball.dev/deletion-cost-at\":\"" STR_FMT "\"}}}",
                                   (long long)cost, STR_ARG(since))
                    : S("{\"metadata\":{\"annotations\":{"
                        "\"controller.kubernetes.io/pod-deletion-cost\":null,"
                        "\"flyball.dev/deletion-cost-at\":null}}}");
    kube_send(manager_kube(g->s->manager), &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                                   .resource = &resource_pods,
                                                                   .ns = pod->meta.ns,
                                                                   .name = pod->meta.name,
                                                                   .body = body,
                                                                   .done = on_patched });
}

static void add_candidate(void *context, const struct replica_record *pod)
{
    struct candidates *c = context;
    bool foreign = pod->deletion_cost.n && !pod->cost_is_ours;
    bool is_kept = str_eqc(pod->do_not_remove, "true");
    if (is_kept && pod->cost_is_ours) /* it was marked before a user decided */
        patch_pod(c->g, pod, 0);
    if (pod->deleting || !str_eqc(pod->ready, "True") || foreign || is_kept || c->n == c->cap)
        return;
    struct candidate *x = &c->at[c->n++];
    x->pod = pod;
    x->cost = cost_of(c->g->fresh ? collect_get_sample(&c->g->m->feed, pod->meta.name) : NULL,
                      &x->requests);
}

static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return str_cmp(x->pod->meta.name, y->pod->meta.name);
}

/* Marks the first k candidates, unmarks the others. Returns whether the watch shows that it is so. */
static bool mark_pods(struct gathering *g, struct variant *v, const struct candidates *c, size_t k)
{
    bool may_patch = !v->marked_ns || g->now_ns - v->marked_ns >= patch_again_ns;
    size_t patches = 0;
    bool all = true;
    for (size_t i = 0; i < c->n; i++) {
        bool wanted = i < k, marked = c->at[i].pod->cost_is_ours;
        if (wanted == marked)
            continue;
        all = false;
        if (may_patch && patches < PATCHES_MAX) {
            patch_pod(g, c->at[i].pod, wanted ? c->at[i].cost - BUSIEST - 1 : 0);
            patches++;
        }
    }
    if (patches)
        v->marked_ns = g->now_ns;
    return all;
}

static bool are_drained(const struct saturation *s, const struct candidates *c, size_t k)
{
    double requests = 0;
    for (size_t i = 0; i < c->n && i < k; i++)
        requests += c->at[i].requests;
    return s->o.drain_max < 0 || requests <= s->o.drain_max; /* NaN: not known to be drained */
}

/* Requests that run longer than the grace period break in any case. Reported once per value. */
static void report_grace(const struct saturation *s, struct arena *a, struct variant *v)
{
    enum { LEAST = 60 };
    const struct workload_record *w = saturation_get_workload(s, v);
    if (!w || w->grace >= LEAST || w->grace == v->warned_grace)
        return;
    v->warned_grace = w->grace;
    saturation_emit(
        s, v, true, "ShortGracePeriod",
        arena_printf(a,
                     "terminationGracePeriodSeconds is %lld; requests of removed pods that "
                     "take longer break, so use at least %d",
                     (long long)w->grace, LEAST));
}

static void apply_to_variant(struct gathering *g, size_t i, struct decide_answer *x)
{
    struct saturation *s = g->s;
    struct variant *v = g->variants[i];
    int k = x->target > 0 ? x->current - x->target : 0; /* to zero: all of them */
    struct candidates c = { .g = g, .cap = g->replica_n };
    c.at = arena_array(g->a, c.cap, sizeof(*c.at));
    saturation_each_pod(s, v, add_candidate, &c);
    qsort(c.at, c.n, sizeof(*c.at), by_cost);
    k = MAX(0, MIN(k, (int)c.n));
    if (!k)
        v->shrinks_ns = 0;
    bool marked = mark_pods(g, v, &c, (size_t)k);
    if (!k)
        return;
    report_grace(s, g->a, v);
    if (!v->shrinks_ns)
        v->shrinks_ns = g->now_ns;
    bool late = g->now_ns - v->shrinks_ns >= s->o.drain_timeout_ns;
    if (late || (marked && are_drained(s, &c, (size_t)k)) || v->desired == x->target)
        return;
    x->reason = arena_printf(g->a, STR_FMT "; waits until %d pods %s", STR_ARG(x->reason), k,
                             marked ? "have served their requests" : "are marked for removal");
    x->target = v->desired > x->target ? MIN(v->desired, x->current) : x->current;
    controller_add_after(s->engine, v->ns, v->spec.model, look_again_ns);
}

void saturation_victims_apply(struct gathering *g, struct decide_answers *answers)
{
    for (size_t i = 0; g->s->o.deletion_cost && i < answers->n; i++)
        if (saturation_is_built_in(g->variants[i]) && !saturation_is_statefulset(g->variants[i]))
            apply_to_variant(g, i, &answers->at[i]);
}
