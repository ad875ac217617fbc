/* The screen of `flyball up`: see screen_core.h.
 *
 * Every line is made by put_text() and put_spaces(), which count columns, so no line is longer than the terminal
 * and none wraps. All sections share the width of the name column, so numbers stay in place when a section appears.
 *
 *     > llm/chat-l40s             2 → 3          71%      4.0    98.2%
 *     │ └ name: 3/8 of the width  └ columns of the section; the last one takes the rest
 *     └ selected
 *
 * Column widths suit 80 columns; those marked `wide` appear from WIDE columns on. */
#include "screen_core.h"

#include "../base/utf8.h"

#include <stdio.h>

enum { WIDE = 110, SPACED = 36 /* rows from which sections have an empty line between them */ };

struct column {
    const char *title;
    uint8_t width;
    bool right, wide;
};

static const struct {
    const char *title, *color;
    struct column columns[SCREEN_CELLS]; /* without the name */
} sections[SCREEN_SECTION_N] = {
    [SCREEN_MODELS] = { "MODELS",
                        "\033[32m",
                        { { "REPLICAS", 12, false, false },
                          { "KV CACHE", 8, true, false },
                          { "QUEUE", 7, true, false },
                          { "SLO", 7, true, false },
                          { "DEMAND", 12, true, true },
                          { "COST", 9, true, true } } },
    [SCREEN_SCHEDULES] = { "SCHEDULES",
                           "\033[36m",
                           { { "BOUNDS", 12, false, false },
                             { "TRIGGER", 17, false, false },
                             { "NEXT CHANGE", 17, false, false } } },
    [SCREEN_MARKET] = { "MARKET",
                        "\033[33m",
                        { { "CPU", 8, true, false },
                          { "LIMIT", 8, true, false },
                          { "NEED", 8, true, false },
                          { "PRICE", 7, true, false },
                          { "THROTTLED", 10, true, false },
                          { "WEIGHT", 8, true, true },
                          { "MODE", 12, false, true } } },
    [SCREEN_SERVICES] = { "SERVICES",
                          "\033[35m",
                          { { "STATUS", 12, false, false },
                            { "CONFIG", 12, false, false },
                            { "PATH", 40, false, false } } },
    [SCREEN_DECISIONS] = { "DECISIONS", "", { { "", 80, false, false } } },
};

enum screen_section screen_section_of(enum screen_kind kind)
{
    static const enum screen_section of[SCREEN_KIND_N] = {
        [SCREEN_UNKNOWN] = SCREEN_DECISIONS,  [SCREEN_MODEL] = SCREEN_MODELS,
        [SCREEN_SCHEDULE] = SCREEN_SCHEDULES, [SCREEN_NODE] = SCREEN_MARKET,
        [SCREEN_POD] = SCREEN_MARKET,         [SCREEN_SERVICE] = SCREEN_SERVICES,
        [SCREEN_DECISION] = SCREEN_DECISIONS
    };
    return of[kind];
}

/* ---- one line */

struct line {
    struct buf *out;
    size_t columns, used;
    bool color;
};

/* One column wide and without an effect on the cursor: no controls, also those of C1, no combining, bidirectional or
 * wide characters. */
static bool is_narrow(uint32_t c)
{
    return (c >= 0x20 && c < 0x7f) || (c >= 0xa0 && c < 0x300 && c != 0xad) ||
           (c >= 0x370 && c < 0x483) || (c >= 0x48a && c < 0x530) || (c >= 0x2010 && c < 0x2028) ||
           (c >= 0x2030 && c < 0x2060) || (c >= 0x2070 && c < 0x231a) ||
           (c >= 0x2500 && c < 0x25fd);
}

static void put_spaces(struct line *l, size_t n)
{
    for (n = MIN(n, l->columns - l->used); n; n--, l->used++)
        buf_putc(l->out, ' ');
}

static size_t count_columns(str text)
{
    size_t n = 0;
    for (; text.n; n++)
        (void)utf8_next(&text);
    return n;
}

/* Writes at most `width` columns of a text; an ellipsis replaces the end of a longer one. */
static void put_text(struct line *l, str text, size_t width)
{
    width = MIN(width, l->columns - l->used);
    bool whole = count_columns(text) <= width;
    for (size_t room = whole ? width : width - (width > 0); text.n && room; room--, l->used++) {
        uint32_t c = utf8_next(&text);
        utf8_put(l->out, is_narrow(c) ? c : '?');
    }
    if (!whole && width) {
        buf_put(l->out, S("…"));
        l->used++;
    }
}

/* A text in a column, padded to its width. */
static void put_cell(struct line *l, str text, size_t width, bool right)
{
    size_t n = MIN(count_columns(text), width), end = l->used + width;
    if (right)
        put_spaces(l, width - n);
    put_text(l, text, width);
    if (l->used < end)
        put_spaces(l, end - l->used);
}

static void put_style(struct line *l, const char *style)
{
    if (l->color)
        buf_put(l->out, str_c(style));
}

static struct line begin_line(const struct screen_view *v, struct buf *out)
{
    return (struct line){ .out = out, .columns = v->columns, .color = v->color };
}

/* Spaces at the end are removed, so that copied text has none. */
static void end_line(struct line *l)
{
    while (l->out->n && l->out->p[l->out->n - 1] == ' ')
        l->out->n--;
    put_style(l, "\033[0m");
    buf_putc(l->out, '\n');
}

static void put_line(const struct screen_view *v, struct buf *out, const char *style, str text)
{
    struct line l = begin_line(v, out);
    put_style(&l, style);
    put_text(&l, text, v->columns);
    end_line(&l);
}

/* ---- sections */

/* Shared by all sections. */
static size_t name_width(const struct screen_view *v)
{
    return v->columns * 3 / 8;
}

/* Writes the cells after the name, titles if `cells` is NULL. The last column of the section that is shown takes the
 * rest of the line unless its numbers are aligned to the right. */
static void put_cells(struct line *l, enum screen_section section, const str *cells)
{
    const struct column *columns = sections[section].columns;
    for (size_t i = 0; i < SCREEN_CELLS - 1 && columns[i].title; i++) {
        if (columns[i].wide && l->columns < WIDE)
            continue;
        bool last = i + 1 == SCREEN_CELLS - 1 || !columns[i + 1].title;
        put_spaces(l, 1);
        put_cell(l, cells ? cells[i + 1] : str_c(columns[i].title),
                 last && !columns[i].right ? l->columns - l->used : columns[i].width,
                 columns[i].right);
    }
}

/* "MARKET (3 of 120)" and the titles of the columns. */
static void put_heading(const struct screen_view *v, struct buf *out, enum screen_section section,
                        size_t shown, size_t total)
{
    struct line l = begin_line(v, out);
    char title[80];
    if (shown < total)
        snprintf(title, sizeof(title), "%s (%zu of %zu)", sections[section].title, shown, total);
    else
        snprintf(title, sizeof(title), "%s", sections[section].title);
    put_style(&l, "\033[1m");
    put_style(&l, sections[section].color);
    put_cell(&l, str_c(title), name_width(v), false);
    put_style(&l, "\033[22m");
    put_cells(&l, section, NULL);
    end_line(&l);
}

/* A selected row has a mark too, for terminals without color. */
static void put_row(const struct screen_view *v, struct buf *out, size_t index)
{
    const struct screen_row *row = &v->at[index];
    struct line l = begin_line(v, out);
    bool selected = index == v->selected;
    if (selected)
        put_style(&l, "\033[7m");
    else if (row->changing)
        put_style(&l, "\033[1m");
    put_text(&l, selected ? S("> ") : S("  "), 2);
    put_cell(&l, row->cells[0], name_width(v) - MIN(name_width(v), (size_t)2), false);
    put_cells(&l, screen_section_of(row->kind), row->cells);
    end_line(&l);
}

/* The rows of each section, which are next to each other. */
struct span {
    size_t from, n;
};

/* An empty section has n = 0. */
static void find_spans(const struct screen_view *v, struct span ret[SCREEN_SECTION_N])
{
    memset(ret, 0, SCREEN_SECTION_N * sizeof(ret[0]));
    for (size_t i = 0; i < v->n; i++) {
        struct span *s = &ret[screen_section_of(v->at[i].kind)];
        s->from = s->n ? s->from : i;
        s->n++;
    }
}

void screen_allot(const size_t wanted[SCREEN_SECTION_N], size_t lines, size_t ret[SCREEN_SECTION_N])
{
    size_t before = SIZE_MAX;
    memset(ret, 0, SCREEN_SECTION_N * sizeof(ret[0]));
    ret[SCREEN_DECISIONS] = MIN(MIN(wanted[SCREEN_DECISIONS], (size_t)3), lines);
    lines -= ret[SCREEN_DECISIONS];
    for (size_t round = 0; lines && (lines != before || round <= 3); round++) {
        before = lines;
        for (size_t i = 0; i < SCREEN_SECTION_N && lines; i++)
            if (ret[i] < wanted[i] && ret[i] <= round) {
                ret[i]++;
                lines--;
            }
    }
}

/* A section with `shown` of its rows: the first ones, or those around the selected one. */
static void put_section(const struct screen_view *v, struct buf *out, enum screen_section section,
                        struct span rows, size_t shown)
{
    size_t skip = 0;
    if (v->selected >= rows.from + shown && v->selected < rows.from + rows.n)
        skip = v->selected - rows.from - shown + 1;
    put_heading(v, out, section, shown, MAX(rows.n, v->totals[section]));
    if (section == SCREEN_DECISIONS && !rows.n)
        put_line(v, out, "\033[2m", S("  none yet"));
    for (size_t i = 0; i < shown; i++)
        put_row(v, out, rows.from + skip + i);
}

/* Features without objects are not shown; the decisions always are. */
static void put_sections(const struct screen_view *v, struct buf *out, size_t lines)
{
    struct span spans[SCREEN_SECTION_N];
    size_t wanted[SCREEN_SECTION_N], shown[SCREEN_SECTION_N], headings = 0;
    bool spaced = v->rows >= SPACED;
    find_spans(v, spans);
    for (size_t i = 0; i < SCREEN_SECTION_N; i++) {
        bool present = spans[i].n || i == SCREEN_DECISIONS;
        headings += present ? 1 + spaced : 0;
        wanted[i] = spans[i].n;
    }
    headings += spans[SCREEN_DECISIONS].n ? 0 : 1; /* "none yet" */
    screen_allot(wanted, lines > headings ? lines - headings : 0, shown);
    for (size_t i = 0; i < SCREEN_SECTION_N; i++) {
        if (!spans[i].n && i != SCREEN_DECISIONS)
            continue;
        if (spaced)
            put_line(v, out, "", S(""));
        put_section(v, out, (enum screen_section)i, spans[i], shown[i]);
    }
}

/* ---- the detail of a row */

/* The longest beginning of a text that fits in a line, cut after a space if possible; removed from `*rest`. */
static str take_line(str *rest, size_t columns)
{
    str line, tail = *rest;
    size_t n = 0, blank = 0;
    while (tail.n && tail.p[0] != '\n' && n < columns) {
        (void)utf8_next(&tail);
        n++;
        blank = tail.n && tail.p[0] == ' ' ? rest->n - tail.n : blank;
    }
    size_t end = rest->n - tail.n;
    bool whole = !tail.n || tail.p[0] == '\n';
    line = str_upto(*rest, !whole && blank ? blank : end);
    *rest = str_from(*rest, line.n + (whole || blank ? 1 : 0));
    return line;
}

/* Writes the lines of the detail that the screen has room for, from `scroll` on; returns how many exist. */
static size_t put_detail(const struct screen_view *v, struct buf *out, size_t lines)
{
    size_t n = 0;
    for (str rest = v->detail; rest.n; n++) {
        str line = take_line(&rest, MAX(v->columns, (size_t)1));
        if (n >= v->scroll && n < v->scroll + lines)
            put_line(v, out, "", line);
    }
    return n;
}

/* Makes the body exactly as long as it may be: a terminal may have fewer lines than the headings need. */
static void fit_body(struct buf *out, size_t from, size_t lines)
{
    for (size_t i = from; i < out->n; i++) {
        if (!lines) {
            out->n = i;
            return;
        }
        lines -= out->p[i] == '\n';
    }
    for (; lines; lines--)
        buf_putc(out, '\n');
}

size_t screen_render(const struct screen_view *v, struct buf *out)
{
    size_t used = 1 + (v->note.n ? 1 : 0), detail = 0;
    for (size_t i = 0; i < SCREEN_BANNER && used < v->rows; i++)
        if (v->banner[i].n) {
            put_line(v, out, i ? "" : "\033[1m", v->banner[i]);
            used++;
        }
    size_t body = v->rows > used ? v->rows - used : 0, from = out->n;
    if (v->opened) {
        put_line(v, out, "", S(""));
        detail = put_detail(v, out, body ? body - 1 : 0);
    } else {
        put_sections(v, out, body);
    }
    fit_body(out, from, body);
    if (v->note.n)
        put_line(v, out, "\033[31m", v->note);
    put_line(v, out, "\033[2m", v->footer);
    out->p[--out->n] = '\0'; /* the newline at the end would scroll the terminal */
    return detail;
}

/* ---- selection and keys */

/* A linear search: there are a few hundred rows, and one search per frame. */
size_t screen_find(const struct screen_row *rows, size_t n, enum screen_kind kind, str key,
                   size_t last)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind == kind && str_eq(rows[i].key, key))
            return i;
    return n ? MIN(last, n - 1) : SIZE_MAX;
}

/* The final byte of a control sequence, and its number ("\033[5~" is page up). */
static enum screen_key key_of_sequence(char end, char digit)
{
    if (end == '~')
        return digit == '5' ? SCREEN_KEY_PAGE_UP
                            : (digit == '6' ? SCREEN_KEY_PAGE_DOWN : SCREEN_KEY_NONE);
    return end == 'A' ? SCREEN_KEY_UP : (end == 'B' ? SCREEN_KEY_DOWN : SCREEN_KEY_NONE);
}

static enum screen_key key_of_byte(char c)
{
    switch (c) {
    case 'q':
    case 'Q':
        return SCREEN_KEY_QUIT;
    case 'k':
        return SCREEN_KEY_UP;
    case 'j':
        return SCREEN_KEY_DOWN;
    case '\r':
    case '\n':
        return SCREEN_KEY_ENTER;
    case '\b':
    case 127:
        return SCREEN_KEY_CLOSE;
    default:
        return SCREEN_KEY_NONE;
    }
}

enum screen_key screen_key_next(str *input)
{
    char first = input->p[0];
    *input = str_from(*input, 1);
    if (first != '\033')
        return key_of_byte(first);
    if (!input->n || (input->p[0] != '[' && input->p[0] != 'O'))
        return SCREEN_KEY_CLOSE; /* the Esc key itself: a sequence arrives in one piece */
    size_t end = 1;
    while (end < input->n && input->p[end] >= 0x20 && input->p[end] < 0x40)
        end++;
    enum screen_key key =
        end < input->n ? key_of_sequence(input->p[end], input->p[1]) : SCREEN_KEY_NONE;
    *input = str_from(*input, end + 1);
    return key;
}
