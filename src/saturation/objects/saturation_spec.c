/* Parses the spec of a VariantAutoscaling: see saturation_spec.h. A cluster without schema
 * validation may store any JSON. */
#include "saturation_spec.h"

#include <math.h>

static const double cost_default = 10;

static void add_problem(struct variant_spec *s, str sentence)
{
    if (s->problem_n < VARIANT_PROBLEMS_MAX)
        s->problems[s->problem_n++] = sentence;
}

static double read_cost(struct arena *a, struct variant_spec *s, const struct json *v)
{
    double cost;
    str text = json_text(v);
    if (!text.n && (!v || v->type == JSON_STR))
        return cost_default;
    if (str_to_f64(text, &cost) == 0 && isfinite(cost) && cost >= 0)
        return cost;
    add_problem(s, arena_printf(a, "spec.variantCost \"" STR_FMT "\" is not a number; using 10",
                                STR_ARG(text)));
    return cost_default;
}

static int read_count(const struct json *v)
{
    return (int)MAX((int64_t)0, MIN(json_int(v, 0), (int64_t)SAT_REPLICAS_MAX));
}

static void read_bounds(struct arena *a, struct variant_spec *s, const struct json *spec)
{
    s->has_min = json_is(json_get(spec, "minReplicas"), JSON_INT);
    s->min = s->has_min ? read_count(json_get(spec, "minReplicas")) : 1;
    s->max = read_count(json_get(spec, "maxReplicas"));
    if (!s->max || s->min <= s->max)
        return;
    if (s->has_min)
        add_problem(s,
                    arena_printf(a,
                                 "spec.minReplicas %d is greater than spec.maxReplicas %d; using "
                                 "%d for both",
                                 s->min, s->max, s->max));
    s->min = s->max;
}

/* ---- behavior */

static void read_policies(struct scale_rules *rules, const struct json *list)
{
    if (!json_len(list))
        return;
    rules->policy_n = MIN(json_len(list), (size_t)SCALE_POLICIES_MAX);
    for (size_t i = 0; i < rules->policy_n; i++) {
        const struct json *p = json_item(list, i);
        rules->policies[i] = (struct scale_policy){
            .percent = str_eqc(json_text(json_get(p, "type")), "Percent"),
            .value = read_count(json_get(p, "value")),
            .period_s = read_count(json_get(p, "periodSeconds")),
        };
    }
}

static void read_rules(struct scale_rules *rules, const struct json *v)
{
    const struct json *window = json_get(v, "stabilizationWindowSeconds");
    str select = json_text(json_get(v, "selectPolicy"));
    if (json_is(window, JSON_INT))
        rules->window_s = read_count(window);
    rules->select = str_eqc(select, "Min")        ? SCALE_SELECT_MIN
                    : str_eqc(select, "Disabled") ? SCALE_SELECT_DISABLED
                                                  : SCALE_SELECT_MAX;
    read_policies(rules, json_get(v, "policies"));
}

/* ---- the profile for the optimizer */

static bool read_parameter(const struct json *map, const char *name, float *ret)
{
    double value;
    const struct json *v = json_get(map, name);
    if (json_is(v, JSON_STR) ? str_to_f64(json_text(v), &value) < 0
                             : !isfinite(value = json_real(v, NAN)))
        return false;
    *ret = (float)value;
    return true;
}

static bool read_profile(const struct json *v, struct variant_profile *p)
{
    const struct json *decode = json_at(v, "perfParms", "decodeParms", NULL);
    const struct json *prefill = json_at(v, "perfParms", "prefillParms", NULL);
    p->accelerator = json_text(json_get(v, "acc"));
    p->accelerators = MAX(1, read_count(json_get(v, "accCount")));
    p->batch_max = read_count(json_get(v, "maxBatchSize"));
    return p->accelerator.n && read_parameter(decode, "alpha", &p->alpha) &&
           read_parameter(decode, "beta", &p->beta) &&
           read_parameter(prefill, "gamma", &p->gamma) &&
           read_parameter(prefill, "delta", &p->delta);
}

static void read_profiles(struct arena *a, struct variant_spec *s, const struct json *list)
{
    s->profiles = arena_array(a, json_len(list), sizeof(*s->profiles));
    for (size_t i = 0; i < json_len(list); i++) {
        if (read_profile(json_item(list, i), &s->profiles[s->profile_n]))
            s->profile_n++;
        else
            add_problem(s,
                        arena_printf(a,
                                     "spec.modelProfile.accelerators[%zu] has no name or lacks one "
                                     "of alpha, beta, gamma, delta; ignored",
                                     i));
    }
}

struct variant_spec saturation_spec_read(struct arena *a, const struct json *spec)
{
    const struct json *target = json_get(spec, "scaleTargetRef");
    struct variant_spec s = {
        .target_api = json_text(json_get(target, "apiVersion")),
        .target_kind = json_text(json_get(target, "kind")),
        .target_name = json_text(json_get(target, "name")),
        .model = json_text(json_get(spec, "modelID")),
        .writes_scale = str_eqc(json_text(json_get(spec, "actuation")), "Scale"),
        .has_behavior = json_len(json_get(spec, "behavior")) > 0,
        .behavior = scale_behavior_default,
    };
    if (!s.target_name.n)
        add_problem(&s, S("spec.scaleTargetRef.name is empty; set it to the name of a workload"));
    s.cost = read_cost(a, &s, json_get(spec, "variantCost"));
    read_bounds(a, &s, spec);
    read_rules(&s.behavior.up, json_at(spec, "behavior", "scaleUp", NULL));
    read_rules(&s.behavior.down, json_at(spec, "behavior", "scaleDown", NULL));
    read_profiles(a, &s, json_at(spec, "modelProfile", "accelerators", NULL));
    return s;
}
