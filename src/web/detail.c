/* What the page requests when the user opens an object: its reasons in full, and its history.
 *
 *     /detail?kind=schedule&key=NS/NAME   what `flyball explain` and `flyball schedule` show, from the same pure code
 *                                         and the same calendars as the controller
 *     /detail?kind=...                    the status of the object, as cached
 *     /series?kind=...&key=...            the history of its numbers
 *
 * Keys come from the user: they are only looked up. */
#include "../base/clock.h"
#include "../market/market_records.h"
#include "../runtimeconfig/aim_records.h"
#include "../schedule/schedule_draw.h"
#include "../schedule/schedule_turn.h"
#include "web_internal.h"

enum { WEEK_S = 7 * 86400, DAY_S = 86400 };

static void put_period(struct buf *out, struct arena *a, const struct schedule_timeline *line,
                       const struct schedule_period *p)
{
    buf_printf(out, "[%lld,%lld,%d,%d,", (long long)p->from, (long long)p->to, p->trigger,
               p->source == SCHEDULE_FROM_START);
    json_write_text(out, schedule_period_text(a, p));
    buf_putc(out, ',');
    json_write_text(out, p->trigger < 0 ? S("") : line->spec->triggers[p->trigger].name);
    buf_putc(out, ']');
}

/* The week around now, from the last local midnight, and the answer to "why does this apply?". */
static void put_schedule(struct web *w, struct arena *a, const struct schedule_record *r,
                         struct buf *out)
{
    struct scheduler *s = w->scheduler;
    struct schedule_calendar_scope scope = { &s->calendars, r->meta.ns };
    struct schedule_defaults defaults = s->defaults;
    auto_buf struct buf text = { 0 };
    schedule_calendars_set(&scope, &defaults);
    struct schedule_object o = schedule_record_object(a, r, defaults);
    int64_t now = loop_wall_ns(w->loop) / NS_PER_S;
    const struct tz *zone = o.spec->triggers_n ? o.spec->triggers[0].zone : NULL;
    int32_t offset = zone ? tz_offset_at(zone, now) : 0;
    int64_t from = now - ((now + offset) % DAY_S + DAY_S) % DAY_S;
    struct schedule_timeline line = schedule_timeline(a, o.spec, o.created, from, from + WEEK_S);
    schedule_explain(&text, o.spec, o.created, now);
    schedule_draw_problems(&text, o.spec);
    web_put_text(out, "text", buf_str(&text));
    web_put_text(out, "zone", zone ? tz_name(zone) : S("UTC"));
    buf_printf(out, "\"now\":%lld,\"from\":%lld,\"offset\":%d,\"periods\":[", (long long)now,
               (long long)from, (int)offset);
    for (size_t i = 0; i < line.n; i++) {
        if (i)
            buf_putc(out, ',');
        put_period(out, a, &line, &line.periods[i]);
    }
    buf_put(out, S("],"));
}

/* Statuses are passed on as the JSON that the cache holds. Specs are not: they may contain secrets. */
static void put_status(struct web *w, struct arena *a, enum board_kind kind, str ns, str name,
                       struct buf *out)
{
    const struct schedule_record *schedule;
    const struct allocation_record *pod;
    const struct aim_record *aim;
    if (kind == BOARD_MODEL) {
        web_models_detail(w, a, ns, name, out);
    } else if (kind == BOARD_SCHEDULE && w->schedules && w->scheduler &&
               (schedule = cache_get(w->schedules, ns, name))) {
        put_schedule(w, a, schedule, out);
        web_put_raw(out, "status", schedule->status);
    } else if (kind == BOARD_POD && w->allocations && (pod = cache_get(w->allocations, ns, name))) {
        web_put_raw(out, "status", pod->status);
    } else if (kind == BOARD_SERVICE && w->services && (aim = cache_get(w->services, ns, name))) {
        web_put_raw(out, "status", aim->status);
    } else if (kind == BOARD_CONFIG) {
        struct cache *configs = ns.n ? w->configs : w->cluster_configs;
        aim = configs ? cache_get(configs, ns, name) : NULL;
        web_put_raw(out, "status", aim ? aim->status : S(""));
    }
}

/* The entry that kind and key of the query name; NULL: there is none, and the exchange was answered. */
static const struct board_entry *find_requested(struct web *w, struct exchange *x)
{
    struct arena *a = exchange_arena(x);
    str kind = S(""), key = S("");
    const struct board_entry *e = NULL;
    if (uri_query_get(a, exchange_query(x), S("kind"), &kind) == 1 &&
        uri_query_get(a, exchange_query(x), S("key"), &key) == 1)
        e = board_get(&w->board, board_kind_find(kind), key);
    if (!e)
        web_answer(x, 404, "text/plain", S("there is no such object\n"));
    return e;
}

void web_detail_write(struct web *w, struct arena *a, const struct board_entry *e, struct buf *out)
{
    str ns = S(""), name = board_key(e);
    if (str_find_char(name, '/') != SIZE_MAX)
        (void)str_cut(&name, '/', &ns);
    buf_putc(out, '{');
    put_status(w, a, (enum board_kind)e->kind, ns, name, out);
    web_put_raw(out, "object", board_json(e));
    out->p[out->n - 1] = '}'; /* instead of the last comma */
}

void web_detail_answer(struct web *w, struct exchange *x)
{
    const struct board_entry *e = find_requested(w, x);
    if (!e)
        return;
    auto_buf struct buf json = { 0 };
    web_detail_write(w, exchange_arena(x), e, &json);
    web_answer_json(x, &json);
}

void web_series_answer(struct web *w, struct exchange *x)
{
    const struct board_entry *e = find_requested(w, x);
    if (!e)
        return;
    auto_buf struct buf json = { 0 };
    board_write_series(&w->board, e, &json);
    web_answer_json(x, &json);
}
