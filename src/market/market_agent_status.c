/* The numbers behind a pod's limit, as the agent writes them into the status of its PodAllocation:
 * what the pod uses and needs, what it is guaranteed, its share, and what was wrong with its
 * annotations. `flyball explain` prints them. */
#include "market_agent_internal.h"

#include "milli.h"

#include <math.h>

void market_agent_set_milli(struct arena *arena, struct json *o, const char *key, int64_t milli)
{
    json_set_str(arena, o, key, arena_printf(arena, "%lldm", (long long)milli));
}

void market_agent_set_real(struct arena *arena, struct json *o, const char *key, double value)
{
    double bounded = isfinite(value) ? MIN(value, PRICE_MAX) : PRICE_MAX;
    json_set(arena, o, str_c(key),
             json_new_real(arena, (double)milli_round(bounded * 1000) / 1000));
}

/* One sentence per problem: what was asked for and what is given instead. */
static str describe_problem(struct arena *arena, enum floor_problem problem,
                            const struct market_pod *m, const struct agent_pod_record *r)
{
    switch (problem) {
    case FLOOR_MIN_BAD_QUANTITY:
        return arena_printf(arena, MARKET_MIN_CPU " is \"" STR_FMT "\", not a quantity; ignored",
                            STR_ARG(r->min_cpu));
    case FLOOR_MIN_NOT_POSITIVE:
        return arena_printf(arena,
                            MARKET_MIN_CPU " is \"" STR_FMT "\"; it must be positive; ignored",
                            STR_ARG(r->min_cpu));
    case FLOOR_MAX_BAD_QUANTITY:
        return arena_printf(arena, MARKET_MAX_CPU " is \"" STR_FMT "\", not a quantity; ignored",
                            STR_ARG(r->max_cpu));
    case FLOOR_MAX_NOT_POSITIVE:
        return arena_printf(arena,
                            MARKET_MAX_CPU " is \"" STR_FMT "\"; it must be positive; ignored",
                            STR_ARG(r->max_cpu));
    case FLOOR_MIN_ABOVE_MAX:
        return arena_printf(arena, MARKET_MIN_CPU " " STR_FMT " is above " MARKET_MAX_CPU,
                            STR_ARG(r->min_cpu));
    case FLOOR_MIN_ABOVE_ORIGINAL_LIMIT:
        return arena_printf(arena,
                            MARKET_MIN_CPU " " STR_FMT
                                           " is above the limit it was admitted with, %dm",
                            STR_ARG(r->min_cpu), m->original_limit_milli);
    case FLOOR_MIN_ABOVE_SHARE:
        return arena_printf(arena,
                            MARKET_MIN_CPU " " STR_FMT " is above maxMinCPUShare of the node",
                            STR_ARG(r->min_cpu));
    default:
        return arena_printf(arena, "the node has no room for all of %s; guaranteed are %dm",
                            floor_problem_name(problem).source, m->guaranteed_milli);
    }
}

struct json *market_agent_pod_problems(struct arena *arena, const struct agent_pod *pod)
{
    const struct market_pod *m = &pod->sampled.market;
    struct json *list = json_new_arr(arena);
    bool move;
    for (int i = 0; i < FLOOR_PROBLEM_N; i++)
        if (m->problems & 1u << i)
            json_push(arena, list,
                      json_new_str(arena,
                                   describe_problem(arena, (enum floor_problem)i, m, pod->record)));
    if (pod->record->hpa.n && !hpa_peace_read(pod->record->hpa, &move))
        json_push(arena, list, json_new_str(arena, S(MARKET_HPA " must be hold or move")));
    return list;
}

struct json *market_agent_make_status(struct arena *arena, const struct market_agent *a,
                                      const struct agent_pod *pod)
{
    const struct market_pod *m = &pod->sampled.market;
    const struct market_node *node = sampler_node(a->sampler);
    struct json *status = json_new_obj(arena), *peace = json_new_obj(arena);
    str hpa;
    struct hpa_peace_result held = market_agent_peace(a, pod, &hpa);
    market_agent_set_milli(arena, status, "usageCPU", m->agent.usage_milli);
    market_agent_set_milli(arena, status, "needCPU", market_pod_need(m));
    market_agent_set_milli(arena, status, "guaranteedCPU", m->guaranteed_milli);
    market_agent_set_milli(arena, status, "bidMaxCPU", m->bid_max_milli);
    market_agent_set_milli(arena, status, "shareCPU", m->share_milli);
    market_agent_set_milli(arena, status, "nodeCapacityCPU", node->capacity_milli);
    market_agent_set_real(arena, status, "throttling", (double)m->slow_throttled);
    market_agent_set_real(arena, status, "weight", (double)m->weight);
    market_agent_set_real(arena, status, "lambdaCPU", node->price.lambda_per_core);
    json_set_str(arena, status, "mode", str_c(market_mode_name(node->published.mode)));
    json_set(arena, status, S("priceRound"), json_new_int(arena, node->published.round));
    json_set_str(arena, peace, "state", str_c(hpa_peace_name(held.state)));
    if (hpa.n)
        json_set_str(arena, peace, "hpa", hpa);
    if (held.floor_milli)
        market_agent_set_milli(arena, peace, "floor", held.floor_milli);
    json_set(arena, status, S("hpaPeace"), peace);
    struct json *memory = market_agent_memory_status(arena, pod);
    json_set(arena, status, S("memory"), memory ? memory : json_new_null(arena));
    json_set(arena, status, S("problems"), market_agent_pod_problems(arena, pod));
    return status;
}
