/* The table of policies by name, and the two that decide nothing themselves (static, plan): see policies.h.
 * Policies are objects with a step function; each implementation embeds struct fleet_policy and owns its
 * state, which the caller releases with fleet_policy_free(). */
#include "policies.h"

#include <stdio.h>

/* ---- static, plan */

static void step_static(struct fleet_policy *p, const struct fleet *f, struct fleet_answer *answer)
{
    (void)p;
    (void)f;
    snprintf(answer->reason, sizeof(answer->reason), "static");
}

static void free_plain(struct fleet_policy *p)
{
    free(p);
}

static struct fleet_policy *policy_static(const struct fleet_config *config)
{
    struct fleet_policy *p = mem_zero(1, sizeof(*p));
    (void)config;
    *p = (struct fleet_policy){ "static", 60, step_static, free_plain };
    return p;
}

struct plan_state {
    struct fleet_policy policy;
    struct policy_plan plan;
};

static void step_plan(struct fleet_policy *policy, const struct fleet *f,
                      struct fleet_answer *answer)
{
    const struct policy_plan *plan = &container_of(policy, struct plan_state, policy)->plan;
    size_t at = (size_t)(fleet_now_s(f) / plan->step_s);
    answer->targets[plan->variant] = plan->replicas[MIN(at, plan->n - 1)];
    snprintf(answer->reason, sizeof(answer->reason), "planned");
}

static void free_plan(struct fleet_policy *policy)
{
    free(container_of(policy, struct plan_state, policy));
}

struct fleet_policy *fleet_policy_plan_new(const struct policy_plan *plan)
{
    struct plan_state *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ "plan", plan->step_s, step_plan, free_plan };
    p->plan = *plan;
    return &p->policy;
}

/* ---- by name */

static const struct policy_kind kinds[] = {
    { "slo", fleet_policy_slo },
    { "need", fleet_policy_need },
    { "2026", fleet_policy_2026 },
    { "seed", fleet_policy_seed },
    { "v2", fleet_policy_v2 },
    { "need-direct", fleet_policy_need_direct },
    { "2026-direct", fleet_policy_2026_direct },
    { "v2-direct", fleet_policy_v2_direct },
    { "v2-taught", fleet_policy_v2_taught },
    { "queue-model", fleet_policy_queue_model },
    { "hpa-running", fleet_policy_hpa_running },
    { "hpa-kv", fleet_policy_hpa_kv },
    { "hpa-queue", fleet_policy_hpa_queue },
    { "keda", fleet_policy_keda },
    { "static", policy_static },
};

const char policy_names[] =
    "slo, need, 2026, seed, v2, need-direct, 2026-direct, v2-direct, v2-taught, queue-model, hpa-running, hpa-kv, "
    "hpa-queue, keda, static, static-peak, known-mean, last-minute, oracle";

struct fleet_policy *fleet_policy_new(str name, const struct fleet_config *config)
{
    for (size_t i = 0; i < countof(kinds); i++)
        if (str_eqc(name, kinds[i].name))
            return kinds[i].make(config);
    return NULL;
}

void fleet_policy_free(struct fleet_policy *p)
{
    if (p && p->free)
        p->free(p);
}
