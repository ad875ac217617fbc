/* Reading and building a status: see market_status.h. */
#include "market_status.h"

#include "../base/clock.h"
#include "../base/quantity.h"
#include "../base/rfc3339.h"

static int64_t read_time(const struct json *status, const char *field)
{
    int64_t at = 0;
    return rfc3339_parse_ns(json_text(json_get(status, field)), &at, NULL) == 0 ? at : 0;
}

static int64_t read_milli(const struct json *object, const char *field, int64_t otherwise)
{
    int64_t milli = 0;
    str text = json_text(json_get(object, field));
    return text.n && quantity_parse_milli(text, &milli, NULL) == 0 ? milli : otherwise;
}

/* ---- originals */

static const struct json *find_original(const struct json *list, str container)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(json_get(json_item(list, i), "container")), container))
            return json_item(list, i);
    return NULL;
}

static bool read_originals(const struct json *list, const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        const struct json *one = find_original(list, c->name);
        if (!one)
            return false;
        c->original_request = read_milli(one, "request", -1);
        c->original_limit = read_milli(one, "limit", -1);
        c->memory_original = (struct actuate_bytes){ read_milli(one, "memoryRequest", -1),
                                                     read_milli(one, "memoryLimit", -1) };
    }
    return pod->n > 0;
}

static void set_milli(struct arena *a, struct json *object, const char *field, int64_t milli)
{
    if (milli >= 0)
        json_set_str(a, object, field, arena_printf(a, "%lldm", (long long)milli));
}

static void set_bytes(struct arena *a, struct json *object, const char *field, int64_t milli)
{
    if (milli >= 0)
        json_set_str(a, object, field, arena_printf(a, "%lld", (long long)(milli / 1000)));
}

static struct json *make_originals(struct arena *a, const struct actuate_pod *pod)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < pod->n; i++) {
        struct json *one = json_new_obj(a);
        json_set_str(a, one, "container", pod->containers[i].name);
        set_milli(a, one, "request", pod->containers[i].request_milli);
        set_milli(a, one, "limit", pod->containers[i].limit_milli);
        set_bytes(a, one, "memoryRequest", pod->containers[i].memory.request);
        set_bytes(a, one, "memoryLimit", pod->containers[i].memory.limit);
        json_push(a, list, one);
    }
    return list;
}

void market_status_adopt(struct arena *a, struct json *status, const struct json *older)
{
    const struct json *originals = json_get(older, "originalResources");
    if (originals && !json_get(status, "originalResources"))
        json_set(a, status, S("originalResources"), json_copy(a, originals));
}

/* ---- memory */

struct actuate_memory market_status_memory(struct arena *a, const struct json *status,
                                           int64_t generation, const struct actuate_pod *pod)
{
    bool same_spec = json_int(json_get(status, "observedGeneration"), -1) == generation;
    bool failed = str_eqc(json_text(json_get(status, "phase")), "Failed");
    static const char *const refusals[] = { "Deferred", "Infeasible", "PatchError",
                                            "RestoreFailed" };
    struct actuate_memory memory = {
        .has_originals = read_originals(json_get(status, "originalResources"), pod),
        .patched_ns = read_time(status, "lastAppliedTime"),
        .attempted_ns = read_time(status, "lastAttemptTime"),
        .infeasible_milli = read_milli(status, "infeasibleCPULimit", 0),
        .infeasible_until_ns = read_time(status, "infeasibleUntil"),
        .memory_until_ns = read_time(status, "memoryRefusedUntil"),
        .refusal_message = arena_str(a, json_text(json_get(status, "message"))),
        .dry_run_done = same_spec && str_eqc(json_text(json_get(status, "reason")), "DryRun"),
    };
    for (size_t i = 0; i < countof(refusals); i++)
        if (same_spec && failed && str_eqc(json_text(json_get(status, "reason")), refusals[i]))
            memory.refusal_reason = str_c(refusals[i]);
    return memory;
}

/* ---- the next status */

static void set_text(struct arena *a, struct json *status, const char *field, str value)
{
    if (value.n)
        json_set_str(a, status, field, value);
    else
        json_del(status, str_c(field));
}

static void set_time(struct arena *a, struct json *status, const char *field, int64_t ns)
{
    char text[RFC3339_TEXT_MAX];
    if (ns)
        json_set_str(a, status, field, rfc3339_text(ns / NS_PER_S, text));
}

struct json *market_status_next(struct arena *a, const struct market_status *s)
{
    const struct actuate_plan *plan = s->plan;
    struct json *next = json_is(s->old, JSON_OBJ) ? json_copy(a, s->old) : json_new_obj(a);
    set_text(a, next, "phase", str_c(actuate_phase_names[plan->phase]));
    set_text(a, next, "reason", str_c(plan->reason));
    set_text(a, next, "message", plan->message);
    json_set_int(a, next, "observedGeneration", s->generation);
    set_milli(a, next, "appliedCPURequest", plan->in_force_request);
    set_milli(a, next, "appliedCPULimit", plan->in_force_limit);
    set_time(a, next, "lastAttemptTime", s->attempted_ns);
    set_time(a, next, "lastAppliedTime", s->applied_ns);
    if (plan->infeasible_milli) {
        set_milli(a, next, "infeasibleCPULimit", plan->infeasible_milli);
        set_time(a, next, "infeasibleUntil", s->now_ns + ACTUATE_INFEASIBLE_NS);
    } else if (read_time(next, "infeasibleUntil") <= s->now_ns) {
        json_del(next, S("infeasibleCPULimit"));
        json_del(next, S("infeasibleUntil"));
    }
    if (plan->memory_refused)
        set_time(a, next, "memoryRefusedUntil", s->now_ns + ACTUATE_INFEASIBLE_NS);
    else if (read_time(next, "memoryRefusedUntil") <= s->now_ns)
        json_del(next, S("memoryRefusedUntil"));
    if (plan->record_originals)
        json_set(a, next, S("originalResources"), make_originals(a, s->pod));
    if (plan->delete_originals)
        json_del(next, S("originalResources"));
    return next;
}
