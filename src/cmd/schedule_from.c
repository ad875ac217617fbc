/* flyball schedule --from-keda: prints the schedules of other tools as SmartHorizontalPodAutoscalers.
 *
 * The output is valid YAML. What a user has to decide, and the coming week as the original and as the converted
 * schedule have it, are comments above each manifest. */
#include "schedule_cmd.h"

#include "../base/civil.h"
#include "../base/clock.h"
#include "../base/file.h"
#include "../json/yaml.h"
#include "../schedule/schedule_convert_core.h"
#include "../schedule/schedule_draw.h"

#include <stdio.h>

enum { CONVERT_BYTES_MAX = 4 << 20, CONVERT_DAYS = 7 };

static void put_comment(struct buf *out, str text)
{
    str line;
    while (str_cut(&text, '\n', &line))
        buf_printf(out, "#%s" STR_FMT "\n", line.n ? " " : "", STR_ARG(line));
}

/* The week from today on, as comments. */
static void put_week(struct buf *out, const struct json *manifest, const char *title, int64_t now)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf week = { 0 };
    struct schedule_spec *spec =
        schedule_spec_read(&a, json_get(manifest, "spec"),
                           (struct schedule_defaults){ .find_zone = tz_get });
    const struct tz *zone = spec->triggers_n ? spec->triggers[0].zone : tz_utc();
    int64_t today = civil_day_of(now + tz_offset_at(zone, now));
    struct schedule_timeline line =
        schedule_timeline(&a, spec, 0, tz_resolve(zone, today * CIVIL_DAY_S).first,
                          tz_resolve(zone, (today + CONVERT_DAYS) * CIVIL_DAY_S).first);
    buf_printf(out, "#\n# %s\n", title);
    schedule_draw_text(&week, &line, zone);
    put_comment(out, buf_str(&week));
}

/* One object. Returns the number of parts that could not be converted; `*found` counts objects with a schedule. */
static size_t put_conversion(struct buf *out, struct arena *a, const struct json *object,
                             int64_t now, size_t *found)
{
    struct schedule_convert_options options = { .now = now, .find_zone = tz_get };
    struct schedule_conversion c = schedule_convert(a, object, &options);
    if (!c.manifest && !c.skipped)
        return 0;
    ++*found;
    buf_printf(out, "# %s " STR_FMT "\n", json_text(json_get(object, "kind")).p,
               STR_ARG(json_text(json_at(object, "metadata", "name", NULL))));
    for (size_t i = 0; i < c.notes_n; i++)
        buf_printf(out, "# note: " STR_FMT "\n", STR_ARG(c.notes[i]));
    if (!c.manifest) { /* nothing of it could be converted */
        buf_put(out, S("---\n"));
        return c.skipped;
    }
    options.keep_lines = true;
    put_week(out, schedule_convert(a, object, &options).manifest, "This week, as it is now:", now);
    put_week(out, c.manifest, "This week, as converted:", now);
    yaml_write(out, c.manifest);
    buf_put(out, S("---\n"));
    return c.skipped;
}

/* Prints what could be converted even if other parts could not; the caller warns about those. */
int cmd_schedule_from_keda(const char *file, size_t *ret_skipped, err_t *e)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 }, out = { 0 };
    struct json *documents;
    const char *path = strcmp(file, "-") ? file : "/dev/stdin";
    if (file_read(path, CONVERT_BYTES_MAX, &text, e) < 0)
        return -e->code;
    if (yaml_parse_all(&a, buf_str(&text), NULL, &documents, e) < 0)
        return err_wrap(e, "%s", file);
    size_t found = 0;
    int64_t now = clock_wall_ns() / NS_PER_S;
    for (size_t i = 0; i < json_len(documents); i++) {
        const struct json *one = json_item(documents, i), *items = json_get(one, "items");
        for (size_t k = 0; k < json_len(items); k++) /* kubectl get -o yaml prints a List */
            *ret_skipped += put_conversion(&out, &a, json_item(items, k), now, &found);
        if (!items)
            *ret_skipped += put_conversion(&out, &a, one, now, &found);
    }
    fputs(out.p ? out.p : "", stdout);
    if (!found)
        return err_set(e, ENOENT,
                       "%s contains no schedule of KEDA, kube-downscaler or kubernetes-cronhpa",
                       file);
    return 0;
}
