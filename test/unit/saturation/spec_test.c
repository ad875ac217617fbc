/* A VariantAutoscaling's spec as written by users, and how fast its replicas may change. */
#include "saturation/objects/saturation_spec.h"
#include "tap.h"
#include "json/yaml.h"

static struct arena arena;

static struct variant_spec read(const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&arena, str_c(yaml), &tree, &e), &e);
    return saturation_spec_read(&arena, tree);
}

static void a_plain_spec(void)
{
    struct variant_spec s = read(
        "{modelID: meta/llama, scaleTargetRef: {kind: Deployment, name: web}, variantCost: '40.5'}");
    EQ_STR(s.model, S("meta/llama"));
    EQ_STR(s.target_name, S("web"));
    EQ_REAL(s.cost, 40.5);
    EQ_INT(s.min, 1);
    EQ_INT(s.max, 0);
    OK(!s.writes_scale && !s.has_min && !s.problem_n);
    EQ_INT(s.behavior.down.window_s, 300);
}

static void invalid_values_are_reported_and_replaced(void)
{
    struct variant_spec huge = read("{modelID: m, scaleTargetRef: {kind: Deployment, name: web}, "
                                    "minReplicas: 2147483647, maxReplicas: 9223372036854775807}");
    OK(huge.min <= 1 << 20 && huge.max <= 1 << 20); /* sums of them must not overflow */
    struct variant_spec s = read("{modelID: m, scaleTargetRef: {kind: Deployment, name: web}, "
                                 "variantCost: abc, minReplicas: 5, maxReplicas: 3}");
    EQ_REAL(s.cost, 10);
    EQ_INT(s.min, 3);
    EQ_INT((int64_t)s.problem_n, 2);
    EQ_STR(s.problems[0], S("spec.variantCost \"abc\" is not a number; using 10"));
    EQ_STR(s.problems[1],
           S("spec.minReplicas 5 is greater than spec.maxReplicas 3; using 3 for both"));
    EQ_INT((int64_t)read("[1]").problem_n, 1);
    EQ_REAL(read("{variantCost: 7, scaleTargetRef: {name: x}}").cost, 10);
}

static void profiles_need_all_numbers(void)
{
    struct variant_spec s = read(
        "{scaleTargetRef: {name: x}, modelProfile: {accelerators: [{acc: A100, accCount: 2, maxBatchSize: 4, "
        "perfParms: {decodeParms: {alpha: '20.5', beta: '0.4'}, prefillParms: {gamma: '5', delta: '0.1'}}}, "
        "{acc: L40S, accCount: 1, maxBatchSize: 4, perfParms: {decodeParms: {alpha: '1'}}}]}}");
    EQ_INT((int64_t)s.profile_n, 1);
    EQ_REAL((double)s.profiles[0].alpha, 20.5);
    EQ_INT(s.profiles[0].accelerators, 2);
    EQ_INT((int64_t)s.problem_n, 1);
}

static void growth_is_quick_and_shrinking_waits(void)
{
    struct scale_history h = { 0 };
    const struct scale_behavior *b = &scale_behavior_default;
    EQ_INT(scale_next_replicas(&h, b, 1000, 2, 3), 3);
    scale_record_change(&h, 1000, 2, 3);
    EQ_INT(scale_next_replicas(&h, b, 1010, 3, 1), 3);
    EQ_INT(scale_next_replicas(&h, b, 1200, 3, 1), 3);
    EQ_INT(scale_next_replicas(&h, b, 1301, 3, 1), 1);
    struct scale_history fresh = {
        0
    }; /* of who was just started: what is there counts as wished */
    EQ_INT(scale_next_replicas(&fresh, b, 1000, 3, 1), 3);
    scale_history_done(&fresh);
    scale_history_done(&h);
}

static void policies_limit_the_rate(void)
{
    struct variant_spec s = read(
        "{scaleTargetRef: {name: x}, behavior: {scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: "
        "60}]}, scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Percent, value: 50, "
        "periodSeconds: 60}]}}}");
    struct scale_history h = { 0 };
    EQ_INT(scale_next_replicas(&h, &s.behavior, 0, 4, 20), 6);
    scale_record_change(&h, 0, 4, 6);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 30, 6, 20), 6);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 61, 6, 20), 8);
    scale_record_change(&h, 61, 6, 8);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 200, 8, 1), 4);
    scale_record_change(&h, 300, 8, 6); /* what went may come back besides */
    EQ_INT(scale_next_replicas(&h, &s.behavior, 310, 6, 20), 10);
    scale_history_done(&h);
    h = (struct scale_history){ 0 };
    s.behavior.up.select = SCALE_SELECT_DISABLED;
    EQ_INT(scale_next_replicas(&h, &s.behavior, 500, 2, 9), 2);
    scale_history_done(&h);
}

/* The least wish of the window counts for going up; of several policies selectPolicy chooses. */
static void growing_may_wait_and_take_the_slower_policy(void)
{
    struct variant_spec s = read(
        "{scaleTargetRef: {name: x}, behavior: {scaleUp: {stabilizationWindowSeconds: 60, selectPolicy: Min, "
        "policies: [{type: Pods, value: 4, periodSeconds: 60}, {type: Percent, value: 50, periodSeconds: "
        "60}]}}}");
    struct scale_history h = { 0 };
    EQ_INT(scale_next_replicas(&h, &s.behavior, 0, 2, 2), 2);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 10, 2, 9), 2);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 40, 2, 5), 2);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 61, 2, 9),
           3); /* 5 is wished, half as many more allowed */
    scale_record_change(&h, 61, 2, 3);
    EQ_INT(scale_next_replicas(&h, &s.behavior, 100, 3, 9), 3);
    s.behavior.up.select = SCALE_SELECT_MAX;
    EQ_INT(scale_next_replicas(&h, &s.behavior, 122, 3, 9), 7); /* 4 pods more */
    scale_history_done(&h);
}

int main(void)
{
    int failed = tap_run((struct tap_case[]){ TAP(a_plain_spec),
                                              TAP(invalid_values_are_reported_and_replaced),
                                              TAP(profiles_need_all_numbers),
                                              TAP(growth_is_quick_and_shrinking_waits),
                                              TAP(policies_limit_the_rate),
                                              TAP(growing_may_wait_and_take_the_slower_policy),
                                              { 0 } });
    arena_done(&arena);
    return failed;
}
