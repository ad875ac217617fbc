/* A simulation as SVG: on top the requests per second, then one lane per policy with its replicas by
 * variant, and below each lane a strip with the share of requests per minute that attained the targets.
 *
 *     opaque area   ready replicas, stacked by variant
 *     pale area     requested replicas that are not ready yet
 *     strip         green: at the goal; yellow, orange, red: below it; a tooltip has the numbers
 *
 * All lanes have the same scale, so that areas can be compared by eye: the area of a lane is proportional to
 * replica hours. Steps of equal height are merged, which keeps the file of a long trace small. Colors are
 * readable on light and on dark backgrounds; there is no script, so the picture can be embedded anywhere. */
#include "simulate.h"

#include <math.h>

enum {
    LEFT = 110,
    RIGHT = 24,
    TOP = 64,
    WIDTH = 960,
    LANE = 92,
    STRIP = 10,
    GAP = 30,
    A_MINUTE = 60 / FLEET_POINT_S
};

static const char *const colors[] = { "#3b82c4", "#d9822b", "#4f9d69", "#b6559b",
                                      "#8a6fd1", "#c8553d", "#2a9d9d", "#a68a2e" };

struct picture {
    struct buf *out;
    const struct simulate_report *report;
    double seconds;                      /* of the trace */
    double most_arrivals, most_replicas; /* scales, the same in all lanes */
};

/* Time runs from left to right over the width of the picture, whatever the length of the trace. */
static double x_at(const struct picture *p, double seconds)
{
    return LEFT + WIDTH * fmin(1, seconds / p->seconds);
}

/* The maxima over all policies: every lane is drawn to the same scale. */
static void find_scales(struct picture *p)
{
    for (size_t i = 0; i < p->report->result_n; i++) {
        const struct fleet_points *course = &p->report->results[i].course;
        for (size_t k = 0; k < course->points.n; k++) {
            const struct fleet_point *point = &course->points.at[k];
            double replicas = 0;
            for (size_t v = 0; v < p->report->config->variant_n; v++)
                replicas += MAX(point->current[v], point->ready[v]);
            p->most_arrivals = fmax(p->most_arrivals, (double)point->arrivals);
            p->most_replicas = fmax(p->most_replicas, replicas);
        }
    }
}

static void put_text(const struct picture *p, double x, double y, const char *anchor,
                     const char *text)
{
    buf_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    buf_put_xml(p->out, str_c(text));
    buf_put(p->out, S("</text>\n"));
}

static void put_scale(const struct picture *p, double top, double most)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "%.3g", most);
    put_text(p, LEFT - 6, top + 10, "end", text.p);
    put_text(p, LEFT - 6, top + LANE, "end", "0");
    buf_printf(p->out,
               "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#888\" "
               "stroke-width=\"0.5\"/>\n",
               LEFT, top + LANE, LEFT + WIDTH, top + LANE);
}

/* Heights of a step line: at each point, how high. */
typedef double height_fn(const struct fleet_point *point, size_t v);

static double arrivals_of(const struct fleet_point *point, size_t v)
{
    (void)v;
    return (double)point->arrivals;
}

/* Stacked: this variant on top of those before it. */
static double ready_up_to(const struct fleet_point *point, size_t v)
{
    double sum = 0;
    for (size_t i = 0; i <= v; i++)
        sum += point->ready[i];
    return sum;
}

/* Started ones, ready or not; a replica that drains is ready but no longer current. */
static double current_up_to(const struct fleet_point *point, size_t v)
{
    double sum = 0;
    for (size_t i = 0; i <= v; i++)
        sum += MAX(point->current[i], point->ready[i]);
    return sum;
}

struct area { /* one filled step line */
    height_fn *height;
    size_t variant;
    double top, most;
    const char *color, *opacity;
};

/* A filled step line; points of equal height are left out. */
static void put_area(const struct picture *p, const struct fleet_points *course,
                     const struct area *a)
{
    double bottom = a->top + LANE, last = NAN;
    buf_printf(p->out, "<path fill=\"%s\" fill-opacity=\"%s\" d=\"M%d %.1f", a->color, a->opacity,
               LEFT, bottom);
    for (size_t i = 0; i < course->points.n; i++) {
        double height = a->height(&course->points.at[i], a->variant);
        if (height == last)
            continue;
        buf_printf(p->out, "H%.1fV%.1f", x_at(p, (double)i * FLEET_POINT_S),
                   bottom - LANE * height / fmax(a->most, 1e-9));
        last = height;
    }
    buf_printf(p->out, "H%.1fV%.1fZ\"/>\n", x_at(p, (double)course->points.n * FLEET_POINT_S),
               bottom);
}

/* Green attains the goal; yellow misses it by at most five times what it allows; red loses more than half. */
static const char *color_of_share(double share, double goal)
{
    return share >= goal                 ? "#4f9d69"
           : share >= 1 - 5 * (1 - goal) ? "#c9a227"
           : share >= 0.5                ? "#d9822b"
                                         : "#c8553d";
}

/* One rectangle per minute that has requests. */
static void put_strip(const struct picture *p, const struct fleet_points *course, double top)
{
    for (size_t i = 0; i < course->points.n; i += A_MINUTE) {
        uint32_t count = 0, ok = 0;
        for (size_t k = i; k < i + A_MINUTE && k < course->points.n; k++) {
            count += course->points.at[k].count;
            ok += course->points.at[k].ok;
        }
        if (!count)
            continue;
        double x = x_at(p, (double)i * FLEET_POINT_S),
               end = x_at(p, (double)(i + A_MINUTE) * FLEET_POINT_S);
        double share = (double)ok / count;
        buf_printf(p->out,
                   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\">"
                   "<title>minute %zu: %.1f %% of %u requests attained</title></rect>\n",
                   x, top, fmax(end - x, 0.5), STRIP,
                   color_of_share(share, p->report->config->goal), i / A_MINUTE, share * 100,
                   count);
    }
}

/* Pale areas first, so that the opaque ones cover them; variants from the top of the stack down. */
static void put_lane(const struct picture *p, const struct simulate_result *result, double top)
{
    const struct fleet_config *c = p->report->config;
    auto_buf struct buf title = { 0 };
    buf_printf(&title, "%s: %.2f %% attained, cost %.1f, %.1f changes per hour", result->policy,
               result->score.attained * 100, result->score.cost, result->score.changes_per_hour);
    put_text(p, LEFT, top - 6, "start", title.p);
    for (size_t v = c->variant_n; v-- > 0;) {
        const char *color = colors[v % countof(colors)];
        put_area(p, &result->course,
                 &(struct area){ current_up_to, v, top, p->most_replicas, color, "0.25" });
    }
    for (size_t v = c->variant_n; v-- > 0;) {
        const char *color = colors[v % countof(colors)];
        put_area(p, &result->course,
                 &(struct area){ ready_up_to, v, top, p->most_replicas, color, "1" });
    }
    put_scale(p, top, p->most_replicas);
    put_strip(p, &result->course, top + LANE + 2);
}

/* Eight pixels are the widest that a letter takes in this font and size: names must not overlap. */
static void put_legend(const struct picture *p)
{
    const struct fleet_config *c = p->report->config;
    double x = LEFT;
    for (size_t v = 0; v < c->variant_n; v++) {
        buf_printf(p->out, "<rect x=\"%.0f\" y=\"20\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                   x, colors[v % countof(colors)]);
        buf_printf(p->out, "<text x=\"%.0f\" y=\"30\">", x + 16);
        buf_put_xml(p->out, c->variants[v].name);
        buf_put(p->out, S("</text>\n"));
        x += 40 + 8 * (double)c->variants[v].name.n;
    }
}

void simulate_print_svg(struct buf *out, const struct simulate_report *report)
{
    struct picture p = { out, report, 1, 0, 0 };
    p.seconds = fmax(1, (double)report->trace.at[report->trace.n - 1].arrived_ns / 1e9);
    find_scales(&p);
    double lanes = (double)report->result_n + 1, height = TOP + lanes * (LANE + STRIP + GAP);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
               "font-family=\"sans-serif\" font-size=\"12\" fill=\"#888\">\n"
               "<title>flyball simulate: %zu requests in %.0f s</title>\n",
               LEFT + WIDTH + RIGHT, height, report->trace.n, p.seconds);
    put_legend(&p);
    put_text(&p, LEFT, TOP - 6, "start", "requests per second");
    if (report->result_n)
        put_area(&p, &report->results[0].course,
                 &(struct area){ arrivals_of, 0, TOP, p.most_arrivals, "#888", "0.8" });
    put_scale(&p, TOP, p.most_arrivals);
    for (size_t i = 0; i < report->result_n; i++)
        put_lane(&p, &report->results[i], TOP + (double)(i + 1) * (LANE + STRIP + GAP));
    buf_put(out, S("</svg>\n"));
}
