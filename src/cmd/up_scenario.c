/* The scenario of `flyball up`: manifests, embedded ones by name or from a file, with includes.
 *
 *     apiVersion: testbed.flyball.dev/v1
 *     kind: Include
 *     files: [schedule, market]
 *
 * is replaced by the documents of those scenarios.
 *
 *     apiVersion: testbed.flyball.dev/v1
 *     kind: Clock
 *     start: {weekday: Monday, time: "08:50:00", timezone: Europe/Berlin}
 *     speed: 60
 *
 * lets the simulated clock start at the next such moment, unless --clock and --speed are set. Data of an earlier run
 * continues at the time where it stopped. The Clock of an included scenario is ignored: the others may need another one.
 * Any other kind of this group is an error.
 *
 * CustomResourceDefinitions are separated: they are applied before the controllers start to watch. */
#include "up.h"

#include "../base/civil.h"
#include "../base/file.h"
#include "../base/tz.h"
#include "../json/yaml.h"
#include "manifests.h"

#include <stdio.h>

enum { INCLUDE_DEPTH = 4 };

/* An embedded scenario wins over a file of the same name. */
static int read_documents(struct up *up, const char *scenario, struct json **ret, err_t *e)
{
    char name[256];
    snprintf(name, sizeof(name), "%s.yaml", scenario);
    for (const struct manifest *m = manifests_examples; m->name; m++)
        if (!strcmp(m->name, name))
            return manifest_read(m, &up->arena, ret, e);
    auto_buf struct buf text = { 0 };
    int r = file_read(scenario, 16 << 20, &text, e);
    if (r < 0)
        return err_wrap(e, "--testbed: neither a known scenario nor a readable file");
    r = yaml_parse_all(&up->arena, buf_str(&text), NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", scenario) : 0;
}

/* Is it for us rather than for the API server? */
static bool is_ours(const struct json *document)
{
    return str_starts(json_text(json_get(document, "apiVersion")), S(TESTBED_DOMAIN "/"));
}

/* ---- the clock */

static int find_weekday(str name)
{
    static const char *const names[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                         "Thursday", "Friday", "Saturday" };
    int day = 0;
    while (day < 7 && !str_eqc(name, names[day]))
        day++;
    return day;
}

/* Seconds since midnight of HH:MM:SS; negative: not a time. */
static int64_t parse_time_of_day(str text)
{
    int64_t parts[3] = { 0 };
    size_t n = 0;
    for (str part; str_cut(&text, ':', &part); n++)
        if (n == 3 || str_to_i64(part, &parts[n]) < 0)
            return -1;
    bool valid = n >= 2 && parts[0] >= 0 && parts[0] < 24 && parts[1] >= 0 && parts[1] < 60 &&
                 parts[2] >= 0 && parts[2] < 60;
    return valid ? parts[0] * 3600 + parts[1] * 60 + parts[2] : -1;
}

/* The first such moment after `now`. */
static int next_moment(const struct json *start, int64_t now, int64_t *ret, err_t *e)
{
    const struct tz *zone;
    str name = json_text(json_get(start, "timezone"));
    int day = find_weekday(json_text(json_get(start, "weekday")));
    int64_t second = parse_time_of_day(json_text(json_get(start, "time")));
    if (day == 7 || second < 0)
        return err_set(
            e, EINVAL,
            "Clock: start must have a weekday such as Monday and a time such as \"08:50:00\"");
    int r = tz_get(name.n ? name : S("UTC"), &zone, e);
    if (r < 0)
        return err_wrap(e, "Clock: start.timezone");
    for (int64_t at = civil_day_of(now + tz_offset_at(zone, now));; at++) {
        int64_t moment = tz_resolve(zone, at * CIVIL_DAY_S + second).first;
        if (civil_weekday(at) == day && moment > now) {
            *ret = moment;
            return 0;
        }
    }
}

static int read_clock(struct up *up, const struct json *document, err_t *e)
{
    double speed = json_real(json_get(document, "speed"), 1);
    int64_t last = up_clock_stored(up);
    if (!(speed >= 1 && speed <= 1000))
        return err_set(e, EINVAL, "Clock: speed is %g, but must be between 1 and 1000", speed);
    up->speed = up->speed_text ? up->speed : speed;
    if (up->clock)
        return 0;
    up->clock_s = last;
    return last ? 0
                : next_moment(json_get(document, "start"), clock_wall_ns() / NS_PER_S, &up->clock_s,
                              e);
}

/* ---- documents */

static int add_documents(struct up *up, const char *scenario, int depth, err_t *e);

static int add_included(struct up *up, const struct json *files, int depth, err_t *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(files); i++)
        r = add_documents(up, json_text(json_item(files, i)).p, depth + 1, e);
    return r;
}

/* A document of our own group. */
static int read_ours(struct up *up, const struct json *document, int depth, err_t *e)
{
    str kind = json_text(json_get(document, "kind"));
    if (str_eqc(kind, "Include"))
        return add_included(up, json_get(document, "files"), depth, e);
    if (str_eqc(kind, "Clock"))
        return depth ? 0 : read_clock(up, document, e);
    return err_set(e, EINVAL,
                   "kind \"" STR_FMT "\" of " TESTBED_DOMAIN
                   " is unknown, but must be Include or Clock",
                   STR_ARG(kind));
}

/* Appends the documents of a scenario and of its includes. */
static int add_documents(struct up *up, const char *scenario, int depth, err_t *e)
{
    struct json *documents;
    int r = read_documents(up, scenario, &documents, e);
    if (r < 0)
        return r;
    if (depth > INCLUDE_DEPTH)
        return err_set(e, ELOOP, "scenario %s: includes are nested too deeply", scenario);
    for (size_t i = 0; r == 0 && i < json_len(documents); i++) {
        struct json *document = json_item(documents, i);
        bool defines = str_eqc(json_text(json_get(document, "kind")), "CustomResourceDefinition");
        if (is_ours(document))
            r = read_ours(up, document, depth, e);
        else
            json_push(&up->arena, defines ? up->definitions : up->scenario_documents, document);
        if (r < 0 && !depth)
            return err_wrap(e, "scenario %s", scenario);
    }
    return r;
}

int up_scenario_read(struct up *up, err_t *e)
{
    up->scenario_documents = json_new_arr(&up->arena);
    return add_documents(up, up->scenario, 0, e);
}
