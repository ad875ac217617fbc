/* smarthpa-timeline: an HPA's bounds over days, with restarts, edits and failing writes. Each case is run
 * twice: with the plan alone, and with the whole controller on the embedded API server. */
#include "golden.h"

#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "schedule/schedule_controller.h"
#include "schedule/schedule_records.h"
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

static void set_triggers(struct schedule_world *w, const struct json *triggers)
{
    w->spec = json_new_obj(&w->arena);
    json_set_str(&w->arena, json_make(&w->arena, w->spec, "HPAObjectRef", NULL), "name", S("web"));
    json_set(&w->arena, w->spec, S("triggers"), json_copy(&w->arena, triggers));
    w->generation++;
}

/* A pass, and a line of the answer when the bounds are others than before. */
static void observe_bounds(struct schedule_world *w, struct line *line)
{
    struct arena *a = line->g->arena;
    schedule_world_pass(w);
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
    bool clamped = schedule_world_has_event_since(w, "HPAConfigClamped", w->now);
    json_set_str(a, one, "apply", clamped ? S("clamped") : S("ok"));
    json_push(a, line->list, one);
    line->last = w->hpa.bounds;
}

static void act(struct schedule_world *w, const struct json *action, bool *down)
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

static void run_plan(struct golden *g, const struct json *c)
{
    const struct json *hpa = json_get(c, "hpa_initial"), *actions = json_get(c, "actions");
    struct schedule_bounds bounds = { (int32_t)json_int(json_get(hpa, "min"), 1),
                                      (int32_t)json_int(json_get(hpa, "max"), 0) };
    struct schedule_world w = { .hpa = { .found = true, .bounds = bounds, .replicas = -1 },
                                .workload = -1 };
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
            observe_bounds(&w, &line);
    }
    golden_eq_json(g, "changes", line.list, json_get(c, "expected"));
    schedule_world_done(&w);
}

/* ---- the whole controller */

static struct json *schedule_object_json(struct cluster *c, const struct json *triggers)
{
    struct json *o = json_new_obj(&c->arena);
    json_set_str(&c->arena, o, "apiVersion", S("autoscaling.sarabala.io/v1alpha1"));
    json_set_str(&c->arena, o, "kind", S("SmartHorizontalPodAutoscaler"));
    json_set_str(&c->arena, json_make(&c->arena, o, "metadata", NULL), "name", S("office"));
    struct json *spec = json_make(&c->arena, o, "spec", NULL);
    json_set_str(&c->arena, json_make(&c->arena, spec, "HPAObjectRef", NULL), "name", S("web"));
    json_set(&c->arena, spec, S("triggers"), json_copy(&c->arena, triggers));
    return o;
}

static void make_objects(struct cluster *c, const struct json *wanted)
{
    const struct json *hpa = json_get(wanted, "hpa_initial");
    str text = arena_printf(
        &c->arena,
        "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":"
        "\"web\"},\"spec\":{\"minReplicas\":%lld,\"maxReplicas\":%lld,\"scaleTargetRef\":{\"apiVersion\":"
        "\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"}}}",
        (long long)json_int(json_get(hpa, "min"), 1), (long long)json_int(json_get(hpa, "max"), 1));
    struct json *tree = NULL;
    json_parse(&c->arena, text, &tree, NULL);
    cluster_create(c, &resource_hpas, "default", tree);
    cluster_create(c, &schedule_resource, "default",
                   schedule_object_json(c, json_get(wanted, "triggers")));
}

static void cluster_act(struct cluster *c, const struct json *action)
{
    str kind = json_text(json_get(action, "kind"));
    if (str_eqc(kind, "down")) {
        cluster_operator_down(c);
    } else if (str_eqc(kind, "up")) {
        cluster_operator(c, &schedule_feature, NULL);
    } else if (str_eqc(kind, "spec")) {
        str body = json_to_str(&c->arena, schedule_object_json(c, json_get(action, "triggers")));
        cluster_do(c, KUBE_MERGE_PATCH, &schedule_resource, "default", "office", body);
    } else if (str_eqc(kind, "fail")) {
        c->failures = (int)json_int(json_get(action, "n"), 1);
        c->fail_path = "/horizontalpodautoscalers/";
    } else if (str_eqc(kind, "delete")) {
        cluster_do(c, KUBE_DELETE, &schedule_resource, "default", "office", S(""));
    } else {
        str body = arena_printf(&c->arena, "{\"spec\":{\"minReplicas\":%lld,\"maxReplicas\":%lld}}",
                                (long long)json_int(json_get(action, "min"), 1),
                                (long long)json_int(json_get(action, "max"), 1));
        cluster_do(c, KUBE_MERGE_PATCH, &resource_hpas, "default", "web", body);
    }
}

/* What the server holds now, as a line of the answer when it is another than the last. */
static void observe(struct cluster *c, struct line *line, int64_t at)
{
    struct arena *a = line->g->arena;
    const struct json *hpa = cluster_get(c, &resource_hpas, "default", "web");
    const struct json *schedule = cluster_get(c, &schedule_resource, "default", "office");
    struct schedule_bounds now = {
        (int32_t)json_int(json_at(hpa, "spec", "minReplicas", NULL), 1),
        (int32_t)json_int(json_at(hpa, "spec", "maxReplicas", NULL), 1),
    };
    if (schedule_bounds_equal(now, line->last))
        return;
    char text[RFC3339_TEXT_MAX];
    str source = json_text(json_at(schedule, "status", "source", NULL));
    struct json *one = json_new_obj(a);
    json_set_str(a, one, "at", rfc3339_text(at, text));
    json_set_int(a, one, "min", now.min);
    json_set_int(a, one, "max", now.max);
    json_set_str(a, one, "source", str_eqc(source, "none") ? S("baseline") : source);
    json_push(a, line->list, one);
    line->last = now;
}

static const struct json *without_apply(struct arena *a, const struct json *list)
{
    struct json *out = json_copy(a, list);
    for (size_t i = 0; i < json_len(out); i++)
        json_del(json_item(out, i), S("apply"));
    return out;
}

/* Runs until the next write of the operator or the given second; answers whether it wrote. */
static bool run_until_write(struct cluster *c, int64_t until)
{
    size_t writes = c->operator_writes;
    struct timer timer = { 0 };
    timer_set(c->loop, &timer, loop_mono_ns(c->loop) + until * NS_PER_S - loop_wall_ns(c->loop),
              cluster_tick);
    while (timer_is_set(&timer) && c->operator_writes == writes)
        loop_turn(c->loop);
    timer_stop(&timer);
    return c->operator_writes != writes;
}

static void run_controller(struct golden *g, const struct json *wanted)
{
    const struct json *hpa = json_get(wanted, "hpa_initial"),
                      *actions = json_get(wanted, "actions");
    struct line line = { g,
                         json_new_arr(g->arena),
                         { (int32_t)json_int(json_get(hpa, "min"), 1),
                           (int32_t)json_int(json_get(hpa, "max"), 0) } };
    int64_t end = instant(json_get(wanted, "end_rfc3339"));
    struct cluster c;
    cluster_start(&c, instant(json_get(wanted, "created_rfc3339")));
    make_objects(&c, wanted);
    cluster_operator(&c, &schedule_feature, NULL);
    size_t next = 0;
    while (cluster_now(&c) < end) {
        const struct json *action = json_item(actions, next);
        int64_t until = action ? MIN(instant(json_get(action, "at")), end) : end;
        if (run_until_write(&c, until)) {
            int64_t at = cluster_now(&c);
            while (run_until_write(&c, at + 1)) /* the rest of the pass */
                continue;
            observe(&c, &line, at);
        } else if (action && cluster_now(&c) >= until && until < end) {
            cluster_act(&c, action);
            next++;
        }
    }
    cluster_stop(&c);
    golden_eq_json(g, "changes on the embedded server", line.list,
                   without_apply(g->arena, json_get(wanted, "expected")));
}

static void run_timeline(struct golden *g, const struct json *c)
{
    log_setup(LOG_ERROR, LOG_TEXT);
    run_plan(g, c);
    run_controller(g, c);
}

const struct golden_family golden_timeline[] = {
    { "smarthpa-timeline", run_timeline },
    { 0 },
};
