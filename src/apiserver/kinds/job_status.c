/* What the status of a job may say: a job that is done stays done, and says when and how. */
#include "kind_hooks.h"

static bool is_true(const struct json *status, const char *type)
{
    const struct json *list = json_get(status, "conditions");
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(list->items[i], "type")), type) &&
            str_eqc(json_text(json_get(list->items[i], "status")), "True"))
            return true;
    return false;
}

static void check_counts(const struct json *new, const struct json *old,
                         const struct field_path *at, struct field_errors *errors)
{
    static const char *const counts[] = { "active", "succeeded", "failed", "ready", "terminating" };
    for (size_t i = 0; i < countof(counts); i++) {
        const struct json *count = json_get(new, counts[i]);
        struct field_path in = { at, .key = str_c(counts[i]) };
        if (json_int(count, 0) < 0)
            field_invalid(errors, &in, count, "must be greater than or equal to 0");
        if ((i == 1 || i == 2) && json_int(count, 0) < json_int(json_get(old, counts[i]), 0))
            field_invalid(errors, &in, count, "cannot decrease");
    }
    const struct json *ready = json_get(new, "ready");
    if (json_int(ready, 0) > 0 && json_int(ready, 0) > json_int(json_get(new, "active"), 0))
        field_invalid(errors, AT(at, "ready"), ready, "cannot be more than the active pods");
}

/* Times in their one form compare as text. */
static void check_times(const struct json *new, const struct json *old, bool waits,
                        const struct field_path *at, struct field_errors *errors)
{
    const struct json *start = json_get(new, "startTime"), *end = json_get(new, "completionTime");
    const struct json *started = json_get(old, "startTime"),
                      *ended = json_get(old, "completionTime");
    bool complete = is_true(new, "Complete");
    if ((complete || is_true(new, "Failed")) && !start)
        field_required(errors, AT(at, "startTime"), "for a job that is done");
    if (complete && !end)
        field_required(errors, AT(at, "completionTime"), "for a job that is complete");
    if (end && !complete)
        field_invalid(errors, AT(at, "completionTime"), end, "only a complete job has one");
    if (start && end && str_cmp(json_text(end), json_text(start)) < 0)
        field_invalid(errors, AT(at, "completionTime"), end, "must not be before startTime");
    if (started && !waits && !json_eq(start, started))
        field_invalid(errors, AT(at, "startTime"), start, "field is immutable");
    if (ended && end && !json_eq(end, ended))
        field_invalid(errors, AT(at, "completionTime"), end, "field is immutable");
}

/* How a job ends is decided before it has: each end has a condition that leads to it. */
static void check_ends(const struct json *new, const struct json *old, const struct field_path *at,
                       struct field_errors *errors)
{
    static const char *const good[] = { "Complete", "SuccessCriteriaMet" };
    static const char *const bad[] = { "Failed", "FailureTarget" };
    struct field_path in = { at, .key = S("conditions") };
    const struct json *list = json_get(new, "conditions");
    for (int i = 0; i < 2; i++) {
        const char *const *end = i ? bad : good;
        if (is_true(new, end[0]) && !is_true(new, end[1]))
            field_invalid(errors, &in, list, "%s takes %s", end[0], end[1]);
        for (size_t j = 0; j < 2; j++) {
            if (is_true(old, end[j]) && !is_true(new, end[j]))
                field_invalid(errors, &in, list, "%s cannot be taken back", end[j]);
            if (is_true(new, good[i]) && is_true(new, bad[j]))
                field_invalid(errors, &in, list, "%s and %s exclude each other", good[i], bad[j]);
        }
    }
}

void job_check_status(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const running[] = { "active", "terminating" };
    struct field_path at = { NULL, .key = S("status") };
    const struct json *new = json_get(c->object, "status"), *old = json_get(c->old, "status");
    bool waits = json_bool(json_at(c->object, "spec", "suspend", NULL), false);
    check_counts(new, old, &at, errors);
    for (size_t i = 0; i < countof(running); i++)
        if ((is_true(new, "Complete") || is_true(new, "Failed")) &&
            json_int(json_get(new, running[i]), 0) > 0)
            field_invalid(errors, &(struct field_path){ &at, .key = str_c(running[i]) },
                          json_get(new, running[i]), "a job that is done has none");
    check_times(new, old, waits, &at, errors);
    check_ends(new, old, &at, errors);
    const struct json *indexes = json_get(new, "completedIndexes");
    if (json_text(indexes).n &&
        !str_eqc(json_text(json_at(c->object, "spec", "completionMode", NULL)), "Indexed"))
        field_invalid(errors, AT(&at, "completedIndexes"), indexes, "needs a job with indexes");
    indexes = json_get(new, "failedIndexes");
    if (indexes && !json_at(c->object, "spec", "backoffLimitPerIndex", NULL))
        field_invalid(errors, AT(&at, "failedIndexes"), indexes, "needs a backoffLimitPerIndex");
}
