/* One pass: every path through the plan, in a world without a server. */
#include "base/random.h"
#include "base/rfc3339.h"
#include "schedule/schedule_plan_core.h"
#include "schedule/schedule_status_core.h"
#include "schedule_world.h"
#include "tap.h"
#include "json/yaml.h"

#define OFFICE                                                                                           \
    "HPAObjectRef: {name: web}\n"                                                                        \
    "triggers:\n"                                                                                        \
    "- {name: day, interval: {recurring: 'M,TU,W,TH,F'}, startTime: '09:00:00', endTime: '17:00:00',\n"  \
    "   startHPAConfig: {minReplicas: 8, maxReplicas: 20}, endHPAConfig: {minReplicas: 2, maxReplicas: " \
    "5}}\n"

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static void set_spec(struct schedule_world *w, const char *yaml)
{
    err_t e;
    OK_CALL(yaml_parse(&w->arena, str_c(yaml), &w->spec, &e), &e);
    w->generation++;
}

/* An object made on Wednesday at 08:00, and a pass at `now` of that day. */
static struct schedule_world world_new(const char *yaml, const char *now)
{
    struct schedule_world w = {
        .hpa = { .found = true, .bounds = { 2, 9 }, .replicas = 3, .has_target = true },
        .workload = 3
    };
    w.created = at("2026-06-03T08:00:00Z");
    w.now = at(now);
    set_spec(&w, yaml);
    return w;
}
#define auto_world __attribute__((cleanup(schedule_world_done)))

static str condition_of(const struct schedule_world *w, const char *type, const char *field)
{
    return json_text(json_get(schedule_condition_find(w->status, type), field));
}

static void is(const struct schedule_world *w, const char *type, const char *status,
               const char *reason)
{
    EQ_STR(condition_of(w, type, "status"), str_c(status));
    EQ_STR(condition_of(w, type, "reason"), str_c(reason));
}

static void has_bounds(const struct schedule_world *w, int32_t min, int32_t max)
{
    EQ_INT(w->hpa.bounds.min, min);
    EQ_INT(w->hpa.bounds.max, max);
}

/* idleReplicaCount is a tenant's value: the largest must not overflow, and leaves no valid minimum. */
static void an_absurd_idle_count_changes_nothing(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    w.hpa.has_idle = true;
    w.hpa.idle = INT32_MAX;
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    is(&w, "Ready", "False", "InvalidSpec");
}

static void a_window_is_applied_once(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9}"));
    EQ_STR(json_text(json_get(w.status, "activeTrigger")), S("day"));
    EQ_STR(json_text(json_get(w.status, "source")), S("start:day"));
    EQ_STR(json_text(json_get(w.status, "nextTransitionTime")), S("2026-06-03T17:00:00Z"));
    EQ_STR(json_text(json_get(w.status, "lastAppliedTime")), S("2026-06-03T10:00:00Z"));
    EQ_INT(json_int(json_at(w.status, "lastAppliedConfig", "minReplicas", NULL), 0), 8);
    EQ_STR(condition_of(&w, "Ready", "message"), S("SmartHPA reconciled successfully"));
    is(&w, "Ready", "True", "Reconciled");
    is(&w, "HPAValid", "True", "Reconciled");
    is(&w, "Scheduled", "True", "ScheduleEnqueued");
    is(&w, "SpecValid", "True", "Valid");
    OK(!schedule_condition_find(w.status, "Error"));
    OK(schedule_world_has_event_since(&w, "TriggerStarted", 0) &&
       schedule_world_has_event_since(&w, "HPAUpdated", 0));
    size_t events = w.events_n;
    for (int i = 0; i < 5; i++, w.now += 300)
        schedule_world_pass(&w);
    EQ_INT(w.hpa_writes, 1);
    EQ_INT(w.status_writes, 1); /* nothing is written when nothing changed */
    EQ_INT(w.events_n, events);
}

static void wakes_at_the_transition_or_after_five_minutes(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T16:58:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.wake, at("2026-06-03T17:00:00Z"));
    w.now = at("2026-06-03T12:00:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.wake, w.now + 300);
}

static void an_edit_counts_at_once(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    json_set_int(&w.arena, json_get(json_item(json_get(w.spec, "triggers"), 0), "startHPAConfig"),
                 "minReplicas", 11);
    w.generation++;
    schedule_world_pass(&w);
    has_bounds(&w, 11, 20);
    EQ_INT(json_int(json_get(w.status, "observedGeneration"), 0), w.generation);
    EQ_STR(w.hpa.baseline, S("{\"min\":2,\"max\":9}")); /* still the first ones */
}

static void drift_is_set_back(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    w.hpa.bounds.min = 1;
    w.now += 60;
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
    EQ_INT(w.memory.next, 1);
}

static void drift_may_stay_until_the_next_transition(void)
{
    auto_world struct schedule_world w =
        world_new(OFFICE "driftPolicy: OnTransition\n", "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    w.hpa.bounds.min = 1;
    w.now += 60;
    schedule_world_pass(&w);
    has_bounds(&w, 1, 20);
    is(&w, "Ready", "True", "Drifted");
    w.now = at("2026-06-03T17:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 2, 5);
}

static void a_fight_is_left_for_ten_minutes(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    for (int i = 0; i < 6; i++) {
        w.hpa.bounds.max = 100;
        w.now += 20;
        schedule_world_pass(&w);
    }
    has_bounds(&w, 8, 100); /* the sixth time it stays */
    is(&w, "Contended", "True", "ManualDrift");
    is(&w, "Ready", "False", "Contended");
    EQ_INT(json_int(json_at(w.status, "currentConfig", "maxReplicas", NULL), 0), 100);
    EQ_INT(schedule_world_count(&w, "HPAContended"), 1);
    int64_t since = w.now;
    w.memory = (struct schedule_memory){ 0 }; /* a restart changes nothing */
    w.now += 300;
    schedule_world_pass(&w);
    has_bounds(&w, 8, 100);
    EQ_INT(w.wake, since + 600);
    w.now = since + 600;
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
    is(&w, "Contended", "False", "Quiet");
    is(&w, "Ready", "True", "Reconciled");
    EQ_INT(json_int(json_at(w.status, "currentConfig", "maxReplicas", NULL), 0), 20);
    EQ_INT(schedule_world_count(&w, "HPAContended"), 1);
}

static void a_suspended_trigger_gives_the_bounds_back(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    json_set_bool(&w.arena, json_item(json_get(w.spec, "triggers"), 0), "suspend", true);
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    EQ_STR(w.hpa.baseline, S(""));
    OK(schedule_world_has_event_since(&w, "BaselineRestored", 0));
    is(&w, "Scheduled", "False", "NoUsableTrigger");
    w.hpa.bounds.max = 77; /* what others do now is theirs */
    w.now += 60;
    schedule_world_pass(&w);
    has_bounds(&w, 2, 77);
}

static void what_others_changed_is_not_given_back(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    json_set(&w.arena, w.spec, S("triggers"), json_new_arr(&w.arena));
    w.hpa.bounds.max = 50;
    schedule_world_pass(&w);
    has_bounds(&w, 2, 50);
}

static void missing_hpa_is_an_error_until_it_comes(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    w.hpa.found = false;
    schedule_world_pass(&w);
    is(&w, "Ready", "False", "HPANotFound");
    is(&w, "Error", "True", "HPANotFound");
    is(&w, "HPAValid", "False", "HPANotFound");
    EQ_STR(condition_of(&w, "Error", "message"),
           S("HorizontalPodAutoscaler shop/web does not exist"));
    EQ_INT(w.wake, w.now + 30);
    w.now += 30;
    schedule_world_pass(&w);
    EQ_INT(schedule_world_count(&w, "HPANotFound"), 1);
    EQ_INT(w.status_writes, 1);
    w.hpa.found = true;
    schedule_world_pass(&w);
    is(&w, "Ready", "True", "Reconciled");
    is(&w, "Error", "False", "Reconciled");
    has_bounds(&w, 8, 20);
}

static void a_recreated_hpa_is_set_again(void)
{
    auto_world struct schedule_world w =
        world_new(OFFICE "driftPolicy: OnTransition\n", "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    w.hpa.bounds = (struct schedule_bounds){ 1, 3 };
    w.hpa.baseline = S("");
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
    EQ_STR(w.hpa.baseline, S("{\"min\":1,\"max\":3}"));
}

static void the_older_object_governs(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    w.managed_by = S("shop/elder");
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    is(&w, "Ready", "False", "HPAAlreadyManaged");
    w.managed_by = S("");
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
}

static void suspended_and_paused_write_nothing(void)
{
    auto_world struct schedule_world w =
        world_new(OFFICE "suspend: true\n", "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    is(&w, "Ready", "True", "Suspended");
    auto_world struct schedule_world v = world_new(OFFICE, "2026-06-03T10:00:00Z");
    v.paused = true;
    schedule_world_pass(&v);
    has_bounds(&v, 2, 9);
    is(&v, "Ready", "True", "Suspended");
}

static void a_refused_write_is_reported(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    w.rejecting = true;
    schedule_world_pass(&w);
    is(&w, "Ready", "False", "Rejected");
    is(&w, "Error", "True", "Rejected");
    EQ_INT(schedule_world_count(&w, "HPAUpdateFailed"), 1);
    w.rejecting = false;
    w.now += 300;
    schedule_world_pass(&w);
    is(&w, "Ready", "True", "Reconciled");
    has_bounds(&w, 8, 20);
}

static void what_is_forbidden_is_tried_again_ever_less_often(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    w.rejecting = w.forbidding = true;
    for (int64_t wait = 1; wait <= 256; wait *= 2) {
        schedule_world_pass(&w);
        EQ_INT(w.wake - w.now, wait);
        w.now = w.wake;
    }
    schedule_world_pass(&w);
    EQ_INT(w.wake - w.now, 300);
    is(&w, "Ready", "False", "Rejected");
    EQ_INT(schedule_world_count(&w, "HPAUpdateFailed"), 1);
}

static void a_deletion_waits_a_minute_for_the_right_to_restore(void)
{
    auto_world struct schedule_world w =
        world_new(OFFICE "deletionPolicy: Restore\n", "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    int64_t deleted = w.now;
    w.deleting = w.rejecting = w.forbidding = true;
    while (!w.gone && w.now < deleted + 300) {
        schedule_world_pass(&w);
        w.now = w.wake;
    }
    OK(w.gone && w.now < deleted + 400);
    EQ_INT(w.memory.forbidden, SCHEDULE_FORBIDDEN_MAX);
    has_bounds(&w, 8, 20);
}

static void impossible_bounds_change_nothing(void)
{
    auto_world struct schedule_world w = world_new(
        "{HPAObjectRef: {name: web}, triggers: [{name: day, interval: {recurring: W}, startTime: "
        "'09:00:00', endTime: '17:00:00', startHPAConfig: {minReplicas: 9, maxReplicas: 3}}]}",
        "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 2, 9);
    is(&w, "Ready", "False", "InvalidSpec");
    is(&w, "SpecValid", "False", "MinAboveMax");
}

static void each_problem_is_reported_once(void)
{
    auto_world struct schedule_world w = world_new(
        OFFICE
        "- {name: bad, startTime: '25:00:00', endTime: '17:00:00', interval: {recurring: M}}\n"
        "- {name: zone, timezone: Mars/Base, interval: {recurring: SUN}, startTime: '09:00:00', "
        "endTime: '17:00:00'}\n",
        "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20); /* the good one works */
    is(&w, "SpecValid", "False", "InvalidTime");
    EQ_INT(schedule_world_count(&w, "InvalidTrigger"), 1);
    EQ_INT(schedule_world_count(&w, "InvalidTimezone"), 1);
    struct json *states = json_get(w.status, "triggers");
    EQ_STR(json_text(json_get(json_item(states, 0), "state")), S("Within"));
    EQ_STR(json_text(json_get(json_item(states, 0), "windowEnd")), S("2026-06-03T17:00:00Z"));
    EQ_STR(json_text(json_get(json_item(states, 1), "state")), S("Invalid"));
    OK(json_text(json_get(json_item(states, 1), "problem")).n > 0);
    w.now += 60;
    schedule_world_pass(&w);
    EQ_INT(schedule_world_count(&w, "InvalidTrigger"), 1);
    EQ_INT(w.status_writes, 1);
}

static void events_follow_the_triggers(void)
{
    auto_world struct schedule_world w = world_new(
        OFFICE
        "- {name: noon, priority: 5, interval: {recurring: W}, startTime: '11:00:00', endTime: "
        "'13:00:00', startHPAConfig: {minReplicas: 10, maxReplicas: 30}}\n",
        "2026-06-03T10:00:00Z");
    static const struct {
        const char *now, *reason;
        enum schedule_phase phase;
    } steps[] = {
        { "2026-06-03T10:00:00Z", "TriggerStarted", SCHEDULE_PHASE_START },
        { "2026-06-03T11:00:00Z", "TriggerSuperseded", SCHEDULE_PHASE_START },
        { "2026-06-03T13:00:00Z", "TriggerEnded", SCHEDULE_PHASE_NEXT },
        { "2026-06-03T17:00:00Z", "TriggerEnded", SCHEDULE_PHASE_END },
    };
    for (size_t i = 0; i < countof(steps); i++) {
        w.now = at(steps[i].now);
        schedule_world_pass(&w);
        OK(schedule_world_has_event_since(&w, steps[i].reason, w.now));
        EQ_INT(w.plan.phase, steps[i].phase);
    }
    OK(!json_get(w.status, "activeTrigger"));
    EQ_STR(json_text(json_get(w.status, "source")), S("end:day"));
}

static void deletion_keeps_or_restores(void)
{
    auto_world struct schedule_world w = world_new(OFFICE, "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    OK(w.finalizer);
    w.deleting = true;
    schedule_world_pass(&w);
    has_bounds(&w, 8, 20);
    OK(w.gone && schedule_world_has_event_since(&w, "CleanupComplete", 0));
    auto_world struct schedule_world v =
        world_new(OFFICE "deletionPolicy: Restore\n", "2026-06-03T10:00:00Z");
    schedule_world_pass(&v);
    v.deleting = true;
    v.failures = 2;
    schedule_world_pass(&v);
    has_bounds(&v, 2, 9);
    EQ_STR(v.hpa.baseline, S(""));
    OK(v.gone);
}

#define TEMPLATE                                                                                   \
    "HPASpecTemplate: {metadata: {labels: {team: a}}, spec: {minReplicas: 3, maxReplicas: 6, "     \
    "scaleTargetRef: {kind: Deployment, name: web}}}\n"

static void a_template_makes_the_hpa(void)
{
    auto_world struct schedule_world w =
        world_new(TEMPLATE "triggers: [{name: d, interval: {recurring: W}, startTime: '12:00:00', "
                           "endTime: '13:00:00', startHPAConfig: {minReplicas: 5}}]",
                  "2026-06-03T10:00:00Z");
    w.hpa = (struct schedule_hpa){ .replicas = -1 };
    struct schedule_spec *spec =
        schedule_spec_read(&w.arena, w.spec, (struct schedule_defaults){ .find_zone = tz_get });
    struct schedule_target target = schedule_target(&w.arena, spec, S("shop"), S("office"));
    EQ_STR(target.name, S("office-generated"));
    schedule_world_pass(&w);
    has_bounds(&w, 3, 6);
    is(&w, "TemplateValid", "True", "Valid");
    is(&w, "Ready", "True", "Reconciled");
    w.now = at("2026-06-03T12:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 5, 6);
    w.now = at("2026-06-03T13:00:00Z");
    schedule_world_pass(&w);
    has_bounds(&w, 3, 6); /* bounds that no trigger sets come from the template */
}

static void a_template_without_target_is_reported(void)
{
    auto_world struct schedule_world w =
        world_new("HPASpecTemplate: {spec: {minReplicas: 3, maxReplicas: 6}}\n" OFFICE,
                  "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    is(&w, "TemplateValid", "False", "NoScaleTarget");
    has_bounds(&w, 8, 20); /* HPAObjectRef works all the same */
    auto_world struct schedule_world v = world_new("{}", "2026-06-03T10:00:00Z");
    schedule_world_pass(&v);
    is(&v, "Ready", "False", "NoTarget");
}

#define DESIRED(day, rest)                                                                            \
    "{HPAObjectRef: {name: web}, desiredReplicasPolicy: RaiseOnly, triggers: [{name: day, interval: " \
    "{recurring: 'M,TU,W,TH,F'}, startTime: '09:00:00', endTime: '17:00:00', startHPAConfig: "        \
    "{minReplicas: 4, maxReplicas: 20" day "}, endHPAConfig: {minReplicas: 2, maxReplicas: 5" rest    \
    "}}]}"

static void desired_replicas_are_set_once(void)
{
    auto_world struct schedule_world w =
        world_new(DESIRED(", desiredReplicas: 50", ", desiredReplicas: 3"), "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.workload, 20); /* no more than max */
    w.workload = w.hpa.replicas = 6;
    w.now += 60;
    schedule_world_pass(&w);
    EQ_INT(w.workload, 6); /* the HPA is free afterwards */
    w.now = at("2026-06-03T17:00:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.workload, 6); /* RaiseOnly */
    EQ_INT(w.scale_writes, 1);
    json_set_str(&w.arena, w.spec, "desiredReplicasPolicy", S("Exact"));
    w.now = at("2026-06-04T17:30:00Z");
    json_del(json_get(w.status, "lastAppliedConfig"), S("desiredReplicas"));
    schedule_world_pass(&w);
    EQ_INT(w.workload, 3);
}

static void a_night_at_zero(void)
{
    auto_world struct schedule_world w =
        world_new(DESIRED("", ", desiredReplicas: 0"), "2026-06-03T17:00:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.workload, 0);
    has_bounds(&w, 2, 5);
    w.workload = w.hpa.replicas = 2; /* another client scales it up */
    w.now += 3600;
    schedule_world_pass(&w);
    EQ_INT(w.workload, 0);
    w.memory = (struct schedule_memory){ 0 };
    w.now = at("2026-06-04T09:00:00Z");
    schedule_world_pass(&w);
    EQ_INT(w.workload, 4); /* the new min wakes it up */
    has_bounds(&w, 4, 20);
    w.workload = w.hpa.replicas = 7;
    w.now += 60;
    schedule_world_pass(&w);
    EQ_INT(w.workload, 7);
}

static void a_workload_that_cannot_be_scaled(void)
{
    auto_world struct schedule_world w =
        world_new(DESIRED(", desiredReplicas: 5", ""), "2026-06-03T10:00:00Z");
    w.workload = -1;
    schedule_world_pass(&w);
    EQ_INT(schedule_world_count(&w, "DesiredReplicasFailed"), 1);
    has_bounds(&w, 4, 20);
    w.workload = 1;
    w.now += 300;
    schedule_world_pass(&w);
    EQ_INT(w.workload, 5);
}

/* A restart at any moment leads to the same bounds. */
static void restarts_change_nothing(void)
{
    struct random r;
    random_init(&r, 5, 5);
    auto_world struct schedule_world steady = world_new(OFFICE, "2026-06-03T08:00:00Z");
    auto_world struct schedule_world shaken = world_new(OFFICE, "2026-06-03T08:00:00Z");
    for (int i = 0; i < 400; i++) {
        steady.now = shaken.now += 1 + random_below(&r, 3600);
        schedule_world_pass(&steady);
        if (random_below(&r, 3)) {
            shaken.memory = (struct schedule_memory){ 0 };
            shaken.failures = (int)random_below(&r, 3);
            schedule_world_pass(&shaken);
            has_bounds(&shaken, steady.hpa.bounds.min, steady.hpa.bounds.max);
        }
    }
    OK(steady.hpa_writes >= 10);
}

/* What was applied stays marked until its triggers are gone, whatever is learned meanwhile. */
static void applied_windows_are_remembered(void)
{
    auto_world struct schedule_world w = world_new(
        OFFICE
        "- {name: ai-w-0900-1700, interval: {recurring: W}, startTime: '09:00', endTime: '17:00'}\n"
        "smartRecommendation: {enabled: false}\n",
        "2026-06-03T10:00:00Z");
    schedule_world_pass(&w);
    struct json *recommendation = json_make(&w.arena, w.status, "recommendation", NULL);
    json_set_bool(&w.arena, recommendation, "applied", true);
    w.now += 60;
    schedule_world_pass(&w);
    OK(json_bool(json_at(w.status, "recommendation", "applied", NULL), false));
    struct json *list = json_get(w.spec, "triggers");
    json_remove(list, json_len(list) - 1);
    w.now += 60;
    schedule_world_pass(&w);
    OK(!json_bool(json_at(w.status, "recommendation", "applied", NULL), true));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_window_is_applied_once),
        TAP(wakes_at_the_transition_or_after_five_minutes),
        TAP(an_edit_counts_at_once),
        TAP(drift_is_set_back),
        TAP(drift_may_stay_until_the_next_transition),
        TAP(a_fight_is_left_for_ten_minutes),
        TAP(a_suspended_trigger_gives_the_bounds_back),
        TAP(what_others_changed_is_not_given_back),
        TAP(missing_hpa_is_an_error_until_it_comes),
        TAP(a_recreated_hpa_is_set_again),
        TAP(the_older_object_governs),
        TAP(suspended_and_paused_write_nothing),
        TAP(a_refused_write_is_reported),
        TAP(what_is_forbidden_is_tried_again_ever_less_often),
        TAP(a_deletion_waits_a_minute_for_the_right_to_restore),
        TAP(impossible_bounds_change_nothing),
        TAP(each_problem_is_reported_once),
        TAP(events_follow_the_triggers),
        TAP(deletion_keeps_or_restores),
        TAP(a_template_makes_the_hpa),
        TAP(a_template_without_target_is_reported),
        TAP(desired_replicas_are_set_once),
        TAP(a_night_at_zero),
        TAP(a_workload_that_cannot_be_scaled),
        TAP(an_absurd_idle_count_changes_nothing),
        TAP(restarts_change_nothing),
        TAP(applied_windows_are_remembered),
        { 0 },
    });
}
