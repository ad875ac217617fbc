/* flyball schedule: shows what a SmartHorizontalPodAutoscaler manifest will do, without a
 * cluster: which trigger applies now and why, the next changes, and a timeline as text, SVG or
 * JSON.
 *
 * The decisions are those of the controller (schedule_core.h). A manifest without a creation
 * timestamp is treated as old, so that resting values apply. All manifests of the file are
 * shown; the first error decides the message and the exit code. */
#include "cmd.h"
#include "flags.h"
#include "manifest_fields.h"
#include "schedule_calendar.h"
#include "schedule_cmd.h"

#include "../base/civil.h"
#include "../base/clock.h"
#include "../base/file.h"
#include "../base/rfc3339.h"
#include "../json/yaml.h"
#include "../schedule/schedule_draw.h"
#include "../schedule/schedule_lex.h"

#include <stdio.h>

#define SCHEDULE_API "autoscaling.sarabala.io/v1alpha1"

enum { FILE_MAX_BYTES = 4 << 20, WEEK_DAYS = 7, TIMELINE_DAYS_MAX = 800 };

static const char about[] =
    "Usage: flyball schedule FILE [FLAGS]\n"
    "       flyball schedule --all [FILE] [FLAGS]\n"
    "       flyball schedule --from-keda FILE\n"
    "\n"
    "Reads SmartHorizontalPodAutoscaler manifests (YAML or JSON, - for standard input) and shows which\n"
    "trigger applies and why, the next changes, and a timeline. Contacts a cluster only for --all\n"
    "without FILE.\n"
    "\n"
    "TIME is an instant (2026-06-03T09:00:00Z) or a day (2026-06-03), which means its start.\n"
    "Calendars are read from ConfigMaps with the label flyball.io/calendar in the same file, or in the\n"
    "cluster for --all without FILE, if they are in the schedule's namespace or in the operator's.\n"
    "The exit code is 1 if a manifest has errors, such as unknown fields, and 3 if --from-keda had to\n"
    "leave out a part of the original.\n"
    "\n"
    "Flags:\n";

static int check_options(struct schedule_options *o, const struct flag_words *given, err_t *e)
{
    if (given->n > 1)
        return err_set(e, EINVAL, "unexpected argument \"%s\"; see --help", given->at[1]);
    o->file = given->n ? given->at[0] : NULL;
    if (!o->file && !o->all)
        return err_set(e, EINVAL, "needs a FILE with schedules, or --all; see --help");
    if (o->all && o->from_keda)
        return err_set(
            e, EINVAL,
            "--all and --from-keda exclude each other; convert first, then draw the result "
            "with --all FILE");
    if (strcmp(o->output, "text") && strcmp(o->output, "svg") && strcmp(o->output, "json"))
        return err_set(e, EINVAL, "--output is \"%s\", but must be text, svg or json", o->output);
    return 0;
}

/* Sets the options. `*ret_help`: the help was printed instead. */
static int parse_flags(int argc, char **argv, struct schedule_options *o, bool *ret_help, err_t *e)
{
    const struct flag flags[] = {
        { "at", "TIME", FLAG_TEXT, &o->at, "Time to explain (default: now)" },
        { "from", "TIME", FLAG_TEXT, &o->from, "Start of the timeline (default: the day of --at)" },
        { "to", "TIME", FLAG_TEXT, &o->to,
          "End of the timeline (default: seven days after its start)" },
        { "timezone", "ZONE", FLAG_TEXT, &o->zone_name,
          "Time zone of the timeline (default: that of the first trigger)" },
        { "output", "FORMAT", FLAG_TEXT, &o->output, "Output format: text, svg or json",
          .letter = 'o' },
        { "all", NULL, FLAG_BOOL, &o->all,
          "Draw all schedules of the cluster (or of FILE) on one page, and list those that change in "
          "the same second" },
        { "from-keda", NULL, FLAG_BOOL, &o->from_keda,
          "Convert schedules of other tools and print SmartHorizontalPodAutoscalers: cron triggers of "
          "KEDA ScaledObjects, annotations of kube-downscaler, and CronHorizontalPodAutoscalers of "
          "kubernetes-cronhpa" },
        { "operator-namespace", "NAME", FLAG_TEXT, &o->operator_ns,
          "Namespace of shared calendars (default flyball-system)" },
        { "kubeconfig", "FILE", FLAG_TEXT, &o->kubeconfig, "Path of the kubeconfig, for --all" },
        { "context", "NAME", FLAG_TEXT, &o->context,
          "Context of the kubeconfig (default: the current one)" },
        { 0 },
    };
    auto_free const char **words = mem_zero((size_t)argc, sizeof(*words));
    struct flag_words given = { words, 0 };
    if (flags_parse(flags, argc, argv, ret_help, &given, e) < 0)
        return -e->code;
    if (!*ret_help)
        return check_options(o, &given, e);
    auto_buf struct buf text = { 0 };
    buf_put(&text, str_c(about));
    flags_help(&text, flags);
    fputs(text.p, stdout);
    return 0;
}

/* Midnight, or the first instant after it where the zone skips midnight. */
static int64_t day_start(const struct tz *zone, int64_t day)
{
    return tz_resolve(zone, day * CIVIL_DAY_S).first;
}

/* Parses an instant, or a day, which means its start in the zone; `otherwise` if there is no
 * text. */
static int parse_time(const char *text, const struct tz *zone, int64_t otherwise, int64_t *ret,
                      err_t *e)
{
    int32_t day;
    *ret = otherwise;
    if (!text)
        return 0;
    if (schedule_lex_date(str_c(text), &day) == 0) {
        *ret = day_start(zone, day);
        return 0;
    }
    return rfc3339_parse(str_c(text), ret, e);
}

/* Sets zone, time and range of the timeline from the flags and the first trigger. */
int cmd_schedule_set_times(const struct schedule_options *o, struct schedule_picture *p, err_t *e)
{
    p->zone = p->spec->triggers_n ? p->spec->triggers[0].zone : tz_utc();
    if (o->zone_name && tz_get(str_c(o->zone_name), &p->zone, e) < 0)
        return -e->code;
    int64_t now = clock_wall_ns() / NS_PER_S;
    if (parse_time(o->at, p->zone, now, &p->at, e) < 0)
        return err_wrap(e, "--at");
    int64_t today = civil_day_of(p->at + tz_offset_at(p->zone, p->at));
    if (parse_time(o->from, p->zone, day_start(p->zone, today), &p->from, e) < 0)
        return err_wrap(e, "--from");
    int64_t first = civil_day_of(p->from + tz_offset_at(p->zone, p->from));
    if (parse_time(o->to, p->zone, day_start(p->zone, first + WEEK_DAYS), &p->to, e) < 0)
        return err_wrap(e, "--to");
    if (p->to <= p->from || p->to - p->from > TIMELINE_DAYS_MAX * CIVIL_DAY_S)
        return err_set(e, EINVAL, "--to must be after --from, and at most %d days later",
                       TIMELINE_DAYS_MAX);
    return 0;
}

struct json *cmd_schedule_timeline_json(struct arena *a, const struct schedule_timeline *line)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < line->n; i++) {
        const struct schedule_period *s = &line->periods[i];
        struct schedule_effective e = { .source = s->source, .trigger = s->trigger };
        struct json *one = json_new_obj(a);
        char text[RFC3339_TEXT_MAX];
        json_set_str(a, one, "from", rfc3339_text(s->from, text));
        json_set_str(a, one, "to", rfc3339_text(s->to, text));
        json_set_str(a, one, "source", schedule_source_text(a, line->spec, &e));
        json_set(a, one, S("config"), schedule_config_json(a, &s->config));
        json_set(a, one, S("bounds"), schedule_config_json(a, &s->bounds));
        json_push(a, list, one);
    }
    return list;
}

/* Writes the timeline in the requested format; only text includes the explanation. */
static void show_picture(const struct schedule_options *o, const struct schedule_picture *p,
                         struct buf *out)
{
    auto_arena struct arena a = { 0 };
    struct schedule_timeline line = schedule_timeline(&a, p->spec, p->created, p->from, p->to);
    if (!strcmp(o->output, "svg")) {
        schedule_draw_svg(out, &line, p->zone, p->title);
    } else if (!strcmp(o->output, "json")) {
        json_write_pretty(out, cmd_schedule_timeline_json(&a, &line));
        buf_putc(out, '\n');
    } else {
        buf_printf(out, STR_FMT "\n", STR_ARG(p->title));
        schedule_explain(out, p->spec, p->created, p->at);
        buf_putc(out, '\n');
        schedule_draw_text(out, &line, p->zone);
    }
}

/* Shows one manifest, and prints its problems to standard error. */
static int show_manifest(struct arena *a, const struct schedule_options *o,
                         const struct json *object, struct command_calendars *calendars,
                         struct buf *out, err_t *e)
{
    const struct json *metadata = json_get(object, "metadata");
    struct schedule_picture p = { .title = json_text(json_get(metadata, "name")) };
    struct schedule_spec *spec =
        schedule_spec_read(a, json_get(object, "spec"),
                           command_calendars_use(calendars,
                                                 json_text(json_get(metadata, "namespace"))));
    schedule_spec_set_name(spec, json_text(json_get(metadata, "namespace")), p.title);
    p.spec = spec;
    if (rfc3339_parse(json_text(json_get(metadata, "creationTimestamp")), &p.created, NULL) < 0)
        p.created = 0;
    if (cmd_schedule_set_times(o, &p, e) < 0)
        return -e->code;
    show_picture(o, &p, out);
    return cmd_schedule_check_manifest(a, o->file, object, spec, e);
}

int cmd_schedule_check_manifest(struct arena *a, const char *file, const struct json *object,
                                const struct schedule_spec *spec, err_t *e)
{
    str name = json_text(json_at(object, "metadata", "name", NULL));
    auto_buf struct buf problems = { 0 };
    const struct json *schema = manifest_schema(a, json_text(json_get(object, "apiVersion")),
                                                json_text(json_get(object, "kind")));
    size_t unknown = manifest_unknown_fields(&problems, schema, object);
    schedule_draw_problems(&problems, spec);
    fputs(problems.p ? problems.p : "", stderr);
    if (unknown || !schema)
        return err_set(e, EINVAL, "%s: " STR_FMT " has %s", file, STR_ARG(name),
                       schema ? "unknown fields" : "an apiVersion other than " SCHEDULE_API);
    for (size_t i = 0; i < spec->problems_n; i++)
        if (schedule_problem_is_error(spec->problems[i].kind))
            return err_set(e, EINVAL, "%s: " STR_FMT " has errors", file, STR_ARG(name));
    return 0;
}

/* Shows all manifests of the file; returns the first failure. */
static int show_file(const struct schedule_options *o, err_t *e)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 }, out = { 0 };
    struct json *documents;
    const char *path = strcmp(o->file, "-") ? o->file : "/dev/stdin";
    if (file_read(path, FILE_MAX_BYTES, &text, e) < 0)
        return -e->code;
    if (yaml_parse_all(&a, buf_str(&text), NULL, &documents, e) < 0)
        return err_wrap(e, "%s", o->file);
    size_t found = 0;
    int result = 0;
    struct command_calendars calendars = { .operator_ns = o->operator_ns };
    command_calendars_add(&calendars, documents);
    for (size_t i = 0; i < json_len(documents); i++) {
        const struct json *object = json_item(documents, i);
        if (!str_eqc(json_text(json_get(object, "kind")), "SmartHorizontalPodAutoscaler"))
            continue;
        err_t *slot = result ? NULL : e; /* report the first failure, show all manifests */
        err_t ignored;
        int one = show_manifest(&a, o, object, &calendars, &out, slot ? slot : &ignored);
        result = result ? result : one;
        found++;
    }
    command_calendars_done(&calendars);
    fputs(out.p ? out.p : "", stdout);
    if (!found)
        return err_set(e, ENOENT, "%s contains no SmartHorizontalPodAutoscaler", o->file);
    return result;
}

/* Exit status 3: the conversion left parts to the user, which the warning counts. */
int cmd_schedule(int argc, char **argv)
{
    struct schedule_options o = { .output = "text" };
    bool help = false;
    err_t e;
    size_t skipped = 0;
    if (parse_flags(argc, argv, &o, &help, &e) < 0)
        return fprintf(stderr, "flyball schedule: %s\n", e.text), EXIT_USAGE;
    if (help)
        return EXIT_SUCCESS;
    int r = o.all         ? cmd_schedule_show_all(&o, &e)
            : o.from_keda ? cmd_schedule_from_keda(o.file, &skipped, &e)
                          : show_file(&o, &e);
    if (r == 0 && skipped) {
        fprintf(
            stderr,
            "flyball schedule: warning: %zu %s of %s could not be converted; see the notes in the "
            "output, and keep the original until they are resolved\n",
            skipped, skipped == 1 ? "part" : "parts", o.file);
        return EXIT_PARTIAL;
    }
    if (r == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "flyball schedule: %s\n", e.text);
    return EXIT_FAILURE;
}
