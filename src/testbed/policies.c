/* See policies.h. */
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

struct fleet_policy *policy_plan_new(const struct policy_plan *plan)
{
    struct plan_state *p = mem_zero(1, sizeof(*p));
    p->policy = (struct fleet_policy){ "plan", plan->step_s, step_plan, free_plan };
    p->plan = *plan;
    return &p->policy;
}

/* ---- by name */

static const struct policy_kind kinds[] = {
    { "slo", policy_slo },
    { "need", policy_need },
    { "2026", policy_2026 },
    { "seed", policy_seed },
    { "v2", policy_v2 },
    { "need-direct", policy_need_direct },
    { "2026-direct", policy_2026_direct },
    { "v2-direct", policy_v2_direct },
    { "queue-model", policy_queue_model },
    { "hpa-running", policy_hpa_running },
    { "hpa-kv", policy_hpa_kv },
    { "hpa-queue", policy_hpa_queue },
    { "keda", policy_keda },
    { "static", policy_static },
};

const char policy_names[] =
    "slo, need, 2026, seed, v2, need-direct, 2026-direct, v2-direct, queue-model, hpa-running, hpa-kv, hpa-queue, keda, "
    "static, static-peak, oracle";

struct fleet_policy *policy_new(str name, const struct fleet_config *config)
{
    for (size_t i = 0; i < countof(kinds); i++)
        if (str_eqc(name, kinds[i].name))
            return kinds[i].make(config);
    return NULL;
}

void policy_free(struct fleet_policy *p)
{
    if (p && p->free)
        p->free(p);
}
