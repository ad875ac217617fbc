/* See schedule_world.h. */
#include "schedule_world.h"

#include "json/merge.h"

void schedule_world_done(struct schedule_world *w)
{
    arena_done(&w->arena);
}

bool schedule_world_has_event_since(const struct schedule_world *w, const char *reason,
                                    int64_t since)
{
    for (size_t i = 0; i < w->events_n; i++)
        if (w->events[i].at >= since && str_eqc(str_c(w->events[i].reason), reason))
            return true;
    return false;
}

size_t schedule_world_count(const struct schedule_world *w, const char *reason)
{
    size_t n = 0;
    for (size_t i = 0; i < w->events_n; i++)
        n += str_eqc(str_c(w->events[i].reason), reason);
    return n;
}

static void world_patch_hpa(struct schedule_world *w, const struct json *patch)
{
    const struct json *spec = json_get(patch, "spec");
    w->hpa.bounds.min = (int32_t)json_int(json_get(spec, "minReplicas"), w->hpa.bounds.min);
    w->hpa.bounds.max = (int32_t)json_int(json_get(spec, "maxReplicas"), w->hpa.bounds.max);
    const struct json *note = json_at(patch, "metadata", "annotations", SCHEDULE_BASELINE, NULL);
    if (note)
        w->hpa.baseline = arena_str(&w->arena, json_text(note));
    w->hpa_writes++;
}

static void world_record_events(struct schedule_world *w, const struct schedule_plan *plan)
{
    for (size_t i = 0; i < plan->events_n && w->events_n < SCHEDULE_WORLD_EVENTS; i++)
        w->events[w->events_n++] =
            (struct schedule_world_event){ w->now, plan->events[i].warning, plan->events[i].reason,
                                           plan->events[i].message };
}

/* Carries out one plan; true if the pass continues with another one. */
static bool world_apply_plan(struct schedule_world *w, struct schedule_pass *pass,
                             const struct schedule_plan *plan)
{
    if (plan->add_finalizer)
        w->finalizer = pass->object.has_finalizer = true;
    if (plan->create) {
        w->hpa.found = w->hpa.ours = true;
        world_patch_hpa(w, plan->create);
        pass->hpa = w->hpa;
        pass->template_found = true;
        pass->template_applied = true;
        return true;
    }
    if (plan->patch && w->failures > 0) {
        w->failures--;
        return true; /* the queue retries within milliseconds */
    }
    if (plan->patch && w->rejecting) {
        pass->rejected = true;
        w->memory.forbidden += w->forbidding;
        pass->failure = S("the server refused the bounds");
        return true;
    }
    if (plan->patch) {
        pass->changed = true;
        pass->changed_from = pass->hpa.bounds;
        world_patch_hpa(w, plan->patch);
        if (plan->reverts)
            schedule_memory_revert(&w->memory, w->now);
        pass->hpa = w->hpa;
        return true;
    }
    if (plan->scale) {
        bool down = plan->replicas < w->workload;
        pass->scaled = w->workload < 0 ? SCHEDULE_SCALE_FAILED : SCHEDULE_SCALE_DONE;
        pass->failure = S("the workload cannot be scaled");
        if (w->workload >= 0 && plan->replicas != w->workload && (!down || plan->scale_down_too)) {
            w->workload = w->hpa.replicas = plan->replicas;
            w->scale_writes++;
        }
        return true;
    }
    return false;
}

void schedule_world_pass(struct schedule_world *w)
{
    if (w->gone)
        return;
    struct arena *a = &w->arena;
    struct schedule_pass pass = {
        .object = { .ns = S("shop"),
                    .name = S("office"),
                    .uid = S("u1"),
                    .generation = w->generation,
                    .created = w->created,
                    .deleting = w->deleting,
                    .has_finalizer = w->finalizer,
                    .paused = w->paused,
                    .spec = schedule_spec_read(a, w->spec,
                                               (struct schedule_defaults){ .find_zone = tz_get }),
                    .status = w->status },
        .hpa = w->hpa,
        .template_found = w->hpa.found,
        .managed_by = w->managed_by,
        .now = w->now,
        .memory = &w->memory,
        .advice_reason = w->advice_reason,
        .advice_problem = S("the analysis failed"),
    };
    for (int i = 0; i < SCHEDULE_WORLD_PASSES; i++) {
        w->plan = schedule_plan(a, &pass);
        if (world_apply_plan(w, &pass, &w->plan))
            continue;
        world_record_events(w, &w->plan);
        if (w->plan.remove_finalizer)
            w->gone = true;
        if (w->plan.status) {
            w->status = merge_patch(a, w->status, w->plan.status);
            w->status_writes++;
        }
        w->wake = w->plan.wake;
        return;
    }
}
