/* A week as SVG: see schedule_draw.h. One row per local day and one block per period, opaque while a window is
 * open and pale while its end config applies. Colors work on light and dark backgrounds; every block has a
 * tooltip. */
#include "../base/civil.h"
#include "schedule_draw.h"

enum { LEFT = 120, TOP = 56, ROW = 34, BAR = 24, HOUR = 32, RIGHT = 24, LEGEND_ROW = 22 };

static const char *const colors[] = { "#3b82c4", "#d9822b", "#4f9d69", "#b6559b",
                                      "#8a6fd1", "#c8553d", "#2a9d9d", "#a68a2e" };

static const char *const weekday_names[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

static const char *color_of(const struct schedule_period *s)
{
    return colors[(size_t)s->trigger % countof(colors)];
}

/* "after office: min 1, max 10": what applies in a period. */
static void put_period(struct buf *out, struct arena *a, const struct schedule_timeline *line,
                       const struct schedule_period *s)
{
    if (s->trigger >= 0) {
        if (s->source != SCHEDULE_FROM_START)
            buf_put(out, S("after "));
        buf_put_xml(out, line->spec->triggers[s->trigger].name);
        buf_put(out, S(": "));
    }
    buf_put_xml(out, schedule_period_text(a, s));
}

/* The part of a period that falls on one local day, as a block in that row. A day is drawn 24 hours wide whatever
 * its real length, so that rows align. */
static void put_block(struct buf *out, const struct schedule_timeline *line, const struct tz *zone,
                      const struct schedule_period *s, int64_t day, int row)
{
    auto_arena struct arena a = { 0 };
    int64_t midnight = tz_resolve(zone, day * CIVIL_DAY_S).first;
    int64_t next = tz_resolve(zone, (day + 1) * CIVIL_DAY_S).first;
    int64_t from = MAX(s->from, midnight), to = MIN(s->to, next);
    if (from >= to || s->trigger < 0)
        return;
    double scale = (double)(24 * HOUR) / (double)(next - midnight);
    double x = (double)LEFT + (double)(from - midnight) * scale,
           width = (double)(to - from) * scale;
    buf_printf(out,
               "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"3\" fill=\"%s\" "
               "fill-opacity=\"%s\"><title>",
               x, TOP + row * ROW, width, BAR, color_of(s),
               s->source == SCHEDULE_FROM_START ? "0.9" : "0.25");
    put_period(out, &a, line, s);
    buf_put(out, S("\n"));
    schedule_draw_wall(out, zone, s->from);
    buf_put(out, S(" to "));
    schedule_draw_wall(out, zone, s->to);
    buf_put(out, S("</title></rect>\n"));
    if (width > 60 && s->source == SCHEDULE_FROM_START) {
        buf_printf(out, "<text class=\"in\" x=\"%.1f\" y=\"%d\">", x + 6, TOP + row * ROW + 16);
        buf_put_xml(out, str_upto(line->spec->triggers[s->trigger].name, (size_t)(width / 8)));
        buf_put(out, S("</text>\n"));
    }
}

static void put_grid(struct buf *out, int rows)
{
    for (int hour = 0; hour <= 24; hour += 3) {
        int x = LEFT + hour * HOUR;
        buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%02d:00</text>\n", x,
                   TOP - 10, hour);
        buf_printf(out, "<path class=\"grid\" d=\"M%d %dV%d\"/>\n", x, TOP - 4,
                   TOP + rows * ROW - (ROW - BAR) + 4);
    }
}

/* One line per combination of trigger and source; returns the number of lines. */
static int put_legend(struct buf *out, const struct schedule_timeline *line, int y)
{
    auto_arena struct arena a = { 0 };
    int entries = 0;
    for (size_t i = 0; i < line->n; i++) {
        const struct schedule_period *s = &line->periods[i];
        bool seen = s->trigger < 0;
        for (size_t k = 0; k < i && !seen; k++)
            seen = line->periods[k].trigger == s->trigger && line->periods[k].source == s->source;
        if (seen)
            continue;
        buf_printf(out,
                   "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" rx=\"3\" fill=\"%s\" "
                   "fill-opacity=\"%s\"/><text x=\"%d\" y=\"%d\">",
                   LEFT, y + entries * LEGEND_ROW, color_of(s),
                   s->source == SCHEDULE_FROM_START ? "0.9" : "0.25", LEFT + 22,
                   y + entries * LEGEND_ROW + 12);
        put_period(out, &a, line, s);
        buf_put(out, S("</text>\n"));
        entries++;
    }
    return entries;
}

/* The body is built first, because the height in the header depends on the number of legend lines. */
void schedule_draw_svg(struct buf *out, const struct schedule_timeline *line, const struct tz *zone,
                       str title)
{
    int64_t first = civil_day_of(line->from + tz_offset_at(zone, line->from));
    int64_t last = civil_day_of(line->to - 1 + tz_offset_at(zone, line->to - 1));
    int rows = (int)MIN(last - first + 1, (int64_t)1000), width = LEFT + 24 * HOUR + RIGHT;
    auto_buf struct buf body = { 0 }, legend = { 0 };
    put_grid(&body, rows);
    for (int row = 0; row < rows; row++) {
        struct civil_date date = civil_from_days(first + row);
        buf_printf(&body, "<text x=\"12\" y=\"%d\">%s %04lld-%02d-%02d</text>\n",
                   TOP + row * ROW + 16, weekday_names[civil_weekday(first + row)],
                   (long long)date.year, date.month, date.day);
        for (size_t i = 0; i < line->n; i++)
            put_block(&body, line, zone, &line->periods[i], first + row, row);
    }
    int below = TOP + rows * ROW + 10;
    int height = below + put_legend(&legend, line, below) * LEGEND_ROW + 12;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" role=\"img\">\n<style>text{font:13px system-ui,sans-serif;fill:#444}"
               ".in{fill:#fff}.grid{stroke:#888;stroke-opacity:.25}"
               "@media(prefers-color-scheme:dark){text{fill:#ccc}.in{fill:#fff}}</style>\n<title>",
               width, height, width, height);
    buf_put_xml(out, title);
    buf_put(out, S("</title>\n<text x=\"12\" y=\"22\" font-weight=\"600\">"));
    buf_put_xml(out, title);
    buf_printf(out, " (" STR_FMT ")</text>\n", STR_ARG(tz_name(zone)));
    buf_put(out, buf_str(&body));
    buf_put(out, buf_str(&legend));
    buf_put(out, S("</svg>\n"));
}
