/* The fleet view: see schedule_fleet.h.
 *
 *     shop/web   ......====+===-........====+===-....    + minReplicas rises, - it falls, = a window is open
 *
 * Below the rows are the instants at which several schedules change together. Many pods that start in the same second
 * are a load on nodes, registries and the API server that `spread` avoids. */
#include "schedule_fleet.h"

#include "../base/civil.h"
#include "schedule_draw.h"

enum {
    FLEET_CELL_S = 7200,
    FLEET_CELLS_DAY = 12,
    FLEET_NAME = 28,
    COINCIDE_LEAST = 3, /* schedules that change in the same second */
    COINCIDE_SHOWN = 10,
    SVG_LEFT = 220,
    SVG_ROW = 18,
    SVG_TOP = 40,
    SVG_DAY = 130,
};

/* A change of minReplicas of one schedule. */
struct move {
    int64_t at;
    int64_t by; /* change of minReplicas; 0: not known */
    size_t row;
};

static int by_time(const void *x, const void *y)
{
    const struct move *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* The changes between two periods, of all rows, by time. */
static struct move *collect_moves(struct arena *a, const struct schedule_fleet_row *rows, size_t n,
                                  size_t *ret_n)
{
    size_t most = 1, count = 0;
    for (size_t i = 0; i < n; i++)
        most += rows[i].line.n;
    struct move *moves = arena_array(a, most, sizeof(*moves));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 1; k < rows[i].line.n; k++) {
            const struct schedule_config *from = &rows[i].line.periods[k - 1].bounds,
                                         *to = &rows[i].line.periods[k].bounds;
            bool same = from->has_min == to->has_min && from->min == to->min &&
                        from->has_max == to->has_max && from->max == to->max;
            if (!same)
                moves[count++] =
                    (struct move){ rows[i].line.periods[k].from,
                                   from->has_min && to->has_min ? (int64_t)to->min - from->min : 0,
                                   i };
        }
    }
    qsort(moves, count, sizeof(*moves), by_time);
    *ret_n = count;
    return moves;
}

/* ---- terminal */

/* What happens in a cell: a rise wins over a fall, a change over a state. */
static char cell_of(const struct schedule_timeline *line, int64_t from, int64_t to)
{
    char cell = ' ';
    for (size_t i = 0; i < line->n; i++) {
        const struct schedule_period *s = &line->periods[i];
        if (s->to <= from || s->from >= to)
            continue;
        if (cell == ' ' || cell == '.')
            cell = s->source == SCHEDULE_FROM_START ? '=' : '.';
        if (!i || s->from < from)
            continue;
        int64_t before = s[-1].bounds.has_min ? s[-1].bounds.min : 0,
                after = s->bounds.has_min ? s->bounds.min : 0;
        if (after > before)
            return '+';
        cell = after < before ? '-' : cell;
    }
    return cell;
}

static void put_header(struct buf *out, const struct tz *zone, int64_t first, int64_t last)
{
    static const char *const names[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    buf_printf(out, "%-*s", FLEET_NAME, "");
    for (int64_t day = first; day <= last; day++) {
        struct civil_date date = civil_from_days(day);
        buf_printf(out, "|%s %02d-%02d   ", names[civil_weekday(day)], date.month, date.day);
    }
    buf_printf(out, "  " STR_FMT "\n", STR_ARG(tz_name(zone)));
}

/* One paragraph per instant at which many change, the largest first in time. */
static void put_coincidences(struct buf *out, struct arena *a,
                             const struct schedule_fleet_row *rows, size_t n, const struct tz *zone)
{
    size_t moves_n, shown = 0;
    struct move *moves = collect_moves(a, rows, n, &moves_n);
    for (size_t i = 0, next; i < moves_n; i = next) {
        int64_t up = 0, down = 0;
        for (next = i; next < moves_n && moves[next].at == moves[i].at; next++) {
            up += MAX(moves[next].by, INT64_C(0));
            down -= MIN(moves[next].by, INT64_C(0));
        }
        if (next - i < COINCIDE_LEAST || shown++ >= COINCIDE_SHOWN)
            continue;
        if (shown == 1)
            buf_put(
                out,
                S("\nSchedules that change in the same second (spec.spread distributes them):\n"));
        buf_put(out, S("  "));
        schedule_draw_wall(out, zone, moves[i].at);
        buf_printf(out, "  %zu schedules, minReplicas +%lld -%lld: ", next - i, (long long)up,
                   (long long)down);
        for (size_t k = i; k < MIN(next, i + 3); k++)
            buf_printf(out, "%s" STR_FMT, k == i ? "" : ", ", STR_ARG(rows[moves[k].row].name));
        buf_put(out, next - i > 3 ? S(", ...\n") : S("\n"));
    }
    if (shown > COINCIDE_SHOWN)
        buf_printf(out, "  and %zu more\n", shown - COINCIDE_SHOWN);
}

static int64_t local_day(const struct tz *zone, int64_t at)
{
    return civil_day_of(at + tz_offset_at(zone, at));
}

/* One line per schedule with all days side by side, and below it the schedules that change in the same second. */
void schedule_fleet_text(struct buf *out, struct arena *a, const struct schedule_fleet_row *rows,
                         size_t n, const struct tz *zone)
{
    if (!n)
        return;
    int64_t first = local_day(zone, rows[0].line.from), last = local_day(zone, rows[0].line.to - 1);
    put_header(out, zone, first, last);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%-*.*s ", FLEET_NAME - 1, (int)MIN(rows[i].name.n, (size_t)FLEET_NAME - 1),
                   rows[i].name.p);
        for (int64_t day = first; day <= last; day++) {
            buf_putc(out, '|');
            for (int cell = 0; cell < FLEET_CELLS_DAY; cell++) {
                int64_t wall = day * CIVIL_DAY_S + cell * FLEET_CELL_S;
                buf_putc(out, cell_of(&rows[i].line, tz_resolve(zone, wall).first,
                                      tz_resolve(zone, wall + FLEET_CELL_S).first));
            }
        }
        buf_put(out, S("|\n"));
    }
    buf_put(out,
            S("\n  = a window is open   + minReplicas rises   - it falls   . no window is open\n"));
    put_coincidences(out, a, rows, n, zone);
}

/* ---- SVG */

static double x_of(const struct schedule_timeline *line, int64_t at, double width)
{
    return SVG_LEFT + (double)(at - line->from) / (double)(line->to - line->from) * width;
}

/* The bars of one row: open windows, and a mark where minReplicas changes. */
static void put_row(struct buf *out, struct arena *a, const struct schedule_fleet_row *row, int y,
                    double width)
{
    buf_printf(out, "<text x=\"8\" y=\"%d\">", y + 12);
    buf_put_xml(out, str_upto(row->name, 34));
    buf_put(out, S("</text>\n"));
    for (size_t i = 0; i < row->line.n; i++) {
        const struct schedule_period *s = &row->line.periods[i];
        double x = x_of(&row->line, s->from, width);
        if (s->trigger < 0)
            continue;
        buf_printf(out,
                   "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#3b82c4\" "
                   "fill-opacity=\"%s\"><title>",
                   x, y + 2, x_of(&row->line, s->to, width) - x, SVG_ROW - 5,
                   s->source == SCHEDULE_FROM_START ? "0.85" : "0.15");
        buf_put_xml(out, schedule_period_text(a, s));
        buf_put(out, S("</title></rect>\n"));
    }
}

/* The same as a picture, with one lane per schedule. */
void schedule_fleet_svg(struct buf *out, struct arena *a, const struct schedule_fleet_row *rows,
                        size_t n, const struct tz *zone)
{
    if (!n)
        return;
    const struct schedule_timeline *line = &rows[0].line;
    int64_t first = local_day(zone, line->from), last = local_day(zone, line->to - 1);
    double width = (double)(last - first + 1) * SVG_DAY;
    int height = SVG_TOP + (int)n * SVG_ROW + 12;
    buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\" "
        "role=\"img\">\n<style>text{font:12px system-ui,sans-serif;fill:#444}"
        "path{stroke:#888;stroke-opacity:.3}.many{stroke:#c8553d;stroke-opacity:.9}"
        "@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>\n<title>Schedules</title>\n",
        width + SVG_LEFT + 16, height, width + SVG_LEFT + 16, height);
    for (int64_t day = first; day <= last; day++) {
        struct civil_date date = civil_from_days(day);
        double x = x_of(line, tz_resolve(zone, day * CIVIL_DAY_S).first, width);
        buf_printf(out,
                   "<text x=\"%.1f\" y=\"22\">%04lld-%02d-%02d</text><path d=\"M%.1f 28V%d\"/>\n",
                   x + 4, (long long)date.year, date.month, date.day, x, height - 8);
    }
    for (size_t i = 0; i < n; i++)
        put_row(out, a, &rows[i], SVG_TOP + (int)i * SVG_ROW, width);
    size_t moves_n;
    struct move *moves = collect_moves(a, rows, n, &moves_n);
    for (size_t i = 0, next; i < moves_n; i = next) {
        for (next = i; next < moves_n && moves[next].at == moves[i].at;)
            next++;
        double x = x_of(line, moves[i].at, width);
        if (next - i >= COINCIDE_LEAST)
            buf_printf(
                out,
                "<path class=\"many\" d=\"M%.1f 28V%d\"><title>%zu schedules change together</title></path>\n",
                x, height - 8, next - i);
    }
    buf_put(out, S("</svg>\n"));
}
