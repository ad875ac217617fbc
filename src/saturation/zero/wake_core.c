/* Waking a model that has no replica: is there demand, and which variant should start? See wake_core.h.
 *
 * Demand is a queue in the gateway, because without a replica nothing else can report a request. The metric has
 * two names, old and new; a gateway that exports both must not be counted twice. No metric at all is "unknown",
 * never "idle".
 *
 * Candidates are compared by how likely they start (room in the cluster, not failing), then cost, then start
 * time. Only one is started at a time; another is tried when the first takes more than twice its usual start
 * time and at least ten minutes. A model that splits prefill and decode needs one of each. */
#include "wake_core.h"

#include "../../base/clock.h"

#include <math.h>

static const char new_metric[] = "llm_d_epp_flow_control_queue_size";
static const char old_metric[] = "inference_extension_flow_control_queue_size";

bool wake_is_queue_metric(str name)
{
    return str_eqc(name, new_metric) || str_eqc(name, old_metric);
}

static bool is_for_model(const struct wake_sample *s, str model, enum wake_rules rules)
{
    if (str_eq(s->target_model, model))
        return true;
    return rules == WAKE_OURS && !s->target_model.n && str_eq(s->model, model);
}

/* A picker that serves both names counts the same requests twice, so only one name is read. */
static const char *choose_metric(const struct wake_sample *samples, size_t n, enum wake_rules rules)
{
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (rules == WAKE_OURS && str_eqc(samples[i].metric, new_metric))
            return new_metric;
        if (str_eqc(samples[i].metric, old_metric))
            found = old_metric;
    }
    return found;
}

enum wake_demand wake_read_demand(const struct wake_sample *samples, size_t n, str model,
                                  enum wake_rules rules)
{
    const char *metric = choose_metric(samples, n, rules);
    if (!metric)
        return WAKE_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        const struct wake_sample *s = &samples[i];
        if (str_eqc(s->metric, metric) && is_for_model(s, model, rules) && s->value > 0 &&
            (rules == WAKE_WVA || isfinite(s->value)))
            return WAKE_PENDING;
    }
    return WAKE_IDLE;
}

/* ---- the pool */

static bool has_labels(const struct wake_pool *pool, const struct text_pair *labels, size_t n)
{
    for (size_t i = 0; i < pool->selector_n; i++) {
        bool found = false;
        for (size_t k = 0; k < n; k++)
            found |= str_eq(labels[k].name, pool->selector[i].name) &&
                     str_eq(labels[k].value, pool->selector[i].value);
        if (!found)
            return false;
    }
    return true;
}

const struct wake_pool *wake_find_pool(const struct wake_pool *pools, size_t n, str ns,
                                       const struct text_pair *labels, size_t label_n)
{
    const struct wake_pool *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct wake_pool *p = &pools[i];
        if (!str_eq(p->ns, ns) || !has_labels(p, labels, label_n))
            continue;
        if (!best || p->selector_n > best->selector_n ||
            (p->selector_n == best->selector_n && str_cmp(p->name, best->name) < 0))
            best = p;
    }
    return best;
}

/* ---- which variant */

int64_t wake_replicas(const struct wake_candidate *c)
{
    return MAX(c->min, (int64_t)1);
}

static bool can_start(const struct wake_candidate *c)
{
    return c->resolved && !c->forbidden && (c->max == 0 || c->max >= 1);
}

/* How long a start may take before another variant is tried. */
static bool is_late(const struct wake_candidate *c)
{
    static const int64_t least = 600 * NS_PER_S;
    return c->waiting_ns > MAX(2 * c->start_time_ns, least);
}

/* Likely to start, then cheap, then fast, then by name. */
static bool is_better(const struct wake_candidate *a, const struct wake_candidate *b)
{
    bool x = a->has_room && !a->failing, y = b->has_room && !b->failing;
    if (x != y)
        return x;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    if (a->start_time_ns != b->start_time_ns)
        return a->start_time_ns < b->start_time_ns;
    return str_cmp(a->variant, b->variant) < 0;
}

struct best {
    size_t at; /* SIZE_MAX: none */
    bool slow, started;
};

/* The best candidate of a role that was not started yet; none if one was and is not late. */
static struct best best_of_role(const struct wake_candidate *candidates, size_t n, const char *role)
{
    struct best best = { .at = SIZE_MAX };
    bool on_time = false;
    for (size_t i = 0; i < n; i++) {
        const struct wake_candidate *c = &candidates[i];
        if (!str_eqc(c->role.n ? c->role : S("both"), role) || !can_start(c))
            continue;
        best.started |= c->waiting_ns > 0;
        on_time |= c->waiting_ns > 0 && !is_late(c);
        best.slow |= is_late(c);
        if (c->waiting_ns == 0 && (best.at == SIZE_MAX || is_better(c, &candidates[best.at])))
            best.at = i;
    }
    if (on_time)
        best.at = SIZE_MAX;
    return best;
}

struct wake_choice wake_choose(const struct wake_candidate *candidates, size_t n)
{
    struct best both = best_of_role(candidates, n, "both"),
                prefill = best_of_role(candidates, n, "prefill"),
                decode = best_of_role(candidates, n, "decode");
    struct wake_choice choice = { .slow = both.slow || prefill.slow || decode.slow };
    bool pair =
        (prefill.at != SIZE_MAX || prefill.started) && (decode.at != SIZE_MAX || decode.started);
    if (both.started && both.at == SIZE_MAX)
        return choice; /* it is on its way */
    if (both.at != SIZE_MAX) {
        choice.at[choice.n++] = both.at;
    } else if (pair) { /* a decoder without a prefiller is useless */
        if (prefill.at != SIZE_MAX)
            choice.at[choice.n++] = prefill.at;
        if (decode.at != SIZE_MAX)
            choice.at[choice.n++] = decode.at;
    }
    return choice;
}
