/* Which HPA divides by a pod's CPU request, and what the boost of a starting pod is: the inputs of
 * guarantees that come from outside the market (floor_core.h). Looked up when a pod, an HPA or the
 * configuration changes, and after every slow round. */
#include "market_agent_internal.h"

#include "boost_core.h"
#include "milli.h"

/* The highest target of the HPA's metrics that divide by the request; 0: none does. */
static int64_t highest_target(const struct agent_hpa_record *hpa, str resource)
{
    bool by_default = !hpa->metrics.n && str_eqc(resource, "cpu");
    int64_t highest = by_default ? HPA_TARGET_DEFAULT : 0;
    for (size_t i = 0; i < hpa->metrics.n; i++) {
        const struct agent_hpa_metric *m = &hpa->metrics.at[i];
        bool of_container = str_eqc(m->type, "ContainerResource");
        struct hpa_peace_metric metric = {
            .type = m->type,
            .name = of_container ? m->container_name : m->name,
            .target_type = of_container ? m->container_target : m->target,
            .percent = of_container ? m->container_percent : m->percent,
        };
        if (hpa_peace_divides(&metric, resource))
            highest = MAX(highest, hpa_peace_target(&metric));
    }
    return highest;
}

/* Keeps the HPA of this target with the highest utilization target. */
static void consider_owner(const struct market_agent *a, const struct agent_pod_record *pod,
                           str kind, str name, str resource, struct hpa_divisor *best)
{
    const struct agent_hpa_record *hpa;
    if (!name.n)
        return;
    cache_each_in(hpa, a->hpas, AGENT_HPAS_BY_TARGET, name) {
        if (!str_eq(hpa->meta.ns, pod->meta.ns) || !str_eq(hpa->target_kind, kind))
            continue;
        int64_t target = highest_target(hpa, resource);
        if (target > best->target_percent)
            *best = (struct hpa_divisor){ .name = hpa->meta.name,
                                          .target_percent = target,
                                          .tolerance_up = (double)hpa->tolerance_milli / 1000 };
    }
}

static struct hpa_divisor find_divisor(const struct market_agent *a,
                                       const struct agent_pod_record *r, str resource)
{
    struct hpa_divisor best = { 0 };
    consider_owner(a, r, r->owner_kind, r->owner_name, resource, &best);
    consider_owner(a, r, S("Deployment"), market_agent_pod_deployment(r), resource, &best);
    return best;
}

bool market_agent_is_divided(const struct market_agent *a, const struct agent_pod_record *pod,
                             str resource)
{
    return find_divisor(a, pod, resource).target_percent > 0;
}

struct hpa_peace_result market_agent_peace(const struct market_agent *a,
                                           const struct agent_pod *pod, str *ret_hpa)
{
    const struct agent_pod_record *r = pod->record;
    struct hpa_divisor best = find_divisor(a, r, S("cpu"));
    struct hpa_peace_pod input = { .original_request_milli = pod->original_request_milli,
                                   .desired_limit_milli = pod->sampled.market.limit_milli,
                                   .move = str_eqc(a->config.market.hpa_peace, "move") };
    if (r->hpa.n)
        (void)hpa_peace_read(r->hpa, &input.move);
    *ret_hpa = best.name;
    return hpa_peace_decide(&input, best.target_percent > 0 ? &best : NULL);
}

static struct boost read_boost(const struct market_agent *a, const struct agent_pod_record *r)
{
    const struct market_config *c = &a->config.market;
    auto_arena struct arena scratch = { 0 };
    struct boost boost = { 0 };
    uint32_t problems = 0;
    if (r->startup_boost.n) {
        (void)boost_parse(&scratch, r->startup_boost, &boost, NULL);
        return boost;
    }
    boost.duration_s = c->boost_duration_s;
    if (str_eqc(c->boost_type, "Factor") && c->boost_factor > 0) {
        boost.type = BOOST_FACTOR;
        boost.factor = c->boost_factor;
    } else if (str_eqc(c->boost_type, "Quantity")) {
        boost.quantity_milli = floor_read_max(c->boost_quantity, &problems);
        boost.type = boost.quantity_milli > 0 ? BOOST_QUANTITY : BOOST_NONE;
    }
    return boost;
}

static void apply_boost(const struct market_agent *a, struct agent_pod *pod)
{
    struct market_pod *m = &pod->sampled.market;
    const struct agent_pod_record *r = pod->record;
    struct boost boost = read_boost(a, r);
    struct boost_state s =
        boost_at(&boost, &(struct boost_pod){ .now_s = loop_wall_ns(a->loop) / NS_PER_S,
                                              .started_s = r->started_ns / NS_PER_S,
                                              .ready_s = r->ready_ns / NS_PER_S,
                                              .is_ready = r->ready,
                                              .max_s = a->config.market.boost_max_s,
                                              .original_request_milli = pod->original_request_milli,
                                              .original_limit_milli = m->original_limit_milli,
                                              .max_milli = m->max_milli });
    bool known = r->started_ns > 0;
    m->boost_milli = known && s.boosting ? milli32(s.limit_milli) : 0;
    m->ignore_readings = known && !s.is_reading_valid;
}

void market_agent_apply_guarantees(const struct market_agent *a, struct agent_pod *pod)
{
    struct market_pod *m = &pod->sampled.market;
    str hpa;
    struct hpa_peace_result peace = market_agent_peace(a, pod, &hpa);
    bool held = peace.state == HPA_PEACE_HELD;
    m->held_milli = MAX(held ? milli32(peace.floor_milli) : 0, pod->least_milli);
    m->held_request_milli = held ? pod->original_request_milli : 0;
    apply_boost(a, pod);
}
