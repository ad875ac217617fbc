/* The status of a job: a finished job stays finished, and its conditions agree with its times and counts. That no
 * count is negative is declared in apps.types. */
#include "kind_hooks.h"

static bool is_condition_true(const struct json *status, const char *type)
{
    const struct json *list = json_get(status, "conditions");
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(list->items[i], "type")), type) &&
            str_eqc(json_text(json_get(list->items[i], "status")), "True"))
            return true;
    return false;
}

/* succeeded and failed never decrease; ready pods are active. */
static void check_counts(const struct json *new, const struct json *old,
                         const struct field_path *at, struct field_errors *errors)
{
    static const char *const counts[] = { "succeeded", "failed" };
    for (size_t i = 0; i < countof(counts); i++) {
        const struct json *count = json_get(new, counts[i]);
        struct field_path in = { at, .key = str_c(counts[i]) };
        if (json_int(count, 0) < json_int(json_get(old, counts[i]), 0))
            field_invalid(errors, &in, count, "cannot decrease the counter");
    }
    const struct json *ready = json_get(new, "ready");
    if (json_int(ready, 0) > 0 && json_int(ready, 0) > json_int(json_get(new, "active"), 0))
        field_invalid(errors, AT(at, "ready"), ready, "cannot set more ready pods than active");
}

/* startTime and completionTime agree with the conditions and do not change. They are in canonical
 * form, so they compare as text. */
static void check_times(const struct json *new, const struct json *old, bool suspended,
                        const struct field_path *at, struct field_errors *errors)
{
    const struct json *start = json_get(new, "startTime"), *end = json_get(new, "completionTime");
    const struct json *started = json_get(old, "startTime"),
                      *ended = json_get(old, "completionTime");
    bool complete = is_condition_true(new, "Complete");
    if ((complete || is_condition_true(new, "Failed")) && !start)
        field_required(errors, AT(at, "startTime"), "startTime is required for finished job");
    if (complete && !end)
        field_required(errors, AT(at, "completionTime"),
                       "completionTime is required for Complete jobs");
    if (end && !complete)
        field_invalid(errors, AT(at, "completionTime"), end,
                      "completionTime can be set only for Complete jobs");
    if (start && end && str_cmp(json_text(end), json_text(start)) < 0)
        field_invalid(errors, AT(at, "completionTime"), end,
                      "completionTime cannot be set before startTime");
    if (started && !suspended && !json_eq(start, started))
        field_invalid(errors, AT(at, "startTime"), start, "field is immutable");
    if (ended && end && !json_eq(end, ended))
        field_invalid(errors, AT(at, "completionTime"), end, "field is immutable");
}

/* A job that is about to finish announces it: Complete follows SuccessCriteriaMet, Failed follows
 * FailureTarget, and none is taken back. */
static void check_terminal_conditions(const struct json *new, const struct json *old,
                                      const struct field_path *at, struct field_errors *errors)
{
    static const char *const success[] = { "Complete", "SuccessCriteriaMet" };
    static const char *const failure[] = { "Failed", "FailureTarget" };
    struct field_path in = { at, .key = S("conditions") };
    const struct json *list = json_get(new, "conditions");
    for (int i = 0; i < 2; i++) {
        const char *const *end = i ? failure : success;
        if (is_condition_true(new, end[0]) && !is_condition_true(new, end[1]))
            field_invalid(errors, &in, list,
                          "cannot set %s=True condition without the %s=true condition", end[0],
                          end[1]);
        for (size_t j = 0; j < 2; j++) {
            if (is_condition_true(old, end[j]) && !is_condition_true(new, end[j]))
                field_invalid(errors, &in, list, "cannot disable the terminal condition %s=True",
                              end[j]);
            if (is_condition_true(new, success[i]) && is_condition_true(new, failure[j]))
                field_invalid(errors, &in, list,
                              "cannot set %s=True and %s=true conditions at the same time",
                              success[i], failure[j]);
        }
    }
}

/* A finished job has no active or terminating pods; indexes belong to indexed jobs. */
void kind_check_job_status(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const running[] = { "active", "terminating" };
    struct field_path at = { NULL, .key = S("status") };
    const struct json *new = json_get(c->object, "status"), *old = json_get(c->old, "status");
    bool suspended = json_bool(json_at(c->object, "spec", "suspend", NULL), false);
    check_counts(new, old, &at, errors);
    for (size_t i = 0; i < countof(running); i++)
        if ((is_condition_true(new, "Complete") || is_condition_true(new, "Failed")) &&
            json_int(json_get(new, running[i]), 0) > 0)
            field_invalid(errors, &(struct field_path){ &at, .key = str_c(running[i]) },
                          json_get(new, running[i]), "must be zero for a finished job");
    check_times(new, old, suspended, &at, errors);
    check_terminal_conditions(new, old, &at, errors);
    const struct json *indexes = json_get(new, "completedIndexes");
    if (json_text(indexes).n &&
        !str_eqc(json_text(json_at(c->object, "spec", "completionMode", NULL)), "Indexed"))
        field_invalid(errors, AT(&at, "completedIndexes"), indexes,
                      "cannot set non-empty completedIndexes when non-indexed completion mode");
    indexes = json_get(new, "failedIndexes");
    if (indexes && !json_at(c->object, "spec", "backoffLimitPerIndex", NULL))
        field_invalid(errors, AT(&at, "failedIndexes"), indexes,
                      "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
}
