/* List and watch: the loop that fills one cache and keeps it current. The contract is in listwatch.h.
 *
 * The problem. A watch is a stream of changes from a server that can cut it, repeat it, fill it with
 * garbage, restart, or forget the version we stopped at. Controllers must still see the latest state of
 * every object, each change once, and never an older state after a newer one.
 *
 * The invariant. `rv` is the version last applied to the cache, and `has_list` is true only if a watch from
 * `rv` misses nothing. Both change only together with the cache, so a stream can end at any byte: what
 * arrived whole was applied, and the rest is sent again. One stream at a time; only PAUSED has no call:
 *
 *     STREAMING --- refused, or no end of the initial events ---> LISTING (a page; the next page ...)
 *         |  bookmark that ends the initial events                   |  last page
 *         +-------------------------> WATCHING <---------------------+
 *                                        |  end of stream: watch again from `rv`
 *     PAUSED <-- failure in any state ---+  410: has_list = false, list again
 *
 * start_next_stream() looks at two facts only: `has_list`, and whether the server supports streaming lists.
 * So every 410 (list, continue token, watch, event) is `has_list = false`, and every cut is only a pause.
 *
 * How bytes move. A body goes piece by piece through intake.c, which cuts it into objects and keeps their declared
 * fields: memory is the cache plus one object at a time. Built-in kinds are requested in protobuf, and a server that
 * answers in JSON is as good. Bytes that are not the protobuf they claim to be end that: from then on, JSON.
 * Not done: lists with resourceVersion=0 (a stale server may answer, and the cache would go back in time);
 * clearing the cache on 410 (handlers would see every object deleted and added again); waiting out the
 * backoff after an outage (kube_on_recovery() ends the pause when any request is answered again). */
#include "listwatch.h"

#include "../base/random.h"
#include "../net/http.h"
#include "intake.h"
#include "intake_limits_core.h"
#include "pause_core.h"

enum lw_state { LW_STREAMING, LW_LISTING, LW_WATCHING, LW_PAUSED };

enum {
    WATCH_LEAST_S = 300,
    WATCH_SPREAD_S = 300,
    STUCK_MAX = 5,         /* failures in a row without progress before listing again */
    EXPIRED_PAGES_MAX = 2, /* expired continue tokens before listing without pages */
};

static const int64_t fresh_list_ns = 20 * NS_PER_S, short_watch_ns = NS_PER_S,
                     initial_wait_ns = 30 * NS_PER_S, initial_silence_ns = 10 * NS_PER_S,
                     watch_grace_ns = 30 * NS_PER_S;

struct listwatch {
    struct listwatch_options o;
    struct loop *loop;
    struct random random;
    enum lw_state state;
    struct kube_call *call;   /* owned; NULL only while PAUSED */
    struct intake intake;     /* turns the body into records */
    struct buf rv;            /* version last applied; a new list may not be older */
    struct buf continue_from; /* token of the next page; empty: first page or no more */
    bool has_list, once_synced;
    bool any_version;  /* the server refused `rv`: accept any version */
    bool no_streaming; /* the server does not support streaming lists */
    bool list_next;    /* streaming failed this time: list in pages next */
    bool no_protobuf;  /* the server refused it, or sent something else under its name */
    int expired_pages, stuck;
    struct pause pause;          /* how long the next one is */
    int64_t started_ns;          /* mono: start of this stream */
    int64_t listed_ns;           /* mono: end of the last complete list */
    uint64_t seen;               /* lines and items of this stream */
    struct intake_limits limits; /* of this list, all pages, or of this watch */
    bool answered;               /* this stream got a response, so the server is reachable */
    struct timer timer;          /* PAUSED: end of the pause; STREAMING, WATCHING: timeout */
    int64_t not_before_ns;       /* mono: no reason ends a pause before this */
    struct kube_recovery recovery;
    struct listwatch_stats stats;
};

static void start_next_stream(struct listwatch *w);

static void set_text(struct buf *b, str text)
{
    buf_clear(b);
    buf_put(b, text);
}

/* ---- the end of a stream */

static void cancel_call(struct listwatch *w)
{
    kube_call_cancel(w->call);
    w->call = NULL;
    timer_stop(&w->timer);
}

static void on_pause_end(struct timer *timer)
{
    start_next_stream(container_of(timer, struct listwatch, timer));
}

static void end_pause_early(struct listwatch *w)
{
    if (w->state != LW_PAUSED)
        return;
    timer_stop(&w->timer);
    if (loop_mono_ns(w->loop) < w->not_before_ns)
        timer_set(w->loop, &w->timer, w->not_before_ns, on_pause_end);
    else
        start_next_stream(w);
}

/* Another request was answered, so the server is back. */
static void on_server_recovered(struct kube_recovery *recovery)
{
    end_pause_early(container_of(recovery, struct listwatch, recovery));
}

/* Ends the stream and waits with backoff. After STUCK_MAX failures without progress, `rv` is suspected. */
static void pause_after_failure(struct listwatch *w, const char *why)
{
    int64_t now = loop_mono_ns(w->loop);
    if (!w->seen && w->answered && ++w->stuck >= STUCK_MAX) {
        w->has_list = false; /* the version itself may be the cause */
        w->any_version = true;
    }
    int64_t delay = pause_after_fault_ns(&w->pause, now, random_unit(&w->random));
    w->not_before_ns = now + kube_note_waste(w->o.kube, intake_wasted(&w->limits));
    w->stats.failures++;
    if (w->o.on_trouble)
        w->o.on_trouble(w->o.context, why);
    cancel_call(w);
    intake_start(&w->intake, false); /* do not hold half of a large object during the pause */
    if (!cache_synced(w->o.cache) && w->state != LW_WATCHING)
        cache_clear(w->o.cache);
    w->state = LW_PAUSED;
    timer_set(w->loop, &w->timer, MAX(now + delay, w->not_before_ns), on_pause_end);
}

/* Lists again after a 410: at once, unless the version is from a list that was just made, which would loop;
 * if the minimum version of the list itself is refused, once more without one. */
static void handle_expired(struct listwatch *w, const char *why)
{
    int64_t age_ns = loop_mono_ns(w->loop) - w->listed_ns;
    bool refused = !w->has_list && w->rv.n && !w->any_version;
    bool at_once = refused || (w->has_list && age_ns > fresh_list_ns);
    w->stats.expired++;
    w->any_version |= refused;
    w->has_list = false;
    if (at_once) {
        cancel_call(w);
        start_next_stream(w);
    } else {
        pause_after_failure(w, why);
    }
}

/* ---- lines of a watch */

static void notify_synced(struct listwatch *w)
{
    if (w->once_synced)
        return;
    w->once_synced = true;
    if (w->o.on_synced)
        w->o.on_synced(w->o.context);
}

static void mark_synced(struct listwatch *w)
{
    cache_list_end(w->o.cache);
    w->has_list = true;
    w->any_version = false;
    w->listed_ns = loop_mono_ns(w->loop);
    w->stats.lists++;
    w->expired_pages = w->pause.absences = w->pause.tries = 0;
    notify_synced(w);
}

/* Is an optional resource unavailable? Once it was seen, a 404 means a server that is still starting. One that was not
 * permitted before a restart of the server is asked for again later, whether the server knows its roles yet or not. */
static bool is_absent(const struct listwatch *w, enum kube_reason reason)
{
    enum cache_need need = cache_spec(w->o.cache)->need;
    if (cache_absent(w->o.cache) && reason == KUBE_UNAVAILABLE)
        return true;
    bool never_seen = !cache_synced(w->o.cache) || cache_absent(w->o.cache);
    return never_seen && ((reason == KUBE_NOT_FOUND && need != CACHE_REQUIRED) ||
                          (reason == KUBE_FORBIDDEN && need == CACHE_IF_ALLOWED));
}

/* Asks again less and less often: most clusters never have it. One that is announced is not asked for until then. */
static void mark_absent(struct listwatch *w, enum kube_reason reason)
{
    cache_list_none(w->o.cache);
    w->state = LW_PAUSED;
    int64_t delay = pause_take_try_ns(&w->pause);
    if (!delay &&
        !(reason == KUBE_NOT_FOUND && w->o.is_announced && w->o.is_announced(w->o.context)))
        delay = pause_while_absent_ns(&w->pause);
    if (delay)
        timer_set(w->loop, &w->timer, loop_mono_ns(w->loop) + delay, on_pause_end);
    notify_synced(w);
}

/* A kind that was seen may be gone for now: its definition announces when it is served again. */
static void pause_after_reply(struct listwatch *w, const struct kube_reply *reply)
{
    pause_after_failure(w, reply->failure);
    bool is_missing = reply->reason == KUBE_NOT_FOUND;
    if (is_missing && w->o.is_announced && cache_spec(w->o.cache)->need != CACHE_REQUIRED)
        w->o.is_announced(w->o.context); /* definitions are watched from now on */
    int64_t delay = is_missing ? pause_take_try_ns(&w->pause) : 0;
    if (delay)
        timer_set(w->loop, &w->timer, loop_mono_ns(w->loop) + delay, on_pause_end);
}

void listwatch_retry(struct listwatch *w)
{
    pause_announced(&w->pause); /* also for a request under way, which may still be refused */
    end_pause_early(w);
}

/* Limits how long the server may take, in real time even if the loop runs on virtual time. */
static void set_stream_timeout(struct listwatch *w, int64_t ns, void (*fire)(struct timer *))
{
    timer_set(w->loop, &w->timer, loop_mono_ns(w->loop) + loop_scale_timeout(w->loop, ns), fire);
}

static void on_watch_timeout(struct timer *timer)
{
    struct listwatch *w = container_of(timer, struct listwatch, timer);
    pause_after_failure(w, "watch did not end in time; the connection is probably dead");
}

static void enter_watching(struct listwatch *w, int64_t seconds)
{
    w->state = LW_WATCHING;
    w->limits.is_watch = true;
    kube_call_allow_delay(w->call);
    set_stream_timeout(w, seconds * NS_PER_S + watch_grace_ns, on_watch_timeout);
}

static int set_version(struct listwatch *w, str rv, err_t *e)
{
    int r = intake_limit_version(rv, e);
    if (r == 0 && rv.n) /* an object without a version must not reset our position */
        set_text(&w->rv, rv);
    return r;
}

/* Puts the record into the cache unless a limit is exceeded. Takes over the reference either way. */
static int put_record(struct listwatch *w, struct record *record, err_t *e)
{
    int r = intake_limit_item(&w->limits, cache_is_requested(w->o.cache, record), e);
    r = r < 0 ? r : cache_check_room(w->o.cache, w->o.total_max, e);
    if (r < 0)
        record_unref(record);
    else
        cache_put(w->o.cache, record);
    return r;
}

static int on_bookmark(struct listwatch *w, const struct watch_line *line, err_t *e)
{
    w->stats.bookmarks++;
    int r = intake_limit_bookmark(&w->limits, e);
    r = r < 0 ? r : set_version(w, line->rv, e);
    if (r == 0 && line->initial_end && w->state == LW_STREAMING) {
        mark_synced(w);
        enter_watching(w, WATCH_LEAST_S + WATCH_SPREAD_S);
    }
    return r;
}

/* Applies one event of a watch. A failure ends the stream; -ESTALE means that the version expired. */
static int on_event(void *context, const struct watch_line *line, err_t *e)
{
    struct listwatch *w = context;
    w->seen++;
    w->stuck = 0;
    if (line->type == WATCH_BOOKMARK)
        return on_bookmark(w, line, e);
    w->stats.events++;
    w->limits.bookmarks = 0;
    int r = set_version(w, line->record->rv, e);
    if (r < 0) {
        record_unref(line->record);
        return r;
    }
    if (line->type != WATCH_DELETED)
        return put_record(w, line->record, e);
    cache_delete(w->o.cache, line->record->ns, line->record->name);
    record_unref(line->record);
    return 0;
}

/* Passes bytes on. If they do not have the encoding of their content type, JSON is requested from now on. */
static int feed_body(struct listwatch *w, str bytes, err_t *e)
{
    bool protobuf = kube_call_is_protobuf(w->call);
    w->stats.bytes += bytes.n;
    int r = intake_limit_bytes(&w->limits, bytes.n, e);
    r = r < 0 ? r : intake_feed(&w->intake, protobuf, bytes, e);
    w->no_protobuf |= r == -EBADMSG && protobuf;
    return r;
}

/* Does the server refuse only the encoding? Then the request is repeated in JSON. */
static bool repeat_in_json(struct listwatch *w, const struct kube_reply *reply)
{
    bool refused = !w->no_protobuf && (reply->code == 406 || reply->code == 415);
    w->no_protobuf |= refused;
    return refused;
}

static void on_initial_timeout(struct timer *timer)
{
    struct listwatch *w = container_of(timer, struct listwatch, timer);
    if (w->seen)
        w->no_streaming = true; /* events but no closing bookmark: it ignores sendInitialEvents */
    w->list_next = true;
    cancel_call(w);
    start_next_stream(w);
}

static void on_watch_data(void *context, str bytes)
{
    struct listwatch *w = context;
    err_t e;
    w->answered = true;
    if (w->state == LW_STREAMING)
        set_stream_timeout(w, initial_silence_ns, on_initial_timeout);
    int r = feed_body(w, bytes, &e);
    if (r == -ESTALE)
        handle_expired(w, e.text);
    else if (r < 0)
        pause_after_failure(w, e.text);
}

/* The refused part may be the version; if none was sent, it is the streaming list. */
static void handle_streaming_refused(struct listwatch *w, const struct kube_reply *reply)
{
    if (w->rv.n && !w->any_version) {
        w->any_version = true;
    } else {
        w->no_streaming = reply->code < 500;
        w->list_next = true;
    }
    start_next_stream(w);
}

/* The end of a watch: unsupported, absent, expired, failed, or a normal timeout after which we resume. */
static void on_watch_end(void *context, const struct kube_reply *reply)
{
    struct listwatch *w = context;
    w->call = NULL;
    timer_stop(&w->timer);
    w->answered = reply->reason != KUBE_NO_ANSWER;
    str none;
    err_t e;
    if (reply->failure && repeat_in_json(w, reply)) {
        start_next_stream(w);
    } else if (reply->failure && w->state == LW_STREAMING && kube_reply_refuses_streaming(reply)) {
        handle_streaming_refused(w, reply);
    } else if (reply->failure && is_absent(w, reply->reason)) {
        mark_absent(w, reply->reason);
    } else if (reply->failure && kube_is_expired(reply->reason)) {
        handle_expired(w, reply->failure);
    } else if (reply->failure) {
        pause_after_reply(w, reply);
    } else if (w->state == LW_STREAMING) {
        pause_after_failure(w, "watch ended before its initial events were complete");
    } else if (intake_end(&w->intake, NULL, &none, &none, &e) < 0) {
        pause_after_failure(w, e.text);
    } else if (!w->seen && loop_mono_ns(w->loop) - w->started_ns < short_watch_ns) {
        pause_after_failure(w, "watch ended immediately without an event");
    } else {
        w->pause.failures = 0;
        start_next_stream(w);
    }
}

/* ---- pages of a list */

static int on_item(void *context, struct record *record, err_t *e)
{
    struct listwatch *w = context;
    w->seen++;
    return put_record(w, record, e);
}

static void on_list_data(void *context, str bytes)
{
    struct listwatch *w = context;
    err_t e;
    if (feed_body(w, bytes, &e) < 0)
        pause_after_failure(w, e.text);
}

/* Stores the version, and the continue token of the next page, if any. */
static int read_envelope(struct listwatch *w, err_t *e)
{
    auto_arena struct arena a = { 0 };
    str rv, token;
    int r = intake_end(&w->intake, &a, &rv, &token, e);
    r = r < 0 ? r : set_version(w, rv, e);
    r = r < 0 ? r : intake_limit_page(&w->limits, w->seen, token, buf_str(&w->continue_from), e);
    w->seen = 0;
    if (r == 0)
        set_text(&w->continue_from, token);
    return r;
}

/* Counts expired continue tokens: if paging is slower than the server's history, list in one piece. */
static void handle_list_failure(struct listwatch *w, const struct kube_reply *reply)
{
    bool lost_page = w->continue_from.n > 0;
    buf_clear(&w->continue_from);
    w->answered = reply->reason != KUBE_NO_ANSWER;
    if (is_absent(w, reply->reason)) {
        mark_absent(w, reply->reason);
    } else if (kube_is_expired(reply->reason)) {
        w->expired_pages += lost_page;
        handle_expired(w, reply->failure);
    } else {
        pause_after_reply(w, reply);
    }
}

static void request_list_page(struct listwatch *w);

/* The end of a page: the next page, or the list is complete and the watch starts. */
static void on_list_end(void *context, const struct kube_reply *reply)
{
    struct listwatch *w = context;
    w->call = NULL;
    err_t e;
    if (reply->failure && repeat_in_json(w, reply)) {
        request_list_page(w);
    } else if (reply->failure) {
        handle_list_failure(w, reply);
    } else if (read_envelope(w, &e) < 0) {
        buf_clear(&w->continue_from);
        pause_after_failure(w, e.text);
    } else if (w->continue_from.n) {
        request_list_page(w);
    } else {
        mark_synced(w);
        w->stuck = 0;
        start_next_stream(w);
    }
}

/* ---- the next stream */

/* Sends the list or watch request of `query`. */
static void start_stream(struct listwatch *w, enum kube_verb verb, str query)
{
    const struct cache_spec *spec = cache_spec(w->o.cache);
    bool list = verb == KUBE_LIST;
    intake_start(&w->intake, list);
    w->started_ns = loop_mono_ns(w->loop);
    w->answered = false;
    struct kube_stream stream = {
        .request = { .verb = verb,
                     .resource = spec->resource,
                     .ns = spec->ns,
                     .label_selector = spec->label_selector,
                     .field_selector = spec->field_selector,
                     .query = query,
                     .metadata_only = spec->metadata_only,
                     .protobuf = !w->no_protobuf &&
                                 projection_accepts_protobuf(cache_projection(w->o.cache)),
                     .context = w },
        .on_data = list ? on_list_data : on_watch_data,
        .on_end = list ? on_list_end : on_watch_end,
    };
    w->call = kube_stream(w->o.kube, &stream);
}

/* Asks for a state not older than `rv`: another API server, or a restored one, may be behind. */
static bool put_min_version(struct listwatch *w, struct buf *query)
{
    if (!w->rv.n || w->any_version)
        return false;
    buf_put(query, S("&resourceVersion="));
    uri_encode(query, buf_str(&w->rv));
    return true;
}

static void request_list_page(struct listwatch *w)
{
    auto_buf struct buf query = { 0 };
    bool pages = w->expired_pages < EXPIRED_PAGES_MAX;
    if (pages)
        buf_printf(&query, "limit=%lld", (long long)(w->o.page ? w->o.page : 500));
    else
        buf_put(&query, S("resourceVersion="));
    if (pages && !w->continue_from.n && put_min_version(w, &query))
        buf_put(&query, S("&resourceVersionMatch=NotOlderThan"));
    if (w->continue_from.n) {
        buf_put(&query, S("&continue="));
        uri_encode(&query, buf_str(&w->continue_from));
    }
    w->state = LW_LISTING;
    start_stream(w, KUBE_LIST, buf_str(&query));
}

/* Watches from `rv` or starts a streaming list. Random timeouts keep watches from reconnecting at once. */
static void start_watch(struct listwatch *w)
{
    auto_buf struct buf query = { 0 };
    int64_t seconds = WATCH_LEAST_S + random_below(&w->random, WATCH_SPREAD_S + 1);
    buf_printf(&query, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%lld",
               (long long)seconds);
    w->stats.watches++;
    if (w->has_list) {
        buf_put(&query, S("&resourceVersion="));
        uri_encode(&query, buf_str(&w->rv));
        start_stream(w, KUBE_WATCH, buf_str(&query));
        enter_watching(w, seconds);
    } else {
        buf_put(&query, S("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
        put_min_version(w, &query);
        cache_list_begin(w->o.cache);
        w->state = LW_STREAMING;
        start_stream(w, KUBE_WATCH, buf_str(&query));
        set_stream_timeout(w, initial_wait_ns, on_initial_timeout);
    }
}

static void start_next_stream(struct listwatch *w)
{
    w->seen = 0;
    w->limits = (struct intake_limits){ .items_max = w->o.items_max };
    if (w->has_list || !(w->no_streaming || w->list_next)) {
        start_watch(w);
        return;
    }
    w->list_next = false;
    cache_list_begin(w->o.cache);
    buf_clear(&w->continue_from);
    request_list_page(w);
}

/* ---- life */

struct listwatch *listwatch_start(const struct listwatch_options *options)
{
    struct listwatch *w = mem_zero(1, sizeof(*w));
    w->o = *options;
    w->loop = kube_loop(options->kube);
    w->no_streaming = options->no_streaming;
    random_init(&w->random, options->seed, 1);
    intake_init(&w->intake, cache_projection(w->o.cache), on_item, on_event, w);
    w->recovery.recovered = on_server_recovered;
    kube_on_recovery(w->o.kube, &w->recovery);
    start_next_stream(w);
    return w;
}

void listwatch_stop(struct listwatch *w)
{
    if (!w)
        return;
    kube_off_recovery(&w->recovery);
    cancel_call(w);
    intake_done(&w->intake);
    buf_done(&w->rv);
    buf_done(&w->continue_from);
    free(w);
}

const struct listwatch_stats *listwatch_stats(const struct listwatch *w)
{
    return &w->stats;
}
