/* Drawings show what the core decided. */
#include "base/rfc3339.h"
#include "schedule/schedule_draw.h"
#include "schedule/schedule_fleet.h"
#include "tap.h"
#include "json/yaml.h"

static const char manifest[] = "triggers:\n"
                               "- name: office\n"
                               "  priority: 1\n"
                               "  timezone: Europe/Berlin\n"
                               "  interval: {recurring: 'M,TU,W,TH,F,SAT,SUN'}\n"
                               "  startTime: '02:00:00'\n"
                               "  endTime: '04:00:00'\n"
                               "  startHPAConfig: {minReplicas: 5, maxReplicas: 50}\n"
                               "  endHPAConfig: {minReplicas: 1, maxReplicas: 10}\n"
                               "- name: 'a <b> & \"c\"'\n"
                               "  timezone: Europe/Berlin\n"
                               "  interval: {recurring: 'SUN'}\n"
                               "  startTime: '01:00:00'\n"
                               "  endTime: '23:59:59'\n"
                               "  startHPAConfig: {minReplicas: 7, maxReplicas: 9}\n";

static int64_t at(const char *text)
{
    int64_t s = 0;
    OK(rfc3339_parse(str_c(text), &s, NULL) == 0);
    return s;
}

static struct schedule_spec *read_spec(struct arena *a)
{
    struct json *spec = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(manifest), &spec, &e), &e);
    return schedule_spec_read(a, spec, (struct schedule_defaults){ .find_zone = tz_get });
}

/* The spring night of 2026: 02:00 to 03:00 does not exist on Sunday, so half of the window is gone. */
static void a_week_has_a_row_a_day(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct schedule_spec *spec = read_spec(&a);
    struct schedule_timeline line =
        schedule_timeline(&a, spec, 0, at("2026-03-27T23:00:00Z"), at("2026-03-29T22:00:00Z"));
    schedule_draw_text(&out, &line, spec->triggers[0].zone);
    EQ_STR(buf_str(&out),
           S("               0     3     6     9     12    15    18    21    24  Europe/Berlin\n"
             "Sat 2026-03-28 aaaaAAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
             "Sun 2026-03-29 aaBB  AABBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n"
             "\n"
             "  a  after office: min 1, max 10\n"
             "  A  office: min 5, max 50\n"
             "  B  a <b> & \"c\": min 7, max 9\n"));
}

static void svg_escapes_names(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct schedule_spec *spec = read_spec(&a);
    struct schedule_timeline line =
        schedule_timeline(&a, spec, 0, at("2026-03-27T23:00:00Z"), at("2026-03-29T22:00:00Z"));
    schedule_draw_svg(&out, &line, spec->triggers[0].zone, S("<script>"));
    OK(str_starts(buf_str(&out), S("<svg ")) && str_ends(buf_str(&out), S("</svg>\n")));
    OK(str_find(buf_str(&out), S("a &lt;b> &amp; &quot;c&quot;")) != SIZE_MAX);
    OK(str_find(buf_str(&out), S("<script")) == SIZE_MAX);
}

static void explains_why(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct schedule_spec *spec = read_spec(&a);
    schedule_explain(&out, spec, 0, at("2026-03-29T01:30:00Z"));
    static const char *const lines[] = {
        "At Sun 2026-03-29 03:30:00 +02:00 (Europe/Berlin): start:office, min 5, max 50\n",
        "  open since Sun 2026-03-29 03:00:00 +02:00\n",
        "open, and governs (02:00:00-04:00:00 daily, Europe/Berlin)\n",
        "open, but office has higher priority, 1 over 0 (01:00:00-24:00:00 SUN, Europe/Berlin)\n",
        "  Sun 2026-03-29 04:00:00 +02:00  in 30 min  start:a <b> & \"c\": min 7, max 9\n",
    };
    for (size_t i = 0; i < countof(lines); i++)
        if (!OK(str_find(buf_str(&out), str_c(lines[i])) != SIZE_MAX))
            printf("# missing: %s# in: %s\n", lines[i], out.p);
}

static void the_timeline_joins_what_does_not_change(void)
{
    auto_arena struct arena a = { 0 };
    struct schedule_spec *spec = read_spec(&a);
    struct schedule_timeline line =
        schedule_timeline(&a, spec, 0, at("2026-03-27T23:00:00Z"), at("2026-03-28T22:00:00Z"));
    EQ_INT(line.n, 3);
    EQ_INT(line.periods[1].from, at("2026-03-28T01:00:00Z"));
    EQ_INT(line.periods[1].to, at("2026-03-28T03:00:00Z"));
    EQ_INT(line.periods[2].to, line.to);
}

/* A window without an end config: its bounds stay, and the drawing shows them. */
static void what_stays_after_a_window_is_drawn(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json *tree = NULL;
    err_t e;
    OK_CALL(
        yaml_parse(
            &a,
            S("triggers:\n- {name: sale, interval: {recurring: M}, startTime: '09:00', endTime: "
              "'17:00',\n   startHPAConfig: {minReplicas: 5, maxReplicas: 50}}\n"),
            &tree, &e),
        &e);
    struct schedule_spec *spec =
        schedule_spec_read(&a, tree, (struct schedule_defaults){ .find_zone = tz_get });
    struct schedule_timeline line =
        schedule_timeline(&a, spec, at("2026-06-01T08:00:00Z"), at("2026-06-01T00:00:00Z"),
                          at("2026-06-03T00:00:00Z"));
    schedule_draw_text(&out, &line, tz_utc());
    EQ_STR(buf_str(&out),
           S("               0     3     6     9     12    15    18    21    24  UTC\n"
             "Mon 2026-06-01 ..................AAAAAAAAAAAAAAAAaaaaaaaaaaaaaa\n"
             "Tue 2026-06-02 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
             "\n"
             "  .  no trigger governs; the bounds stay as they are\n"
             "  A  sale: min 5, max 50\n"
             "  a  after sale: min 5, max 50 (kept)\n"));
    /* also where the window ended months ago */
    line = schedule_timeline(&a, spec, 0, at("2026-06-04T00:00:00Z"), at("2026-06-05T00:00:00Z"));
    EQ_STR(schedule_period_text(&a, &line.periods[0]), S("min 5, max 50 (kept)"));
    spec->triggers[0].weekdays = 0;
    spec->triggers[0].first_day = spec->triggers[0].last_day = 20000;
    line = schedule_timeline(&a, spec, 0, at("2026-06-04T00:00:00Z"), at("2026-06-05T00:00:00Z"));
    EQ_STR(schedule_period_text(&a, &line.periods[0]), S("min 5, max 50 (kept)"));
}

/* What is drawn is what the HPA gets: max limits min, and a config that no HPA accepts changes nothing. */
static void min_is_never_above_max(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(
                &a,
                S("defaultHPAConfig: {minReplicas: 2, maxReplicas: 4}\n"
                  "triggers:\n"
                  "- {name: low, schedule: '0 9 * * *', duration: 2h,\n"
                  "   startHPAConfig: {minReplicas: 5}}\n"
                  "- {name: bad, interval: {recurring: M}, startTime: '12:00', endTime: '13:00',\n"
                  "   startHPAConfig: {minReplicas: 9, maxReplicas: 8}}\n"),
                &tree, &e),
            &e);
    struct schedule_spec *spec =
        schedule_spec_read(&a, tree, (struct schedule_defaults){ .find_zone = tz_get });
    struct schedule_timeline line =
        schedule_timeline(&a, spec, 0, at("2026-06-01T00:00:00Z"), at("2026-06-02T00:00:00Z"));
    for (size_t i = 0; i < line.n; i++)
        OK(line.periods[i].bounds.min <= line.periods[i].bounds.max);
    EQ_INT(line.periods[1].bounds.min, 4);
    EQ_STR(schedule_period_text(&a, &line.periods[3]), S("min 2, max 4 (kept)"));
    schedule_explain(&out, spec, 0, at("2026-06-01T10:00:00Z"));
    OK(str_find(buf_str(&out), S("(cron line, for 2 h 0 min, UTC)")) !=
       SIZE_MAX); /* no stray space */
    OK(str_find(buf_str(&out), S("(12:00:00-13:00:00 M, UTC)")) != SIZE_MAX);
    OK(str_find(buf_str(&out), S("start:low, min 4, max 4\n")) != SIZE_MAX);
}

/* Rows below each other, and what coincides; a spread removes the coincidence. */
static void a_fleet_on_one_page(void)
{
    for (int spread = 0; spread < 2; spread++) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf out = { 0 }, svg = { 0 };
        struct schedule_fleet_row rows[3];
        static const char *const names[] = { "shop/a", "shop/<b>", "shop/c" };
        for (int i = 0; i < 3; i++) {
            struct schedule_spec *spec = read_spec(&a);
            spec->triggers_n = 1;
            spec->spread_s = spread ? 600 : 0;
            schedule_spec_set_name(spec, S("shop"), str_c(names[i]));
            rows[i] = (struct schedule_fleet_row){
                str_c(names[i]), schedule_timeline(&a, spec, 0, at("2026-06-02T22:00:00Z"),
                                                   at("2026-06-03T22:00:00Z"))
            };
        }
        const struct tz *berlin = rows[0].line.spec->triggers[0].zone;
        schedule_fleet_text(&out, &a, rows, 3, berlin);
        schedule_fleet_svg(&svg, &a, rows, 3, berlin);
        OK(str_find(buf_str(&out), S("shop/a                      |.+-.........|\n")) != SIZE_MAX);
        bool together =
            str_find(buf_str(&out), S("Wed 2026-06-03 02:00:00 +02:00  3 schedules, minReplicas "
                                      "+12 -0: shop/a, shop/<b>, shop/c\n")) != SIZE_MAX;
        EQ_INT(together, !spread);
        EQ_INT(str_find(buf_str(&svg), S("3 schedules change together")) != SIZE_MAX, !spread);
        OK(str_find(buf_str(&svg), S("&lt;b>")) != SIZE_MAX &&
           str_ends(buf_str(&svg), S("</svg>\n")));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_week_has_a_row_a_day),
        TAP(svg_escapes_names),
        TAP(explains_why),
        TAP(the_timeline_joins_what_does_not_change),
        TAP(what_stays_after_a_window_is_drawn),
        TAP(min_is_never_above_max),
        TAP(a_fleet_on_one_page),
        { 0 },
    });
}
