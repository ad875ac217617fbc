/* What the screen of `flyball up` shows: objects from the board of the page, and the decisions that up_events.c saw in
 * the API. The numbers are therefore those of the page.
 *
 * Of each kind at most ROWS_MAX objects become rows: the first by name, or the busiest pods. */
#include "up.h"

#include "../json/yaml.h"

#include <stdlib.h>

enum { ROWS_MAX = 200 };

typedef VEC(const struct board_entry *) entry_vec;

static enum screen_kind kind_of(const struct board_entry *e)
{
    static const enum screen_kind of[BOARD_KIND_N] = { [BOARD_MODEL] = SCREEN_MODEL,
                                                       [BOARD_SCHEDULE] = SCREEN_SCHEDULE,
                                                       [BOARD_NODE] = SCREEN_NODE,
                                                       [BOARD_POD] = SCREEN_POD,
                                                       [BOARD_SERVICE] = SCREEN_SERVICE };
    return of[e->kind];
}

/* Pods by use, which is their first number; an unknown one is last. Everything else by name. */
static int compare_entries(const void *a, const void *b)
{
    const struct board_entry *x = *(const struct board_entry *const *)a,
                             *y = *(const struct board_entry *const *)b;
    if (x->kind == BOARD_POD && x->numbers[0] != y->numbers[0]) {
        uint16_t first = (uint16_t)(x->numbers[0] + 1), second = (uint16_t)(y->numbers[0] + 1);
        return first < second ? 1 : -1; /* unknown is the largest number, which becomes 0 */
    }
    return str_cmp(board_key(x), board_key(y));
}

/* A kind's entries become rows; their JSON is parsed only here, so hidden objects cost nothing. */
static void add_rows(struct up *up, struct arena *a, struct up_view *view, const entry_vec *entries)
{
    int64_t now_s = loop_wall_ns(up->loop) / NS_PER_S;
    for (size_t i = 0; i < entries->n && i < ROWS_MAX; i++) {
        const struct board_entry *e = entries->at[i];
        struct json *object = NULL;
        (void)json_parse(a, board_json(e), &object, NULL); /* NULL: everything is unknown */
        view->rows[view->n++] = screen_row_read(a, kind_of(e), board_key(e), object, now_s);
    }
}

static size_t count_news(const struct up_screen *screen)
{
    return MIN(screen->news_count, countof(screen->news));
}

/* NULL: newer decisions have taken its place in the ring. */
static const struct up_news *find_news(const struct up_screen *screen, uint64_t number)
{
    const struct up_news *n = &screen->news[number % countof(screen->news)];
    return n->number == number ? n : NULL;
}

/* Newest first. */
static void add_decisions(struct up *up, struct arena *a, struct up_view *view)
{
    const struct up_screen *screen = &up->screen;
    for (size_t i = 0; i < count_news(screen); i++) {
        const struct up_news *n = find_news(screen, screen->news_count - 1 - i);
        struct screen_row row = { .kind = SCREEN_DECISION, .changing = n->warning };
        row.key = arena_printf(a, "%llu", (unsigned long long)n->number);
        row.cells[0] = arena_printf(a, "%s " STR_FMT "/" STR_FMT, n->clock,
                                    STR_ARG(buf_str(&n->ns)), STR_ARG(buf_str(&n->name)));
        row.cells[1] = arena_printf(a, "%s" STR_FMT, n->warning ? "warning: " : "",
                                    STR_ARG(buf_str(&n->text)));
        view->rows[view->n++] = row;
    }
}

/* One pass over the board, which has entries in the order of their last change. The order of the kinds is that of the
 * sections. */
struct up_view up_view_gather(struct up *up, struct arena *a)
{
    struct up_view view = { 0 };
    entry_vec entries[SCREEN_KIND_N] = { 0 };
    uint64_t cursor = 0;
    for (const struct board_entry *e; (e = board_next(web_view(up->web), &cursor));)
        if (!e->gone && kind_of(e) != SCREEN_UNKNOWN)
            vec_push(&entries[kind_of(e)], e);
    view.rows = arena_array(a, (size_t)SCREEN_KIND_N * ROWS_MAX, sizeof(view.rows[0]));
    for (size_t i = 0; i < SCREEN_KIND_N; i++) {
        if (entries[i].n)
            qsort(entries[i].at, entries[i].n, sizeof(entries[i].at[0]), compare_entries);
        add_rows(up, a, &view, &entries[i]);
        view.totals[screen_section_of((enum screen_kind)i)] += entries[i].n;
        vec_done(&entries[i]);
    }
    add_decisions(up, a, &view);
    view.totals[SCREEN_DECISIONS] = count_news(&up->screen);
    return view;
}

/* ---- the reasons of a row */

/* Type=Status Reason: message, as in `kubectl describe`. */
static void put_conditions(struct buf *out, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        buf_printf(out, STR_FMT "=" STR_FMT " " STR_FMT ": " STR_FMT "\n",
                   STR_ARG(json_text(json_get(c, "type"))),
                   STR_ARG(json_text(json_get(c, "status"))),
                   STR_ARG(json_text(json_get(c, "reason"))),
                   STR_ARG(json_text(json_get(c, "message"))));
    }
    if (json_len(list))
        buf_putc(out, '\n');
}

/* What the page shows of an object: why, conditions, then the rest of its status. */
static void put_object(struct up *up, struct arena *a, const struct board_entry *e, struct buf *out)
{
    auto_buf struct buf json = { 0 };
    struct json *detail = NULL;
    web_detail_write(up->web, a, e, &json);
    if (json_parse(a, buf_str(&json), &detail, NULL) < 0)
        return;
    str reason = json_text(json_get(detail, "reason")), text = json_text(json_get(detail, "text"));
    struct json *status = json_get(detail, "status");
    if (reason.n)
        buf_printf(out, STR_FMT "\n\n", STR_ARG(reason));
    buf_put(out, text);
    put_conditions(out, json_get(status, "conditions"));
    if (status && !text.n) {
        json_del(status, S("conditions"));
        yaml_write(out, status);
    } else if (!status) {
        yaml_write(out, json_get(detail, "object"));
    }
}

/* First, so that it can be copied: it explains more than fits here. */
static void put_command(struct buf *out, const char *word, str ns, str name)
{
    buf_printf(out, "flyball explain %s " STR_FMT, word, STR_ARG(name));
    if (ns.n)
        buf_printf(out, " -n " STR_FMT, STR_ARG(ns));
    buf_put(out, S("\n\n"));
}

static void put_decision(const struct up *up, struct arena *a, str key, struct buf *out)
{
    int64_t number = 0;
    const struct up_news *n =
        str_to_i64(key, &number) == 0 ? find_news(&up->screen, (uint64_t)number) : NULL;
    if (!n)
        return; /* it left the ring */
    put_command(out, arena_lower(a, buf_str(&n->kind)).p, buf_str(&n->ns), buf_str(&n->name));
    buf_printf(out, "%s %s\n" STR_FMT "\n", n->clock, up_events_feature_name(n->feature),
               STR_ARG(buf_str(&n->text)));
}

/* Made again for each frame, so the reasons are as live as the numbers. */
str up_view_detail(struct up *up, struct arena *a, const struct screen_row *row)
{
    static const struct {
        enum board_kind kind;
        const char *word; /* of `flyball explain` */
    } of[SCREEN_KIND_N] = {
        [SCREEN_MODEL] = { BOARD_MODEL, "va" },
        [SCREEN_SCHEDULE] = { BOARD_SCHEDULE, "shpa" },
        [SCREEN_NODE] = { BOARD_NODE, "node" },
        [SCREEN_POD] = { BOARD_POD, "podallocation" },
        [SCREEN_SERVICE] = { BOARD_SERVICE, "aimservice" },
    };
    auto_buf struct buf out = { 0 };
    if (row->kind == SCREEN_DECISION) {
        put_decision(up, a, row->key, &out);
        return arena_str(a, buf_str(&out));
    }
    const struct board_entry *e = board_get(web_view(up->web), of[row->kind].kind, row->key);
    if (!e)
        return S("it was deleted");
    str ns = S(""), name = row->key;
    if (str_find_char(name, '/') != SIZE_MAX)
        (void)str_cut(&name, '/', &ns);
    put_command(&out, of[row->kind].word, ns, name);
    put_object(up, a, e, &out);
    return arena_str(a, buf_str(&out));
}
