/* From what the controllers know to the board.
 *
 *     cache of a feature ──change──► put_*()  ──► board ──tick──► streams
 *     events of a feature ─────────► on_event() ──┘  ▲
 *     state of the engine, metrics ──slow timer──────┘
 *
 * The handlers run inside the cache's own change, so the board is never older than the decisions. Streams are woken
 * at most four times per second. The slow timer reads what changes without an event: once per second while a page
 * is open, otherwise only when a sample of the history is due. */
#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../market/market_records.h"
#include "../runtimeconfig/aim_records.h"
#include "../saturation/saturation_controller.h"
#include "../schedule/schedule_controller.h"
#include "../schedule/schedule_records.h"
#include "web_internal.h"

static const int64_t tick_ns = NS_PER_S / 4, slow_ns = NS_PER_S;
enum { FIRST_SAMPLE_S = 10, MESSAGE_MAX = 1024 };

/* ---- waking streams */

static void on_tick(struct timer *timer)
{
    web_stream_wake(container_of(timer, struct web, tick));
}

void web_feed_announce(struct web *w)
{
    if (w->clients.n && !timer_is_set(&w->tick) && !w->stopping)
        timer_set(w->loop, &w->tick, loop_mono_ns(w->loop) + loop_scale_timeout(w->loop, tick_ns),
                  on_tick);
}

/* ---- JSON of objects */

static str make_key(struct buf *out, const struct record *r)
{
    buf_printf(out, STR_FMT "%s" STR_FMT, STR_ARG(r->ns), r->ns.n ? "/" : "", STR_ARG(r->name));
    return buf_str(out);
}

static const struct json *parse_raw(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

static void put_member(struct buf *out, const char *key, const struct json *value)
{
    buf_printf(out, "\"%s\":", key);
    if (value)
        json_write(out, value);
    else
        buf_put(out, S("null"));
    buf_putc(out, ',');
}

/* Type, status and reason of each condition; messages follow when the user opens the object. */
static void put_conditions(struct buf *out, const struct json *status)
{
    const struct json *list = json_get(status, "conditions");
    buf_put(out, S("\"conditions\":["));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        buf_put(out, i ? S(",[") : S("["));
        json_write_text(out, json_text(json_get(c, "type")));
        buf_putc(out, ',');
        json_write_text(out, json_text(json_get(c, "status")));
        buf_putc(out, ',');
        json_write_text(out, json_text(json_get(c, "reason")));
        buf_putc(out, ']');
    }
    buf_put(out, S("]}"));
}

static void put_object(struct web *w, enum board_kind kind, const struct record *r,
                       const struct buf *json)
{
    auto_buf struct buf key = { 0 };
    board_put(&w->board, kind, make_key(&key, r), buf_str(json), NULL);
    web_feed_announce(w);
}

static void remove_object(struct web *w, enum board_kind kind, const struct record *r)
{
    auto_buf struct buf key = { 0 };
    board_remove(&w->board, kind, make_key(&key, r));
    web_feed_announce(w);
}

/* ---- handlers */

static void on_schedule(void *context, const struct record *old, const struct record *now)
{
    static const char *const fields[] = { "activeTrigger", "currentConfig",      "HPAObjectRef",
                                          "source",        "nextTransitionTime", "triggers" };
    const struct schedule_record *r = record_as(struct schedule_record, now);
    if (!r) {
        remove_object(context, BOARD_SCHEDULE, old);
        return;
    }
    auto_arena struct arena a = { 0 };
    auto_buf struct buf json = { 0 };
    const struct json *status = parse_raw(&a, r->status);
    buf_putc(&json, '{');
    for (size_t i = 0; i < countof(fields); i++)
        put_member(&json, fields[i], json_get(status, fields[i]));
    put_conditions(&json, status);
    put_object(context, BOARD_SCHEDULE, now, &json);
}

static void on_allocation(void *context, const struct record *old, const struct record *now)
{
    web_market_put(context, old, now);
    web_feed_announce(context);
}

/* Of the spec only the name of the configuration: the rest may contain secrets in environment variables. */
static void on_service(void *context, const struct record *old, const struct record *now)
{
    static const char *const fields[] = {
        "status",           "routing",      "resolvedRuntimeConfig", "effectiveRuntimeConfig",
        "resolvedTemplate", "resolvedModel"
    };
    const struct aim_record *r = record_as(struct aim_record, now);
    if (!r) {
        remove_object(context, BOARD_SERVICE, old);
        return;
    }
    auto_arena struct arena a = { 0 };
    auto_buf struct buf json = { 0 };
    const struct json *status = parse_raw(&a, r->status);
    buf_putc(&json, '{');
    web_put_text(&json, "configName", r->config_name);
    for (size_t i = 0; i < countof(fields); i++)
        put_member(&json, fields[i], json_get(status, fields[i]));
    put_conditions(&json, status);
    put_object(context, BOARD_SERVICE, now, &json);
}

/* Both scopes; a configuration of the cluster has a key without a namespace. */
static void on_config(void *context, const struct record *old, const struct record *now)
{
    const struct aim_record *r = record_as(struct aim_record, now);
    if (!r) {
        remove_object(context, BOARD_CONFIG, old);
        return;
    }
    auto_arena struct arena a = { 0 };
    auto_buf struct buf json = { 0 };
    const struct json *status = parse_raw(&a, r->status);
    buf_putc(&json, '{');
    put_member(&json, "hash", json_get(status, "hash"));
    put_member(&json, "consumers", json_get(status, "consumers"));
    put_conditions(&json, status);
    put_object(context, BOARD_CONFIG, now, &json);
}

/* A decision of any feature. "Reconciled" is not one. */
static void on_event(void *context, const struct kube_event *e)
{
    struct web *w = context;
    auto_buf struct buf json = { 0 };
    if (!strcmp(e->reason, "Reconciled"))
        return;
    char time[RFC3339_TEXT_MAX];
    str message = e->message;
    if (message.n > MESSAGE_MAX) {
        message.n = MESSAGE_MAX;
        while (message.n && ((unsigned char)message.p[message.n] & 0xc0) == 0x80)
            message.n--; /* do not split a character */
    }
    buf_putc(&json, '{');
    web_put_text(&json, "time", rfc3339_text(loop_wall_ns(w->loop) / NS_PER_S, time));
    web_put_text(&json, "group", str_c(e->resource->group));
    web_put_text(&json, "kind", str_c(e->resource->kind));
    web_put_text(&json, "ns", e->ns);
    web_put_text(&json, "name", e->name);
    web_put_text(&json, "reason", str_c(e->reason));
    web_put_text(&json, "message", message);
    buf_printf(&json, "\"warning\":%s}", e->warning ? "true" : "false");
    board_add_decision(&w->board, buf_str(&json));
    web_feed_announce(w);
}

/* ---- what changes without an event */

static void on_slow(struct timer *timer)
{
    struct web *w = container_of(timer, struct web, slow);
    int64_t now_s = loop_wall_ns(w->loop) / NS_PER_S;
    bool sample = board_sample_is_due(&w->board, now_s);
    w->round++;
    if (w->clients.n || w->viewed || sample) {
        web_models_update(w, sample);
        web_market_update_nodes(w);
        if (w->round % 4 == 1 || sample)
            web_health_update(w);
        web_feed_announce(w);
    }
    if (sample)
        board_sample(&w->board, now_s);
    timer_set(w->loop, &w->slow, loop_mono_ns(w->loop) + loop_scale_timeout(w->loop, slow_ns),
              on_slow);
}

/* ---- start and stop */

/* The handler is called at once for every object that the cache already has, so the page may start later than the
 * controllers. NULL: no feature watches this resource. */
static struct cache *attach_cache(struct web *w, const struct cache_spec *spec,
                                  cache_handler_fn *fn)
{
    struct cache *cache = manager_find_cache(w->o.manager, spec);
    if (cache)
        cache_handle(cache, fn, w);
    return cache;
}

/* AIM exists in two API groups; the feature watches one of them. */
static void attach_aim(struct web *w)
{
    static const char *const groups[] = { AIM_GROUP, AIM_GROUP_NEWER };
    for (size_t i = 0; i < countof(groups) && !w->services; i++) {
        const struct aim_kinds *kinds = aim_kinds(groups[i]);
        struct cache_spec services = aim_cache_spec(&kinds->at[AIM_SERVICE]),
                          configs = aim_cache_spec(&kinds->at[AIM_CONFIG]),
                          cluster = aim_cache_spec(&kinds->at[AIM_CLUSTER_CONFIG]);
        w->services = attach_cache(w, &services, on_service);
        w->configs = attach_cache(w, &configs, on_config);
        w->cluster_configs = attach_cache(w, &cluster, on_config);
    }
}

void web_feed_start(struct web *w)
{
    struct manager *m = w->o.manager;
    int64_t real_s = loop_scale_timeout(w->loop, NS_PER_S) / NS_PER_S;
    board_init(&w->board, MAX((int64_t)FIRST_SAMPLE_S, real_s));
    w->saturation = manager_find_state(m, &saturation_feature);
    w->scheduler = manager_find_state(m, &schedule_feature);
    w->schedules = attach_cache(w, &schedule_cache, on_schedule);
    w->allocations = attach_cache(w, &market_allocation_cache, on_allocation);
    attach_aim(w);
    events_observe(manager_events(m), on_event, w);
    timer_set(w->loop, &w->slow, loop_mono_ns(w->loop), on_slow);
}

/* The caches cannot forget a handler, and are not changed any more when the page is freed: see web.h. */
void web_feed_stop(struct web *w)
{
    events_observe(manager_events(w->o.manager), NULL, NULL);
    timer_stop(&w->slow);
    timer_stop(&w->tick);
    web_market_done(w);
}
