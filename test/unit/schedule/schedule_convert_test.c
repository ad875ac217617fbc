/* Schedules of other tools: what is converted is open exactly when the original is active. */
#include "base/buf.h"
#include "base/civil.h"
#include "base/random.h"
#include "base/rfc3339.h"
#include "schedule/schedule_convert_core.h"
#include "schedule/schedule_core.h"
#include "tap.h"
#include "json/yaml.h"

enum { INSTANTS = 10000 };

static const char *const zones[] = {
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Havana",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "Asia/Tehran",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Chatham",
    "Pacific/Auckland",
    "Antarctica/Troll",
};

static const char *const pairs[][2] = {
    { "0 8 * * 1-5", "0 18 * * 1-5" },   { "30 22 * * *", "15 6 * * *" },
    { "0 22 * * FRI", "0 6 * * SAT" },   { "30 2 * * *", "0 5 * * *" },
    { "0 0 * * *", "0 12 * * *" },       { "0 8 * * 1-5", "0 18 * * *" },
    { "*/30 * * * *", "15,45 * * * *" }, { "0 9 1 * *", "0 17 1 * *" },
    { "0 20 * * 6", "0 8 * * 1" },       { "15 1 * * *", "45 1 * * *" },
};

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static struct schedule_conversion convert(struct arena *a, str text, int64_t now)
{
    struct json *object = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, text, &object, &e), &e);
    struct schedule_convert_options options = { .now = now, .find_zone = tz_get };
    return schedule_convert(a, object, &options);
}

static struct schedule_spec *read_converted(struct arena *a, const struct schedule_conversion *c)
{
    return schedule_spec_read(a, json_get(c->manifest, "spec"),
                              (struct schedule_defaults){ .find_zone = tz_get });
}

/* The property of the conversion, at 10,000 instants: half of them anywhere in the two years that follow, the others
 * near the times at which the clocks of most zones change. */
static void agrees_with_keda(void)
{
    static const char *const jumps[] = { "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z",
                                         "2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z",
                                         "2027-04-03T15:00:00Z", "2027-04-29T22:00:00Z" };
    int64_t now = at("2026-01-15T00:00:00Z");
    struct random r;
    random_init(&r, 21, 1);
    int bad = 0, windows = 0, asked = 0;
    for (size_t z = 0; z < countof(zones) && bad < 5; z++) {
        for (size_t p = z % 4; p < countof(pairs) && bad < 5;
             p += 4) { /* each pair in five zones or more */
            auto_arena struct arena a = { 0 };
            struct schedule_conversion c = convert(
                &a,
                arena_printf(
                    &a,
                    "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: x}, spec: "
                    "{scaleTargetRef: {name: w}, triggers: [{type: cron, metadata: {timezone: %s, start: "
                    "'%s', end: '%s', desiredReplicas: '7'}}]}}",
                    zones[z], pairs[p][0], pairs[p][1]),
                now);
            struct schedule_spec *spec = read_converted(&a, &c);
            const struct schedule_trigger *t = &spec->triggers[0];
            struct schedule_cron start, end;
            if (!EQ_INT(spec->triggers_n, 1) || !EQ_INT(t->use, SCHEDULE_USED))
                return;
            windows += !t->cron;
            schedule_cron_parse(str_c(pairs[p][0]), &start, NULL);
            schedule_cron_parse(str_c(pairs[p][1]), &end, NULL);
            for (size_t i = 0; i < INSTANTS / countof(zones) / 2 && bad < 5; i++, asked++) {
                int64_t when = now + (int64_t)random_below(&r, 2 * 365 * 86400);
                if (i % 2)
                    when = at(jumps[random_below(&r, countof(jumps))]) - CIVIL_DAY_S +
                           (int64_t)random_below(&r, 2 * 86400);
                struct schedule_trigger_now state;
                schedule_effective(spec, 0, when, &state);
                bool active = schedule_cron_at(&start, &end, t->zone, when).active;
                if (!EQ_INT(state.state == SCHEDULE_STATE_WITHIN, active)) {
                    printf("# %s %s %s %lld\n", zones[z], pairs[p][0], pairs[p][1],
                           (long long)when);
                    bad++;
                }
            }
        }
    }
    OK(asked >= INSTANTS);
    OK(windows > 10); /* most of those that can be are times of day */
}

static void has_yaml(const struct schedule_conversion *c, const char *want)
{
    auto_buf struct buf out = { 0 };
    yaml_write(&out, json_get(c->manifest, "spec"));
    EQ_STR(buf_str(&out), str_c(want));
}

static void a_scaled_object(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_conversion c = convert(
        &a,
        S("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: shop}\n"
          "spec:\n"
          "  scaleTargetRef: {name: web}\n"
          "  minReplicaCount: 1\n"
          "  maxReplicaCount: 30\n"
          "  triggers:\n"
          "  - {type: cron, metadata: {timezone: Europe/Berlin, start: 0 8 * * 1-5, end: 0 18 * * 1-5, "
          "desiredReplicas: '5'}}\n"
          "  - {type: kafka}\n"),
        at("2026-01-15T00:00:00Z"));
    has_yaml(&c, "HPAObjectRef:\n"
                 "  apiVersion: keda.sh/v1alpha1\n"
                 "  kind: ScaledObject\n"
                 "  name: shop\n"
                 "triggers:\n"
                 "- name: cron-0\n"
                 "  priority: 5\n"
                 "  timezone: Europe/Berlin\n"
                 "  interval:\n"
                 "    recurring: M,TU,W,TH,F\n"
                 "  startTime: \"08:00\"\n"
                 "  endTime: \"18:00\"\n"
                 "  startHPAConfig:\n"
                 "    minReplicas: 5\n"
                 "    maxReplicas: 30\n"
                 "  endHPAConfig:\n"
                 "    minReplicas: 1\n"
                 "    maxReplicas: 30\n");
    EQ_INT(read_converted(&a, &c)->problems_n, 0);
}

/* A ScaledObject with nothing but cron triggers: the schedule sets the size of the workload, also when the window closes,
 * because no metric would bring it down. What is left out is counted, and no note advises to delete the original. */
static void a_scaled_object_with_only_cron(void)
{
    auto_arena struct arena a = { 0 };
    int64_t now = at("2026-01-15T00:00:00Z");
    static const char text[] =
        "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: x, namespace: shop}, spec: "
        "{scaleTargetRef: {name: web}, minReplicaCount: 2, maxReplicaCount: 20%s, triggers: "
        "[{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: '9'}}"
        "%s]}}";
    struct schedule_conversion c = convert(&a, arena_printf(&a, text, "", ""), now);
    struct schedule_spec *spec = read_converted(&a, &c);
    EQ_STR(json_text(json_at(c.manifest, "metadata", "namespace", NULL)), S("shop"));
    EQ_INT(c.skipped, 0);
    EQ_STR(spec->hpa_kind, S("Deployment"));
    OK(spec->triggers[0].start.min == 9 && spec->triggers[0].start.max == 9);
    OK(spec->triggers[0].end.min == 2 && spec->triggers[0].end.max == 2);
    for (size_t i = 0; i < c.notes_n; i++)
        OK(str_find(c.notes[i], S("delete")) == SIZE_MAX);
    c = convert(&a, arena_printf(&a, text, ", idleReplicaCount: 0", ""), now);
    spec = read_converted(&a, &c);
    OK(spec->triggers[0].end.has_desired && spec->triggers[0].end.desired == 0);
    c = convert(
        &a,
        arena_printf(&a, text, "",
                     ", {type: cron, metadata: {timezone: UTC, start: 0 8 30 2 *, end: 0 18 * * *, "
                     "desiredReplicas: '9'}}"),
        now);
    EQ_INT(c.skipped, 1);
    EQ_INT(read_converted(&a, &c)->triggers_n, 1);
    OK(str_find(c.notes[c.notes_n - 1], S("keep the ScaledObject")) != SIZE_MAX);
}

static void the_others(void)
{
    auto_arena struct arena a = { 0 };
    int64_t now = at("2026-01-15T00:00:00Z");
    struct schedule_conversion c = convert(
        &a,
        S("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {downscaler/uptime: "
          "'Mon-Fri 07:30-20:30 Europe/Berlin, Sat-Sun 10:00-24:00 UTC, odd'}}, spec: {replicas: 4}}"),
        now);
    struct schedule_spec *spec = read_converted(&a, &c);
    EQ_INT(spec->triggers_n, 2);
    EQ_INT(spec->problems_n, 0);
    EQ_INT(c.notes_n, 2); /* the odd one, and what to remove */
    EQ_INT(spec->triggers[0].weekdays, 0x3e);
    EQ_INT(spec->triggers[0].start_s, 7 * 3600 + 1800);
    EQ_INT(spec->triggers[1].end_s, 86400);
    OK(spec->triggers[0].start.min == 4 && spec->triggers[0].end.has_desired);
    c = convert(
        &a,
        S("{apiVersion: autoscaling.alibabacloud.com/v1beta1, kind: CronHorizontalPodAutoscaler, metadata: "
          "{name: x}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, jobs: "
          "[{name: up, schedule: '0 0 8 * * 1-5', targetSize: 9}, {name: down, schedule: '0 30 19 * * 1-5', "
          "targetSize: 2}]}}"),
        now);
    spec = read_converted(&a, &c);
    EQ_INT(spec->triggers_n, 2);
    EQ_INT(spec->problems_n, 0);
    struct schedule_trigger_now states[2];
    EQ_INT(schedule_effective(spec, 0, at("2026-06-03T12:00:00Z"), states).config.min, 9);
    EQ_INT(schedule_effective(spec, 0, at("2026-06-03T22:00:00Z"), states).config.min, 2);
    EQ_INT(schedule_effective(spec, 0, at("2026-06-06T12:00:00Z"), states).config.min, 2);
    c = convert(&a, S("{apiVersion: v1, kind: Pod, metadata: {name: x}}"), now);
    OK(!c.manifest);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(agrees_with_keda),
                                        TAP(a_scaled_object),
                                        TAP(a_scaled_object_with_only_cron),
                                        TAP(the_others),
                                        { 0 } });
}
