/* smarthpa-timeline: an HPA's bounds over days, with restarts, edits and failing writes. */
#include "golden.h"

#include "base/rfc3339.h"
#include "schedule_world.h"

struct line {
    struct golden *g;
    struct json *list; /* of the changes seen */
    struct schedule_bounds last;
};

static int64_t instant(const struct json *v)
{
    int64_t at = 0;
    return v && rfc3339_parse(json_text(v), &at, NULL) == 0 ? at : 0;
}

static void set_triggers(struct world *w, const struct json *triggers)
{
    w->spec = json_new_obj(&w->arena);
    json_set_str(&w->arena, json_make(&w->arena, w->spec, "HPAObjectRef", NULL), "name", S("web"));
    json_set(&w->arena, w->spec, S("triggers"), json_copy(&w->arena, triggers));
    w->generation++;
}

/* A pass, and a line of the answer when the bounds are others than before. */
static void look(struct world *w, struct line *line)
{
    struct arena *a = line->g->arena;
    world_pass(w);
    if (w->gone || schedule_bounds_equal(line->last, w->hpa.bounds))
        return;
    char text[RFC3339_TEXT_MAX];
    struct json *one = json_new_obj(a);
    bool restored = w->plan.effective.source == SCHEDULE_FROM_NONE;
    json_set_str(a, one, "at", rfc3339_text(w->now, text));
    json_set_int(a, one, "min", w->hpa.bounds.min);
    json_set_int(a, one, "max", w->hpa.bounds.max);
    json_set_str(a, one, "source",
                 restored ? S("baseline") : json_text(json_get(w->status, "source")));
    bool clamped = world_said_since(w, "HPAConfigClamped", w->now);
    json_set_str(a, one, "apply", clamped ? S("clamped") : S("ok"));
    json_push(a, line->list, one);
    line->last = w->hpa.bounds;
}

static void act(struct world *w, const struct json *action, bool *down)
{
    str kind = json_text(json_get(action, "kind"));
    if (str_eqc(kind, "down"))
        *down = true;
    else if (str_eqc(kind, "up"))
        *down = false, w->memory = (struct schedule_memory){ 0 };
    else if (str_eqc(kind, "spec"))
        set_triggers(w, json_get(action, "triggers"));
    else if (str_eqc(kind, "fail"))
        w->failures = (int)json_int(json_get(action, "n"), 1);
    else if (str_eqc(kind, "delete"))
        w->deleting = true;
    else
        w->hpa.bounds =
            (struct schedule_bounds){ (int32_t)json_int(json_get(action, "min"), w->hpa.bounds.min),
                                      (int32_t)json_int(json_get(action, "max"),
                                                        w->hpa.bounds.max) };
}

static void run_timeline(struct golden *g, const struct json *c)
{
    const struct json *hpa = json_get(c, "hpa_initial"), *actions = json_get(c, "actions");
    struct schedule_bounds bounds = { (int32_t)json_int(json_get(hpa, "min"), 1),
                                      (int32_t)json_int(json_get(hpa, "max"), 0) };
    struct world w = { .hpa = { .found = true, .bounds = bounds, .replicas = -1 }, .workload = -1 };
    struct line line = { g, json_new_arr(g->arena), bounds };
    int64_t end = instant(json_get(c, "end_rfc3339"));
    size_t next = 0;
    bool down = false;
    w.now = w.created = w.wake = instant(json_get(c, "created_rfc3339"));
    set_triggers(&w, json_get(c, "triggers"));
    while (w.now < end && !w.gone) {
        int64_t action = next < json_len(actions)
                             ? instant(json_get(json_item(actions, next), "at"))
                             : INT64_MAX;
        w.now = down ? action : MIN(w.wake, action);
        if (w.now >= end)
            break;
        if (w.now == action)
            act(&w, json_item(actions, next++), &down);
        if (!down)
            look(&w, &line);
    }
    golden_eq_json(g, "changes", line.list, json_get(c, "expected"));
    world_done(&w);
}

const struct golden_family golden_timeline[] = {
    { "smarthpa-timeline", run_timeline },
    { 0 },
};
